package umad

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/ibwarden/ibwarden/ib"
)

// Place names a port; the zero Place is the first that is in use.
type Place struct {
	Device string
	Num    ib.PortNum // 0: the device's first that is in use
	GUID   ib.PortGUID
}

// ParsePlace reads DEVICE or DEVICE/PORT.
func ParsePlace(s string) (p Place, err error) {
	name, num, has := strings.Cut(s, "/")
	p.Device = name
	if has {
		n, err := strconv.ParseUint(num, 10, 8)
		if err != nil || n == 0 || name == "" {
			return p, fmt.Errorf("umad:%s: want umad:DEVICE/PORT with a port from 1 to 255", s)
		}
		p.Num = ib.PortNum(n)
	}
	return p, nil
}

// matches reports whether the place may be this port.
func (w *Place) matches(p *Port) bool {
	return (w.Device == "" || w.Device == p.Device) && (w.Num == 0 || w.Num == p.Num) && (w.GUID == 0 || w.GUID == p.GUID)
}

func (w *Place) String() string {
	var parts []string
	if w.Device != "" {
		parts = append(parts, "device "+w.Device)
	}
	if w.Num != 0 {
		parts = append(parts, fmt.Sprintf("port %d", w.Num))
	}
	if w.GUID != 0 {
		parts = append(parts, "port GUID "+w.GUID.String())
	}
	return strings.Join(parts, ", ")
}

// String is the port as people name it.
func (p *Port) String() string { return fmt.Sprintf("%s port %d", p.Device, p.Num) }

// Choose finds the port of a Place; a port that cannot be used is an error
// that says why.
func Choose(devices []Device, w Place) (Port, error) {
	if len(devices) == 0 {
		return Port{}, ErrNoDevice
	}
	var names []string
	var meant []Port
	for _, d := range devices {
		for _, p := range d.Ports {
			names = append(names, fmt.Sprintf("%s/%d", d.Name, p.Num))
			if w.matches(&p) {
				meant = append(meant, p)
			}
		}
	}
	if len(meant) == 0 {
		return Port{}, fmt.Errorf("no %s; there are %s", w.String(), strings.Join(names, ", "))
	}
	var first error
	for _, p := range meant {
		err := p.Usable()
		if err == nil {
			return p, nil
		}
		if first == nil || errors.Is(first, errEthernet) && !errors.Is(err, errEthernet) {
			first = err // a port that is down is the better reason than one that is no InfiniBand
		}
	}
	return Port{}, first
}

var errEthernet = errors.New("its link layer is Ethernet (RoCE), which has no subnet manager: want a port whose link layer is InfiniBand")

// Usable is an error that says why, where the port has no subnet management or no
// link.
func (p *Port) Usable() error {
	switch {
	case p.LinkLayer != linkInfiniBand:
		return fmt.Errorf("%s: %w", p, errEthernet)
	case p.MAD == "":
		return fmt.Errorf("%s: %w", p, ErrNoModule)
	case slices.Contains([]string{"DOWN", "NOP"}, p.State):
		return fmt.Errorf("%s is down (physical state %s): is there a cable, and is the other end powered?", p, p.Physical)
	}
	return nil
}

// Explain describes an error of a system call on one of the files.
func Explain(file string, err error) error {
	var what string
	switch {
	case errors.Is(err, fs.ErrPermission):
		what = "no permission: run as root, or as a user who may read and write this file"
	case errors.Is(err, fs.ErrNotExist):
		what = "the kernel has this device but /dev has not: udev is not running, or the file was not passed into this container"
	case errors.Is(err, syscall.EAGAIN):
		what = "another subnet manager holds it on this port"
	case IsGone(err):
		what = "the device is gone"
	default:
		return fmt.Errorf("/dev/infiniband/%s: %w", file, err)
	}
	return fmt.Errorf("/dev/infiniband/%s: %s: %w", file, what, err)
}

// IsGone reports whether an error means that the device was removed.
func IsGone(err error) bool {
	for _, e := range []syscall.Errno{syscall.EIO, syscall.ENODEV, syscall.ENXIO, syscall.EPIPE} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
