package desired

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/group"
)

// tree is the making of one group's tree.
type tree struct {
	*web
	*heights // nil: any tree will do
	group    *group.Group
	seated   []seated
	members  []int32 // members at each switch
	kept     []bool  // cables of the old tree that serve the new one
	piece    []int32 // for each switch the first of its piece of the old tree
	up       []int32 // for each switch the cable towards the root, or none
	order    []int32 // switches as they were reached from the root
	reached  []bool
}

// seated is a member with its seat.
type seated struct {
	seat
	guid     ib.PortGUID
	receives bool
}

const noIndex = -1

func newTree(w *web, h *heights, g *group.Group) *tree {
	n := len(w.switches)
	return &tree{
		web: w, heights: h, group: g, members: make([]int32, n), kept: make([]bool, len(w.cables)),
		piece: make([]int32, n), up: make([]int32, n), reached: make([]bool, n),
	}
}

func (t *tree) compute(ends map[ib.PortGUID]*observed.Port, allowed func(ib.PKeyBase, ib.PortGUID) bool, out *MulticastTables) {
	t.sit(ends, allowed, out)
	if len(t.seated) == 0 {
		return
	}
	t.keep()
	for part := 0; ; part++ {
		root, some := t.root()
		if !some {
			return
		}
		first := len(t.order)
		if !t.descend(root) {
			t.grow(root, true)
		}
		t.enter(t.order[first:], part, out)
	}
}

// sit finds the seats of the members.
func (t *tree) sit(ends map[ib.PortGUID]*observed.Port, allowed func(ib.PKeyBase, ib.PortGUID) bool, out *MulticastTables) {
	for _, m := range t.group.Members {
		if !m.Sends() || !allowed(t.group.Partition, m.Port) {
			continue
		}
		p, seen := ends[m.Port]
		if p == nil {
			if seen {
				out.fault(t.group, m.Port, "several ports claim this GUID")
			}
			continue // who is not there gets nothing, and that is no fault
		}
		s, ok := t.seatOf(p)
		if !ok {
			out.fault(t.group, m.Port, "no trained link to a switch")
			continue
		}
		if sw := t.switches[s.at]; !t.carries(s.at) {
			out.fault(t.group, m.Port, fmt.Sprintf("switch %s: MulticastFDBCap %d, want at least %d",
				sw.Name(), sw.Switch.Info.MulticastFDBCap, int(t.group.MLID-ib.LIDMulticastMin)+1))
			continue
		}
		t.seated = append(t.seated, seated{s, m.Port, m.Receives()})
		t.members[s.at]++
	}
}

// carries reports whether a switch has room for the group's multicast LID.
func (t *tree) carries(s int32) bool {
	sw := t.switches[s].Switch
	return sw.InfoRead && int(t.group.MLID-ib.LIDMulticastMin) < int(sw.Info.MulticastFDBCap)
}

// serves reports whether a cable can be part of the tree.
func (t *tree) serves(c *cable) bool {
	return (c.mtu == 0 || c.mtu >= t.group.MTU) && t.carries(c.a) && t.carries(c.b)
}

// keep finds the cables of the tree that the switches hold now, by what was
// read of their tables. Should they lead in a circle, the later cable goes.
func (t *tree) keep() {
	for s := range t.piece {
		t.piece[s] = int32(s)
	}
	block, index := smp.MFTPlace(t.group.MLID)
	held := func(s int32, p ib.PortNum) bool {
		m := t.switches[s].Switch.MFT[smp.MFTModifier(block, uint8(p/smp.PortsPerPosition))]
		return m.Masks[index]&(1<<(p%smp.PortsPerPosition)) != 0
	}
	for i := range t.cables {
		c := &t.cables[i]
		if !held(c.a, c.portA) && !held(c.b, c.portB) || !t.serves(c) {
			continue
		}
		if a, b := t.first(c.a), t.first(c.b); a != b {
			t.piece[max(a, b)] = min(a, b)
			t.kept[i] = true
		}
	}
}

// first is the first switch of the piece of the old tree that s is in.
func (t *tree) first(s int32) int32 {
	for t.piece[s] != s {
		t.piece[s] = t.piece[t.piece[s]]
		s = t.piece[s]
	}
	return s
}

// root is, of the switches that no tree reaches yet, the first with members in
// the piece of the old tree that has most of them.
func (t *tree) root() (s int32, some bool) {
	count := make([]int32, len(t.switches))
	best := int32(noIndex)
	for s, n := range t.members {
		if n > 0 && !t.reached[s] {
			first := t.first(int32(s))
			count[first] += n
			if best == noIndex || count[first] > count[best] || count[first] == count[best] && first < best {
				best = first
			}
		}
	}
	for s, n := range t.members {
		if n > 0 && !t.reached[s] && t.first(int32(s)) == best {
			return int32(s), true
		}
	}
	return noIndex, false
}

// grow reaches every switch from the root: along shortest paths, but from one
// end of a piece of the old tree to the other by the way of that. Without up it goes
// downwards only.
func (t *tree) grow(root int32, up bool) {
	first := len(t.order)
	t.reach(root, noIndex, up)
	for i := first; i < len(t.order); i++ {
		s := t.order[i]
		ways := t.ways[s]
		for k := range ways {
			// Groups begin with different cables, so that they do not all
			// take the same.
			way := ways[(k+int(t.group.MLID))%len(ways)]
			c := &t.cables[way]
			if to, _, _ := c.other(s); !t.reached[to] && t.serves(c) && (up || t.rank[to] > t.rank[s]) {
				t.reach(to, way, up)
			}
		}
	}
}

// reach enters a switch, and with it its piece of the old tree.
func (t *tree) reach(s, by int32, up bool) {
	t.reached[s], t.up[s] = true, by
	from := len(t.order)
	t.order = append(t.order, s)
	for i := from; i < len(t.order); i++ {
		at := t.order[i]
		for _, way := range t.ways[at] {
			if !t.kept[way] {
				continue
			}
			if to, _, _ := t.cables[way].other(at); !t.reached[to] && (up || t.rank[to] > t.rank[at]) {
				t.reached[to], t.up[to] = true, way
				t.order = append(t.order, to)
			}
		}
	}
}

// enter writes the branches that lead to members into the tables. Part counts
// the trees of the group: more than one when the subnet is split for it.
func (t *tree) enter(order []int32, part int, out *MulticastTables) {
	here := make([]bool, len(t.switches))
	for _, s := range order {
		here[s] = true
	}
	receivers := make([]int32, len(t.switches)) // at each switch and beyond
	all := int32(0)
	for _, m := range t.seated {
		if !here[m.at] {
			continue
		}
		if part > 0 {
			out.fault(t.group, m.guid, "its switch "+t.switches[m.at].Name()+
				" is cut off from other members: no way over switches and cables that can carry the group")
		}
		if m.receives {
			receivers[m.at]++
			all++
			out.add(t.switches[m.at], t.group.MLID, m.port)
		}
	}
	for i := len(order) - 1; i > 0; i-- {
		s := order[i]
		if t.members[s] == 0 {
			continue // nobody here or beyond
		}
		to, near, far := t.cables[t.up[s]].other(s)
		t.members[to] += t.members[s]
		receivers[to] += receivers[s]
		if receivers[s] > 0 {
			out.add(t.switches[to], t.group.MLID, far)
		}
		if receivers[s] < all {
			out.add(t.switches[s], t.group.MLID, near)
		}
	}
}
