package ftree

import (
	"container/heap"
	"slices"
)

const (
	// The hub is the first leaf with so large a part of the tops above it, among the
	// first hubTries.
	hubShare = 8 // all but one eighth
	hubTries = 16
)

// order returns the place of every switch: 0 is the highest. A way may go to lower places
// and then to higher ones, never to a lower one again. Each switch but the first of its
// island has a neighbour of a lower place.
func (t *tree) order() []uint16 {
	n := len(t.Nodes)
	place, queued := make([]uint16, n), make([]bool, n)
	wish := make([]int, n) // where a switch would like to stand
	dist := make([]uint16, n)
	var island []uint16
	next := uint16(0)
	for s := range n {
		if queued[s] {
			continue
		}
		island = t.Distances(dist, island, uint16(s))
		slices.Sort(island)
		hub, above := t.hub(island)
		for _, x := range island {
			wish[x] = int(t.level[x]) + 1
			if !above[x] {
				wish[x] = 2*n - int(t.level[x])
			}
		}
		edge := &frontier{wish: wish, before: t.isAbove, all: []uint16{hub}}
		queued[hub] = true
		for len(edge.all) > 0 {
			x := heap.Pop(edge).(uint16)
			place[x] = next
			next++
			for _, y := range t.neighbours(x) {
				if !queued[y] {
					queued[y] = true
					heap.Push(edge, y)
				}
			}
		}
	}
	return place
}

// hub returns the leaf of an island by which those are connected that have no common
// ancestor, and which switches are above it.
func (t *tree) hub(island []uint16) (best uint16, above []bool) {
	tops := 0
	for _, s := range island {
		if t.isTop(s) {
			tops++
		}
	}
	tries, most := 0, -1
	for _, s := range island {
		if t.level[s] > 0 {
			continue
		}
		over, reached := t.ancestors(s)
		if reached > most {
			best, above, most = s, over, reached
		}
		if tries++; tries == hubTries || most*hubShare >= tops*(hubShare-1) {
			break
		}
	}
	return best, above
}

// isTop reports whether no neighbour is above s.
func (t *tree) isTop(s uint16) bool {
	return !slices.ContainsFunc(t.neighbours(s), func(x uint16) bool { return t.isAbove(x, s) })
}

// ancestors marks s and what it reaches going up, and counts the tops among them.
func (t *tree) ancestors(s uint16) (above []bool, tops int) {
	above = make([]bool, len(t.Nodes))
	above[s] = true
	for queue := []uint16{s}; len(queue) > 0; queue = queue[1:] {
		top := true
		for _, x := range t.neighbours(queue[0]) {
			if !t.isAbove(x, queue[0]) {
				continue
			}
			top = false
			if !above[x] {
				above[x] = true
				queue = append(queue, x)
			}
		}
		if top {
			tops++
		}
	}
	return above, tops
}

// frontier is a heap of switches by where they would like to stand.
type frontier struct {
	wish   []int
	before func(a, b uint16) bool
	all    []uint16
}

func (f *frontier) Len() int { return len(f.all) }
func (f *frontier) Less(i, j int) bool {
	a, b := f.all[i], f.all[j]
	if f.wish[a] != f.wish[b] {
		return f.wish[a] < f.wish[b]
	}
	return f.before(a, b)
}
func (f *frontier) Swap(i, j int) { f.all[i], f.all[j] = f.all[j], f.all[i] }
func (f *frontier) Push(x any)    { f.all = append(f.all, x.(uint16)) }
func (f *frontier) Pop() any {
	last := len(f.all) - 1
	x := f.all[last]
	f.all = f.all[:last]
	return x
}

