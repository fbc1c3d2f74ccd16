package dfsssp

import (
	"cmp"
	"slices"
)

// acyclic is a set of turns without a circle, which grows. It keeps the links in an order
// in which every turn leads on, and mends the order where a new turn needs it: the
// algorithm of Pearce and Kelly for topological orders that change.
type acyclic struct {
	c   *cabling
	set turnSet
	// refused are turns that would have closed a circle, and always will.
	refused turnSet
	at      []int32 // by link: its place in the order
	seen    []bool  // by link: found by the search at hand
	ahead   []int32 // what a search found
	behind  []int32
	places  []int32
}

// newAcyclic begins with an empty set and an order of the links.
func newAcyclic(c *cabling, at []int32) *acyclic {
	return &acyclic{c: c, set: c.newSet(), refused: c.newSet(), at: slices.Clone(at), seen: make([]bool, len(c.To))}
}

// add enters a turn unless it would close a circle, or did so earlier. With final, the
// turns that are in the set stay there, so that what is refused is refused for ever.
func (a *acyclic) add(turn int32, final bool) bool {
	if a.refused.has(turn) {
		return false
	}
	x, y := a.c.links(turn)
	if a.at[x] > a.at[y] && !a.reorder(x, y) {
		if final {
			a.refused.put(turn)
		}
		return false
	}
	a.set.put(turn)
	return true
}

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
	if !a.forward(x, y) {
		return false
	}
	a.backward(x, y)
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
	for i, met := 0, false; i < len(a.ahead); i++ {
		l := a.ahead[i]
		a.set.each(l*c.width, (l+1)*c.width, func(turn int32) {
			_, m := c.links(turn)
			met = met || m == x
			if !a.seen[m] && a.at[m] < a.at[x] {
				a.seen[m] = true
				a.ahead = append(a.ahead, m)
			}
		})
		if met {
			return false
		}
	}
	return true
}

// backward finds the links that lead to x and stand behind y.
func (a *acyclic) backward(x, y int32) {
	c := a.c
	a.behind = append(a.behind[:0], x)
	a.seen[x] = true
	for i := 0; i < len(a.behind); i++ {
		l := a.behind[i]
		s := c.from[l]
		exit := l - c.First[s]
		for _, in := range c.Back[c.First[s]:c.First[s+1]] {
			if a.at[in] > a.at[y] && !a.seen[in] && a.set.has(in*c.width+exit) {
				a.seen[in] = true
				a.behind = append(a.behind, in)
			}
		}
	}
}
