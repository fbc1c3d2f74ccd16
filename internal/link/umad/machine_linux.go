package umad

import (
	"io"
	"path/filepath"
	"runtime"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/ib"
)

// Machine is a real machine.
type Machine struct {
	root   string
	origin time.Time
}

// NewMachine is the machine whose /sys and /dev are below root, "/" usually.
func NewMachine(root string) *Machine { return &Machine{root, time.Now()} }

// Now counts from the making of m.
func (m *Machine) Now() time.Duration { return time.Since(m.origin) }

// Sleep sleeps.
func (m *Machine) Sleep(d time.Duration) { time.Sleep(d) }

// Devices lists the adapters.
func (m *Machine) Devices() ([]Device, error) { return Devices(m.root) }

// PKeys is the P_Key table of a port.
func (m *Machine) PKeys(p *Port) (keys []ib.PKey) {
	dir := filepath.Join(m.root, "sys/class/infiniband", p.Device, "ports", strconv.Itoa(int(p.Num)), "pkeys")
	for i := 0; ; i++ {
		text, err := attribute(dir, strconv.Itoa(i))
		if err != nil {
			return keys
		}
		key, err := strconv.ParseUint(text, 0, 16)
		if err != nil {
			return keys
		}
		keys = append(keys, ib.PKey(key))
	}
}

// OpenMAD opens a umad file.
func (m *Machine) OpenMAD(name string) (File, error) { return m.open(name, unix.O_RDWR) }

// OpenIsSM opens an issm file.
func (m *Machine) OpenIsSM(name string) (io.Closer, error) { return m.open(name, unix.O_RDONLY) }

func (m *Machine) open(name string, flags int) (*descriptor, error) {
	for {
		fd, err := unix.Open(filepath.Join(m.root, "dev/infiniband", name), flags|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		return &descriptor{fd}, nil
	}
}

// descriptor is an open file. The runtime's own poller is not asked: the loop
// has one file and wants its errors as they are.
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
