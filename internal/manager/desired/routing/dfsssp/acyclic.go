package dfsssp

import (
	"cmp"
	"math"
	"slices"
)

// searchMost is the number of links that takeNear looks at.

const searchMost = 200

// acyclic is the turns that the paths of a layer take, which never close a circle. It keeps
// the links in an order in which every turn leads on, and repairs the order where a new turn
// needs it: the algorithm of Pearce and Kelly for topological orders that change.
type acyclic struct {
	c *cabling
	// paths is, by turn, how many paths take it.
	paths []int32
	// refused are turns that would have closed a circle, and will as long as none is dropped.
	refused turnSet
	at      []int32 // by link: its place in the order
	fixed   bool    // the order stays as it is: turns that need another are refused
	seen    []bool  // by link: found by the search at hand
	most    int     // links that the search at hand may find before it gives up
	work    int     // turns and links that were looked at
	ahead   []int32 // what a search found
	behind  []int32
	places  []int32
}

// newAcyclic begins without paths and with an order of the links.
func newAcyclic(c *cabling, at []int32) *acyclic {
	return &acyclic{c: c, paths: make([]int32, len(c.To)*int(c.width)), refused: c.newSet(), at: slices.Clone(at), seen: make([]bool, len(c.To)), most: math.MaxInt}
}

// take enters a turn of a path unless it would close a circle. With final, the turns that
// are taken stay so until forget, and what is refused is refused till then.
func (a *acyclic) take(turn int32, final bool) bool {
	if a.paths[turn] == 0 {
		if a.refused.has(turn) {
			return false
		}
		x, y := a.c.links(turn)
		if a.at[x] > a.at[y] && (a.fixed || !a.reorder(x, y)) {
			if final {
				a.refused.put(turn)
			}
			return false
		}
	}
	a.paths[turn]++
	return true
}

// takeNear enters a turn of a path if it is easy to see that it closes no circle.
func (a *acyclic) takeNear(turn int32) bool {
	a.most = searchMost
	defer func() { a.most = math.MaxInt }()
	a.work++
	return a.take(turn, false)
}

// retake enters a turn that was dropped when all that is in the set now was.
func (a *acyclic) retake(turn int32) {
	if !a.take(turn, false) {
		panic("dfsssp: a turn closes a circle that closed none")
	}
}

// drop takes a turn of a path back.
func (a *acyclic) drop(turn int32) { a.paths[turn]-- }

// reorder moves link y and what follows it behind link x and what leads to it. It changes
// nothing and returns false where x follows y.
func (a *acyclic) reorder(x, y int32) bool {
	defer func() {
		for _, l := range a.ahead {
			a.seen[l] = false
		}
		for _, l := range a.behind {
			a.seen[l] = false
		}
	}()
	a.behind = a.behind[:0]
	ok := a.forward(x, y)
	a.work += len(a.ahead)
	if !ok {
		return false
	}
	if !a.backward(x, y) {
		return false
	}
	byPlace := func(l, m int32) int { return cmp.Compare(a.at[l], a.at[m]) }
	slices.SortFunc(a.behind, byPlace)
	slices.SortFunc(a.ahead, byPlace)
	a.places = a.places[:0]
	for _, l := range a.behind {
		a.places = append(a.places, a.at[l])
	}
	for _, l := range a.ahead {
		a.places = append(a.places, a.at[l])
	}
	slices.Sort(a.places)
	for i, l := range a.behind {
		a.at[l] = a.places[i]
	}
	for i, l := range a.ahead {
		a.at[l] = a.places[len(a.behind)+i]
	}
	return true
}

// forward finds the links that follow y and stand before x, and is false when it meets x.
func (a *acyclic) forward(x, y int32) bool {
	c := a.c
	a.ahead = append(a.ahead[:0], y)
	a.seen[y] = true
	for i := 0; i < len(a.ahead); i++ {
		l := a.ahead[i]
		first, base := c.First[c.To[l]], l*c.width
		for e := range c.First[c.To[l]+1] - first {
			if a.paths[base+e] == 0 {
				continue
			}
			m := first + e
			if m == x {
				return false
			}
			if !a.seen[m] && a.at[m] < a.at[x] {
				a.seen[m] = true
				a.ahead = append(a.ahead, m)
				if len(a.ahead) > a.most {
					return false
				}
			}
		}
	}
	return true
}

// backward finds the links that lead to x and stand behind y.
func (a *acyclic) backward(x, y int32) bool {
	c := a.c
	a.behind = append(a.behind[:0], x)
	a.seen[x] = true
	for i := 0; i < len(a.behind); i++ {
		l := a.behind[i]
		s := c.from[l]
		exit := l - c.First[s]
		for _, in := range c.Back[c.First[s]:c.First[s+1]] {
			if a.at[in] > a.at[y] && !a.seen[in] && a.paths[in*c.width+exit] != 0 {
				a.seen[in] = true
				a.behind = append(a.behind, in)
				if len(a.behind) > a.most {
					return false
				}
			}
		}
	}
	return true
}

// sort makes the order one in which all turns that are taken lead on, or where it is fixed
// looks whether they do. It is false where there is no such order.
func (a *acyclic) sort() bool {
	c := a.c
	before := make([]int32, len(c.To)) // by link: turns to it from links that have no place yet
	follow := func(l int32, visit func(m int32) bool) bool {
		first := c.First[c.To[l]]
		for e := range c.First[c.To[l]+1] - first {
			if a.paths[l*c.width+e] > 0 && !visit(first+e) {
				return false
			}
		}
		return true
	}
	for l := range c.To {
		if !follow(int32(l), func(m int32) bool { before[m]++; return !a.fixed || a.at[l] < a.at[m] }) {
			return false
		}
	}
	if a.fixed {
		return true
	}
	order := make([]int32, 0, len(c.To))
	for l := range c.To {
		if before[l] == 0 {
			order = append(order, int32(l))
		}
	}
	for i := 0; i < len(order); i++ {
		a.at[order[i]] = int32(i)
		follow(order[i], func(m int32) bool {
			if before[m]--; before[m] == 0 {
				order = append(order, m)
			}
			return true
		})
	}
	return len(order) == len(c.To)
}
