package isolation

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/reach"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/test/need"
)

// mutation is one thing that was changed in a good fabric.
type mutation struct {
	what string
	at   *observed.Port // whose table was changed, if any
	// index is the entry that was changed.
	index int
}

// oneChange changes one table entry, one bit, one route, one cable or one GUID.
func oneChange(r *rand.Rand, s *site) mutation {
	h, other := s.hosts[r.IntN(len(s.hosts))], s.hosts[r.IntN(len(s.hosts))]
	port := h
	if r.IntN(3) == 0 {
		port = h.Peer
	}
	switch kind := r.IntN(5); kind {
	case 0:
		keys := []ib.PKey{0, 0x8101, 0x0101, 0x8102, 0x0102, 0x8200, 0x0200, 0xffff, 0x7fff, 0x8333}
		m := mutation{"entry", port, r.IntN(len(port.PKeys))}
		if r.IntN(2) == 0 {
			m.index = r.IntN(3)
		}
		port.PKeys[m.index] = keys[r.IntN(len(keys))]
		return m
	case 1:
		m := mutation{"bit", port, r.IntN(3)}
		port.PKeys[m.index] ^= 1 << r.IntN(16)
		return m
	case 2:
		n := s.f.Switches()[r.IntN(3)]
		n.Switch.LFT[h.Info.LID] = ib.PortNum(r.IntN(len(n.Ports) + 1))
		return mutation{what: "route"}
	case 3:
		a, b := h.Peer, other.Peer
		if h != other {
			observed.Connect(h, b)
			observed.Connect(other, a)
		}
		return mutation{what: "cable"}
	}
	h.GUID = other.GUID
	if r.IntN(2) == 0 {
		h.GUID = 0x9999
	}
	return mutation{what: "GUID"}
}

// talk is who can talk, by plain look at every two ports: over the tables that
// hosts hold, by the packets that arrive, and by what a host that forges its
// table gets past its switch port.
type talk struct{ tables, packets, forged map[string]bool }

func whoTalks(f *observed.Fabric) talk {
	out := talk{map[string]bool{}, map[string]bool{}, map[string]bool{}}
	ports := f.EndPorts()
	for _, a := range ports {
		for _, b := range ports {
			if a == b {
				continue
			}
			for _, k := range a.PKeys {
				for _, e := range b.PKeys {
					if k&0x7fff == 0 || k&0x7fff != e&0x7fff || (k|e)&0x8000 == 0 {
						continue
					}
					out.tables[fmt.Sprintf("%s %s %#04x", a.GUID, b.GUID, uint16(k&0x7fff))] = true
					if reach.Follow(a, b, reach.Packet{PKey: k}).Disposition == reach.Delivered {
						out.packets[fmt.Sprintf("%s %s", a.GUID, b.GUID)] = true
					}
				}
			}
			if a.Node.Switch != nil || b.Node.Switch != nil {
				continue
			}
			for _, k := range a.Peer.PKeys {
				for _, e := range b.Peer.PKeys {
					if k&0x7fff != 0 && k&0x7fff == e&0x7fff {
						out.forged[fmt.Sprintf("%s %s %#04x", a.GUID, b.GUID, uint16(k&0x7fff))] = true
					}
				}
			}
		}
	}
	return out
}

func sameSet(a, b map[string]bool) bool {
	for k := range a {
		if !b[k] {
			return false
		}
	}
	return len(a) == len(b)
}

// goodSite is newSite with virtual lanes, and with full keys at the switch ports: a
// limited one would stop what limited members send.
func goodSite() *site {
	s := newSite()
	for _, h := range s.hosts {
		for i, k := range h.Peer.PKeys {
			if k.IsValid() {
				h.Peer.PKeys[i] = k.Base().Full()
			}
		}
	}
	for _, n := range s.f.Nodes {
		for i := range n.Ports {
			n.Ports[i].Info.VLCap, n.Ports[i].Info.OperationalVLs = 1, 1
		}
	}
	return s
}

