package routing

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
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
	Port *observed.Port
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
	Islands [][]*observed.Node
	// Detached lists the CA and router ports, by LID, whose link is not
	// trained at both ends; their LIDs are routed nowhere.
	Detached []*observed.Port
}

// Compute routes every LID of the destinations from every switch of f. It
// fails when the engine is unknown, when a destination is no end port of f,
// and when LIDs are not unicast or belong to two ports.
func Compute(f *observed.Fabric, destinations []Destination, engine Engine) (*Tables, error) {
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
	slices.SortFunc(switches, func(a, b *observed.Node) int { return cmp.Compare(a.GUID(), b.GUID()) })

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

func nodesOf(g *graph, switches []uint16) []*observed.Node {
	out := make([]*observed.Node, len(switches))
	for i, s := range switches {
		out[i] = g.nodes[s]
	}
	return out
}

// unrouted makes tables without a route for the LIDs up to top.
func unrouted(f *observed.Fabric, switches []*observed.Node, top ib.LID) [][]ib.PortNum {
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

// Lead routes a LID that is no destination like another, from every switch.
func (t *Tables) Lead(l, like ib.LID) {
	t.Top = max(t.Top, l)
	for i, table := range t.Linear {
		if table == nil {
			continue
		}
		for len(table) <= int(t.Top) {
			table = append(table, ib.PortNone)
		}
		table[l] = table[like]
		t.Linear[i] = table
	}
}
