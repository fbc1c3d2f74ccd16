package shadow

import (
	"fmt"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// site is two leaves with two hosts each, and a policy that gives a partition to each leaf.
type site struct {
	*subnettest.Builder
	hosts   []*observed.Port
	allowed []observed.Partition
	ledger  *Ledger
	at      time.Time
}

func newSite() *site {
	s := &site{Builder: subnettest.New(), ledger: NewLedger(nil), at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	spine := s.Switch(4, "spine")
	s.allowed = []observed.Partition{{Name: "one", Base: 1}, {Name: "two", Base: 2}}
	for l := range s.allowed {
		leaf := s.Switch(4, fmt.Sprint("leaf-", l))
		subnettest.Cable(&leaf.Ports[4], &spine.Ports[l+1])
		for range 2 {
			h := s.Host(leaf, fmt.Sprint("host-", len(s.hosts)))
			s.hosts = append(s.hosts, h)
			s.allowed[l].Full = append(s.allowed[l].Full, h.GUID)
			for _, p := range []*observed.Port{h, h.Peer} {
				subnettest.SetPKeys(p, ib.PKey(0x8001+l))
			}
			subnettest.Enforce(h.Peer, true, true)
		}
	}
	s.Fabric.Self = s.hosts[0]
	s.Route()
	return s
}

// round gives the spans that are recorded of a round, a minute after the last.
func (s *site) round(t *testing.T, missing bool, unread ...Place) (spans []Span) {
	t.Helper()
	s.at = s.at.Add(time.Minute)
	for _, r := range s.ledger.Round(Input{At: s.at, Took: time.Second, Every: time.Minute, Fabric: s.Fabric, Allowed: s.allowed, Missing: missing, Unread: unread}) {
		if r.Span != nil {
			spans = append(spans, *r.Span)
		}
	}
	return spans
}

// TestUnreadEndsNothing: an exposure that a round without some table does not show goes on, and ends
// with the first round that shows that it is over; nothing of it is said twice.
func TestUnreadEndsNothing(t *testing.T) {
	s := newSite()
	if x := s.round(t, false); len(x) != 0 {
		t.Fatalf("%+v", x)
	}
	clean := s.at
	s.hosts[0].PKeys[5] = 0x8002
	x := s.round(t, false)
	begun := s.at
	if len(x) != 2 || x[0].Kind != Exposure || x[0].B.GUID != s.hosts[2].GUID || !x[0].Began.Equal(begun) || !x[0].After.Equal(clean) || x[0].A.Partitions[0] != "one" {
		t.Fatalf("%+v", x)
	}
	if x := s.round(t, false); len(x) != 0 {
		t.Fatalf("again: %+v", x)
	}
	seen := s.at
	s.hosts[0].PKeys[5] = 0
	for range 2 { // another port's table is missing
		s.hosts[3].PKeysRead[0] = false
		x = s.round(t, false)
	}
	if len(x) != 0 || len(s.ledger.Open()) != 3 {
		t.Fatalf("not read: %+v of %+v", x, s.ledger.Open())
	}
	s.hosts[3].PKeysRead[0] = true
	x = s.round(t, true, Place{"there", "no answer"})
	if len(x) != 2 || x[0].Kind != Unread || x[0].Text != "no answer" || x[1].Kind != Unread || x[1].Ended.IsZero() {
		t.Fatalf("missing: %+v", x)
	}
	x = s.round(t, false)
	if len(x) != 3 || x[0].Kind != Exposure || !x[0].Ended.Equal(s.at) || !x[0].Last.Equal(seen) || !x[0].Began.Equal(begun) || !x[0].Unseen.IsZero() {
		t.Fatalf("over: %+v", x)
	}
}

// TestGoneWithItsSwitch: what was at a port whose switch has gone is not over; where the switch says
// that nothing is there any more, it is.
func TestGoneWithItsSwitch(t *testing.T) {
	for name, gone := range map[string]bool{"host": true, "leaf": false} {
		s := newSite()
		s.hosts[1].PKeys[5] = 0x8002
		s.round(t, false)
		less := newSite()
		away := less.hosts[2:]
		if name == "leaf" {
			leaf := away[0].Peer.Node
			less.Fabric.Nodes = nil
			for _, n := range newSite().Fabric.Nodes {
				if n.GUID() != leaf.GUID() && n.GUID() != away[0].Node.GUID() && n.GUID() != away[1].Node.GUID() {
					less.Fabric.Nodes = append(less.Fabric.Nodes, n)
				}
			}
		}
		f := observed.NewFabric()
		for _, n := range less.Fabric.Nodes {
			if n != away[0].Node && n != away[1].Node {
				f.Adopt(n)
			}
		}
		for _, n := range f.Nodes {
			for i := range n.Ports {
				if p := &n.Ports[i]; p.Peer != nil && f.Node(p.Peer.Node.GUID()) == nil {
					p.Peer, p.Info.PortState = nil, smp.PortDown
				}
			}
		}
		f.Self = f.Nodes[0].Port(0)
		s.Fabric = f
		x := s.round(t, false)
		for _, o := range x {
			if o.Kind != Exposure || o.Ended.IsZero() == gone || o.Unseen.IsZero() != gone {
				t.Errorf("%s: %+v", name, o)
			}
		}
		if len(x) != 2 {
			t.Errorf("%s: %d spans, want those of two exposures", name, len(x))
		}
	}
}

// TestFloodIsBounded: a host that changes its table all the time begins so many spans in a day, and
// ends them; the next day it is seen again.
func TestFloodIsBounded(t *testing.T) {
	s := newSite()
	s.ledger.spent = SpansPerDay - 1
	s.round(t, false)
	s.ledger.spent = SpansPerDay - 1
	s.hosts[0].PKeys[5] = 0x8002
	if x := s.round(t, false); len(x) != 1 {
		t.Errorf("at the bound: %+v", x)
	}
	s.hosts[0].PKeys[5] = 0
	if x := s.round(t, false); len(x) != 1 || x[0].Ended.IsZero() {
		t.Errorf("its end: %+v", x)
	}
	s.hosts[0].PKeys[5] = 0x8002
	if x := s.round(t, false); len(x) != 0 {
		t.Errorf("beyond: %+v", x)
	}
	s.at = s.at.Add(24 * time.Hour)
	if x := s.round(t, false); len(x) != 2 {
		t.Errorf("the next day: %+v", x)
	}
}

// TestGaps: times without a round are kept with the reason, and what ibwarden would write when it
// has changed.
func TestGaps(t *testing.T) {
	s := newSite()
	s.round(t, false)
	last := s.at
	gap := func(l *Ledger, why string) {
		t.Helper()
		r := l.Round(Input{At: s.at, Took: time.Second, Every: time.Minute, Fabric: s.Fabric, Allowed: s.allowed})
		if r[0].Gap == nil || r[0].Gap.Why != why || !r[0].Gap.From.Equal(last) || !r[0].Gap.Until.Equal(s.at) {
			t.Errorf("%+v, want a gap: %s", r[0], why)
		}
		last = s.at
	}
	s.at = s.at.Add(time.Minute)
	s.ledger.Failed("port 1 is down")
	s.ledger.Failed("something else")
	gap(s.ledger, "port 1 is down")
	s.at = s.at.Add(10 * time.Minute)
	gap(s.ledger, "no reading was begun")
	s.at = s.at.Add(time.Minute)
	gap(NewLedger([]Record{{At: last, Round: &Round{}}}), "ibwarden was not running")
	s.at = s.at.Add(time.Minute)
	gap(NewLedger([]Record{{At: last, Span: &Span{}}}), "ibwarden was not running") // it crashed
	if a, b := s.ledger.WouldWrite(Writes{Blocks: 1}), s.ledger.WouldWrite(Writes{Blocks: 1}); len(a) != 1 || len(b) != 0 || len(s.ledger.WouldWrite(Writes{Blocks: 2})) != 1 {
		t.Errorf("%v %v", a, b)
	}
}
