package routing

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/dfsssp"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/dor"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/dragonfly"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/ftree"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Engine names a way to choose paths, or several with commas between: the first of these
// that takes the graph.
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
	// File takes the tables of a file.
	File Engine = "file"

	// Default is what a manager takes that was told nothing: routes that need no virtual
	// lane, so that no host has to send on the service level that its path record names.
	Default = FatTree + "," + UpDown
)

// engine is a routing engine.
type engine struct {
	name Engine
	// compute works out the routes; help says in a few words what they are.
	compute func(*graph.Input) (*graph.Routes, error)
	help    string
	// lanes reports whether its routes may need more than one virtual lane.
	lanes bool
}

// engines are all of them, in the order in which help lists them.
var engines = []engine{
	{UpDown, graph.UpDown, "cannot deadlock on any graph", false},
	{Auto, auto, "what fits the fabric", true},
	{FatTree, ftree.FatTree, "fat trees, whole or broken", false},
	{MinHop, graph.MinHop, "shortest paths, which can deadlock: a warning says so", false},
	{DOR, dor.DimensionOrder, "dimension order for tori and meshes, cannot deadlock", true},
	{DFSSSP, dfsssp.DFSSSP, "shortest paths, free of deadlock by virtual lanes", true},
	{Dragonfly, dragonfly.Minimal, "minimal paths of dragonfly and dragonfly+, cannot deadlock", true},
	{File, fileTables, "the forwarding tables of a file", true},
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
	return strings.Join(parts, ", ") + "; of several with commas between, the first that takes the fabric"
}

// ParseEngine returns the engine of that name, or the list of engines.
func ParseEngine(name string) (Engine, error) {
	parts := strings.Split(name, ",")
	for i, part := range parts {
		if !slices.Contains(Engines(), part) {
			return "", fmt.Errorf("routing engine %q: want one of %s", part, strings.Join(Engines(), ", "))
		}
		if slices.Contains(parts[:i], part) {
			return "", fmt.Errorf("routing engine %q: want it once", part)
		}
	}
	return Engine(name), nil
}

// Has reports whether e is an engine, or one of a list.
func (e Engine) Has(one Engine) bool {
	return slices.Contains(strings.Split(string(e), ","), string(one))
}

// UsesLanes reports whether routes of the engine may need more than one virtual lane.
func (e Engine) UsesLanes() bool {
	for _, x := range engines {
		if x.lanes && e.Has(x.name) {
			return true
		}
	}
	return false
}

// MayDeadlock reports whether these routes may have credit loops: who chose their engine was
// told so.
func (e Engine) MayDeadlock(t *Tables) bool { return e.Has(MinHop) && t.By == MinHop }

// Tables is where every switch sends every LID, and by which virtual lanes.
type Tables struct {
	graph.Routes
	// By is the engine that made them.
	By Engine
	// Graph is what was routed.
	Graph *graph.Graph
	// through is the graph without what is drained, which the engine routed; nil where the
	// routes are not the engine's.
	through *graph.Graph
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
	kept  *graph.KeptRoutes
	asked []string
	// order lists the switches for multicast trees, drained those that stand lowest.
	order, drained []ib.NodeGUID
}

// Request says how to route.
type Request struct {
	Engine Engine
	Room   graph.Room
	// Drained are switches that no packet is to pass that is not for them or for what is
	// behind them.
	Drained []*observed.Node
	// File are the tables for engine File.
	File *observed.LFTs
	// Workers may take parts of the work; they have no say in the result.
	Workers graph.Workers
	// Tenants are those for whose flows links are balanced, by engines that balance by
	// counting; nil for flows between all.
	Tenants []graph.Tenant
	// Last are the routes of before, nil for none: an engine may keep those that are as good
	// as others.
	Last *Tables
}

// Like is Equal but for the drained switches. Who is in which tenant does not count: no route
// moves because somebody joins one.
func (r *Request) Like(o *Request) bool {
	return r.Engine == o.Engine && r.Room == o.Room && r.File == o.File && (r.Tenants == nil) == (o.Tenants == nil)
}

// Equal reports whether both ask for the same.
func (r *Request) Equal(o *Request) bool {
	return r.Like(o) && slices.Equal(r.Drained, o.Drained)
}

// Compute routes every LID of the destinations from every switch of f, within the room
// that there is for virtual lanes and layers. It fails when the engine is unknown or cannot route this graph,
// when a destination is no end port of f, and when LIDs are not unicast or belong to two
// ports. No packet passes a drained switch that is not for it or for what is behind it, as
// long as the others can reach each other without it.
func Compute(f *observed.Fabric, destinations []graph.Destination, engine Engine, room graph.Room, drained ...*observed.Node) (*Tables, error) {
	return Request{Engine: engine, Room: room, Drained: drained}.Compute(f, destinations)
}

// Compute routes as Compute does.
func (r Request) Compute(f *observed.Fabric, destinations []graph.Destination) (*Tables, error) {
	if _, err := ParseEngine(string(r.Engine)); err != nil {
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
	places, through := t.drain(r.Drained)
	t.through = through
	in := &graph.Input{Graph: through, Room: r.Room, File: r.File, Workers: r.Workers, Last: r.Last.last()}
	if r.Tenants != nil {
		in.Senders = graph.NewSenders(destinations, r.Tenants)
	}
	if err := t.routeForGroups(&r, in); err != nil {
		return nil, err
	}
	t.kept, t.asked = graph.KeepRoutes(through, &t.Routes), t.Notes
	if t.kept != nil && len(places) > 0 {
		t.own()
	}
	t.leadGroups(through, r.Room)
	t.drainedLast(places)
	t.attach(places)
	return t, nil
}

// route takes the first engine that takes the graph, and notes which and why if there is
// more than one.
func (t *Tables) route(r *Request, in *graph.Input) error {
	several := strings.Contains(string(r.Engine), ",")
	var refusals []string
	for name := range strings.SplitSeq(string(r.Engine), ",") {
		i := slices.IndexFunc(engines, func(x engine) bool { return string(x.name) == name })
		routes, err := engines[i].compute(in)
		if err != nil {
			if !several {
				return fmt.Errorf("routing engine %s: %w", name, err)
			}
			refusals = append(refusals, fmt.Sprintf("routing engine %s: not %s: %v", r.Engine, name, err))
			continue
		}
		t.Routes, t.By = *routes, engines[i].name
		if several {
			t.Notes = append([]string{fmt.Sprintf("routing engine %s: takes %s", r.Engine, name)}, append(refusals, routes.Notes...)...)
		}
		return nil
	}
	return errors.New(strings.Join(refusals, "; "))
}

// last is what the engine routed, nil for nothing.
func (t *Tables) last() *graph.Last {
	if t == nil || t.through == nil {
		return nil
	}
	return &graph.Last{Graph: t.through, Routes: &t.Routes}
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
