package graph

import (
	"cmp"
	"slices"
)

// paths holds the exits that lead from every switch to one destination
// switch. Its storage is used again for the next destination.
type paths struct {
	g *heights
	// order lists the switches that reach the destination, without itself,
	// the farthest first: each comes before all that its packets pass.
	order []uint16
	// exits holds the links of order[i] from exitFirst[i] to exitFirst[i+1]-1.
	exits     []int32
	exitFirst []int32

	cost   []uint16 // hops to the destination
	down   []uint16 // hops when going down all the way
	forced []bool   // entered from above, so that it may only go down
	queue  []uint16
	counts []int32 // for sorting by cost
}

func newPaths(g *heights) *paths {
	n := len(g.Nodes)
	return &paths{g: g, cost: make([]uint16, n), down: make([]uint16, n), forced: make([]bool, n)}
}

// reset forgets the last destination.
func (p *paths) reset() {
	p.order, p.exits, p.exitFirst = p.order[:0], p.exits[:0], append(p.exitFirst[:0], 0)
}

// minHop finds all shortest paths to switch d.
func (p *paths) minHop(d uint16) {
	p.reset()
	g := p.g
	p.queue = g.Distances(p.cost, p.queue, d)
	for i := len(p.queue) - 1; i > 0; i-- {
		s := p.queue[i]
		p.order = append(p.order, s)
		for l := g.First[s]; l < g.First[s+1]; l++ {
			if p.cost[g.To[l]]+1 == p.cost[s] {
				p.exits = append(p.exits, l)
			}
		}
		p.exitFirst = append(p.exitFirst, int32(len(p.exits)))
	}
}

// upDown finds the shortest paths to switch d that never go up after they
// went down, on a graph that was split.
//
// A table entry cannot tell where a packet came from. So a switch to which a
// higher one sends packets for d may only send them on downwards; all others
// are free to take the shortest way.
func (p *paths) upDown(d uint16) {
	p.reset()
	p.climb(d)
	clear(p.forced)
	g := p.g
	for i := range g.Nodes {
		s := uint16(i)
		cost := p.down[s]
		if s == d {
			p.cost[s] = cost
			continue
		}
		if !p.forced[s] {
			for _, t := range g.above(s) {
				if p.cost[t] < cost {
					cost = p.cost[t] + 1
				}
			}
		}
		p.cost[s] = cost
		if cost == Unset || cost != p.down[s] {
			continue
		}
		for _, t := range g.below(s) {
			if p.down[t] == cost-1 {
				p.forced[t] = true
			}
		}
	}
	p.sortByCost(d)
	for _, s := range p.order {
		p.exitsOf(s)
		p.exitFirst = append(p.exitFirst, int32(len(p.exits)))
	}
}

// exitsOf appends the exits of s, by port.
func (p *paths) exitsOf(s uint16) {
	g, next := p.g, p.cost[s]-1
	start := len(p.exits)
	if !p.forced[s] {
		for l := g.First[s]; l < g.lower[s]; l++ {
			if p.cost[g.To[l]] == next {
				p.exits = append(p.exits, l)
			}
		}
	}
	if p.cost[s] != p.down[s] {
		return
	}
	up := len(p.exits)
	for l := g.lower[s]; l < g.First[s+1]; l++ {
		if p.down[g.To[l]] == next {
			p.exits = append(p.exits, l)
		}
	}
	if start < up && up < len(p.exits) {
		slices.SortFunc(p.exits[start:], func(a, b int32) int { return cmp.Compare(g.Port[a], g.Port[b]) })
	}
}

// climb finds the distances from which d is reached going down only.
func (p *paths) climb(d uint16) {
	for s := range p.down {
		p.down[s] = Unset
	}
	p.down[d] = 0
	p.queue = append(p.queue[:0], d)
	for i := 0; i < len(p.queue); i++ {
		s := p.queue[i]
		for _, t := range p.g.above(s) {
			if p.down[t] == Unset {
				p.down[t] = p.down[s] + 1
				p.queue = append(p.queue, t)
			}
		}
	}
}

// sortByCost fills order with the switches that reach d, farthest first.
func (p *paths) sortByCost(d uint16) {
	p.counts = p.counts[:0]
	reached := 0
	for s, c := range p.cost {
		if c == Unset || uint16(s) == d {
			continue
		}
		for len(p.counts) <= int(c) {
			p.counts = append(p.counts, 0)
		}
		p.counts[c]++
		reached++
	}
	at := int32(0)
	for c := len(p.counts) - 1; c >= 0; c-- {
		p.counts[c], at = at, at+p.counts[c]
	}
	p.order = append(p.order, make([]uint16, reached)...)
	for s, c := range p.cost {
		if c != Unset && uint16(s) != d {
			p.order[p.counts[c]] = uint16(s)
			p.counts[c]++
		}
	}
}
