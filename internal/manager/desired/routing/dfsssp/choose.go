package dfsssp

import (
	"math/bits"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
)

// The cost of an exit: first how many LIDs of the same port leave by it already, then
// whether its path is free in no layer that the two switches have left, then the load of
// its path, which is the number of routes from CAs that cross its links.
const (
	costTaken = uint64(1) << 57
	costBad   = uint64(1) << 56
	loadMask  = costBad - 1
)

// chooser chooses shortest paths to LIDs, one LID after the other, by the load that those
// before have put on the links.
type chooser struct {
	*cabling
	linear [][]ib.PortNum
	// left is, for two switches with CAs, the layers in which all paths between them that
	// were chosen are free.
	left [][]layers

	load  []uint64 // by link
	lids  []uint16 // by link: LIDs of CAs and routers
	owned []uint16 // by link: LIDs of switches
	taken []uint8  // by link: LIDs of the end port at hand

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

func newChooser(c *cabling, linear [][]ib.PortNum) *chooser {
	links, n := len(c.To), len(c.Nodes)
	h := &chooser{
		cabling: c, linear: linear, left: make([][]layers, n),
		load: make([]uint64, links), lids: make([]uint16, links), owned: make([]uint16, links), taken: make([]uint8, links),
		dist: make([]uint16, n), flow: make([]uint32, n), path: make([]uint64, n), free: make([]layers, n), exit: make([]int32, n),
	}
	for s := range h.left {
		h.left[s] = make([]layers, n)
		for r := range h.left[s] {
			h.left[s][r] = c.all()
		}
	}
	return h
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
	lids := h.lids
	if e.Port == 0 {
		lids = h.owned
	}
	if e.LMC > 0 {
		clear(h.taken)
	}
	for i := range e.LMC.Count() {
		lid := e.LID + ib.LID(i)
		h.linear[h.Nodes[e.At].Index][lid] = e.Port
		h.choose(e)
		for j := len(h.queue) - 1; j > 0; j-- {
			s := h.queue[j]
			flow := h.flow[s]
			if flow == 0 {
				h.exit[s] = h.idlest(h.exits[h.first[j-1]:h.first[j]], lids)
			}
			l := h.exit[s]
			h.flow[h.To[l]] += flow
			h.load[l] += uint64(flow)
			lids[l]++
			if e.LMC > 0 {
				h.taken[l]++
			}
			h.linear[h.Nodes[s].Index][lid] = h.Port[l]
		}
	}
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
		best, least, free := int32(0), ^uint64(0), layers(0)
		left := h.left[s][e.At]
		for _, l := range h.exits[h.first[i]:h.first[i+1]] {
			p := h.To[l]
			cost := h.load[l] + h.path[p] + uint64(h.taken[l])*costTaken
			if cost >= least {
				continue
			}
			in := h.all()
			if p != e.At {
				in = h.free[p] & h.turn(l, h.exit[p])
			}
			if in&left == 0 {
				cost |= costBad
			}
			if cost < least {
				best, least, free = l, cost, in
			}
		}
		h.exit[s], h.path[s], h.free[s] = best, least&loadMask, free
		if h.flow[s] > 0 {
			h.left[s][e.At] &= free
			h.left[e.At][s] &= free
		}
	}
}

// idlest is the exit with the fewest LIDs.
func (h *chooser) idlest(exits []int32, lids []uint16) int32 {
	best, least := exits[0], ^uint32(0)
	for _, l := range exits {
		if n := uint32(h.taken[l])<<16 | uint32(lids[l]); n < least {
			best, least = l, n
		}
	}
	return best
}

// unplaced counts the pairs of switches with CAs whose paths are free in no layer together.
func (h *chooser) unplaced() (n int) {
	for s := range h.left {
		for r := range s {
			if h.left[s][r] == 0 {
				n++
			}
		}
	}
	return n
}

// lowest is the first of some layers.
func (l layers) lowest() uint8 { return uint8(bits.TrailingZeros16(uint16(l))) }
