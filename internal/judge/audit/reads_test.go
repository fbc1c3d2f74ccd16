package audit

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// drops are all ways to lose the answer to one read of a site, by name.
func drops(s *site) map[string]func() {
	out := map[string]func(){}
	for _, n := range s.f.Nodes {
		for i := range n.Ports {
			p := &n.Ports[i]
			if !p.Reached {
				continue
			}
			at := fmt.Sprintf("%s:%d ", n.Name(), i)
			out[at+"PortInfo"] = func() { p.InfoRead = false }
			for b := range p.PKeysRead {
				out[fmt.Sprint(at, "P_KeyTable ", b)] = func() { p.PKeysRead[b] = false }
			}
			for b := range p.GUIDInfo {
				out[fmt.Sprint(at, "GUIDInfo ", b)] = func() { delete(p.GUIDInfo, b) }
			}
			for in := range p.SLToVL {
				if int(in) != i && (in == 0 || n.Ports[in].IsUp()) {
					out[fmt.Sprint(at, "SLToVL ", in)] = func() { delete(p.SLToVL, in) }
				}
			}
			if p.SMInfoRead {
				out[at+"SMInfo"] = func() { p.SMInfoRead = false }
			}
		}
		if sw := n.Switch; sw != nil {
			out[n.Name()+" SwitchInfo"] = func() { sw.InfoRead = false }
			out[n.Name()+" LFT"] = func() { sw.LFTRead[0] = false }
			for m := range sw.MFT {
				out[fmt.Sprint(n.Name(), " MFT ", m)] = func() { delete(sw.MFT, m) }
			}
		}
	}
	return out
}

// Whichever answer is lost, something is unknown, the audit fails, and it makes
// nothing up.
func TestEveryReadCounts(t *testing.T) {
	names := drops(newSite())
	if len(names) < 100 {
		t.Fatalf("only %d reads", len(names))
	}
	for name := range names {
		s := newSite()
		drops(s)[name]()
		r := Audit(s.f, s.intent, s.options)
		if r.Counts.Unknown == 0 && !betweenSwitches(s, name) {
			t.Errorf("%s was not read, and the audit says nothing: passed %v", name, r.Passed)
		}
		if r.Counts.Critical+r.Counts.High+r.Counts.Medium+r.Counts.Low != 0 {
			t.Errorf("%s was not read, and the audit makes up %+v", name, r.Findings)
		}
	}
}

// betweenSwitches reports whether a read is that of a P_KeyTable which no check
// rests on: a link between switches enforces nothing.
func betweenSwitches(s *site, name string) bool {
	for _, n := range s.f.Switches() {
		for i := range n.Ports {
			if p := &n.Ports[i]; p.Peer != nil && p.Peer.Node.Switch != nil &&
				(name == fmt.Sprintf("%s:%d P_KeyTable 0", n.Name(), i) || name == fmt.Sprintf("%s:%d P_KeyTable 1", n.Name(), i)) {
				return true
			}
		}
	}
	return false
}

// Whatever devices answer, an audit comes to an end, says the same twice, and
// keeps to its bounds.
func TestAnyAnswers(t *testing.T) {
	rounds := uint64(400)
	if testing.Short() {
		rounds = 100
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(seed, 11))
		s, old := newSite(), newSite()
		scribble(r, s)
		scribble(r, old)
		s.options.Earlier = old.f
		first := Audit(s.f, s.intent, s.options)
		if again := Audit(s.f, s.intent, s.options); !reflect.DeepEqual(first, again) {
			t.Fatalf("seed %d: the second report differs", seed)
		}
		c := first.Counts
		if all := c.Critical + c.High + c.Medium + c.Low + c.Unknown; all != len(first.Findings)+first.Omitted {
			t.Fatalf("seed %d: %d findings counted, %d listed and %d omitted", seed, all, len(first.Findings), first.Omitted)
		}
	}
}

// scribble has some devices answer at random.
func scribble(r *rand.Rand, s *site) {
	for range r.IntN(30) {
		n := s.f.Nodes[r.IntN(len(s.f.Nodes))]
		p := &n.Ports[len(n.Ports)-1]
		num := ib.PortNum(r.IntN(len(n.Ports)))
		var data [mad.DataSize]byte
		for i := range data {
			data[i] = byte(r.Uint32()) & byte(r.UintN(256))
		}
		absorb(r, p, num, data[:])
	}
}

func absorb(r *rand.Rand, p *observed.Port, num ib.PortNum, data []byte) {
	id, modifier := smp.AttrPortInfo, uint32(num)
	switch r.IntN(7) {
	case 1:
		id, modifier = smp.AttrPKeyTable, smp.PKeyModifier(num, uint16(r.IntN(2)))
	case 2:
		id, modifier = smp.AttrSwitchInfo, 0
	case 3:
		id, modifier = smp.AttrLinearForwardingTable, uint32(r.IntN(3))
	case 4:
		id, modifier = smp.AttrRandomForwardingTable, uint32(r.IntN(3))
	case 5:
		id, modifier = smp.AttrMulticastForwardingTable, smp.MFTModifier(uint16(r.IntN(3)), 0)
	case 6:
		id, modifier = smp.AttrGUIDInfo, uint32(r.IntN(3))
	}
	if p.Absorb(id, modifier, data) == nil && r.IntN(4) == 0 {
		p.MarkUnread(id, modifier)
	}
}
