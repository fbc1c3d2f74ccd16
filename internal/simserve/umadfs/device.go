package umadfs

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/simserve/fuse"
	"github.com/ibwarden/ibwarden/internal/simserve/kernel"
)

// File is what is behind an open umadN: a kernel.File, or another of the same ABI. It is
// used one call at a time.
type File interface {
	// Ioctl returns what is written back to the program's argument, with an error too.
	Ioctl(command uint32, argument []byte) ([]byte, umad.Errno)
	// Write takes a header and a datagram, which are its own, and returns the bytes taken.
	Write(bytes []byte) (int, umad.Errno)
	// Read takes the first message that fits into room bytes. It answers EAGAIN when there
	// is none, and ENOSPC, with the header and the first datagram, when the message is
	// longer; it then stays.
	Read(room int) ([]byte, umad.Errno)
	// Poll is the set of events that are true now.
	Poll() uint32
	Close()
}

// Device is /dev/infiniband/umadN. Each program that opens it gets what open returns; news
// is called where the tree may be touched, when there is something to read.
type Device struct {
	open func(news func()) (File, umad.Errno)
}

// NewDevice returns a device of which open opens the files.
func NewDevice(open func(news func()) (File, umad.Errno)) *Device { return &Device{open} }

// Open implements fuse.Device.
func (d *Device) Open(o *fuse.Opening) {
	f := &file{wake: o.Wake}
	inner, errno := d.open(func() { f.ready() })
	if errno != umad.OK {
		o.Reply(nil, unix.Errno(errno))
		return
	}
	f.File = inner
	if !o.Reply(f, 0) {
		inner.Close()
	}
}

// layered is a file of a port's layer.
type layered struct {
	*kernel.File
	port *port
	now  func() time.Duration
}

// open opens umadN of a port.
func (p *port) open(now func() time.Duration) func(news func()) (File, umad.Errno) {
	return func(news func()) (File, umad.Errno) {
		u, errno := p.layer.Open()
		if errno != umad.OK {
			return nil, errno
		}
		p.files[u] = news
		return &layered{u, p, now}, umad.OK
	}
}

func (f *layered) Write(bytes []byte) (int, umad.Errno) {
	f.port.follow()
	return f.File.Write(f.now(), bytes)
}

func (f *layered) Close() {
	delete(f.port.files, f.File)
	f.File.Close()
}

// file is an open umadN.
type file struct {
	File
	wake    func()
	readers []*fuse.Reading
	// kept is a message whose reader was gone when it got it.
	kept []byte
}

func (f *file) Read(r *fuse.Reading) {
	f.readers = append(f.readers, r)
	f.serve()
}

// serve lets those read who wait, the first first.
func (f *file) serve() {
	for len(f.readers) > 0 {
		r := f.readers[0]
		if r.Abandoned() {
			f.readers = f.readers[1:]
			continue
		}
		data, errno := f.kept, umad.OK
		if data == nil {
			data, errno = f.File.Read(r.Size)
		}
		if errno == umad.EAGAIN && !r.NonBlocking {
			return
		}
		f.readers = f.readers[1:]
		if errno == umad.ENOSPC {
			// libibumad takes the length of the message from the header. Where
			// it cannot be had, the buffer stays as it was.
			_ = r.Deposit(data)
		}
		if taken := r.Reply(data, unix.Errno(errno)); !taken && errno == umad.OK {
			f.kept = data
		} else if errno == umad.OK {
			f.kept = nil
		}
	}
}

// ready is called when there is something to read.
func (f *file) ready() {
	f.serve()
	f.wake()
}

func (f *file) Write(data []byte) (int, unix.Errno) {
	n, errno := f.File.Write(data)
	return n, unix.Errno(errno)
}

func (f *file) Ioctl(command uint32, argument []byte) ([]byte, unix.Errno) {
	out, errno := f.File.Ioctl(command, argument)
	return out, unix.Errno(errno)
}

func (f *file) Poll() uint32 {
	if f.kept != nil {
		return f.File.Poll() | kernel.PollIn | kernel.PollReadNor
	}
	return f.File.Poll()
}

// managerDevice is /dev/infiniband/issmN: as long as it is open the port says
// that a subnet manager is there.
type managerDevice struct{ port *port }

type managerOpening struct {
	*fuse.Opening
	handle *managerFile
}

func (d *managerDevice) Open(o *fuse.Opening) {
	p := d.port
	switch errno := p.layer.OpenIsSM(); {
	case errno == umad.EAGAIN && o.Flags&unix.O_NONBLOCK == 0:
		p.waiting = append(p.waiting, &managerOpening{o, &managerFile{p}})
	case errno != umad.OK:
		o.Reply(nil, unix.Errno(errno))
	case !o.Reply(&managerFile{p}, 0):
		p.layer.CloseIsSM()
	default:
		p.smi.SetIsSM(true)
	}
}

// managerFile is an open issmN.
type managerFile struct{ port *port }

// Close gives the place to the first who waits for it.
func (f *managerFile) Close() {
	p := f.port
	p.layer.CloseIsSM()
	for len(p.waiting) > 0 {
		next := p.waiting[0]
		p.waiting = slices.Delete(p.waiting, 0, 1)
		if next.Abandoned() || p.layer.OpenIsSM() != umad.OK {
			continue
		}
		if next.Reply(next.handle, 0) {
			return
		}
		p.layer.CloseIsSM()
	}
	p.smi.SetIsSM(false)
}

func (f *managerFile) Read(r *fuse.Reading)                      { r.Reply(nil, unix.EINVAL) }
func (f *managerFile) Write([]byte) (int, unix.Errno)            { return 0, unix.EINVAL }
func (f *managerFile) Ioctl(uint32, []byte) ([]byte, unix.Errno) { return nil, unix.ENOTTY }
func (f *managerFile) Poll() uint32                              { return unix.POLLIN | unix.POLLOUT }
