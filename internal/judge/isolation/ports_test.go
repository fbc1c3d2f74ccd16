package isolation

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// TestVerdictOnPorts: the verdict on each port is the worst that the lists of the proof, which
// are whole in so small a fabric, say of it.
func TestVerdictOnPorts(t *testing.T) {
	seen := map[Verdict]int{}
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 19))
		s := newSite()
		if seed%4 == 0 { // somebody unknown behind a port, with a key or two
			h := s.hosts[r.IntN(len(s.hosts))]
			h.Peer.Peer, h.Peer, h.Reached = nil, nil, false
			s.hosts = without(s.hosts, h)
		}
		raw := []Raw{RawIgnored, RawDenied}[seed%2]
		p := NewProver(s.f, s.allowed, raw)
		for range 40 {
			mutate(r, s, p)
			proof := p.Proof()
			want := worstByLists(t, s, proof)
			for _, port := range s.f.EndPorts() {
				got := proof.VerdictOn(port.GUID)
				seen[got]++
				if got != want[port.GUID] {
					t.Fatalf("seed %d: %s is %v, want %v: %q", seed, port, got, want[port.GUID], proof.Reasons)
				}
			}
			checkWhole(t, s, proof)
			if proof.VerdictOn(0xdead) != Unknown {
				t.Fatal("a port that the proof is not about is not unknown")
			}
		}
	}
	for _, v := range []Verdict{Isolated, ByEndPorts, Unknown, Violated} {
		if seen[v] == 0 {
			t.Errorf("verdicts %v: want all four", seen)
		}
	}
}

// checkWhole: the verdict of a proof is the worst of what concerns all and of those on the ports, and
// Over has the partitions of what is listed.
func checkWhole(t *testing.T, s *site, p *Proof) {
	t.Helper()
	worst := p.Common()
	for _, port := range s.f.EndPorts() {
		worst = max(worst, p.VerdictOn(port.GUID))
	}
	if worst != p.Verdict {
		t.Fatalf("the verdict is %v; %v concerns all, and the worst with the ports is %v", p.Verdict, p.Common(), worst)
	}
	over := map[ib.PKeyBase]Verdict{}
	for _, v := range p.Exposed {
		over[v.PKey.Base()] = ByEndPorts
	}
	for _, v := range p.Violations {
		over[v.PKey.Base()] = Violated
	}
	if !maps.Equal(over, p.Over) {
		t.Fatalf("over %v, want %v", p.Over, over)
	}
}

func without(list []*observed.Port, h *observed.Port) (out []*observed.Port) {
	for _, p := range list {
		if p != h {
			out = append(out, p)
		}
	}
	return out
}

// worstByLists is what the lists of a proof say of each port.
func worstByLists(t *testing.T, s *site, p *Proof) map[ib.PortGUID]Verdict {
	t.Helper()
	if p.Counts.Violations > len(p.Violations) || p.Counts.Exposed > len(p.Exposed) {
		t.Fatalf("%d of %d violations are listed, %d of %d ports that are exposed", len(p.Violations), p.Counts.Violations, len(p.Exposed), p.Counts.Exposed)
	}
	out := map[ib.PortGUID]Verdict{}
	raise := func(g ib.PortGUID, v Verdict) { out[g] = max(out[g], v) }
	at := map[observed.Place]*observed.Port{}
	for _, port := range s.f.EndPorts() {
		raise(port.GUID, Isolated)
		at[port.Place()] = port
		if port.Peer != nil {
			at[port.Peer.Place()] = port
		}
	}
	for _, v := range p.Violations {
		raise(v.From, Violated)
		raise(v.To, Violated)
	}
	for _, v := range p.Exposed {
		raise(v.From, ByEndPorts)
		raise(v.To, ByEndPorts)
	}
	for _, list := range [][]Finding{p.Unenforced, p.Raw} {
		for _, x := range list {
			if port := at[observed.Place{Node: x.Node, Port: x.Port}]; port != nil {
				raise(port.GUID, ByEndPorts)
			}
		}
	}
	for _, x := range p.Unknown {
		place := observed.Place{Node: x.Node, Port: x.Port}
		if port := at[place]; port != nil {
			raise(port.GUID, Unknown)
			continue
		}
		// Somebody unknown: those of whose partitions the switch port lets keys pass.
		open := s.f.At(place)
		for _, part := range s.allowed {
			lets := !open.InfoRead || !guardAt(open).enforced
			for _, k := range open.PKeys {
				lets = lets || k.IsValid() && k.Base() == part.Base
			}
			for _, list := range [][]ib.PortGUID{part.Full, part.Limited} {
				for _, g := range list {
					if _, there := out[g]; lets && there {
						raise(g, Unknown)
					}
				}
			}
		}
	}
	return out
}
