package graph

import (
	"cmp"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Unset is the distance to a switch that was not reached.
const Unset = ^uint16(0)

// Graph is the switches of a subnet and the usable links between them. A switch is
// named by its place in Nodes. The links of switch s are First[s] to First[s+1]-1,
// by exit port; every cable is there twice, once for each direction. A cable from a
// switch to itself is left out.
type Graph struct {
	Fabric *observed.Fabric
	Nodes  []*observed.Node
	// Index is the place of a node by its Node.Index, -1 for what is no switch.
	Index []int32
	First []int32
	// To is the switch that a link leads to, Port the exit port, Back the link of the
	// same cable in the other direction.
	To   []uint16
	Port []ib.PortNum
	Back []int32
	// Hosts is the number of CA and router ports with LIDs behind a switch.
	Hosts []uint32
	// Ends are the end ports, those of switch s from EndFirst[s] to EndFirst[s+1]-1,
	// by LID.
	Ends     []End
	EndFirst []int32
	// Detached lists the CA and router ports, by LID, whose link is not trained at
	// both ends.
	Detached []*observed.Port
	// Top is the highest LID of all destinations, 0 without any.
	Top ib.LID
}

// End is an end port at its switch.
type End struct {
	LID ib.LID
	LMC ib.LMC
	// Port is the exit to the end port, 0 for the switch itself.
	Port ib.PortNum
	At   uint16
}

// New returns the graph of f, with its switches ordered by node GUID. The
// destinations are as Checked returns them.
func New(f *observed.Fabric, destinations []Destination) *Graph {
	switches := f.Switches()
	slices.SortFunc(switches, func(a, b *observed.Node) int { return cmp.Compare(a.GUID(), b.GUID()) })
	g := &Graph{Fabric: f, Nodes: switches}
	g.link()
	g.attach(destinations)
	return g
}

// Ordered returns the same graph with its switches in another order: place i is for what
// is switch order[i] of g.
func (g *Graph) Ordered(order []uint16) *Graph {
	out := &Graph{Fabric: g.Fabric, Nodes: make([]*observed.Node, len(order)), Detached: g.Detached, Top: g.Top}
	place := make([]uint16, len(order)) // of a switch of g
	out.Index = slices.Repeat([]int32{-1}, len(g.Index))
	for i, s := range order {
		out.Nodes[i], place[s] = g.Nodes[s], uint16(i)
		out.Index[g.Nodes[s].Index] = int32(i)
	}
	moved := make([]int32, len(g.To)) // the place of a link in out
	out.First = make([]int32, 1, len(order)+1)
	for _, s := range order {
		for l := g.First[s]; l < g.First[s+1]; l++ {
			moved[l] = int32(len(out.To))
			out.To, out.Port, out.Back = append(out.To, place[g.To[l]]), append(out.Port, g.Port[l]), append(out.Back, g.Back[l])
		}
		out.First = append(out.First, int32(len(out.To)))
	}
	for l := range out.Back {
		out.Back[l] = moved[out.Back[l]]
	}
	out.Hosts = make([]uint32, len(order))
	out.EndFirst = make([]int32, 1, len(order)+1)
	out.Ends = make([]End, 0, len(g.Ends))
	for i, s := range order {
		out.Hosts[i] = g.Hosts[s]
		for _, e := range g.EndsOf(s) {
			e.At = uint16(i)
			out.Ends = append(out.Ends, e)
		}
		out.EndFirst = append(out.EndFirst, int32(len(out.Ends)))
	}
	return out
}

// Relinked is the same graph with the links that there are now.
func (g *Graph) Relinked() *Graph {
	out := *g
	out.To, out.Port = make([]uint16, 0, len(g.To)), make([]ib.PortNum, 0, len(g.Port))
	out.link()
	return &out
}

// link enters the links between the switches.
func (g *Graph) link() {
	g.Index = make([]int32, len(g.Fabric.Nodes))
	for i := range g.Index {
		g.Index[i] = -1
	}
	for i, n := range g.Nodes {
		g.Index[n.Index] = int32(i)
	}
	g.First = make([]int32, 1, len(g.Nodes)+1)
	var far []ib.PortNum
	for _, n := range g.Nodes {
		for i := 1; i < len(n.Ports); i++ {
			if p := &n.Ports[i]; p.IsTrained() && p.Peer.Node.Switch != nil && p.Peer.Node != n {
				g.To = append(g.To, uint16(g.Index[p.Peer.Node.Index]))
				g.Port = append(g.Port, p.Num)
				far = append(far, p.Peer.Num)
			}
		}
		g.First = append(g.First, int32(len(g.To)))
	}
	g.Back = make([]int32, len(g.To))
	for l, t := range g.To {
		i, _ := slices.BinarySearch(g.Port[g.First[t]:g.First[t+1]], far[l])
		g.Back[l] = g.First[t] + int32(i)
	}
}

// attach enters the end ports.
func (g *Graph) attach(destinations []Destination) {
	g.Hosts = make([]uint32, len(g.Nodes))
	g.Ends = make([]End, 0, len(destinations))
	for _, d := range destinations {
		g.Top = max(g.Top, d.Last())
		p := d.Port
		e := End{LID: d.LID, LMC: d.LMC}
		switch {
		case p.Node.Switch != nil:
			e.At = uint16(g.Index[p.Node.Index])
		case !p.IsTrained():
			g.Detached = append(g.Detached, p)
			continue
		case p.Peer.Node.Switch == nil:
			continue // back to back with another CA: nothing to route
		default:
			e.At, e.Port = uint16(g.Index[p.Peer.Node.Index]), p.Peer.Num
			g.Hosts[e.At]++
		}
		g.Ends = append(g.Ends, e)
	}
	slices.SortStableFunc(g.Ends, func(a, b End) int { return cmp.Compare(a.At, b.At) })
	g.EndFirst = make([]int32, len(g.Nodes)+1)
	for _, e := range g.Ends {
		g.EndFirst[e.At+1]++
	}
	for s := range g.Nodes {
		g.EndFirst[s+1] += g.EndFirst[s]
	}
}

// EndsOf returns the end ports of switch s.
func (g *Graph) EndsOf(s uint16) []End { return g.Ends[g.EndFirst[s]:g.EndFirst[s+1]] }

// Neighbours returns the switches at the other ends of the links of s.
func (g *Graph) Neighbours(s uint16) []uint16 { return g.To[g.First[s]:g.First[s+1]] }

// Leaves returns the switches with CAs or routers.
func (g *Graph) Leaves() []uint16 {
	var out []uint16
	for s, hosts := range g.Hosts {
		if hosts > 0 {
			out = append(out, uint16(s))
		}
	}
	return out
}

// Distances writes into dist the hops of every switch from the nearest of the given
// ones, Unset where there is no way. It returns the switches reached, nearest first,
// in the storage of queue.
func (g *Graph) Distances(dist []uint16, queue []uint16, from ...uint16) []uint16 {
	for s := range dist {
		dist[s] = Unset
	}
	queue = append(queue[:0], from...)
	for _, s := range from {
		dist[s] = 0
	}
	for i := 0; i < len(queue); i++ {
		s := queue[i]
		for _, t := range g.Neighbours(s) {
			if dist[t] == Unset {
				dist[t] = dist[s] + 1
				queue = append(queue, t)
			}
		}
	}
	return queue
}

// Islands returns the parts of the graph without a link between them.
func (g *Graph) Islands() [][]*observed.Node {
	var out [][]*observed.Node
	seen := make([]bool, len(g.Nodes))
	dist := make([]uint16, len(g.Nodes))
	var queue []uint16
	for s := range g.Nodes {
		if seen[s] {
			continue
		}
		queue = g.Distances(dist, queue, uint16(s))
		slices.Sort(queue)
		island := make([]*observed.Node, 0, len(queue))
		for _, t := range queue {
			seen[t] = true
			island = append(island, g.Nodes[t])
		}
		out = append(out, island)
	}
	return out
}
