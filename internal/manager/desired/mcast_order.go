package desired

import (
	"math/bits"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
)

// bitSet is a set of switches, by their places.
type bitSet []uint64

func (s bitSet) has(i int32) bool { return s[i/64]>>(i%64)&1 != 0 }
func (s bitSet) add(i int32)      { s[i/64] |= 1 << (i % 64) }

func (s bitSet) each(visit func(int32)) {
	for w, b := range s {
		for ; b != 0; b &= b - 1 {
			visit(int32(w*64 + bits.TrailingZeros64(b)))
		}
	}
}

func (s bitSet) isEmpty() bool { return !slices.ContainsFunc(s, func(b uint64) bool { return b != 0 }) }

// heights is the order of the switches that trees keep to: a switch has at most one
// neighbour in a tree that stands above it. So no packet goes up after it went down.
type heights struct {
	net  *web
	rank []int32 // of each switch, 0 for the highest
	// above are, for each switch, itself and all from which a way leads down to it; nil
	// before they are asked for.
	above []bitSet
}

// newHeights takes the order of the switches, by node GUID; those that it does not have stand
// lowest. Without an order there are no heights.
func newHeights(w *web, order []ib.NodeGUID) *heights {
	if order == nil {
		return nil
	}
	place := make(map[ib.NodeGUID]int32, len(order))
	for i, g := range order {
		place[g] = int32(i)
	}
	h := &heights{net: w, rank: make([]int32, len(w.switches))}
	for s, n := range w.switches {
		at, known := place[n.GUID()]
		if !known {
			at = int32(len(order) + s)
		}
		h.rank[s] = at
	}
	return h
}

// over are the switches from which a way leads down to s, with s.
func (h *heights) over(s int32) bitSet {
	if h.above == nil {
		n := len(h.net.switches)
		words := (n + 63) / 64
		h.above = make([]bitSet, n)
		all := make(bitSet, n*words)
		down := make([]int32, n)
		for s := range down {
			down[s] = int32(s)
			h.above[s] = all[s*words : (s+1)*words]
		}
		slices.SortFunc(down, func(a, b int32) int { return int(h.rank[a]) - int(h.rank[b]) })
		for _, s := range down {
			h.above[s].add(s)
			for _, way := range h.net.ways[s] {
				if to, _, _ := h.net.cables[way].other(s); h.rank[to] < h.rank[s] {
					for w, b := range h.above[to] {
						h.above[s][w] |= b
					}
				}
			}
		}
	}
	return h.above[s]
}

// lowest are those of a set that stand above no other of it.
func (h *heights) lowest(all bitSet) (out []int32) {
	higher := make(bitSet, len(all))
	all.each(func(s int32) {
		own := higher.has(s)
		for w, b := range h.over(s) {
			higher[w] |= b
		}
		if !own { // it is not above itself
			higher[s/64] &^= 1 << (s % 64)
		}
	})
	all.each(func(s int32) {
		if !higher.has(s) {
			out = append(out, s)
		}
	})
	return out
}

// descend reaches the switches of members that are connected with one of them from a switch
// that stands above them all, always downwards. It reports whether there is such a switch;
// else nothing is reached.
func (t *tree) descend(member int32) bool {
	if t.heights == nil {
		return false
	}
	if t.descendTo(member, t.across(member, func(*cable) bool { return true })) {
		return true
	}
	return t.descendTo(member, t.across(member, t.serves))
}

// across are the switches of members that no tree reaches yet and that cables of a kind
// connect with one of them.
func (t *tree) across(member int32, takes func(*cable) bool) (members []int32) {
	seen := make([]bool, len(t.switches))
	seen[member] = true
	for queue := []int32{member}; len(queue) > 0; queue = queue[1:] {
		s := queue[0]
		if t.members[s] > 0 && !t.reached[s] {
			members = append(members, s)
		}
		for _, way := range t.ways[s] {
			c := &t.cables[way]
			if to, _, _ := c.other(s); !seen[to] && takes(c) {
				seen[to] = true
				queue = append(queue, to)
			}
		}
	}
	return members
}

func (t *tree) descendTo(member int32, members []int32) bool {
	root := t.top(member, members)
	if root == noIndex {
		return false
	}
	first := len(t.order)
	t.grow(root, false)
	for _, s := range members {
		if !t.reached[s] {
			for _, x := range t.order[first:] {
				t.reached[x], t.up[x] = false, noIndex
			}
			t.order = t.order[:first]
			return false
		}
	}
	return true
}

// top is a switch that stands above all members: that of the old tree if it can be, else
// one above that, and as low as can be. Groups take different ones.
func (t *tree) top(member int32, members []int32) int32 {
	h := t.heights
	all := slices.Clone(h.over(member))
	for _, s := range members {
		for w, b := range h.over(s) {
			all[w] &= b
		}
	}
	old := t.oldTop(member)
	if all.has(old) {
		return old
	}
	also := slices.Clone(all)
	for w, b := range h.over(old) {
		also[w] &= b
	}
	if !also.isEmpty() {
		all = also
	}
	roots := h.lowest(all)
	if len(roots) == 0 {
		return noIndex
	}
	return roots[int(t.group.MLID)%len(roots)]
}

// oldTop is the highest switch of the piece of the old tree that a switch is in.
func (t *tree) oldTop(s int32) int32 {
	top := s
	seen := map[int32]bool{s: true}
	for queue := []int32{s}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if t.rank[at] < t.rank[top] {
			top = at
		}
		for _, way := range t.ways[at] {
			if to, _, _ := t.cables[way].other(at); t.kept[way] && !seen[to] {
				seen[to] = true
				queue = append(queue, to)
			}
		}
	}
	return top
}
