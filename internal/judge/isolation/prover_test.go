package isolation

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/test/need"
)

// mutate changes one thing that was read and tells the prover of it; the policy
// is changed along with it now and then.
func mutate(r *rand.Rand, s *site, p *Prover) {
	h := s.hosts[r.IntN(len(s.hosts))]
	port := h
	if r.IntN(2) == 0 {
		port = h.Peer
	}
	keys := []ib.PKey{0, baseRed.Full(), baseBlue.Full(), baseBlue.Limited(), baseStorage.Full(), baseStorage.Limited(), 0x8333, 0xffff}
	switch r.IntN(7) {
	case 0, 1, 2:
		port.PKeys[r.IntN(len(port.PKeys))] = keys[r.IntN(len(keys))]
	case 3:
		block := r.IntN(len(port.PKeysRead))
		port.PKeysRead[block] = !port.PKeysRead[block]
	case 4:
		port.InfoRead = !port.InfoRead
	case 5:
		h.Peer.Info.PartitionEnforcementInbound = !h.Peer.Info.PartitionEnforcementInbound
		port = h.Peer
	case 6:
		s.regrant(r, h, p)
		return
	}
	if r.IntN(8) == 0 {
		n := h.Peer.Node
		n.Switch.InfoRead = !n.Switch.InfoRead
		for i := range n.Ports {
			p.Changed(&n.Ports[i])
		}
	}
	p.Changed(port)
}

// regrant moves a host in or out of a partition of the policy.
func (s *site) regrant(r *rand.Rand, h *observed.Port, p *Prover) {
	part := &s.allowed[r.IntN(len(s.allowed))]
	without := func(g ib.PortGUID) bool { return g == h.GUID }
	part.Full = slices.DeleteFunc(slices.Clone(part.Full), without)
	part.Limited = slices.DeleteFunc(slices.Clone(part.Limited), without)
	switch r.IntN(3) {
	case 0:
		part.Full = append(part.Full, h.GUID)
	case 1:
		part.Limited = append(part.Limited, h.GUID)
	}
	var keys []ib.PKey
	for _, a := range s.allowed {
		if slices.Contains(a.Full, h.GUID) {
			keys = append(keys, a.Base.Full())
		} else if slices.Contains(a.Limited, h.GUID) {
			keys = append(keys, a.Base.Limited())
		}
	}
	p.Allow(h.GUID, keys)
}

// After every change the kept proof is the one that a fresh look gives.
func TestProverFollowsChanges(t *testing.T) {
	verdicts := map[Verdict]int{}
	for seed := range need.Share[uint64](12, 40) {
		r := rand.New(rand.NewPCG(seed, 9))
		s := newSite()
		p := NewProver(s.f, s.allowed)
		for step := range 60 {
			mutate(r, s, p)
			got := p.Proof()
			verdicts[got.Verdict]++
			if diff := cmp.Diff(Prove(s.f, s.allowed), got); diff != "" {
				t.Fatalf("seed %d, step %d: (-fresh +kept)\n%s", seed, step, diff)
			}
		}
	}
	if len(verdicts) != 4 {
		t.Errorf("verdicts %v, want all four", verdicts)
	}
}

func TestAllowWhatIsNotInThePolicy(t *testing.T) {
	s := newSite()
	p := NewProver(s.f, s.allowed)
	p.Allow(s.hosts[0].GUID, []ib.PKey{0x8777, baseRed.Full(), baseStorage.Limited(), ib.PKeyDefaultLimited})
	p.Allow(0x99, []ib.PKey{baseRed.Full()})
	if diff := cmp.Diff(Prove(s.f, s.allowed), p.Proof()); diff != "" {
		t.Error(diff)
	}
}

// BenchmarkProveAfterChange is a proof of 11,664 hosts in 729 tenants after one
// host's tables changed: a move to another tenant and back, and a foreign key
// that comes and goes.
func BenchmarkProveAfterChange(b *testing.B) {
	b.Run("move", func(b *testing.B) {
		s := newBigSite()
		p := NewProver(s.f, s.allowed)
		h := s.hosts[5]
		tenant := ib.PKeyBase(6)
		for b.Loop() {
			if tenant++; tenant > bigTenants {
				tenant = 1
			}
			setOne(h, tenant.Full())
			setOne(h.Peer, tenant.Full())
			p.Allow(h.GUID, []ib.PKey{tenant.Full(), ib.PKeyDefaultLimited})
			p.Changed(h, h.Peer)
			if proof := p.Proof(); proof.Verdict != Isolated {
				b.Fatal(proof.Verdict, proof.Reasons)
			}
		}
	})
	b.Run("foreign-key", func(b *testing.B) {
		s := newBigSite()
		p := NewProver(s.f, s.allowed)
		h := s.hosts[5]
		for b.Loop() {
			for _, x := range []struct {
				key  ib.PKey
				want Verdict
			}{{0x8003, Violated}, {0, Isolated}} {
				h.PKeys[9] = x.key
				p.Changed(h)
				if proof := p.Proof(); proof.Verdict != x.want {
					b.Fatal(proof.Verdict, proof.Reasons)
				}
			}
		}
	})
}

// setOne replaces the tenant's key of a table made by newBigSite.
func setOne(p *observed.Port, k ib.PKey) { p.PKeys[0] = k }
