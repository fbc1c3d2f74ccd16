package umad

import (
	"encoding/binary"
	"io"
	"path/filepath"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errPlatform is nil: this is Linux, which has these devices.
var errPlatform error

// OpenFile opens a file of /dev/infiniband, such as umad0, below root for reading and
// writing that never waits.
//
// It is a Waker.
func OpenFile(root, name string) (File, error) {
	d, err := open(root, name, unix.O_RDWR)
	if err != nil {
		return nil, err
	}
	if d.wake, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		d.wake = -1
		d.Close()
		return nil, err
	}
	return d, nil
}

// OpenIsSM opens an issm file: the port has IsSM set until
// the file is closed.
func OpenIsSM(root, name string) (io.Closer, error) { return open(root, name, unix.O_RDONLY) }

func open(root, name string, flags int) (*descriptor, error) {
	for {
		fd, err := unix.Open(filepath.Join(root, "dev/infiniband", name), flags|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		return &descriptor{fd: fd, wake: -1}, nil
	}
}

// descriptor is an open file. It does not use the runtime's poller: a caller has one file
// and wants its errors unchanged.
type descriptor struct {
	fd int
	// wake is an eventfd that ends a wait; -1 for none. guard is for those who wake while
	// another closes.
	guard sync.Mutex
	wake  int
}

func (d *descriptor) Close() error {
	d.guard.Lock()
	if d.wake >= 0 {
		unix.Close(d.wake)
	}
	d.wake = -1
	d.guard.Unlock()
	return unix.Close(d.fd)
}

// Wake implements Waker.
func (d *descriptor) Wake() {
	d.guard.Lock()
	defer d.guard.Unlock()
	if d.wake >= 0 {
		one := binary.NativeEndian.AppendUint64(nil, 1)
		_, _ = unix.Write(d.wake, one) // a counter that is full wakes too
	}
}

func (d *descriptor) Read(b []byte) (n int, err error) {
	for {
		if n, err = unix.Read(d.fd, b); err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

func (d *descriptor) Write(b []byte) (n int, err error) {
	for {
		if n, err = unix.Write(d.fd, b); err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

func (d *descriptor) Ioctl(command uint32, argument []byte) error {
	var p unsafe.Pointer
	if len(argument) > 0 {
		p = unsafe.Pointer(&argument[0])
	}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(d.fd), uintptr(command), uintptr(p))
	runtime.KeepAlive(argument)
	if errno != 0 {
		return errno
	}
	return nil
}

func (d *descriptor) Wait(timeout time.Duration) (bool, error) {
	fds := []unix.PollFd{{Fd: int32(d.fd), Events: unix.POLLIN}, {Fd: int32(d.wake), Events: unix.POLLIN}} // -1 is passed over
	ts := unix.NsecToTimespec(max(timeout, 0).Nanoseconds())
	n, err := unix.Ppoll(fds, &ts, nil)
	switch {
	case err == unix.EINTR || err == nil && n == 0:
		return false, nil
	case err != nil:
		return false, err
	}
	if fds[1].Revents != 0 {
		var counted [8]byte
		_, _ = unix.Read(d.wake, counted[:]) // so that the next wait waits
	}
	switch {
	case fds[0].Revents == 0:
		return false, nil // woken
	case fds[0].Revents&unix.POLLIN == 0:
		return false, unix.EIO // an error or a hang-up
	}
	return true, nil
}
