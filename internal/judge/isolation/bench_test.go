package isolation

import (
	"fmt"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/test/need"
)

const (
	bigLeaves, bigHosts = 243, 48
	bigTenants          = 729
)

// newBigSite is 11,664 hosts in 729 tenants of 16, spread over the leaves, and
// a default partition in which one host is full.
func newBigSite() *site {
	s := newTree(bigLeaves, bigHosts)
	var limited []*observed.Port
	for _, n := range s.f.Switches() {
		limited = append(limited, &n.Ports[0])
	}
	s.allowed = []observed.Partition{{Name: "default", Base: ib.PKeyBaseDefault, Full: subnettest.GUIDs(s.hosts[0]), Limited: subnettest.GUIDs(append(limited, s.hosts[1:]...)...)}}
	keys := make(map[*observed.Port][]ib.PKey)
	for t := range bigTenants {
		part := observed.Partition{Name: fmt.Sprintf("tenant%d", t), Base: ib.PKeyBase(t + 1)}
		for i := t; i < len(s.hosts); i += bigTenants {
			part.Full = append(part.Full, s.hosts[i].GUID)
			keys[s.hosts[i]] = append(keys[s.hosts[i]], part.Base.Full())
		}
		s.allowed = append(s.allowed, part)
	}
	for _, p := range s.f.EndPorts() {
		key := ib.PKeyDefaultLimited
		if p == s.hosts[0] {
			key = ib.PKeyDefaultFull
		}
		subnettest.SetPKeys(p, append(keys[p], key)...)
		if p.Peer != nil {
			subnettest.SetPKeys(p.Peer, append(keys[p], key)...)
		}
	}
	return s
}

// allFull gives every end port full membership of the default partition, as a
// manager does that lost its policy.
func (s *site) allFull() {
	for _, p := range s.f.EndPorts() {
		p.PKeys[2] = ib.PKeyDefaultFull
	}
}

func TestBigSite(t *testing.T) {
	need.Long(t, "three proofs of 11,664 hosts")
	s := newBigSite()
	const pairs = (bigTenants + 1) * bigTenants / 2
	p := Prove(s.f, s.allowed)
	if p.Verdict != Isolated || len(p.Pairs) != 0 || p.Counts.Pairs.Isolated != pairs || p.Counts.EndPorts != 11664+244 {
		t.Fatalf("%s %v, %d pairs, %+v", p.Verdict, p.Reasons, len(p.Pairs), p.Counts)
	}

	s.hosts[5].PKeys[9] = 0x8003 // of tenant2
	p = Prove(s.f, s.allowed)
	if p.Verdict != Violated || p.Counts.Violations != 16 || len(p.Violations) != 16 ||
		p.Counts.Pairs != (PairCounts{Isolated: pairs - 3, Violated: 3}) || len(p.Pairs) != 3 {
		t.Fatalf("%s, counts %+v, %d pairs", p.Verdict, p.Counts, len(p.Pairs))
	}
	if pair := p.Pairs[0]; pair.A != "tenant2" || pair.B != "tenant5" || pair.Reason != "h5 and h2 can talk over 0x8003" {
		t.Errorf("pair %+v", pair)
	}

	s.hosts[5].PKeys[9] = 0
	s.hosts[7].PKeysRead[1] = false
	p = Prove(s.f, s.allowed)
	if p.Verdict != Unknown || p.Counts.Pairs.Unknown != 2*bigTenants-1 || len(p.Pairs) != 2*bigTenants-1 {
		t.Fatalf("%s, counts %+v, %d pairs", p.Verdict, p.Counts, len(p.Pairs))
	}
}

func TestAllFull(t *testing.T) {
	need.Long(t, "11,664 hosts; a share: TestBigSite")
	s := newBigSite()
	s.allFull()
	p := Prove(s.f, s.allowed)
	// All but the one host that is full by right see each other; within a
	// tenant that is allowed.
	all := 11664 + 244
	want := all*(all-1)/2 - (all - 1) - bigTenants*16*15/2 + 15
	if p.Counts.Violations != want || len(p.Violations) != MaxWitnesses || len(p.Foreign) != MaxListed || p.Counts.Foreign != all-1 {
		t.Errorf("counts %+v, want %d violations; %d witnesses", p.Counts, want, len(p.Violations))
	}
	if p.Counts.Pairs.Violated != bigTenants*(bigTenants+1)/2 || len(p.Pairs) != MaxPairs {
		t.Errorf("pair counts %+v, %d listed", p.Counts.Pairs, len(p.Pairs))
	}
}

func BenchmarkProve(b *testing.B) {
	for _, bm := range []struct {
		name   string
		change func(s *site)
		want   Verdict
	}{
		{"isolated", func(*site) {}, Isolated},
		{"one-foreign-key", func(s *site) { s.hosts[5].PKeys[9] = 0x8003 }, Violated},
		{"not-enforced", func(s *site) {
			for _, n := range s.leaves {
				n.Switch.Info.PartitionEnforcementCap = 0
			}
		}, ByEndPorts},
		{"all-full", (*site).allFull, Violated},
	} {
		b.Run(bm.name, func(b *testing.B) {
			s := newBigSite()
			bm.change(s)
			b.ReportAllocs()
			for b.Loop() {
				if p := Prove(s.f, s.allowed); p.Verdict != bm.want {
					b.Fatal(p.Verdict, p.Reasons)
				}
			}
		})
	}
}
