package plug

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// simulator serves the demonstration fabric.
type simulator struct {
	t      *testing.T
	name   string
	mu     sync.Mutex
	fabric *fabric.Fabric
	list   *topology.Netlist
	server *Server
}

func (s *simulator) Do(call func(*fabric.Fabric)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	call(s.fabric)
	s.fabric.AdvanceTo(s.fabric.Now() + time.Millisecond)
	return nil
}

func (s *simulator) Topology() *topology.Netlist { return s.list }

func serving(t *testing.T) *simulator {
	t.Helper()
	s := &simulator{t: t, list: topology.Demo(), name: fmt.Sprintf("plug-test-%d-%s", os.Getpid(), t.Name())}
	var err error
	if s.fabric, err = fabric.New(s.list, fabric.DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	l, err := Listen(s.name)
	if err != nil {
		t.Fatal(err)
	}
	s.server = New(s)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.server.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := s.fabric.Reboot(s.node("red-1")); err != nil {
			t.Error("the host is not back:", err)
		}
	})
	return s
}

func (s *simulator) node(name string) ib.NodeGUID {
	n, err := s.list.Find(name)
	if err != nil {
		s.t.Fatal(err)
	}
	return n.GUID
}

// until waits until something is true of the fabric.
func (s *simulator) until(what string, done func(*fabric.Fabric) bool) {
	s.t.Helper()
	need.Eventually(s.t, need.Patience, what, func() (is bool) {
		_ = s.Do(func(f *fabric.Fabric) { is = done(f) })
		return is
	})
}

// cable keeps what comes.
type cable chan string

func (c cable) LinkUp(w smp.LinkWidth, s smp.LinkSpeed) { c <- fmt.Sprint("up ", w, " ", s) }
func (c cable) LinkDown()                               { c <- "down" }
func (c cable) Receive(bytes []byte)                    { c <- fmt.Sprintf("packet of %d bytes", len(bytes)) }

func (c cable) want(t *testing.T, text string) {
	t.Helper()
	select {
	case got := <-c:
		if got != text {
			t.Errorf("the cable brings %q, want %q", got, text)
		}
	case <-time.After(time.Minute):
		t.Errorf("the cable brings nothing, want %q", text)
	}
}

// TestDevice: a program is the device of a host, as long as it is there.
func TestDevice(t *testing.T) {
	s := serving(t)
	d, err := Dial(s.name, "red-1")
	if err != nil {
		t.Fatal(err)
	}
	if d.Node != s.node("red-1") || d.Description != "red-1 HCA-1" || d.Port != ib.PortGUID(d.Node)+1 {
		t.Errorf("the node is %v, port %v, %q", d.Node, d.Port, d.Description)
	}
	if _, err := Dial(s.name, "red-1"); err == nil || !strings.Contains(err.Error(), "a device is there already") {
		t.Errorf("two devices in one place: %v", err)
	}
	c := make(cable, 10)
	ended := make(chan error, 1)
	go func() { ended <- d.Run(c) }()
	if err := d.Poll(true, smp.LinkWidth4X, smp.LinkSpeedSDR); err != nil {
		t.Fatal(err)
	}
	c.want(t, "up 4X 2.5 Gbps")

	// One hop to its switch: the agent there answers, through the cable.
	m := mad.SMP{BaseVersion: 1, Class: mad.ClassSubnDirected, ClassVersion: 1, Method: mad.MethodGet, AttributeID: smp.AttrNodeInfo, HopCount: 1, HopPointer: 1, DrSLID: ib.LIDPermissive, DrDLID: ib.LIDPermissive}
	m.InitialPath[1] = 1
	var bytes [mad.Size]byte
	if err := m.Encode(&bytes); err != nil {
		t.Fatal(err)
	}
	p, err := (&packet.MADPacket{QP: ib.QP0, SLID: ib.LIDPermissive, DLID: ib.LIDPermissive, MAD: bytes[:]}).AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Send(p); err != nil {
		t.Fatal(err)
	}
	c.want(t, fmt.Sprintf("packet of %d bytes", len(p)))

	_ = s.Do(func(f *fabric.Fabric) { err = f.Unlink(d.Node, 1) })
	if err != nil {
		t.Fatal(err)
	}
	c.want(t, "down")
	d.Close()
	<-ended
	s.until("the host is back", func(f *fabric.Fabric) bool { _, err := f.Device(s.node("red-1")); return err == nil })
}

