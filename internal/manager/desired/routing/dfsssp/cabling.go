package dfsssp

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
)

const (
	// noExit is the place of an exit that is no link between switches.
	noExit = ^uint8(0)
	// portNums is the number of values of ib.PortNum.
	portNums = int(ib.PortNone) + 1
)

// layers is a set of layers: bit k stands for layer k.
type layers uint16

// cabling is a graph with the orders of its switches by which the layers are free of
// deadlock: in layer k a path never goes up in order k after it went down in it.
type cabling struct {
	*graph.Graph
	// place holds for each switch and port the place of its link among the switch's links.
	place [][portNums]uint8
	// from is the switch that a link begins at.
	from []uint16
	// lists hold for each layer the switches from the highest to the lowest, orders the
	// place of each switch in the list.
	lists, orders [][]uint16
	// sets are, for each layer, the turns that its paths take, nil where these are all that
	// its order allows.
	sets []turnSet
	// width is the number of links of the switch with most of them. A turn is a link and
	// the link that follows it on a path: link l, and exit e of the switch that it leads
	// to, have the number l*width + e.
	width int32
	// up is, by link, the layers in which it leads up.
	up []layers
}

func newCabling(g *graph.Graph) *cabling {
	c := &cabling{Graph: g, place: make([][portNums]uint8, len(g.Nodes)), from: make([]uint16, len(g.To)), up: make([]layers, len(g.To))}
	for s := range g.Nodes {
		for p := range c.place[s] {
			c.place[s][p] = noExit
		}
		for l := g.First[s]; l < g.First[s+1]; l++ {
			c.place[s][g.Port[l]] = uint8(l - g.First[s])
			c.from[l] = uint16(s)
		}
		c.width = max(c.width, g.First[s+1]-g.First[s])
	}
	return c
}

// addLayer adds the layer of an order, which lists the switches from the highest to the
// lowest.
func (c *cabling) addLayer(order []uint16) {
	height := make([]uint16, len(order))
	for i, s := range order {
		height[s] = uint16(i)
	}
	bit := layers(1) << len(c.orders)
	c.lists, c.orders = append(c.lists, order), append(c.orders, height)
	for l, to := range c.To {
		if height[to] < height[c.from[l]] {
			c.up[l] |= bit
		}
	}
}

// all is the set of all layers.
func (c *cabling) all() layers { return layers(1)<<max(len(c.orders), len(c.sets)) - 1 }

// turn is the layers in which a path may go on by link m after link l.
func (c *cabling) turn(l, m int32) layers {
	free := (c.up[l] | ^c.up[m]) & c.all()
	for k, set := range c.sets {
		switch {
		case set == nil:
		case set.has(c.turnOf(l, m)):
			free |= 1 << k
		default:
			free &^= 1 << k
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
