package dfsssp

import (
	"github.com/ibwarden/ibwarden/ib"
)

// noLink stands for the exit of a switch that has none on a tree.
const noLink = int32(-1)

// tree is the paths from all switches to one LID.
type tree struct {
	*cabling
	lid  ib.LID
	root uint16
	// exit is the link by which each switch sends to the LID, noLink for the root and for
	// what does not reach it.
	exit []int32
	// order lists the switches that reach the root, each before those that send to it,
	// without the root.
	order []uint16
	hops  []uint16
	// free is, by switch, the layers in which its path is free.
	free []layers

	count  []int32 // for sorting by hops
	sorted []uint16
	known  []bool
	stack  []uint16
}

func newTree(c *cabling) *tree {
	n := len(c.Nodes)
	return &tree{cabling: c, exit: make([]int32, n), hops: make([]uint16, n), free: make([]layers, n), known: make([]bool, n)}
}

// read takes the tree of a LID from the tables.
func (t *tree) read(linear [][]ib.PortNum, root uint16, lid ib.LID) {
	t.root, t.lid = root, lid
	for s, n := range t.Nodes {
		if e := t.place[s][linear[n.Index][lid]]; e == noExit || uint16(s) == root {
			t.exit[s] = noLink
		} else {
			t.exit[s] = t.First[s] + int32(e)
		}
	}
	t.sort()
}

// sort works out all else from the exits.
func (t *tree) sort() {
	t.order = t.order[:0]
	clear(t.known)
	t.known[t.root] = true
	t.hops[t.root] = 0
	for s := range t.exit {
		at := uint16(s)
		for !t.known[at] && t.exit[at] != noLink {
			t.known[at] = true
			t.stack = append(t.stack, at)
			at = t.To[t.exit[at]]
		}
		for i := len(t.stack) - 1; i >= 0; i-- {
			at := t.stack[i]
			t.order = append(t.order, at)
			t.enter(at)
		}
		t.stack = t.stack[:0]
	}
}

// enter works out what follows from the exit of s and from the path of the next switch.
func (t *tree) enter(s uint16) {
	l := t.exit[s]
	p := t.To[l]
	t.hops[s], t.free[s] = t.hops[p]+1, t.all()
	if p != t.root {
		t.free[s] = t.free[p] & t.turn(l, t.exit[p])
	}
}

// byHops sorts the order by hops.
func (t *tree) byHops() {
	most := uint16(0)
	for _, s := range t.order {
		most = max(most, t.hops[s])
	}
	t.count = append(t.count[:0], make([]int32, most+1)...)
	for _, s := range t.order {
		t.count[t.hops[s]]++
	}
	at := int32(0)
	for d, n := range t.count {
		t.count[d], at = at, at+n
	}
	t.sorted = append(t.sorted[:0], t.order...)
	for _, s := range t.sorted {
		t.order[t.count[t.hops[s]]] = s
		t.count[t.hops[s]]++
	}
}
