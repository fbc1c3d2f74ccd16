package dfsssp

import (
	"cmp"
	"math/bits"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
)

// The cost of an exit: first how many LIDs of the same port leave by it already, then the
// load of its path, which is the number of routes from CAs that cross its links, with what
// is added for a path that is free in none of the layers that the two switches have left.
const (
	costTaken = uint64(1) << 57
	costNever = uint64(1) << 56
	loadMask  = costNever - 1
)

// price is what is added to the load of a path that is free in no layer: the load divided
// by it, or with 0 more than any load.
type price uint64

func (p price) of(load uint64) uint64 {
	if p == 0 {
		return costNever
	}
	return load / uint64(p)
}

// Loads hardly differ that are no farther apart than their share by slackShift, in powers
// of 2, and one packet of every slackCAs-th CA. The least of them is not worth that routes
// move whenever a cable breaks somewhere.
const (
	slackShift = 4
	slackCAs   = 8
)

// chooser chooses shortest paths to LIDs, one LID after the other, by the load that those
// before have put on the links.
type chooser struct {
	*cabling
	linear [][]ib.PortNum
	price  price
	// left is, for two switches, the layers in which all paths between them that were
	// chosen are free.
	left [][]layers
	// bound tells of two switches that packets of CAs take a path between them that is not
	// free in the home layer, so that it cannot be theirs without a detour for CAs.
	bound [][]bool

	// open is the number of bound pairs that have no layer.
	open int

	load  []uint64 // by link
	taken []uint8  // by link: LIDs of the end port at hand
	// count is the number of LIDs that were routed. Where the load hardly differs, it decides:
	// it goes round the exits of a switch, and on after step LIDs.
	count int
	step  []int // by switch
	slack uint64

	// For the switch at hand: the switches that reach it, nearest first, and their exits.
	dist  []uint16
	queue []uint16
	exits []int32
	first []int32
	// For the LID at hand, by switch:
	flow []uint32 // CAs whose packets pass it
	path []uint64 // the load of the way
	free []layers // the layers in which the way is free
	exit []int32
}

func newChooser(c *cabling, linear [][]ib.PortNum, p price) *chooser {
	links, n := len(c.To), len(c.Nodes)
	h := &chooser{
		cabling: c, linear: linear, price: p, left: make([][]layers, n), bound: make([][]bool, n),
		load: make([]uint64, links), taken: make([]uint8, links),
		dist: make([]uint16, n), flow: make([]uint32, n), path: make([]uint64, n), free: make([]layers, n), exit: make([]int32, n),
	}
	h.step = c.steps()
	for _, hosts := range c.Hosts {
		h.slack += uint64(hosts)
	}
	h.slack /= slackCAs
	for s := range h.left {
		h.left[s], h.bound[s] = make([]layers, n), make([]bool, n)
		for r := range h.left[s] {
			h.left[s][r] = c.all()
		}
	}
	return h
}

// steps are, by switch, after how many LIDs it takes its next exit: at the edge of a tree
// after each, farther up after as many as there are ways up to it.
func (c *cabling) steps() []int {
	depth := c.Depths()
	ways := []int{1} // by depth
	out := make([]int, len(c.Nodes))
	for d := uint16(0); int(d) < len(ways); d++ {
		most := 0
		for s := range c.Nodes {
			if depth[s] != d {
				continue
			}
			out[s] = ways[d]
			up := 0
			for _, t := range c.Neighbours(uint16(s)) {
				if depth[t] == d+1 {
					up++
				}
			}
			most = max(most, up)
		}
		if most > 0 {
			ways = append(ways, min(ways[d]*most, len(c.Ends)))
		}
	}
	for s := range out {
		out[s] = max(out[s], 1)
	}
	return out
}

// head finds the shortest paths to switch d.
func (h *chooser) head(d uint16) {
	h.queue = h.Distances(h.dist, h.queue, d)
	h.exits, h.first = h.exits[:0], append(h.first[:0], 0)
	for _, s := range h.queue[1:] {
		next := h.dist[s] - 1
		for l := h.First[s]; l < h.First[s+1]; l++ {
			if h.dist[h.To[l]] == next {
				h.exits = append(h.exits, l)
			}
		}
		h.first = append(h.first, int32(len(h.exits)))
	}
}

