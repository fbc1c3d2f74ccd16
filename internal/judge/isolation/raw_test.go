package isolation

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/test/need"
)

// filterRaw sets what a switch can filter, and the filters of a port of it.
func filterRaw(s *observed.Port, canIn, canOut, in, out bool) {
	info := &s.Node.Switch.Info
	info.FilterRawInboundCap, info.FilterRawOutboundCap = canIn, canOut
	s.Info.FilterRawInbound, s.Info.FilterRawOutbound = in, out
}

func filtered(s *site) {
	for _, h := range s.hosts {
		filterRaw(h.Peer, true, true, true, true)
	}
}

// rawCrossings looks at every two ends of links, one by one: from whom to whom a
// raw packet goes that the policy keeps apart, and past which switch ports.
func rawCrossings(o *oracle, f *observed.Fabric) (pairs int, places map[string]bool) {
	type end struct {
		port, guard *observed.Port
	}
	var ends []end
	for _, n := range f.Switches() {
		for i := 1; i < len(n.Ports); i++ {
			q := &n.Ports[i]
			active := q.Info.PortState == smp.PortActive || q.Info.PortState == smp.PortArmed
			if q.Peer != nil && q.Peer.Node.Switch == nil || q.Peer == nil && q.InfoRead && active {
				ends = append(ends, end{q.Peer, q})
			}
		}
	}
	lets := func(q *observed.Port, can, on bool) bool {
		return q.InfoRead && q.Node.Switch.InfoRead && !(can && on)
	}
	places = map[string]bool{}
	for i, a := range ends {
		for j, b := range ends {
			ai, bi := &a.guard.Node.Switch.Info, &b.guard.Node.Switch.Info
			if i == j || a.port != nil && b.port != nil && o.may(a.port, b.port) ||
				!lets(a.guard, ai.FilterRawInboundCap, a.guard.Info.FilterRawInbound) ||
				!lets(b.guard, bi.FilterRawOutboundCap, b.guard.Info.FilterRawOutbound) {
				continue
			}
			pairs++
			places[a.guard.String()], places[b.guard.String()] = true, true
		}
	}
	return pairs, places
}

// What is said of raw packets is what looking at every two hosts gives, and a
// kept proof follows.
func TestRawIsCountedPairByPair(t *testing.T) {
	found, none := 0, 0
	for seed := range need.Share[uint64](75, 300) {
		r := rand.New(rand.NewPCG(seed, 77))
		s := newSite()
		filtered(s)
		if r.IntN(3) == 0 { // behind a spare port somebody does not answer
			q := &s.leaves[0].Ports[6]
			up(q)
			subnettest.Enforce(q, true, true)
			subnettest.SetPKeys(q)
		}
		kept := NewProver(s.f, s.allowed, RawDenied)
		for step := range 12 {
			h := s.hosts[r.IntN(len(s.hosts))]
			info := &h.Peer.Node.Switch.Info
			switch r.IntN(8) {
			case 0:
				info.FilterRawInboundCap = !info.FilterRawInboundCap
			case 1:
				info.FilterRawOutboundCap = !info.FilterRawOutboundCap
			case 2:
				h.Peer.InfoRead = !h.Peer.InfoRead
			case 3:
				s.regrant(r, h, kept)
			case 4, 5:
				h.Peer.Info.FilterRawInbound = !h.Peer.Info.FilterRawInbound
			default:
				h.Peer.Info.FilterRawOutbound = !h.Peer.Info.FilterRawOutbound
			}
			for i := range h.Peer.Node.Ports {
				kept.Changed(&h.Peer.Node.Ports[i])
			}
			o, p := ask(s.f, s.allowed), Prove(s.f, s.allowed, RawDenied)
			if diff := cmp.Diff(p, kept.Proof()); diff != "" {
				t.Fatalf("seed %d step %d: (-fresh +kept)\n%s", seed, step, diff)
			}
			pairs, places := rawCrossings(o, s.f)
			if p.Counts.Raw != pairs || p.Counts.RawPlaces != len(places) {
				t.Fatalf("seed %d step %d: %d pairs at %d places, want %d at %v: %v", seed, step, p.Counts.Raw, p.Counts.RawPlaces, pairs, places, p.Raw)
			}
			checkSet(t, "raw", p.Raw, places, func(x Finding) string { return x.Name })
			if want := max(o.verdict, ByEndPorts); pairs > 0 && p.Verdict != want || pairs == 0 && p.Verdict != o.verdict {
				t.Fatalf("seed %d step %d: verdict %s with %d pairs, without raw packets %s", seed, step, p.Verdict, pairs, o.verdict)
			}
			if pairs > 0 {
				found++
			} else {
				none++
			}
		}
	}
	if least := need.Share(125, 500); found < least || none < least {
		t.Errorf("%d proofs with raw packets that cross, %d without", found, none)
	}
}

