package dfsssp

import (
	"cmp"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
)

const (
	// noExit is the place of an exit that is no link between switches.
	noExit = ^uint8(0)
	// portNums is the number of values of ib.PortNum.
	portNums = int(ib.PortNone) + 1
)

// exitOf is the link by which a switch sends to a LID.
func (c *cabling) exitOf(linear [][]ib.PortNum, s uint16, lid ib.LID) int32 {
	return c.First[s] + int32(c.place[s][linear[c.Nodes[s].Index][lid]])
}

// layers is a set of layers: bit k stands for layer k.
type layers uint16

// cabling is a graph with the orders by which the layers of paths are free of deadlock. In
// layer home a path never goes up in an order of the switches after it went down in it; in
// each layer its links follow each other in an order of the links.
type cabling struct {
	*graph.Graph
	// place holds for each switch and port the place of its link among the switch's links.
	place [][portNums]uint8
	// from is the switch that a link begins at.
	from []uint16
	// list is the switches from the highest to the lowest, height the place of each in it, up
	// whether a link leads up.
	list, height []uint16
	up           []bool
	// ranks are, for each layer, the places of the links in its order.
	ranks [][]int32
	// width is the number of links of the switch with most of them. A turn is a link and
	// the link that follows it on a path: link l, and exit e of the switch that it leads
	// to, have the number l*width + e.
	width int32
}

func newCabling(g *graph.Graph, list []uint16) *cabling {
	c := &cabling{
		Graph: g, place: make([][portNums]uint8, len(g.Nodes)), from: make([]uint16, len(g.To)),
		list: list, height: make([]uint16, len(list)), up: make([]bool, len(g.To)),
	}
	for i, s := range list {
		c.height[s] = uint16(i)
	}
	for s := range g.Nodes {
		for p := range c.place[s] {
			c.place[s][p] = noExit
		}
		for l := g.First[s]; l < g.First[s+1]; l++ {
			c.place[s][g.Port[l]] = uint8(l - g.First[s])
			c.from[l] = uint16(s)
			c.up[l] = c.height[g.To[l]] < c.height[s]
		}
		c.width = max(c.width, g.First[s+1]-g.First[s])
	}
	return c
}

// linkOrder orders the links so that turns which do not go up after they went down lead on:
// those up first, from the lowest switches, then those down.
func (c *cabling) linkOrder() []int32 {
	order := make([]int32, len(c.To))
	key := make([]int32, len(c.To))
	for l, up := range c.up {
		order[l] = int32(l)
		key[l] = int32(c.height[c.from[l]])
		if up {
			key[l] = -key[l]
		}
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Or(cmp.Compare(key[a], key[b]), cmp.Compare(a, b)) })
	at := make([]int32, len(order))
	for i, l := range order {
		at[l] = int32(i)
	}
	return at
}

// all is the set of all layers.
func (c *cabling) all() layers { return layers(1)<<len(c.ranks) - 1 }

// turn is the layers in which a path may go on by link m after link l.
func (c *cabling) turn(l, m int32) (free layers) {
	for k, rank := range c.ranks {
		if rank[l] < rank[m] {
			free |= 1 << k
		}
	}
	return free
}

// turnOf is the number of the turn from link l to link m.
func (c *cabling) turnOf(l, m int32) int32 { return l*c.width + m - c.First[c.To[l]] }

// links returns the two links of a turn.
func (c *cabling) links(turn int32) (first, second int32) {
	first = turn / c.width
	return first, c.First[c.To[first]] + turn%c.width
}
