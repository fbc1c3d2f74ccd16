package graph

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// Routes is what a routing engine returns for a graph.
type Routes struct {
	// Linear holds for each switch, by Node.Index, the exit port of each LID from 0 to
	// Graph.Top: 0 for its own, ib.PortNone for what it cannot reach. It is nil for
	// nodes that are not switches.
	Linear [][]ib.PortNum
	// Lanes says which virtual lanes packets take. nil: the routes need no more than one.
	Lanes *Lanes
	// Order is the place of each switch, by its place in Graph.Nodes, in an order in which no
	// way goes to a lower place after it went to a higher one: 0 comes first. Multicast trees
	// that keep to it need no virtual lane of their own. nil: the engine has no such order.
	Order []uint16
	// Notes say what the engine saw that an operator wants to know, one line each:
	// the kind of graph, what of it is missing, what did not go as asked.
	Notes []string
}

// Lanes keeps the routes of an engine free of deadlock by virtual lanes. Every path has a
// layer; a packet names it by its service level, and each switch takes from the layer, the
// entry port and the exit port the virtual lane of the next link.
type Lanes struct {
	// Layers is the number of layers, 1 to 16, VLs that of data virtual lanes which links
	// between switches have to have, 1 to 15.
	Layers, VLs int
	// Layer holds the layer of the paths between two switches, by their places in
	// Graph.Nodes: those to all LIDs behind the one, from the other and from what is behind
	// it. It is symmetric, since an answer takes the service level of its request. nil: all
	// paths have layer 0. Switches without CAs count too: their port 0 sends and receives.
	Layer [][]uint8
	// Class holds the class of each port of each switch, by the switch's place in
	// Graph.Nodes and port number, with port 0. nil: all ports have class 0.
	Class [][]uint8
	// Groups reports whether multicast packets have a layer to themselves, of number Layers, and
	// in it one virtual lane, of number VLs.
	Groups bool
	// Lane is the virtual lane by the class of the entry port, the class of the exit port,
	// and the layer. nil: the virtual lane is the layer.
	Lane [][][]ib.VL
}

// LayerOf is the layer of the paths between two switches, by their places.
func (l *Lanes) LayerOf(a, b uint16) uint8 {
	if l == nil || l.Layer == nil {
		return 0
	}
	return l.Layer[a][b]
}

// LaneOf is the virtual lane that a packet of a layer takes from entry port in to exit port
// out of a switch, by its place.
func (l *Lanes) LaneOf(at uint16, in, out ib.PortNum, layer uint8) ib.VL {
	switch {
	case l == nil:
		return 0
	case l.Lane == nil:
		return ib.VL(layer)
	case l.Class == nil:
		return l.Lane[0][0][layer]
	}
	class := l.Class[at]
	return l.Lane[class[in]][class[out]][layer]
}

// Unrouted is Input.Unrouted by the caller alone.
func (g *Graph) Unrouted() [][]ib.PortNum { return (&Input{Graph: g}).Unrouted() }

// Unrouted returns tables without a route, for Routes.Linear. Each has room up to the end of
// its last block, without a route there too.
func (in *Input) Unrouted() [][]ib.PortNum {
	g := in.Graph
	width := (int(g.Top)/smp.LIDsPerLinearBlock + 1) * smp.LIDsPerLinearBlock
	all := make([]ib.PortNum, width*len(g.Nodes))
	none := slices.Repeat([]ib.PortNum{ib.PortNone}, width)
	out := make([][]ib.PortNum, len(g.Index))
	in.Workers.Split(len(g.Nodes), func(first, last int) {
		for i, n := range g.Nodes[first:last] {
			i += first
			row := all[i*width : (i+1)*width : (i+1)*width]
			copy(row, none)
			out[n.Index] = row[:int(g.Top)+1]
		}
	})
	return out
}
