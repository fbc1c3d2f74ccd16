package dfsssp

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
)

// The cost of an exit: first how many LIDs of the same port leave by it already, then
// whether its path is not free in the home layer, then the load of its path, which is the
// number of routes from CAs that cross its links.
const (
	costTaken = uint64(1) << 57
	costNever = uint64(1) << 56
	loadMask  = costNever - 1
)

// Loads hardly differ that are no farther apart than their share by slackShift, in powers
// of 2, and one packet of every slackCAs-th CA. The least of them is not worth that routes
// move whenever a cable breaks somewhere.
const (
	slackShift = 4
	slackCAs   = 8
)

// alikeShare is the share of pairs of switches without a path in the home layer, one in so
// many, from which on all CAs of a switch first get one tree: so few turns need other layers.
const alikeShare = 16

// chooser chooses shortest paths to LIDs, one LID after the other, by the load that those
// before have put on the links.
type chooser struct {
	*cabling
	linear [][]ib.PortNum
	rows   [][]ib.PortNum // linear by switch
	// alike reports whether the CAs of a switch get the same tree, but for LIDs of one port.
	alike bool
	like  []ib.LID // the LIDs whose trees the next CA gets
	// left tells of two switches that all paths between them that were chosen are free in the
	// home layer, bound that packets of CAs take one that is not, so that this layer cannot be
	// theirs without a detour for CAs.
	left, bound [][]bool
	// bounds is the number of pairs that are bound.
	bounds int
	// layer is that of each pair.
	layer [][]uint8

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
	low   []uint64 // by place in queue: the least load of a path, when it was last looked at
	// For the LID at hand, by switch:
	flow []uint32 // CAs whose packets pass it
	path []uint64 // the load of the way
	free []bool   // whether the way is free in the home layer
	exit []int32
}

func newChooser(c *cabling, linear [][]ib.PortNum, alike bool) *chooser {
	links, n := len(c.To), len(c.Nodes)
	h := &chooser{
		cabling: c, linear: linear, rows: make([][]ib.PortNum, n), alike: alike,
		left: make([][]bool, n), bound: make([][]bool, n),
		load: make([]uint64, links), taken: make([]uint8, links),
		dist: make([]uint16, n), flow: make([]uint32, n), path: make([]uint64, n), free: make([]bool, n), exit: make([]int32, n),
	}
	h.step = c.steps()
	for _, hosts := range c.Hosts {
		h.slack += uint64(hosts)
	}
	h.slack /= slackCAs
	for s, node := range c.Nodes {
		h.rows[s] = linear[node.Index]
		h.left[s], h.bound[s] = slices.Repeat([]bool{true}, n), make([]bool, n)
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
	h.low = append(h.low[:0], make([]uint64, len(h.queue))...)
	h.like = h.like[:0]
}

// route enters the LIDs of an end port of the switch at hand, everywhere.
func (h *chooser) route(e graph.End) {
	if e.LMC > 0 {
		clear(h.taken)
	}
	for i := range e.LMC.Count() {
		lid := e.LID + ib.LID(i)
		h.rows[e.At][lid] = e.Port
		switch {
		case e.Port == 0 && h.Hosts[e.At] > 0: // goes the way of the CAs
		case i < len(h.like):
			h.repeat(lid, h.like[i])
		default:
			h.choose(e)
			h.settle(e, lid)
			h.count++
			if h.alike && e.Port != 0 {
				h.like = append(h.like, lid)
			}
		}
	}
}

// repeat leads to a LID as to another behind the same switch.
func (h *chooser) repeat(lid, like ib.LID) {
	copy(h.flow, h.Hosts)
	for i := len(h.queue) - 1; i > 0; i-- {
		s := h.queue[i]
		l := h.First[s] + int32(h.place[s][h.rows[s][like]])
		h.flow[h.To[l]] += h.flow[s]
		h.load[l] += uint64(h.flow[s])
		h.rows[s][lid] = h.rows[s][like]
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
		if h.flow[s] == 0 {
			h.idle(e, s, h.exits[h.first[i]:h.first[i+1]], int(lid))
		}
		if !h.free[s] {
			h.left[s][e.At], h.left[e.At][s] = false, false
			if h.flow[s] != 0 && !h.bound[s][e.At] {
				h.bound[s][e.At], h.bound[e.At][s] = true, true
				h.bounds++
			}
		}
		l := h.exit[s]
		if e.LMC > 0 {
			h.taken[l]++
		}
		h.rows[s][lid] = h.Port[l]
	}
}

// idle chooses one of the exits of a switch that packets of CAs do not pass: the first from
// place at that is free, in a circle, if the two switches have the home layer left.
func (h *chooser) idle(e graph.End, s uint16, exits []int32, at int) {
	for k := range exits {
		l := exits[(at+k)%len(exits)]
		free := h.freeBy(e, l)
		if k == 0 || free {
			h.exit[s], h.free[s] = l, free
		}
		if free || !h.left[s][e.At] {
			return
		}
	}
}

// freeBy reports whether the path by a link is free in the home layer.
func (h *chooser) freeBy(e graph.End, l int32) bool {
	p := h.To[l]
	return p == e.At || h.free[p] && (h.up[l] || !h.up[h.exit[p]])
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
		own := exits[0]
		if len(exits) > 1 {
			own = exits[h.count/h.step[s]%len(exits)]
		}
		free := h.freeBy(e, own)
		// Loads only grow: what hardly differs from the least of before is not looked at.
		if load := h.load[own] + h.path[h.To[own]]; e.LMC > 0 || !free || load > h.most(h.low[i]) {
			own, free = h.least(e, i, own)
		}
		h.exit[s], h.free[s] = own, free
		h.path[s] = h.load[own] + h.path[h.To[own]]
	}
}

// most is the load that hardly differs from another.
func (h *chooser) most(load uint64) uint64 { return load + load>>slackShift + h.slack }

// least finds the exit of least cost for a switch, by its place in the queue. Where loads
// hardly differ it is own.
func (h *chooser) least(e graph.End, i int, own int32) (best int32, free bool) {
	least, low := ^uint64(0), ^uint64(0)
	for _, l := range h.exits[h.first[i]:h.first[i+1]] {
		load := h.load[l] + h.path[h.To[l]]
		low = min(low, load)
		cost := load
		if l != own {
			cost = h.most(load)
		}
		cost += uint64(h.taken[l]) * costTaken
		in := h.freeBy(e, l)
		if !in {
			cost += costNever
		}
		if cost < least {
			best, least, free = l, cost, in
		}
	}
	h.low[i] = low
	return best, free
}

// run chooses the paths to all LIDs: first to those of CAs, which have the choice of layers.
// It gives up where more than most pairs are bound.
func (h *chooser) run(tour []uint16, most int) bool {
	for _, hosts := range []bool{true, false} {
		for _, s := range tour {
			ends := h.EndsOf(s)
			if len(ends) == 0 || (h.Hosts[s] > 0) != hosts {
				continue
			}
			h.head(s)
			for _, e := range ends {
				h.route(e)
			}
			if h.bounds > most {
				return false
			}
		}
	}
	return true
}
