package routing

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// unset is the distance to a switch that was not reached.
const unset = ^uint16(0)

// graph is the switches and the usable links between them. Switches are
// indexes; the links of switch s are first[s] to first[s+1]-1, by exit port.
// Every link is there once for each direction.
//
// After split the index is the height of a switch, 0 the highest, and the
// links that lead up come before lower[s], those that lead down from there.
type graph struct {
	nodes []*observed.Node
	index []int32 // of a node by its Node.Index, -1 for what is no switch
	first []int32
	to    []uint16
	port  []ib.PortNum
	lower []int32
	// hosts is the number of CA and router ports with LIDs behind a switch.
	hosts []uint32
	// ends holds the end ports of switch s from endFirst[s] to endFirst[s+1]-1.
	ends     []end
	endFirst []int32
}

// end is an end port at its switch.
type end struct {
	lid  ib.LID
	lmc  ib.LMC
	port ib.PortNum // exit to the end port, 0 for the switch itself
	at   uint16
}

func newGraph(f *observed.Fabric, switches []*observed.Node) *graph {
	g := &graph{nodes: switches, index: make([]int32, len(f.Nodes)), first: make([]int32, 1, len(switches)+1)}
	for i := range g.index {
		g.index[i] = -1
	}
	for i, n := range switches {
		g.index[n.Index] = int32(i)
	}
	for _, n := range switches {
		for i := 1; i < len(n.Ports); i++ {
			if p := &n.Ports[i]; p.IsTrained() && p.Peer.Node.Switch != nil && p.Peer.Node != n {
				g.to = append(g.to, uint16(g.index[p.Peer.Node.Index]))
				g.port = append(g.port, p.Num)
			}
		}
		g.first = append(g.first, int32(len(g.to)))
	}
	return g
}

// split sorts the links of every switch into those up and those down, each by
// exit port.
func (g *graph) split() {
	g.lower = make([]int32, len(g.nodes))
	var to []uint16
	var port []ib.PortNum
	for s := range g.nodes {
		at, end := g.first[s], g.first[s+1]
		to, port = append(to[:0], g.to[at:end]...), append(port[:0], g.port[at:end]...)
		for _, up := range []bool{true, false} {
			for i, t := range to {
				if (int(t) < s) == up {
					g.to[at], g.port[at] = t, port[i]
					at++
				}
			}
			if up {
				g.lower[s] = at
			}
		}
	}
}

// attach enters the end ports, ordered by LID, and returns those that no
// switch can deliver to.
func (g *graph) attach(destinations []Destination) (detached []*observed.Port) {
	g.hosts = make([]uint32, len(g.nodes))
	g.ends = make([]end, 0, len(destinations))
	for _, d := range destinations {
		p := d.Port
		e := end{lid: d.LID, lmc: d.LMC}
		switch {
		case p.Node.Switch != nil:
			e.at = uint16(g.index[p.Node.Index])
		case !p.IsTrained():
			detached = append(detached, p)
			continue
		case p.Peer.Node.Switch == nil:
			continue // back to back with another CA: nothing to route
		default:
			e.at, e.port = uint16(g.index[p.Peer.Node.Index]), p.Peer.Num
			g.hosts[e.at]++
		}
		g.ends = append(g.ends, e)
	}
	slices.SortStableFunc(g.ends, func(a, b end) int { return cmp.Compare(a.at, b.at) })
	g.endFirst = make([]int32, len(g.nodes)+1)
	for _, e := range g.ends {
		g.endFirst[e.at+1]++
	}
	for s := range g.nodes {
		g.endFirst[s+1] += g.endFirst[s]
	}
	return detached
}

// endsOf returns the end ports of switch s.
func (g *graph) endsOf(s uint16) []end { return g.ends[g.endFirst[s]:g.endFirst[s+1]] }

// neighbours returns the switches at the other ends of the links of s.
func (g *graph) neighbours(s uint16) []uint16 { return g.to[g.first[s]:g.first[s+1]] }

// above returns the higher of the neighbours.
func (g *graph) above(s uint16) []uint16 { return g.to[g.first[s]:g.lower[s]] }

// below returns the lower of the neighbours.
func (g *graph) below(s uint16) []uint16 { return g.to[g.lower[s]:g.first[s+1]] }

// distances writes into dist the hops of every switch from the nearest of the
// given ones, unset where there is no way. It returns the switches reached,
// nearest first, in the storage of queue.
func (g *graph) distances(dist []uint16, queue []uint16, from ...uint16) []uint16 {
	for s := range dist {
		dist[s] = unset
	}
	queue = append(queue[:0], from...)
	for _, s := range from {
		dist[s] = 0
	}
	for i := 0; i < len(queue); i++ {
		s := queue[i]
		for _, t := range g.neighbours(s) {
			if dist[t] == unset {
				dist[t] = dist[s] + 1
				queue = append(queue, t)
			}
		}
	}
	return queue
}

// islands returns the parts of the graph without a link between them.
func (g *graph) islands() [][]*observed.Node {
	var out [][]*observed.Node
	seen := make([]bool, len(g.nodes))
	dist := make([]uint16, len(g.nodes))
	var queue []uint16
	for s := range g.nodes {
		if seen[s] {
			continue
		}
		queue = g.distances(dist, queue, uint16(s))
		slices.Sort(queue)
		island := make([]*observed.Node, 0, len(queue))
		for _, t := range queue {
			seen[t] = true
			island = append(island, g.nodes[t])
		}
		out = append(out, island)
	}
	return out
}

// checked returns the destinations ordered by LID, or says what is wrong with
// them.
func checked(f *observed.Fabric, destinations []Destination) ([]Destination, error) {
	out := slices.Clone(destinations)
	slices.SortStableFunc(out, func(a, b Destination) int { return cmp.Compare(a.LID, b.LID) })
	for i, d := range out {
		if d.Port == nil {
			return nil, fmt.Errorf("LID %d belongs to no port", d.LID)
		}
		n := d.Port.Node
		if n.Index >= len(f.Nodes) || f.Nodes[n.Index] != n || !d.Port.IsEnd() {
			return nil, fmt.Errorf("LID %d: %s is no end port of the fabric", d.LID, d.Port)
		}
		if d.LMC > ib.LMCMax {
			return nil, fmt.Errorf("%s: LMC %d, want 0 to %d", d.Port, d.LMC, ib.LMCMax)
		}
		if !d.LID.IsUnicast() || !d.last().IsUnicast() || int(d.LID)%d.LMC.Count() != 0 {
			return nil, fmt.Errorf("%s: LID %d with LMC %d is no unicast range", d.Port, d.LID, d.LMC)
		}
		if i > 0 && out[i-1].last() >= d.LID {
			return nil, fmt.Errorf("LID %d belongs to %s and to %s", d.LID, out[i-1].Port, d.Port)
		}
	}
	return out, nil
}