// Each single change that alters who can talk is found, with the entry that was
// changed as its witness; nothing is found where nothing was changed.
func TestEveryChangeIsFound(t *testing.T) {
	clean := goodSite()
	before := whoTalks(clean.f)
	if p, cuts := Prove(clean.f, clean.allowed), reach.Cuts(clean.f, 1); p.Verdict != Isolated || p.Counts.Missing+p.Counts.Foreign+len(cuts) > 0 {
		t.Fatalf("untouched: %s, %+v, %v", p.Verdict, p.Counts, cuts)
	}
	rounds := need.Share[uint64](400, 1500)
	if need.Soak() {
		rounds = 100_000
	}
	found, altered := map[string]int{}, map[string]int{}
	for seed := range rounds {
		s := goodSite()
		m := oneChange(rand.New(rand.NewPCG(seed, 3)), s)
		after := whoTalks(s.f)
		proof, cuts := Prove(s.f, s.allowed), reach.Cuts(s.f, 1<<16)
		said := proof.Verdict != Isolated || proof.Counts.Missing > 0 || proof.Counts.Foreign > 0 || len(cuts) > 0
		if sameSet(before.tables, after.tables) && sameSet(before.packets, after.packets) && sameSet(before.forged, after.forged) {
			if proof.Verdict == Violated && m.what != "GUID" || len(cuts) > 0 {
				t.Fatalf("seed %d, %s: nobody can talk who could not, and it is %s, cuts %v", seed, m.what, proof.Verdict, cuts)
			}
			continue
		}
		altered[m.what]++
		if !said {
			t.Fatalf("seed %d, %s: who can talk has changed, and nothing is said", seed, m.what)
		}
		found[m.what]++
		checkWitness(t, seed, s, m, proof, after)
	}
	t.Logf("%d changes; altering who can talk %v, found %v", rounds, altered, found)
	for _, what := range []string{"entry", "bit", "route", "cable", "GUID"} {
		if altered[what] == 0 {
			t.Errorf("no change of a %s altered anything", what)
		}
	}
}

// checkWitness checks that the violations are exactly those that a look at every
// two ports finds, and name the entry that was changed.
func checkWitness(t *testing.T, seed uint64, s *site, m mutation, p *Proof, after talk) {
	t.Helper()
	if m.what == "GUID" {
		return // two ports of one GUID are one name here
	}
	o := &oracle{allowed: s.allowed}
	byGUID := map[ib.PortGUID]*observed.Port{}
	for _, port := range s.f.EndPorts() {
		byGUID[port.GUID] = port
	}
	want := 0
	for _, a := range s.f.EndPorts() {
		for _, b := range s.f.EndPorts() {
			for _, base := range []int{0x101, 0x102, 0x200, 0x7fff, 0x333} {
				if a.GUID < b.GUID && after.tables[fmt.Sprintf("%s %s %#04x", a.GUID, b.GUID, base)] && !o.may(a, b) {
					want++
				}
			}
		}
	}
	for _, v := range p.Violations {
		if !after.tables[fmt.Sprintf("%s %s %#04x", v.From, v.To, uint16(v.PKey.Base()))] || o.may(byGUID[v.From], byGUID[v.To]) {
			t.Fatalf("seed %d, %s: %s and %s do not talk over %s, or may", seed, m.what, v.From, v.To, v.PKey)
		}
		if v.At.Node != m.at.Node.GUID() || v.At.Port != m.at.Num || v.At.Index != m.index {
			t.Fatalf("seed %d, %s at %s index %d: the witness is %+v", seed, m.what, m.at, m.index, v.At)
		}
		if len(v.Path) == 0 {
			t.Fatalf("seed %d: no path", seed)
		}
	}
	// Keys outside the list above are those of nobody else.
	if p.Counts.Violations < want || want > 0 && p.Verdict != Violated {
		t.Fatalf("seed %d, %s: %d violations, want %d", seed, m.what, p.Counts.Violations, want)
	}
	for _, e := range p.Exposed {
		if m.what != "cable" && (e.At.Node != m.at.Node.GUID() || e.At.Port != m.at.Num || e.At.Index != m.index) {
			t.Fatalf("seed %d, %s at %s index %d: exposed at %+v", seed, m.what, m.at, m.index, e.At)
		}
	}
}
