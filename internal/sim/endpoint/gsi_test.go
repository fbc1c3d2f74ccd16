package endpoint_test

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/lab/scenario/testbed"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// two opens QP1 of the first two hosts of a fabric that is up.
func two(t *testing.T) (s *testbed.Testbed, a, b *endpoint.GSIPair, to ib.LID, first *endpoint.Device) {
	t.Helper()
	s, err := testbed.New(topology.Demo(), testbed.Config{Fabric: fabric.DefaultConfig(), Timeout: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	var hosts []observed.Place
	for _, n := range s.Topology.Nodes {
		if n.Type == ib.NodeCA {
			hosts = append(hosts, observed.Place{Node: n.GUID, Port: 1})
		}
	}
	if err := s.SendFrom(hosts[2], true); err != nil {
		t.Fatal(err)
	}
	if err := s.BringUp(0); err != nil {
		t.Fatal(err)
	}
	open := func(p observed.Place) (*endpoint.Device, *endpoint.GSIPair) {
		d, err := s.Fabric.Device(p.Node)
		if err != nil {
			t.Fatal(err)
		}
		pair, err := endpoint.OpenGSI(d, p.Port)
		if err != nil {
			t.Fatal(err)
		}
		return d, pair
	}
	first, a = open(hosts[0])
	_, b = open(hosts[1])
	return s, a, b, s.Fabric.Agent(hosts[1].Node).Port(1).LID, first
}

// rest lets happen what is under way.
func rest(s *testbed.Testbed) {
	for s.Fabric.Step() {
	}
}

// TestSendAndReceive: a datagram arrives whole, from the sender's QP1, and the sender may
// use its bytes again at once.
func TestSendAndReceive(t *testing.T) {
	s, a, b, to, _ := two(t)
	m := [mad.Size]byte{0: 1, 255: 0xEE}
	if err := a.Send(&m, endpoint.SendRequest{RemoteQP: ib.QP1, To: endpoint.Address{DLID: to}}); err != nil {
		t.Fatal(err)
	}
	m = [mad.Size]byte{}
	rest(s)
	came := 0
	some := b.Receive(func(c *endpoint.Completion, got *[mad.Size]byte) {
		came++
		if got[0] != 1 || got[255] != 0xEE || c.SrcQP != ib.QP1 || c.SLID == 0 || c.SLID == to {
			t.Errorf("bytes %x, from QP %d at LID %d", got, c.SrcQP, c.SLID)
		}
	})
	if came != 1 || !some {
		t.Errorf("%d datagrams came, some %t", came, some)
	}
	if b.Receive(func(*endpoint.Completion, *[mad.Size]byte) { t.Error("it came twice") }) {
		t.Error("something came again")
	}
}

// TestDepth: no more than Depth are on their way, and a receiver that does not look loses
// what is more than that; afterwards both go on.
func TestDepth(t *testing.T) {
	s, a, b, to, _ := two(t)
	none := func(*endpoint.Completion, *[mad.Size]byte) {}
	send := func(n byte) error {
		return a.Send(&[mad.Size]byte{0: n}, endpoint.SendRequest{RemoteQP: ib.QP1, To: endpoint.Address{DLID: to}})
	}
	for n := range endpoint.GSIDepth {
		if err := send(byte(n)); err != nil || a.Full() != (n == endpoint.GSIDepth-1) {
			t.Fatalf("datagram %d: full %t, %v", n, a.Full(), err)
		}
	}
	if send(0) == nil {
		t.Error("more than Depth are on their way")
	}
	rest(s)
	if a.Receive(none); a.Full() {
		t.Error("what was sent still counts")
	}
	for range 5 {
		if err := send(0xAA); err != nil {
			t.Fatal(err)
		}
	}
	rest(s)
	came := 0
	b.Receive(func(_ *endpoint.Completion, m *[mad.Size]byte) {
		if m[0] != byte(came) {
			t.Errorf("datagram %d is %d", came, m[0])
		}
		came++
	})
	if came != endpoint.GSIDepth {
		t.Errorf("%d came, want the first %d", came, endpoint.GSIDepth)
	}
	a.Receive(none)
	if err := send(7); err != nil {
		t.Fatal(err)
	}
	rest(s)
	came = 0
	b.Receive(func(_ *endpoint.Completion, m *[mad.Size]byte) { came++ })
	if came != 1 {
		t.Errorf("%d came after the receiver had made room, want 1", came)
	}
}

// TestOpen: a port has one QP1, and gives it back.
func TestOpen(t *testing.T) {
	_, a, _, _, device := two(t)
	if _, err := endpoint.OpenGSI(device, 1); err == nil {
		t.Error("QP1 was opened twice")
	}
	a.Close()
	again, err := endpoint.OpenGSI(device, 1)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	if _, err := endpoint.OpenGSI(device, 9); err == nil {
		t.Error("QP1 of a port that does not exist was opened")
	}
}
