package umad_test

import (
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/umad"
	transport "github.com/ibwarden/ibwarden/internal/link/umad"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/simserve/kernel"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// machine is a host on a simulated fabric: its devices are umad layers, its
// clock is the fabric's.
type machine struct {
	holder transport.Holder // as seen in /proc
	fabric *fabric.Fabric
	place  *fabric.Attachment
	layer  *kernel.Layer
	// devices is what /sys shows while the adapter is there.
	devices []umad.Device
	present bool
	slept   time.Duration
	written int // datagrams
	waits   int
	// before is called once before the wait with this number.
	before map[int]func()
	// general is what left by queue pair 1, where nobody is.
	general []kernel.Packet
}

func newMachine(t *testing.T, topology *topology.Netlist, c fabric.Config) *machine {
	t.Helper()
	f, err := fabric.New(topology, c)
	if err != nil {
		t.Fatal(err)
	}
	node, num, err := topology.Attach("")
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{fabric: f, before: map[int]func(){}}
	if m.place, err = f.Attach(node.GUID, num); err != nil {
		t.Fatal(err)
	}
	m.devices = []umad.Device{{Name: "mlx5_0", Type: "CA", NodeGUID: node.GUID, Ports: []umad.Port{{
		Device: "mlx5_0", Num: num, GUID: node.Ports[num].GUID, State: "INIT", Physical: "LinkUp",
		LinkLayer: "InfiniBand", MAD: "umad0", IsSM: "issm0",
	}}}}
	m.plug()
	return m
}

// plug brings the adapter, unplug takes it.
func (m *machine) plug() {
	m.present = true
	m.layer = kernel.New(kernel.Config{Port: m.devices[0].Ports[0].Num, Agent: m.place.Local})
}

func (m *machine) unplug() {
	m.layer.Remove()
	m.present = false
}

func (m *machine) Now() time.Duration { return m.fabric.Now() }

func (m *machine) Sleep(d time.Duration) {
	m.slept += d
	m.run(m.Now()+d, func() bool { return false })
}

func (m *machine) Devices() ([]umad.Device, error) {
	if !m.present {
		return nil, nil
	}
	return m.devices, nil
}

func (m *machine) PKeys(p *umad.Port) []ib.PKey {
	return m.fabric.Agent(m.devices[0].NodeGUID).PKeys(p.Num)
}

func (m *machine) OpenMAD(name string) (umad.File, error) {
	if !m.present || name != m.devices[0].Ports[0].MAD {
		return nil, syscall.ENOENT
	}
	f, errno := m.layer.Open()
	return &file{m, m.layer, f}, problem(errno)
}

func (m *machine) Holder(*umad.Port, ...string) (transport.Holder, bool) {
	return m.holder, m.holder.PID != 0
}

func (m *machine) OpenIsSM(name string) (io.Closer, error) {
	if !m.present || name != m.devices[0].Ports[0].IsSM {
		return nil, syscall.ENOENT
	}
	if errno := m.layer.OpenIsSM(); errno != umad.OK {
		return nil, problem(errno)
	}
	m.announce()
	return issm{m, m.layer}, nil
}

func (m *machine) announce() { m.place.SetIsSM(m.layer.IsSM()) }

type issm struct {
	m     *machine
	layer *kernel.Layer
}

func (i issm) Close() error {
	i.layer.CloseIsSM()
	i.m.announce()
	return nil
}

func problem(e umad.Errno) error {
	if e == umad.OK {
		return nil
	}
	return syscall.Errno(e)
}

// run moves packets and time until the time or until is true.
func (m *machine) run(end time.Duration, until func() bool) {
	var out kernel.Packet
	var in fabric.Delivery
	for {
		for m.layer.Next(m.Now(), &out) {
			if out.QP == 1 {
				m.general = append(m.general, out)
				continue
			}
			m.place.Send(&out.MAD, out.LID)
		}
		for m.place.Receive(&in) {
			m.layer.Receive(m.Now(), &kernel.Packet{MAD: in.MAD, Address: kernel.Address{LID: in.SLID}})
		}
		if until() || m.Now() >= end {
			return
		}
		next := end
		if at, ok := m.fabric.NextEvent(); ok {
			next = min(next, at)
		}
		if at, ok := m.layer.Deadline(); ok {
			next = min(next, at)
		}
		m.fabric.AdvanceTo(max(next, m.Now()))
		m.layer.Expire(m.Now())
	}
}

// file is an open umad file of a machine.
type file struct {
	m     *machine
	layer *kernel.Layer
	f     *kernel.File
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
	f.m.written++
	n, errno := f.f.Write(f.m.Now(), b)
	return n, problem(errno)
}

func (f *file) Wait(d time.Duration) (bool, error) {
	f.m.waits++
	if call := f.m.before[f.m.waits]; call != nil {
		call()
	}
	f.m.run(f.m.Now()+d, func() bool { return f.f.Poll()&(kernel.PollIn|kernel.PollErr) != 0 })
	switch events := f.f.Poll(); {
	case events&kernel.PollErr != 0:
		return false, syscall.EIO
	default:
		return events&kernel.PollIn != 0, nil
	}
}

func (f *file) Close() error {
	f.f.Close()
	return nil
}

// guidOf is the port GUID of the machine's port.
func (m *machine) guidOf() ib.PortGUID { return m.devices[0].Ports[0].GUID }
