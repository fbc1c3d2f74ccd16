package umadtest

import (
	"syscall"
	"time"

	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/simserve/kernel"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// Host is a host of a fabric that has one.
type Host struct {
	Fabric *fabric.Fabric
	place  *fabric.Attachment
	layer  *kernel.Layer
}

// New powers a fabric on and takes the place of one of its hosts: the topology's own
// choice for an empty name.
func New(t *topology.Netlist, name string) (*Host, error) {
	f, err := fabric.New(t, fabric.DefaultConfig())
	if err != nil {
		return nil, err
	}
	node, num, err := t.Attach(name)
	if err != nil {
		return nil, err
	}
	place, err := f.Attach(node.GUID, num)
	if err != nil {
		return nil, err
	}
	return &Host{Fabric: f, place: place, layer: kernel.New(kernel.Config{Port: num, Agent: place.Local})}, nil
}

// OpenMAD opens the host's umad file.
func (h *Host) OpenMAD() (umad.File, error) {
	f, errno := h.layer.Open()
	if errno != umad.OK {
		return nil, syscall.Errno(errno)
	}
	return &file{h, f}, nil
}

// Remove takes the adapter out.
func (h *Host) Remove() { h.layer.Remove() }

// run moves packets and time until the time or until is true.
func (h *Host) run(end time.Duration, until func() bool) {
	var out kernel.Packet
	var in fabric.Delivery
	for {
		for h.layer.Next(h.Fabric.Now(), &out) {
			if out.QP == 0 {
				h.place.Send(&out.MAD, out.LID)
			}
		}
		for h.place.Receive(&in) {
			h.layer.Receive(h.Fabric.Now(), &kernel.Packet{MAD: in.MAD, Address: kernel.Address{LID: in.SLID}})
		}
		if until() || h.Fabric.Now() >= end {
			return
		}
		next := end
		if at, ok := h.Fabric.NextEvent(); ok {
			next = min(next, at)
		}
		if at, ok := h.layer.Deadline(); ok {
			next = min(next, at)
		}
		h.Fabric.AdvanceTo(max(next, h.Fabric.Now()))
		h.layer.Expire(h.Fabric.Now())
	}
}

type file struct {
	host *Host
	f    *kernel.File
}

func problem(e umad.Errno) error {
	if e == umad.OK {
		return nil
	}
	return syscall.Errno(e)
}

func (f *file) Ioctl(command uint32, argument []byte) error {
	out, errno := f.f.Ioctl(command, argument)
	copy(argument, out)
	return problem(errno)
}

func (f *file) Read(b []byte) (int, error) {
	out, errno := f.f.Read(len(b))
	return copy(b, out), problem(errno)
}

func (f *file) Write(b []byte) (int, error) {
	n, errno := f.f.Write(f.host.Fabric.Now(), b)
	return n, problem(errno)
}

func (f *file) Wait(d time.Duration) (bool, error) {
	f.host.run(f.host.Fabric.Now()+d, func() bool { return f.f.Poll()&(kernel.PollIn|kernel.PollErr) != 0 })
	if f.f.Poll()&kernel.PollErr != 0 {
		return false, syscall.EIO
	}
	return f.f.Poll()&kernel.PollIn != 0, nil
}

func (f *file) Close() error {
	f.f.Close()
	return nil
}
