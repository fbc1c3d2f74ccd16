package routing

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/dfsssp"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/dor"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/dragonfly"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/ftree"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/mend"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/updn"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Engine names a way to choose paths.
type Engine string

// The engines.
const (
	// MinHop takes a shortest path.
	MinHop Engine = "minhop"
	// DOR goes through the dimensions of a torus or mesh one after the other.
	DOR Engine = "dor"
	// Dragonfly takes one cable between groups of a dragonfly or dragonfly+.
	Dragonfly Engine = "dragonfly"
	// UpDown takes a shortest path that cannot deadlock.
	UpDown Engine = "updn"
	// DFSSSP takes shortest paths which virtual lanes keep from deadlock.
	DFSSSP Engine = "dfsssp"
	// FatTree takes ways up and down a fat tree.
	FatTree Engine = "ftree"
	// Auto takes the engine for what the fabric is.
	Auto Engine = "auto"
)

// engines are all of them, in the order in which help lists them.
var engines = []struct {
	name Engine
	// compute works out the routes; help says in a few words what they are.
	compute func(*graph.Input) (*graph.Routes, error)
	help    string
	// lanes tells that its routes may need more than one virtual lane.
	lanes bool
}{
	{UpDown, updn.UpDown, "cannot deadlock on any graph", false},
	{Auto, auto, "what fits the fabric", true},
	{FatTree, ftree.FatTree, "fat trees, whole or broken", false},
	{MinHop, updn.MinHop, "shortest paths, which can deadlock: a warning says so", false},
	{DOR, dor.DimensionOrder, "dimension order for tori and meshes, cannot deadlock", true},
	{DFSSSP, dfsssp.DFSSSP, "shortest paths, free of deadlock by virtual lanes", true},
	{Dragonfly, dragonfly.Minimal, "minimal paths of dragonfly and dragonfly+, cannot deadlock", true},
}

// Engines are the names of all engines.
func Engines() (out []string) {
	for _, e := range engines {
		out = append(out, string(e.name))
	}
	return out
}

// Help describes the engines for a flag.
func Help() string {
	parts := make([]string, 0, len(engines))
	for _, e := range engines {
		parts = append(parts, fmt.Sprintf("%s (%s)", e.name, e.help))
	}
	return strings.Join(parts, ", ")
}

// ParseEngine returns the engine of that name.
func ParseEngine(name string) (Engine, error) {
	for _, e := range engines {
		if string(e.name) == name {
			return e.name, nil
		}
	}
	return "", fmt.Errorf("routing engine %q: want one of %s", name, strings.Join(Engines(), ", "))
}

// UsesLanes reports whether routes of the engine may need more than one virtual lane.
func (e Engine) UsesLanes() bool {
	for _, x := range engines {
		if x.name == e {
			return x.lanes
		}
	}
	return false
}

// MayDeadlock reports whether routes of the engine may have credit loops: who chose it was
// told so.
func (e Engine) MayDeadlock() bool { return e == MinHop }

// Tables is where every switch sends every LID, and by which virtual lanes.
type Tables struct {
	graph.Routes
	// Graph is what was routed.
	Graph *graph.Graph
	// Top is the highest LID of all destinations.
	Top ib.LID
	// Warnings say which switches are not drained, and why.
	Warnings []string
	// Idle are the ports between switches that carry nothing, since a switch is drained.
	Idle map[*observed.Port]bool
	// Islands lists the switches that can reach each other, each island and
	// all of them ordered by node GUID. More than one means that the subnet
	// is split.
	Islands [][]*observed.Node
	// Detached lists the CA and router ports, by LID, whose link is not
	// trained at both ends; their LIDs are routed nowhere.
	Detached []*observed.Port

	// kept are the routes of the engine, from which those of a later fabric may follow, and
	// asked its notes.
	kept  *mend.Kept
	asked []string
}

// Compute routes every LID of the destinations from every switch of f, within the room
// that there is for virtual lanes and layers. It fails when the engine is unknown or cannot route this graph,
// when a destination is no end port of f, and when LIDs are not unicast or belong to two
// ports. No packet passes a drained switch that is not for it or for what is behind it, as
// long as the others can reach each other without it.
func Compute(f *observed.Fabric, destinations []graph.Destination, engine Engine, room graph.Room, drained ...*observed.Node) (*Tables, error) {
	if _, err := ParseEngine(string(engine)); err != nil {
		return nil, err
	}
	destinations, err := graph.Checked(f, destinations)
	if err != nil {
		return nil, err
	}
	if n := len(f.Switches()); n > int(ib.LIDUnicastMax) {
		return nil, fmt.Errorf("%d switches, the subnet has %d LIDs", n, ib.LIDUnicastMax)
	}
	g := graph.New(f, destinations)
	t := &Tables{Graph: g, Top: g.Top, Idle: make(map[*observed.Port]bool), Islands: g.Islands(), Detached: g.Detached}
	places, through := t.drain(drained)
	for _, e := range engines {
		if e.name == engine {
			routes, err := e.compute(&graph.Input{Graph: through, Room: room})
			if err != nil {
				return nil, fmt.Errorf("routing engine %s: %w", engine, err)
			}
			t.Routes = *routes
		}
	}
	t.kept, t.asked = mend.Keep(through, &t.Routes), t.Notes
	if t.kept != nil && len(places) > 0 {
		t.own()
	}
	t.attach(places)
	return t, nil
}

// Lead routes a LID that is no destination like another, from every switch.
func (t *Tables) Lead(l, like ib.LID) {
	t.Top = max(t.Top, l)
	for i, table := range t.Linear {
		if table == nil {
			continue
		}
		if len(table) > int(l) && table[l] == table[like] {
			continue
		}
		table = slices.Clone(table) // others may hold it
		for len(table) <= int(t.Top) {
			table = append(table, ib.PortNone)
		}
		table[l] = table[like]
		t.Linear[i] = table
	}
}