// route enters the LIDs of an end port of the switch at hand, everywhere.
func (h *chooser) route(e graph.End) {
	clear(h.taken)
	for i := range e.LMC.Count() {
		lid := e.LID + ib.LID(i)
		h.linear[h.Nodes[e.At].Index][lid] = e.Port
		if e.Port == 0 && h.Hosts[e.At] > 0 {
			continue // goes the way of the CAs
		}
		h.choose(e)
		h.settle(e, lid)
		h.count++
	}
}

// settle takes the paths that were found, and other ones where no packets of CAs pass: by
// the LID alone, so that they stay as they are whatever the load is.
func (h *chooser) settle(e graph.End, lid ib.LID) {
	for i := len(h.queue) - 1; i > 0; i-- {
		s := h.queue[i]
		l, flow := h.exit[s], h.flow[s]
		h.flow[h.To[l]] += flow
		h.load[l] += uint64(flow)
	}
	for i, s := range h.queue[1:] {
		switch {
		case h.flow[s] == 0:
			h.idle(e, s, h.exits[h.first[i]:h.first[i+1]], int(lid))
		case h.free[s]>>home&1 == 0:
			h.bound[s][e.At], h.bound[e.At][s] = true, true
		}
		h.left[s][e.At] &= h.free[s]
		h.left[e.At][s] &= h.free[s]
		l := h.exit[s]
		h.taken[l]++
		h.linear[h.Nodes[s].Index][lid] = h.Port[l]
	}
}

// idle chooses one of the exits of a switch that packets of CAs do not pass: the first from
// place at that is free in a layer that the two switches have left, in a circle.
func (h *chooser) idle(e graph.End, s uint16, exits []int32, at int) {
	for k := range exits {
		l := exits[(at+k)%len(exits)]
		free := h.freeBy(e, l)
		if k == 0 || free&h.left[s][e.At] != 0 {
			h.exit[s], h.free[s] = l, free
		}
		if free&h.left[s][e.At] != 0 {
			return
		}
	}
}

// freeBy is the layers in which the path by a link is free.
func (h *chooser) freeBy(e graph.End, l int32) layers {
	p := h.To[l]
	if p == e.At {
		return h.all()
	}
	return h.free[p] & (h.up[l] | ^h.up[h.exit[p]])
}

// choose finds the least loaded of the shortest paths.
func (h *chooser) choose(e graph.End) {
	// What CAs send to a switch itself weighs nothing.
	clear(h.flow)
	if e.Port != 0 {
		copy(h.flow, h.Hosts)
	}
	h.path[e.At] = 0
	for i, s := range h.queue[1:] {
		exits := h.exits[h.first[i]:h.first[i+1]]
		own := exits[h.count/h.step[s]%len(exits)]
		best, least, free := int32(0), ^uint64(0), layers(0)
		left := h.left[s][e.At]
		for _, l := range exits {
			cost := h.load[l] + h.path[h.To[l]] + uint64(h.taken[l])*costTaken
			if l != own {
				cost += cost&loadMask>>slackShift + h.slack
			}
			if cost >= least {
				continue
			}
			in := h.freeBy(e, l)
			if in&left == 0 {
				cost += h.price.of(cost & loadMask)
			}
			if cost < least {
				best, least, free = l, cost, in
			}
		}
		h.exit[s], h.free[s] = best, free
		h.path[s] = h.load[best] + h.path[h.To[best]]
	}
}

// run chooses the paths to all LIDs: first to those of CAs, which have the choice of layers.
func (h *chooser) run(tour []uint16) {
	for _, hosts := range []bool{true, false} {
		for _, s := range tour {
			if ends := h.EndsOf(s); len(ends) > 0 && (h.Hosts[s] > 0) == hosts {
				h.head(s)
				for _, e := range ends {
					h.route(e)
				}
			}
		}
	}
}

// better reports whether h leaves fewer pairs without layer than o, or has fewer layers.
func (h *chooser) better(o *chooser) bool {
	return cmp.Or(cmp.Compare(h.open, o.open), cmp.Compare(len(h.sets), len(o.sets))) < 0
}

// lowest is the first of some layers.
func (l layers) lowest() uint8 { return uint8(bits.TrailingZeros16(uint16(l))) }
