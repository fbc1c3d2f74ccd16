package dfsssp

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
)

// home is the layer that takes every pair of switches that no other layer can take: its
// order leaves a path between any two.
const home = 0

// repairer gives each pair of switches a layer in which the paths between them are free. It
// changes the paths of pairs for which there is none.
type repairer struct {
	*cabling
	linear [][]ib.PortNum
	load   []uint64 // by link
	lids   [][]ib.LID
	// layer is that of each pair.
	layer [][]uint8
	// dirty are the switches whose trees are to be looked at, queue the same in order.
	dirty []bool
	queue []uint16

	t *tree
	// escape is, for the root at hand, exits by which every switch reaches it in the home
	// layer, whatever switches send by them.
	escape []int32
	// For the tree at hand, by switch:
	forced []bool // has its exit from escape
	bad    []bool // has to be led to the root in the home layer
	// What seek found: the hops, and the exits.
	hops  []uint16
	exit  []int32
	rings [][]uint16 // switches by hops
}

func newRepairer(h *chooser, lids [][]ib.LID) *repairer {
	c, n := h.cabling, len(h.Nodes)
	m := &repairer{
		cabling: c, linear: h.linear, load: h.load, lids: lids, layer: h.layer,
		dirty: make([]bool, n), t: newTree(c),
		escape: make([]int32, n), forced: make([]bool, n), bad: make([]bool, n),
		hops: make([]uint16, n), exit: make([]int32, n),
	}
	return m
}

// run repairs the trees of some switches, and those where this changes the layers of pairs.
func (m *repairer) run(roots [][2]uint16) {
	for _, pair := range roots {
		m.push(pair[0])
		m.push(pair[1])
	}
	for len(m.queue) > 0 {
		r := m.queue[0]
		m.queue = m.queue[1:]
		m.dirty[r] = false
		ready := false
		for _, lid := range m.lids[r] {
			m.t.read(m.linear, r, lid)
			clear(m.forced)
			for m.check() {
				if !ready {
					m.flee(r)
					ready = true
				}
				m.reattach()
				m.t.sort()
			}
		}
	}
}

func (m *repairer) push(s uint16) {
	if !m.dirty[s] {
		m.dirty[s] = true
		m.queue = append(m.queue, s)
	}
}

// check gives the home layer to pairs whose paths are no longer free in theirs, and reports
// whether there are switches whose path is not free in the home layer and has to be: those are bad.
func (m *repairer) check() (found bool) {
	t := m.t
	clear(m.bad)
	for _, s := range t.order {
		layer := &m.layer[s][t.root]
		if t.free[s]>>*layer&1 != 0 {
			continue
		}
		if *layer != home {
			*layer, m.layer[t.root][s] = home, home
			m.push(s)
			// Trees of the same root that were looked at before may need it too.
			m.push(t.root)
		}
		if t.free[s]>>home&1 == 0 {
			m.bad[s], found = true, true
		}
	}
	return found
}

// reattach leads bad switches to the root by paths that are free in the home layer: by the
// fewest hops to a path that is, by bad ones only where they can, or by the way of escape
// where there is no such.
func (m *repairer) reattach() {
	for _, all := range []bool{false, true} {
		m.seek(all)
		if m.take() {
			return
		}
	}
	t := m.t
	for s, bad := range m.bad {
		for at := uint16(s); bad && at != t.root && !m.forced[at]; at = m.To[t.exit[at]] {
			m.forced[at] = true
			m.send(at, m.escape[at])
		}
	}
}

// take lets bad switches send as seek found, and reports whether it found anything.
func (m *repairer) take() (found bool) {
	t := m.t
	for s, bad := range m.bad {
		if !bad || m.hops[s] == graph.Unset {
			continue
		}
		found = true
		for at := uint16(s); at != t.root && t.free[at]>>home&1 == 0; at = m.To[t.exit[at]] {
			m.send(at, m.exit[at])
			t.free[at] |= 1 << home
		}
	}
	return found
}

// seek finds for every bad switch, or for all, the shortest path in the home layer to a
// switch whose path is free there, and on.
func (m *repairer) seek(all bool) {
	t := m.t
	for s := range m.hops {
		m.hops[s] = graph.Unset
	}
	for d := range m.rings {
		m.rings[d] = m.rings[d][:0]
	}
	m.enter(t.root, 0)
	for _, s := range t.order {
		if t.free[s]>>home&1 != 0 {
			m.exit[s] = t.exit[s]
			m.enter(s, t.hops[s])
		}
	}
	for d := 0; d < len(m.rings); d++ {
		for i := 0; i < len(m.rings[d]); i++ {
			p := m.rings[d][i]
			for out := m.First[p]; out < m.First[p+1]; out++ {
				s, l := m.To[out], m.Back[out]
				if p != t.root && m.turn(l, m.exit[p])>>home&1 == 0 {
					continue
				}
				switch {
				case !all && !m.bad[s]:
				case m.hops[s] == graph.Unset:
					m.exit[s] = l
					m.enter(s, uint16(d+1))
				case t.free[s]>>home&1 == 0 && int(m.hops[s]) == d+1 && m.load[l] < m.load[m.exit[s]]:
					m.exit[s] = l
				}
			}
		}
	}
}

// enter notes that a path of so many hops from s was found.
func (m *repairer) enter(s, hops uint16) {
	m.hops[s] = hops
	for len(m.rings) <= int(hops) {
		m.rings = append(m.rings, nil)
	}
	m.rings[hops] = append(m.rings[hops], s)
}

// send makes a link the exit of s, in the tree and in the table.
func (m *repairer) send(s uint16, l int32) {
	m.load[m.t.exit[s]] -= min(m.load[m.t.exit[s]], uint64(m.Hosts[s]))
	m.load[l] += uint64(m.Hosts[s])
	m.t.exit[s] = l
	m.linear[m.Nodes[s].Index][m.t.lid] = m.Port[l]
}

// flee finds the ways of escape to switch r: down where a way leads down only, else up to
// the nearest that has one.
func (m *repairer) flee(r uint16) {
	height := m.height
	hops := m.hops
	for s := range hops {
		hops[s] = graph.Unset
	}
	hops[r] = 0
	queue := []uint16{r}
	for i := 0; i < len(queue); i++ {
		p := queue[i]
		for out := m.First[p]; out < m.First[p+1]; out++ {
			if s := m.To[out]; hops[s] == graph.Unset && height[s] < height[p] {
				hops[s] = hops[p] + 1
				m.escape[s] = m.Back[out]
				queue = append(queue, s)
			}
		}
	}
	for _, s := range m.list {
		if hops[s] != graph.Unset {
			continue
		}
		for l := m.First[s]; l < m.First[s+1]; l++ {
			if p := m.To[l]; height[p] < height[s] && hops[p] != graph.Unset && hops[p]+1 < hops[s] {
				hops[s], m.escape[s] = hops[p]+1, l
			}
		}
	}
}
