// Package dragonfly is a routing engine for dragonflies, whose groups of switches have a
// cable from each to each inside, and for dragonfly+, whose groups are leaves and spines.
//
// It finds the groups from the links. A packet goes inside its group to a switch with a
// cable to the other group, over that, and inside the other group to its end: by as few
// cables between groups as can be, and then by as few hops. Parallel ways are taken in
// turn, by LID. Where two groups have lost all cables between them, packets pass a third
// one; where a cable inside a group is missing, another switch of it.
//
// Two virtual lanes keep that free of deadlock: behind a cable between groups, and behind
// a first hop inside one, the next hop inside takes the second lane. Paths of another form,
// around what is broken, are checked one by one; those that would close a circle take a
// further lane. Where there are too few lanes the engine fails.
package dragonfly

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
)

// lanes is the number of virtual lanes that a whole dragonfly needs.
const lanes = 2

// The classes of channels: hosts and the switch itself, inside of a group, between groups.
const (
	classEnd = iota
	classLocal
	classGlobal
	classes
)

// engine routes a graph whose groups are known.
type engine struct {
	*groups
	room graph.Room
	// class is that of a channel.
	class []uint8
	// gateways is the number of switches of the group of a channel's beginning that have
	// cables to the group of its end; by channel, of those between groups.
	gateways []int32
	// toward is what is known of the ways to each switch that is a destination.
	toward []tree
	// extra is the number of further layers, each with a lane of its own, that may be
	// taken, used that of those that are.
	extra, used int
	layer       [][]uint8
	others      int // paths of another form
}

// Minimal routes a dragonfly or dragonfly+. It returns an error where the graph is none,
// and where there are too few virtual lanes.
func Minimal(in *graph.Input) (*graph.Routes, error) {
	gr, err := newGroups(graph.NewChannels(in.Graph))
	if err != nil {
		return nil, err
	}
	if in.VLs < lanes {
		return nil, fmt.Errorf("a dragonfly needs %d virtual lanes, there is %d", lanes, in.VLs)
	}
	e := &engine{groups: gr, room: in.Room, extra: min(in.VLs-lanes, in.Layers-1)}
	e.classify()
	out := &graph.Routes{Linear: e.Unrouted()}
	e.toward = make([]tree, len(e.Nodes))
	f := newFinder(e)
	for d := range e.Nodes {
		e.toward[d] = f.find(uint16(d))
		e.enter(out, uint16(d), f.reached)
	}
	if err := e.layers(); err != nil {
		return nil, err
	}
	out.Lanes = e.lanesOf()
	out.Notes = e.notes()
	return out, nil
}

// classify enters the classes of channels and counts gateways.
func (e *engine) classify() {
	e.class, e.gateways = make([]uint8, len(e.To)), make([]int32, len(e.To))
	type side struct{ from, to int32 }
	count, last := map[side]int32{}, map[side]uint16{}
	for c := range e.To {
		s := side{e.group[e.From[c]], e.group[e.To[c]]}
		if s.from == s.to {
			e.class[c] = classLocal
			continue
		}
		e.class[c] = classGlobal
		// Channels are in the order of their switches.
		if v, seen := last[s]; !seen || v != e.From[c] {
			count[s]++
			last[s] = e.From[c]
		}
	}
	for c := range e.To {
		e.gateways[c] = count[side{e.group[e.From[c]], e.group[e.To[c]]}]
	}
}

// enter writes the exits for the LIDs of switch d.
func (e *engine) enter(out *graph.Routes, d uint16, reached []uint16) {
	ends, t := e.EndsOf(d), &e.toward[d]
	var exits []int32
	var ports []ib.PortNum
	for _, v := range reached {
		table := out.Linear[e.Nodes[v].Index]
		if v == d {
			for _, x := range ends {
				for i := range x.LMC.Count() {
					table[int(x.LID)+i] = x.Port
				}
			}
			continue
		}
		exits = e.exits(exits[:0], t, v, d)
		ports = ports[:0]
		for _, c := range exits {
			ports = append(ports, e.Ports[c]...)
		}
		// What comes from the rest of the group was already sorted by gateways.
		divisor := 1
		if e.class[exits[0]] == classGlobal {
			divisor = int(e.gateways[exits[0]])
		}
		for _, x := range ends {
			turn := 0
			if len(ports) > 1 {
				turn = int(x.LID) >> x.LMC / divisor
			}
			for i := range x.LMC.Count() {
				if len(ports) == 1 {
					table[int(x.LID)+i] = ports[0]
					continue
				}
				table[int(x.LID)+i] = ports[(turn+i)%len(ports)]
			}
		}
	}
}

// lanesOf are the lanes of the routes.
func (e *engine) lanesOf() *graph.Lanes {
	table := e.laneTable()
	for in := range table {
		for out := range table[in] {
			table[in][out] = table[in][out][:1+e.used]
		}
	}
	out := &graph.Lanes{Layers: 1 + e.used, VLs: lanes + e.used, Layer: e.layer, Lane: table}
	for s, n := range e.Nodes {
		class := make([]uint8, len(n.Ports))
		for c := e.First[s]; c < e.First[s+1]; c++ {
			for _, p := range e.Ports[c] {
				class[p] = e.class[c]
			}
		}
		out.Class = append(out.Class, class)
	}
	return out
}

// laneTable is the virtual lanes by class and layer.
func (e *engine) laneTable() [][][]ib.VL {
	table := make([][][]ib.VL, classes)
	for in := range table {
		table[in] = make([][]ib.VL, classes)
		for out := range table[in] {
			row := make([]ib.VL, 1+e.extra)
			if out != classEnd {
				for i := range e.extra {
					row[1+i] = ib.VL(lanes + i)
				}
				if out == classLocal && in != classEnd || in == classGlobal {
					row[0] = 1
				}
			}
			table[in][out] = row
		}
	}
	return table
}

// notes say what was found.
func (e *engine) notes() (out []string) {
	kind := "dragonfly"
	if e.plus {
		kind = "dragonfly+"
	}
	out = []string{fmt.Sprintf("%s of %d groups: %d switches", kind, len(e.members), len(e.Nodes))}
	if e.others > 0 {
		out = append(out, fmt.Sprintf("%d pairs of switches have a path that is not minimal for a whole %s", e.others, kind))
	}
	return out
}