// reach says how far every switch is from every other. Switches are bits of sets: those of
// low levels first, so that sets of high ones have empty ends.
type reach struct {
	t     *tree
	place []uint16
	words int
	bit   []int32  // by switch
	at    []uint16 // by bit
	// down[s][k] is the set of switches that s reaches in k hops going down only, and in no
	// fewer; all[s][k] those to which its packets take k hops.
	down, all [][]part
	// forced[s] is the set of switches to which others send packets down to s: since a
	// table does not know where packets come from, s sends them on going down only.
	forced []set
	// upward[s] is the set of switches to which s can go up first in as few hops as down: then
	// it sends them to none of a lower level, which would be forced for nothing.
	upward []set
	// sum and seen are storage.
	sum, seen set
}

func newReach(t *tree, place []uint16) *reach {
	n := len(t.Nodes)
	r := &reach{
		t: t, place: place, words: (n + 63) / 64, bit: make([]int32, n), at: make([]uint16, n),
		down: make([][]part, n), all: make([][]part, n), forced: make([]set, n),
		upward: make([]set, n),
	}
	r.sum, r.seen = make(set, r.words), make(set, r.words)
	forced, upward := make(set, r.words*n), make(set, r.words*n)
	sorted := make([]uint16, n)
	for s := range n {
		r.at[s] = uint16(s)
		sorted[place[s]] = uint16(s)
		r.forced[s] = forced[s*r.words : (s+1)*r.words]
		r.upward[s] = upward[s*r.words : (s+1)*r.words]
	}
	sortBy(r.at, func(s uint16) int { return int(t.level[s]) })
	for i, s := range r.at {
		r.bit[s] = int32(i)
	}
	for _, s := range slices.Backward(sorted) {
		r.findDown(s)
	}
	for _, s := range sorted {
		r.findAll(s)
	}
	return r
}

// findDown fills down[s] from those of the switches below.
func (r *reach) findDown(s uint16) {
	clear(r.seen)
	r.seen.add(int(r.bit[s]))
	layers := []part{partOf(r.seen)}
	for k := 0; ; k++ {
		clear(r.sum)
		for _, x := range r.t.neighbours(s) {
			if r.place[x] > r.place[s] && k < len(r.down[x]) {
				r.down[x][k].addTo(r.sum)
			}
		}
		layer := r.fresh()
		if len(layer.bits) == 0 {
			r.down[s] = layers
			return
		}
		layers = append(layers, layer)
	}
}

// findAll fills all[s] from those of the switches above, and forces those below.
func (r *reach) findAll(s uint16) {
	down, forced, upward := r.down[s], r.forced[s], r.upward[s]
	most := len(down)
	for _, x := range r.t.neighbours(s) {
		if r.place[x] < r.place[s] {
			most = max(most, len(r.all[x])+1)
		}
	}
	layers := make([]part, most)
	layers[0] = down[0]
	clear(r.seen)
	down[0].addTo(r.seen)
	for k := 1; k < most; k++ {
		clear(r.sum)
		for _, x := range r.t.neighbours(s) {
			if r.place[x] < r.place[s] && k <= len(r.all[x]) {
				r.all[x][k-1].addTo(r.sum)
			}
		}
		for w, bits := range forced {
			r.sum[w] &^= bits
			upward[w] |= r.sum[w] &^ r.seen[w]
		}
		if k < len(down) {
			down[k].addTo(r.sum)
		}
		layers[k] = r.fresh()
	}
	for len(layers[len(layers)-1].bits) == 0 {
		layers = layers[:len(layers)-1]
	}
	r.all[s] = layers
	for _, x := range r.t.neighbours(s) {
		if r.place[x] < r.place[s] {
			continue
		}
		clear(r.sum)
		for k := 1; k < min(len(layers), len(r.down[x])+1); k++ {
			addCommon(r.sum, layers[k], r.down[x][k-1])
		}
		if r.t.level[x] < r.t.level[s] {
			for w, bits := range upward {
				r.sum[w] &^= bits
			}
		}
		for w, bits := range r.sum {
			r.forced[x][w] |= bits
		}
	}
}

// fresh takes from sum what was seen before, and returns the rest, which is seen now.
func (r *reach) fresh() part {
	for w := range r.sum {
		r.sum[w] &^= r.seen[w]
		r.seen[w] |= r.sum[w]
	}
	return partOf(r.sum)
}
