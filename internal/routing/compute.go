package routing

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/subnet"
)

// Engine names a way to choose paths.
type Engine string

// The engines.
const (
	// MinHop takes a shortest path.
	MinHop Engine = "minhop"
	// UpDown takes a shortest path that cannot deadlock.
	UpDown Engine = "updn"
)

// ParseEngine returns the engine of that name.
func ParseEngine(name string) (Engine, error) {
	e := Engine(name)
	if e != MinHop && e != UpDown {
		return "", fmt.Errorf("routing engine %q: want %s or %s", name, UpDown, MinHop)
	}
	return e, nil
}

// Destination is an end port and its LIDs: LMC.Count() of them from LID up.
type Destination struct {
	Port *subnet.Port
	LID  ib.LID
	LMC  ib.LMC
}

func (d Destination) last() ib.LID { return d.LID + ib.LID(d.LMC.Count()-1) }

// Tables is where every switch sends every LID.
type Tables struct {
	// Top is the highest LID of all destinations.
	Top ib.LID
	// Linear holds for each switch, by Node.Index, the exit port of each LID
	// from 0 to Top: 0 for its own, ib.PortNone for what it cannot reach. It
	// is nil for nodes that are not switches.
	Linear [][]ib.PortNum
	// Islands lists the switches that can reach each other, each island and
	// all of them ordered by node GUID. More than one means that the subnet
	// is split.
	Islands [][]*subnet.Node
	// Detached lists the CA and router ports, by LID, whose link is not
	// trained at both ends; their LIDs are routed nowhere.
	Detached []*subnet.Port
}

// Compute routes every LID of the destinations from every switch of f. It
// fails when the engine is unknown, when a destination is no end port of f,
// and when LIDs are not unicast or belong to two ports.
func Compute(f *subnet.Fabric, destinations []Destination, engine Engine) (*Tables, error) {
	if _, err := ParseEngine(string(engine)); err != nil {
		return nil, err
	}
	destinations, err := checked(f, destinations)
	if err != nil {
		return nil, err
	}
	switches := f.Switches()
	if len(switches) > int(ib.LIDUnicastMax) {
		return nil, fmt.Errorf("%d switches, the subnet has %d LIDs", len(switches), ib.LIDUnicastMax)
	}
	slices.SortFunc(switches, func(a, b *subnet.Node) int { return cmp.Compare(a.GUID(), b.GUID()) })

	g := newGraph(f, switches)
	t := &Tables{Islands: g.islands(), Detached: g.attach(destinations)}
	if len(destinations) > 0 {
		t.Top = destinations[len(destinations)-1].last()
	}
	t.Linear = unrouted(f, switches, t.Top)
	tour := nodesOf(g, g.tour())
	find := (*paths).minHop
	if engine == UpDown {
		g = newGraph(f, g.upDownOrder())
		g.split()
		g.attach(destinations)
		find = (*paths).upDown
	}
	p, b := newPaths(g), newBalance(g, t.Linear)
	for _, n := range tour {
		d := uint16(g.index[n.Index])
		if ends := g.endsOf(d); len(ends) > 0 {
			find(p, d)
			for _, e := range ends {
				b.route(p, e)
			}
		}
	}
	return t, nil
}

func nodesOf(g *graph, switches []uint16) []*subnet.Node {
	out := make([]*subnet.Node, len(switches))
	for i, s := range switches {
		out[i] = g.nodes[s]
	}
	return out
}

// unrouted makes tables without a route for the LIDs up to top.
func unrouted(f *subnet.Fabric, switches []*subnet.Node, top ib.LID) [][]ib.PortNum {
	width := int(top) + 1
	all := make([]ib.PortNum, width*len(switches))
	for i := range all {
		all[i] = ib.PortNone
	}
	out := make([][]ib.PortNum, len(f.Nodes))
	for i, n := range switches {
		out[n.Index] = all[i*width : (i+1)*width : (i+1)*width]
	}
	return out
}

// The load of a link is the number of routes from a CA to a LID that cross it.
// Above these bits stands the number of LIDs of the end port at hand, so that
// a second LID of one port is dearer than any load.
const (
	turnOne  = uint32(1) << 31
	loadMask = turnOne - 1
)

// balance chooses among exits of equal length and writes the tables. All
// slices go by link or by switch of the graph.
type balance struct {
	g     *graph
	table [][]ib.PortNum // by switch
	load  []uint32       // by link
	lids  []uint16       // by link: LIDs of CAs and routers
	owned []uint16       // by link: LIDs of switches
	// For the LID at hand:
	flow []uint32 // by switch: CAs whose packets pass it
	path []uint32 // by switch: load of the chosen way
	exit []int32  // by switch: the chosen link
}

func newBalance(g *graph, linear [][]ib.PortNum) *balance {
	links, n := len(g.to), len(g.nodes)
	b := &balance{
		g:    g,
		load: make([]uint32, links), lids: make([]uint16, links), owned: make([]uint16, links),
		flow: make([]uint32, n), path: make([]uint32, n), exit: make([]int32, n),
	}
	for _, node := range g.nodes {
		b.table = append(b.table, linear[node.Index])
	}
	return b
}

// route enters the LIDs of e, to whose switch the paths lead, everywhere.
func (b *balance) route(p *paths, e end) {
	lids, turn := b.lids, uint32(0)
	if e.port == 0 {
		lids = b.owned
	}
	if e.lmc > 0 {
		turn = turnOne
	}
	for i := range e.lmc.Count() {
		lid := e.lid + ib.LID(i)
		b.table[e.at][lid] = e.port
		// What CAs send to a switch itself weighs nothing.
		clear(b.flow)
		if e.port != 0 {
			copy(b.flow, b.g.hosts)
			b.choose(p, e.at)
		}
		b.enter(p, lid, lids, turn)
	}
	if turn != 0 {
		for l := range b.load {
			b.load[l] &= loadMask
		}
	}
}

// choose finds the least loaded of the paths to switch d.
func (b *balance) choose(p *paths, d uint16) {
	load, path, to := b.load, b.path, b.g.to
	path[d] = 0
	for i := len(p.order) - 1; i >= 0; i-- {
		best, least := int32(0), ^uint32(0)
		exits := p.exits[p.exitFirst[i]:p.exitFirst[i+1]]
		if len(exits) == 1 {
			best = exits[0]
			least = load[best] + path[to[best]]
		} else {
			for _, l := range exits {
				if sum := load[l] + path[to[l]]; sum < least {
					least, best = sum, l
				}
			}
		}
		s := p.order[i]
		b.exit[s], path[s] = best, least&loadMask
	}
}

// enter writes the chosen exits into the tables and adds their load. Where no
// CA's packets pass, the exit with the fewest LIDs is taken instead.
func (b *balance) enter(p *paths, lid ib.LID, lids []uint16, turn uint32) {
	for i, s := range p.order {
		flow, best := b.flow[s], b.exit[s]
		if flow == 0 {
			best = b.idlest(p.exits[p.exitFirst[i]:p.exitFirst[i+1]], lids)
		}
		b.load[best] += turn + flow
		lids[best]++
		b.flow[b.g.to[best]] += flow
		b.table[s][lid] = b.g.port[best]
	}
}

// idlest is the exit with the fewest LIDs.
func (b *balance) idlest(exits []int32, lids []uint16) int32 {
	best, least := exits[0], ^uint32(0)
	for _, l := range exits {
		if n := b.load[l]&^loadMask | uint32(lids[l]); n < least {
			best, least = l, n
		}
	}
	return best
}
