package umadfs

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/simserve/fuse"
	"github.com/ibwarden/ibwarden/internal/simserve/kernel"
)

// umadDevice is /dev/infiniband/umadN.
type umadDevice struct {
	port *port
	now  func() time.Duration
}

func (d *umadDevice) Open(o *fuse.Opening) {
	u, errno := d.port.layer.Open()
	if errno != umad.OK {
		o.Reply(nil, unix.Errno(errno))
		return
	}
	f := &file{device: d, umad: u, wake: o.Wake}
	if !o.Reply(f, 0) {
		u.Close()
		return
	}
	d.port.files[u] = f
}

// file is an open umadN.
type file struct {
	device  *umadDevice
	umad    *kernel.File
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
			data, errno = f.umad.Read(r.Size)
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
	f.device.port.follow()
	n, errno := f.umad.Write(f.device.now(), data)
	return n, unix.Errno(errno)
}

func (f *file) Ioctl(command uint32, argument []byte) ([]byte, unix.Errno) {
	out, errno := f.umad.Ioctl(command, argument)
	return out, unix.Errno(errno)
}

func (f *file) Poll() uint32 {
	if f.kept != nil {
		return f.umad.Poll() | kernel.PollIn | kernel.PollReadNor
	}
	return f.umad.Poll()
}

func (f *file) Close() {
	delete(f.device.port.files, f.umad)
	f.umad.Close()
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
