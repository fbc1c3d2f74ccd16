package isolation

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// opened asks of every two hosts, entry by entry, whether they can talk.
func opened(f *observed.Fabric) bool {
	var hosts []*observed.Port
	for _, p := range f.EndPorts() {
		if p.Node.Switch == nil {
			hosts = append(hosts, p)
		}
	}
	lets := func(s *observed.Port, base ib.PKeyBase) bool {
		if s == nil || s.Node.Switch == nil || s.Num == 0 || s.Node.Switch.Info.PartitionEnforcementCap == 0 ||
			!s.Node.Switch.Info.InboundEnforcementCap || !s.Node.Switch.Info.OutboundEnforcementCap ||
			!s.Info.PartitionEnforcementInbound || !s.Info.PartitionEnforcementOutbound {
			return true
		}
		for _, k := range s.PKeys {
			if k.IsValid() && k.Base() == base {
				return true
			}
		}
		return false
	}
	talk := func(a, b *observed.Port) bool {
		for _, x := range a.PKeys {
			for _, y := range b.PKeys {
				if x.IsValid() && x.Matches(y) && lets(a.Peer, x.Base()) && lets(b.Peer, x.Base()) {
					return true
				}
			}
		}
		return false
	}
	for i, a := range hosts {
		for _, b := range hosts[:i] {
			if !talk(a, b) {
				return false
			}
		}
	}
	return len(hosts) > 1
}

// nearlyOpen is a fabric in which most hosts can talk with most, in one of several ways.
func nearlyOpen(r *rand.Rand) *observed.Fabric {
	s := newTree(1+r.IntN(2), 1+r.IntN(4))
	way := r.IntN(4)
	for i, h := range s.hosts {
		var keys []ib.PKey
		switch way {
		case 0: // full members of one partition
			keys = []ib.PKey{ib.PKeyDefaultFull}
		case 1: // a partition for each two
			for j := range s.hosts {
				if i != j {
					keys = append(keys, ib.PKeyBase(1+min(i, j)*8+max(i, j)).Full())
				}
			}
		case 2: // limited in one, full in another
			keys = []ib.PKey{ib.PKeyDefaultLimited, ib.PKeyBase(2).Full()}
		case 3: // all but one limited
			keys = []ib.PKey{ib.PKeyDefaultLimited}
			if i == 0 || r.IntN(3) > 0 {
				keys = []ib.PKey{ib.PKeyDefaultFull}
			}
		}
		subnettest.SetPKeysThrough(h, keys...)
	}
	h := s.hosts[r.IntN(len(s.hosts))]
	switch r.IntN(5) {
	case 0:
		subnettest.SetPKeys(h, ib.PKeyDefaultLimited)
	case 1:
		subnettest.SetPKeys(h)
	case 2:
		subnettest.SetPKeys(h.Peer, ib.PKeyBase(0x77).Full())
	}
	if r.IntN(3) == 0 {
		for _, h := range s.hosts {
			h.Peer.Info.PartitionEnforcementInbound, h.Peer.Info.PartitionEnforcementOutbound = false, false
		}
	}
	return s.f
}

// TestWithoutPolicy: without a policy a fabric is open exactly where any two hosts can
// talk, never isolated, and unknown whenever the proof with the policy that the tables amount to is.
func TestWithoutPolicy(t *testing.T) {
	const fabrics, seed = 4000, 0x28
	found := map[Verdict]int{}
	for i := range uint64(fabrics) {
		r := rand.New(rand.NewPCG(seed, i))
		f := nearlyOpen(r)
		if r.IntN(4) == 0 {
			f, _ = randomSite(r)
		}
		p, with := ProveWithoutPolicy(f), Prove(f, AsTables(f), RawDenied)
		want := NoPolicy
		switch {
		case with.Verdict == Unknown:
			want = Unknown
		case opened(f):
			want = Open
		}
		if found[p.Verdict]++; p.Verdict != want || p.Verdict.Holds() {
			t.Fatalf("seed %#x, fabric %d: %s, want %s: %q", seed, i, p.Verdict, want, p.Reasons)
		}
		if p.Verdict != Unknown && !strings.HasPrefix(p.Reasons[0], "no policy was given") {
			t.Fatalf("seed %#x, fabric %d: %s: %q", seed, i, p.Verdict, p.Reasons)
		}
		was := p.Verdict
		if p.Rest([]Finding{{Reason: keyZero}}); p.Verdict != was {
			t.Fatalf("seed %#x, fabric %d: %s, and %s where a host could change it", seed, i, was, p.Verdict)
		}
	}
	for _, v := range []Verdict{NoPolicy, Unknown, Open} {
		if found[v] < fabrics/100 {
			t.Errorf("only %d fabrics are %s", found[v], v)
		}
	}
}

// TestOneHostIsNotOpen: a port alone talks with nobody, and ports of switches do not count.
func TestOneHostIsNotOpen(t *testing.T) {
	s := newTree(1, 1)
	for _, p := range s.f.EndPorts() {
		subnettest.SetPKeys(p, ib.PKeyDefaultFull)
	}
	if p := ProveWithoutPolicy(s.f); p.Verdict != NoPolicy {
		t.Errorf("%s: %q", p.Verdict, p.Reasons)
	}
}
