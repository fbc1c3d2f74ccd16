// Package dor is a routing engine for tori and meshes of any number of dimensions:
// dimension order.
//
// It finds the dimensions from the links between the switches. Every packet goes to the
// right position in one dimension after the other, in a ring by the shorter way. Where a
// link or a switch is missing it goes round the ring by the other way, and where that
// leads nowhere, by one step aside.
//
// In a ring of five or more switches packets could wait for each other in a circle. So
// those that pass from the last position to the first, or back, take a second virtual
// lane in this dimension. Paths with a step aside are checked one by one, and those that
// would close a circle take a further lane. Where there are too few lanes the engine
// fails.
//
// The paths of two switches to each other have one layer, whatever the LID. So LIDs of one
// port take parallel cables in turn, and else the same way.
package dor

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
)

// leastDateline is the length of the shortest ring in which packets can wait for each
// other in a circle: paths have half of it, and two hops on every switch close one.
const leastDateline = 5

// DimensionOrder routes a torus or mesh. It returns an error where the graph is none, and
// where there are too few virtual lanes.
func DimensionOrder(in *graph.Input) (*graph.Routes, error) {
	net := graph.NewChannels(in.Graph)
	k, err := newCuts(net)
	if err != nil {
		return nil, err
	}
	e := &engine{Channels: net, room: in.Room, tori: make([]*torus, len(in.Nodes))}
	for _, part := range net.Parts() {
		g, err := newGrid(k, part)
		if err != nil {
			return nil, err
		}
		e.all = append(e.all, newTorus(g))
	}
	if err := e.divide(); err != nil {
		return nil, err
	}
	if err := e.detours(); err != nil {
		return nil, err
	}
	return e.routes(), nil
}

// engine routes a graph whose parts are known.
type engine struct {
	*graph.Channels
	room graph.Room
	all  []*torus
	tori []*torus // by switch

	// bits is the number of dimensions with a dateline in the part that has most. lanes
	// is 2 with such dimensions, else 1.
	bits, lanes int
	// extra is the number of further layers, each with a lane of its own, that may be
	// taken, used that of those that are.
	extra, used int
	waits       *graph.Waits
	// aside are, by switch, the paths that do not follow the order, by destination.
	aside [][]detour
}

// detour is how a path from a switch to another one begins that leaves the order, and the
// layer of the two.
type detour struct {
	to    uint16
	layer uint8
	exit  int32
}

// divide shares out layers and virtual lanes.
func (e *engine) divide() error {
	e.lanes = 1
	var worst *torus
	for _, t := range e.all {
		for _, s := range t.part {
			e.tori[s] = t
		}
		if n := t.datelines(); n > e.bits {
			e.bits, e.lanes, worst = n, 2, t
		}
	}
	if e.lanes > e.room.VLs {
		return fmt.Errorf("a torus of %s needs 2 virtual lanes, there is 1", worst)
	}
	if 1<<e.bits > e.room.Layers {
		return fmt.Errorf("a torus of %s needs %d service levels for its %d dimensions with rings of %d or more switches, there are %d",
			worst, 1<<e.bits, e.bits, leastDateline, e.room.Layers)
	}
	e.extra = min(e.room.VLs-e.lanes, e.room.Layers-1<<e.bits)
	return nil
}

// exit is the channel by which v sends what is for d, and the layer of the two where one
// of their paths leaves the order.
func (e *engine) exit(v, d uint16) (c int32, layer uint8, ordered bool) {
	if w := e.tori[v].walk(v, d); w.open {
		return w.first, 0, true
	}
	i, found := slices.BinarySearchFunc(e.aside[v], d, func(a detour, d uint16) int { return cmp.Compare(a.to, d) })
	if !found {
		return -1, 0, false
	}
	return e.aside[v][i].exit, e.aside[v][i].layer, false
}
