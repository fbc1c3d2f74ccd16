package server

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// apart is a world without a default partition: the hosts in n tenants by turns,
// the manager's port in each of them.
func (w *world) apart(n int) {
	for i := range n {
		w.give(w.fabric.Self, ib.PKeyBase(1+i), true)
	}
	hosts := 0
	for _, p := range w.hosts {
		if p.Node.Switch == nil && p != w.fabric.Self {
			w.give(p, ib.PKeyBase(1+hosts%n), true)
			hosts++
		}
	}
}

// guardAll has the switch port before each host hold it to its table.
func (w *world) guardAll() {
	for _, n := range w.fabric.Switches() {
		n.Switch.Info.InboundEnforcementCap, n.Switch.Info.OutboundEnforcementCap = true, true
		for i := range n.Ports {
			if q := &n.Ports[i]; q.FacesEnd() {
				q.Info.PartitionEnforcementInbound, q.Info.PartitionEnforcementOutbound = true, true
				q.PKeys, q.PKeysRead = append([]ib.PKey(nil), q.Peer.PKeys...), []bool{true, true}
			}
		}
	}
}

// askedOver sends a request that bears a key, and gives status and key of the answer.
func askedOver(t *testing.T, s *Server, p *observed.Port, key ib.PKey, m *[mad.Size]byte) (mad.Status, ib.PKey) {
	t.Helper()
	s.Receive(0, m, mad.Address{LID: p.Info.LID, QP: 1, PKey: key})
	var out [mad.Size]byte
	to, ok := s.Next(0, &out)
	if !ok || to.LID != p.Info.LID {
		t.Fatalf("no answer to %v", p)
	}
	var h mad.Header
	if err := h.UnmarshalBinary(out[:]); err != nil {
		t.Fatal(err)
	}
	return h.Status, to.PKey
}

func capabilities() *[mad.Size]byte {
	return ask(mad.MethodGet, mad.AttrClassPortInfo, 0, nil, 0)
}

// Whoever asks over its tenant's key is answered over it; over another tenant's
// key, or the default one, nobody is heard.
func TestAnswersGoOverTheKeyThatWasAskedOver(t *testing.T) {
	w := build(2, 2, 4)
	w.apart(3)
	w.guardAll()
	s := w.serve(t, Config{})
	for _, p := range w.hosts {
		if p.Node.Switch != nil || p == w.fabric.Self {
			continue
		}
		own := p.PKeys[0]
		if status, key := askedOver(t, s, p, own, capabilities()); status != mad.StatusOK || key != own {
			t.Errorf("%v over %v: %v over %v", p, own, status, key)
		}
		for _, foreign := range []ib.PKey{0xFFFF, 0x7FFF, (own.Base()%3 + 1).Full()} {
			if status, _ := askedOver(t, s, p, foreign, capabilities()); status != sa.StatusDenied {
				t.Errorf("%v over %v, which it has not: %v", p, foreign, status)
			}
		}
	}
}

// While tables and policy are not the same, a host is heard over what the switch
// port before it lets pass, and not over what it says itself that it holds.
func TestRequestsWhileKeysChange(t *testing.T) {
	w := build(1, 1, 3)
	w.apart(1)
	w.guardAll()
	s := w.serve(t, Config{})
	p := w.hosts[len(w.hosts)-2]
	if p == w.fabric.Self || p.Node.Switch != nil {
		t.Fatal("the world is another")
	}
	p.PKeys[1] = 0xFFFF
	if status, _ := askedOver(t, s, p, 0xFFFF, capabilities()); status != sa.StatusDenied {
		t.Errorf("what it says that it holds: %v", status)
	}
	p.Peer.PKeys[1] = 0xFFFF
	if status, key := askedOver(t, s, p, 0xFFFF, capabilities()); status != mad.StatusOK || key != 0xFFFF {
		t.Errorf("what its switch port lets pass: %v over %v", status, key)
	}
	p.Peer.Info.PartitionEnforcementInbound = false
	if status, _ := askedOver(t, s, p, 0xFFFF, capabilities()); status != sa.StatusDenied {
		t.Errorf("what nobody checks: %v", status)
	}
}

// Reports go over a key that the subscriber and the manager both have now,
// whichever it subscribed over; over none while there is none.
func TestReportsGoOverAKeyOfNow(t *testing.T) {
	w := build(2, 2, 4)
	w.apart(2)
	s := w.serve(t, Config{})
	var p, q *observed.Port // fellows
	for _, h := range w.hosts {
		if h.Node.Switch == nil && h != w.fabric.Self && h.PKeys[0].Base() == 1 {
			p, q = q, h
		}
	}
	all := sa.InformInfo{LIDRangeBegin: 0xFFFF, LIDRangeEnd: 0xFFFF, IsGeneric: 1, Subscribe: 1, Type: 0xFFFF, TrapNumber: 0xFFFF, Producer: 0xFFFFFF, QPN: 1}
	if status, _ := askedOver(t, s, p, 0x8001, ask(mad.MethodSet, sa.AttrInformInfo, 0, &all, 0)); status != mad.StatusOK {
		t.Fatal(status)
	}
	reported := func() (ib.PKey, bool) {
		t.Helper()
		n, err := smp.NewTrap(smp.TrapLinkStateChanged, smp.ProducerCA, q.Info.LID, &smp.LinkStateDetails{LID: q.Info.LID})
		if err != nil {
			t.Fatal(err)
		}
		s.Notice(0, n, q.Info.LID)
		var m [mad.Size]byte
		to, ok := s.Next(0, &m)
		if ok && (mad.Method(m[3]) != mad.MethodReport || to.LID != p.Info.LID) {
			t.Fatalf("%v to %v", mad.Method(m[3]), to)
		}
		return to.PKey, ok
	}
	if key, ok := reported(); !ok || key != 0x8001 {
		t.Errorf("over %v, %v; want 0x8001", key, ok)
	}
	// Its tenant gets another number, at another place.
	for _, h := range []*observed.Port{p, w.fabric.Self} {
		h.PKeys[5] = 0x8003
	}
	p.PKeys[0] = 0
	if key, ok := reported(); !ok || key != 0x8003 {
		t.Errorf("over %v, %v; want 0x8003", key, ok)
	}
	// A limited member is told too; who has nothing in common with the manager is not.
	p.PKeys[5] = 0x0003
	if key, ok := reported(); !ok || key.Base() != 3 {
		t.Errorf("over %v, %v; want 0x0003 or 0x8003", key, ok)
	}
	p.PKeys[5] = 0x8009
	if key, ok := reported(); ok {
		t.Errorf("over %v, though there is no way", key)
	}
}
