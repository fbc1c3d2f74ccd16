package umad

import (
	"io"
	"path/filepath"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errPlatform is nil: this is Linux, which has these devices.
var errPlatform error

// OpenFile opens a file of /dev/infiniband, such as umad0, below root for reading and
// writing that never waits.
func OpenFile(root, name string) (File, error) { return open(root, name, unix.O_RDWR) }

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
		return &descriptor{fd}, nil
	}
}

// descriptor is an open file. It does not use the runtime's poller: a caller has one file
// and wants its errors unchanged.
type descriptor struct{ fd int }

func (d *descriptor) Close() error { return unix.Close(d.fd) }

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
	fds := []unix.PollFd{{Fd: int32(d.fd), Events: unix.POLLIN}}
	ts := unix.NsecToTimespec(max(timeout, 0).Nanoseconds())
	n, err := unix.Ppoll(fds, &ts, nil)
	switch {
	case err == unix.EINTR || err == nil && n == 0:
		return false, nil
	case err != nil:
		return false, err
	case fds[0].Revents&unix.POLLIN == 0:
		return false, unix.EIO // an error or a hang-up
	}
	return true, nil
}