// TestHostile: what is no device is refused, and told why; nothing that it sends ends the simulator.
func TestHostile(t *testing.T) {
	s := serving(t)
	for node, want := range map[string]string{"leaf-1": "want a CA", "nobody": "nobody", "": "", strings.Repeat("x", 5000): ""} {
		if _, err := Dial(s.name, node); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("as %.20q: %v, want %q", node, err, want)
		}
	}
	for what, sent := range map[string]string{
		"a packet before the name": "p\x00\x01x", "no kind": "\x00\x00\x00", "too long": "n\xff\xff", "half a message": "n\x00\x05re",
	} {
		c, err := net.DialUnix("unix", nil, address(s.name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte(sent)); err != nil {
			t.Error(err)
		}
		c.CloseWrite()
		var buf [messageMax]byte
		if kind, _, err := readMessage(c, &buf); kind != kindRefuse {
			t.Errorf("%s: answered by %q, %v", what, kind, err)
		}
		c.Close()
	}
	for what, send := range map[string]func(*Device) error{
		"another kind":    func(d *Device) error { return d.write('z', nil) },
		"an empty packet": func(d *Device) error { return d.Send(nil) },
		"a short state":   func(d *Device) error { return d.write(kindPoll, []byte{1}) },
	} {
		d, err := Dial(s.name, "red-1")
		if err != nil {
			t.Fatal(what, err)
		}
		if err := send(d); err != nil {
			t.Error(err)
		}
		if err := d.Run(make(cable, 10)); err == nil || !strings.Contains(err.Error(), "want") {
			t.Errorf("%s: %v, want to be told why it ends", what, err)
		}
		d.Close()
		s.until("the host is back", func(f *fabric.Fabric) bool { _, err := f.Device(s.node("red-1")); return err == nil })
	}
}

// TestRubbish: bytes that are no packets go onto the cable, and hurt nobody.
func TestRubbish(t *testing.T) {
	s := serving(t)
	d, err := Dial(s.name, "red-1")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Poll(true, 0xff, 0xff); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= packet.MaxSize; n += 97 {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i * n)
		}
		if err := d.Send(b); err != nil {
			t.Fatal(err)
		}
	}
	s.until("all of it has arrived somewhere", func(f *fabric.Fabric) bool {
		c := f.DataCounts()
		return c[fabric.OutcomeVCRC]+c[fabric.OutcomeMalformed]+c[fabric.OutcomeEntryLane]+c[fabric.OutcomeEntryState]+c[fabric.OutcomeLinkDown] > 50 && f.DataInFlight() == 0
	})
}

// TestSlowReader: a device that takes nothing holds up nobody, and its link's state is not lost.
func TestSlowReader(t *testing.T) {
	s := serving(t)
	d, err := Dial(s.name, "red-1")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Poll(true, smp.LinkWidth4X, smp.LinkSpeedSDR); err != nil {
		t.Fatal(err)
	}
	s.until("the link is up", func(f *fabric.Fabric) bool {
		return f.Agent(s.node("red-1")).Port(1).PortPhysicalState == smp.PhysLinkUp
	})
	own := &device{out: make(chan message, queueMax)}
	for range 2 * queueMax {
		own.Receive(make([]byte, 100))
	}
	own.LinkDown()
	n := len(own.out)
	for range n - 1 {
		<-own.out
	}
	if last := <-own.out; n != queueMax-stateRoom+1 || last.kind != kindDown {
		t.Errorf("%d messages wait, the last of kind %q", n, last.kind)
	}
}

// TestUsers: root and the owner of the simulator have devices, others do not.
func TestUsers(t *testing.T) {
	s := serving(t)
	need.AsUser(t, need.Nobody, func() {
		if _, err := Dial(s.name, "red-1"); err == nil || !strings.Contains(err.Error(), "may not use this simulator") {
			t.Errorf("another user: %v", err)
		}
	})
	if _, err := Dial(s.name+"-none", "red-1"); err == nil || !strings.Contains(err.Error(), "no fabric is served") {
		t.Errorf("without a simulator: %v", err)
	}
	if _, err := Listen(s.name); err == nil || !strings.Contains(err.Error(), "another simulator of this name") {
		t.Errorf("two simulators of one name: %v", err)
	}
}
