package isolation

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/test/need"
)

// mworld is a fabric with multicast tables, a policy and groups, which change at random.
type mworld struct {
	*site
	r        *rand.Rand
	switches []*observed.Node
	allowed  []observed.Partition
	groups   []Group
}

func newMulticastWorld(seed uint64) *mworld {
	w := &mworld{site: newTree(3, 4), r: rand.New(rand.NewPCG(seed, 17))}
	w.switches = w.f.Switches()
	for _, n := range w.switches {
		n.Switch.InfoRead, n.Ports[0].InfoRead = true, true
		n.Switch.Info.MulticastFDBCap = 2 * smp.MLIDsPerBlock
		n.Switch.Info.DefaultMulticastPrimaryPort, n.Switch.Info.DefaultMulticastNotPrimaryPort = 255, 255
		n.Switch.MFT = map[uint32]smp.MulticastForwardingTable{}
		for block := range n.MFTBlocks() {
			for position := range n.MFTPositions() {
				n.Switch.MFT[smp.MFTModifier(uint16(block), uint8(position))] = smp.MulticastForwardingTable{}
			}
		}
	}
	for _, h := range w.hosts {
		up(h)
		up(h.Peer)
	}
	return w
}

// guids are some hosts, or ports that are not there.
func (w *mworld) guids() (list []ib.PortGUID) {
	for range w.r.IntN(6) {
		list = append(list, w.hosts[w.r.IntN(len(w.hosts))].GUID)
	}
	if w.r.IntN(4) == 0 {
		list = append(list, ib.PortGUID(w.r.IntN(3)))
	}
	return list
}

func (w *mworld) mlid() ib.LID { return ib.LIDMulticastMin + ib.LID(w.r.IntN(4)*11) }

// change does one thing; what was given before is left as it is.
func (w *mworld) change() {
	r, n := w.r, w.switches[w.r.IntN(len(w.switches))]
	switch r.IntN(12) {
	case 0, 1, 2, 3: // a member comes or goes
		w.allowed = slices.Clone(w.allowed)
		if len(w.allowed) > 0 {
			a := &w.allowed[r.IntN(len(w.allowed))]
			switch r.IntN(9) {
			case 0:
				a.Name = string(rune('a' + r.IntN(20)))
			case 1, 2, 3, 4:
				a.Full = w.guids()
			default:
				a.Limited = w.guids()
			}
		}
	case 4: // a partition is made, now and then one of a base that there is, or of none
		w.allowed = append(slices.Clone(w.allowed), observed.Partition{
			Name: string(rune('a' + r.IntN(20))), Base: ib.PKeyBase(r.IntN(7)), Full: w.guids(), Limited: w.guids(),
		})
	case 5: // one is deleted
		if len(w.allowed) > 0 {
			i := r.IntN(len(w.allowed))
			w.allowed = slices.Delete(slices.Clone(w.allowed), i, i+1)
		}
	case 6, 7: // groups
		w.groups = slices.Clone(w.groups)
		switch i := r.IntN(5); {
		case i >= len(w.groups):
			w.groups = append(w.groups, Group{w.mlid(), ib.PKeyBase(r.IntN(6)), w.guids()})
		case r.IntN(3) == 0:
			w.groups = slices.Delete(w.groups, i, i+1)
		default:
			w.groups[i] = Group{w.mlid(), ib.PKeyBase(r.IntN(6)), w.guids()}
		}
	default:
		w.changeSwitch(n)
	}
}

func (w *mworld) changeSwitch(n *observed.Node) {
	r, p := w.r, &n.Ports[w.r.IntN(len(n.Ports))]
	switch r.IntN(14) {
	case 0:
		n.Switch.InfoRead = r.IntN(3) > 0
	case 1:
		n.Switch.Info.DefaultMulticastPrimaryPort = []ib.PortNum{p.Num, 255, 255}[r.IntN(3)]
	case 2:
		n.Switch.Info.EnhancedPort0 = r.IntN(2) == 0
		n.Switch.Info.DefaultMulticastNotPrimaryPort = []ib.PortNum{0, 255}[r.IntN(2)]
	case 3:
		delete(n.Switch.MFT, smp.MFTModifier(uint16(r.IntN(2)), 0))
	case 4:
		p.InfoRead = r.IntN(3) > 0
	case 5: // the device behind a port comes or goes
		if q := p.Peer; q != nil && q.Node.Switch == nil {
			p.Peer, q.Peer = nil, nil
		} else if h := w.hosts[r.IntN(len(w.hosts))]; h.Peer == nil && p.Num > 0 && q == nil {
			p.Peer, h.Peer = h, p
		}
	case 6:
		h := w.hosts[r.IntN(len(w.hosts))]
		h.GUID = w.hosts[r.IntN(len(w.hosts))].GUID
	default:
		block, index := smp.MFTPlace(w.mlid())
		m := smp.MFTModifier(block, 0)
		t := n.Switch.MFT[m]
		t.Masks[index] ^= 1 << p.Num
		n.Switch.MFT[m] = t
	}
}

// After every change the kept proof is that of a look at everything.
func TestMulticastProverFollowsChanges(t *testing.T) {
	verdicts, judged := map[Verdict]int{}, map[Verdict]int{}
	for seed := range need.Share[uint64](20, 60) {
		w := newMulticastWorld(seed)
		var p MulticastProver
		for step := range 200 {
			w.change()
			got := p.Prove(w.f, w.allowed, w.groups)
			verdicts[got.Verdict]++
			for _, s := range got.Spreads {
				judged[s.Verdict]++
			}
			if diff := cmp.Diff(ProveMulticast(w.f, w.allowed, w.groups), got); diff != "" {
				t.Fatalf("seed %d, step %d: (-again +kept)\n%s", seed, step, diff)
			}
		}
	}
	if len(verdicts) != 3 || len(judged) != 2 {
		t.Errorf("verdicts %v, of multicast LIDs %v", verdicts, judged)
	}
}

// What did not change is not judged again.
func TestMulticastProverJudgesWhatChanged(t *testing.T) {
	s := newSite()
	leaf := s.leaves[0]
	leaf.Switch.Info.MulticastFDBCap = smp.MLIDsPerBlock
	var block smp.MulticastForwardingTable
	block.Masks[0], block.Masks[1] = 1<<1|1<<2, 1<<3|1<<4 // h0 and h1, h2 and h3
	leaf.Switch.MFT = map[uint32]smp.MulticastForwardingTable{smp.MFTModifier(0, 0): block}
	var p MulticastProver
	p.Prove(s.f, s.allowed, nil)
	first, second := ib.LIDMulticastMin, ib.LIDMulticastMin+1
	mark := func() {
		for _, mlid := range []ib.LID{first, second} {
			x := p.spreads[mlid]
			x.Ports = -1
			p.spreads[mlid] = x
		}
	}
	mark()
	s.allowed[2].Full = s.allowed[2].Full[:1] // red loses h1 and h4
	m := p.Prove(s.f, s.allowed, nil)
	if len(m.Spreads) != 2 || m.Spreads[0].Ports != 2 || m.Spreads[1].Ports != -1 {
		t.Errorf("%+v, want the first alone judged again", m.Spreads)
	}
}