// Each way to be open has its words, and one filter of the two is enough.
func TestRawPlacesSayWhy(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(s *site)
		want []string // of Proof.Raw, in part
	}{
		{"filtered", func(*site) {}, nil},
		{"nobody is sent to", func(s *site) {
			for _, h := range s.hosts {
				h.Peer.Info.FilterRawInbound = false
			}
		}, nil},
		{"from red to a fellow", func(s *site) {
			s.hosts[0].Peer.Info.FilterRawInbound, s.hosts[1].Peer.Info.FilterRawOutbound = false, false
		}, nil},
		{"from red to blue", func(s *site) {
			s.hosts[0].Peer.Info.FilterRawInbound, s.hosts[2].Peer.Info.FilterRawOutbound = false, false
		}, []string{"leaf0:1: FilterRawInbound is 0", "leaf0:3: FilterRawOutbound is 0"}},
		{"a leaf cannot", func(s *site) {
			s.leaves[1].Switch.Info.FilterRawInboundCap, s.leaves[1].Switch.Info.FilterRawOutboundCap = false, false
		}, []string{"leaf1:1: FilterRawInboundCap is 0, FilterRawOutboundCap is 0", "leaf1:2: FilterRawInboundCap"}},
		{"not kept", func(s *site) {
			s.hosts[0].Peer.Info.FilterRawInbound, s.hosts[2].Peer.Info.FilterRawOutbound = false, false
			s.hosts[0].Peer.Forgets = observed.ElementFilterRawInbound
		}, []string{"leaf0:1: FilterRawInbound is 0: the switch does not keep it", "leaf0:3: FilterRawOutbound is 0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite()
			filtered(s)
			c.do(s)
			p := Prove(s.f, s.allowed, RawDenied)
			var got []string
			for _, x := range p.Raw {
				got = append(got, x.Name+": "+x.Reason)
			}
			if len(got) != len(c.want) {
				t.Fatalf("places %q, want %q", got, c.want)
			}
			for i, w := range c.want {
				if !strings.HasPrefix(got[i], w) {
					t.Errorf("place %q, want %q", got[i], w)
				}
			}
			if want := c.want != nil; want != (p.Verdict == ByEndPorts) || want != strings.Contains(strings.Join(p.Reasons, "\n"), "raw packets, which carry no P_Key") {
				t.Errorf("%s because of %q", p.Verdict, p.Reasons)
			}
			if v := Prove(s.f, s.allowed).Verdict; v != Isolated {
				t.Errorf("without raw packets: %s", v)
			}
			p = Prove(s.f, s.allowed, RawAllowed)
			if p.Verdict != Isolated || len(p.Raw) > 0 || !strings.Contains(strings.Join(p.Caveats, "\n"), "the policy lets raw packets pass") {
				t.Errorf("allowed: %s, %v, caveats %q", p.Verdict, p.Raw, p.Caveats)
			}
		})
	}
}
