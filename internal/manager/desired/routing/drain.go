package routing

import (
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// A drained switch carries nobody's packets from one switch to another. It keeps one link,
// by which it is reached itself, and what is behind it; to the engine that routes the others
// it is not there. Packets come to it by the routes to the switch at the other end of that
// link, in their layer, and leave it by the routes of that switch, so that no circle can
// come about over it.

// drain finds which of the drained switches can be: without them all others that were
// connected still are. The reasons why one cannot go into the warnings.
func (t *Tables) drain(drained []*observed.Node) (places []uint16, without *graph.Graph) {
	g := t.Graph
	without = g
	for _, n := range drained {
		s := uint16(g.Index[n.Index])
		if !remains(g, append(places, s)) {
			t.Warnings = append(t.Warnings, n.Name()+" is not drained: no other switch would be left that it is cabled to")
			continue
		}
		next := g.Without(append(places, s))
		if a := cutOff(g, next, append(places, s)); a != nil {
			t.Warnings = append(t.Warnings, fmt.Sprintf("%s is not drained: without it nothing would lead to %s", n.Name(), a.Name()))
			continue
		}
		places, without = append(places, s), next
	}
	return places, without
}

// remains reports whether the last of the drained switches can be reached from one that is not.
func remains(g *graph.Graph, drained []uint16) bool {
	near := g.Distances(make([]uint16, len(g.Nodes)), nil, drained[len(drained)-1])
	return slices.ContainsFunc(near, func(s uint16) bool { return !slices.Contains(drained, s) })
}

// cutOff is a switch that is connected with another in g and not in without, apart from
// those that are drained; nil for none.
func cutOff(g, without *graph.Graph, drained []uint16) *observed.Node {
	dist, now := make([]uint16, len(g.Nodes)), make([]uint16, len(g.Nodes))
	out, seen := make([]bool, len(g.Nodes)), make([]bool, len(g.Nodes))
	for _, s := range drained {
		out[s] = true
	}
	for s := range g.Nodes {
		if out[s] || seen[s] {
			continue
		}
		without.Distances(now, nil, uint16(s))
		for _, to := range g.Distances(dist, nil, uint16(s)) {
			seen[to] = true
			if !out[to] && now[to] == graph.Unset {
				return g.Nodes[to]
			}
		}
	}
	return nil
}

// attach leads to drained switches, and from them, each by one link.
func (t *Tables) attach(drained []uint16) {
	g := t.Graph
	waiting := make(map[uint16]bool, len(drained))
	for _, s := range drained {
		waiting[s] = true
	}
	used := make(map[int32]bool, 2*len(drained)) // links, of both directions
	for progress := true; progress; {
		progress = false
		for _, s := range drained {
			if !waiting[s] {
				continue
			}
			for l := g.First[s]; l < g.First[s+1]; l++ {
				if !waiting[g.To[l]] {
					t.attachBy(s, l)
					used[l], used[g.Back[l]] = true, true
					delete(waiting, s)
					progress = true
					break
				}
			}
		}
	}
	for _, s := range drained {
		for l := g.First[s]; l < g.First[s+1]; l++ {
			if p := &g.Nodes[s].Ports[g.Port[l]]; !used[l] {
				t.Idle[p], t.Idle[p.Peer] = true, true
			}
		}
	}
}

// attachBy attaches a drained switch by one of its links.
func (t *Tables) attachBy(s uint16, link int32) {
	g := t.Graph
	by := g.To[link]
	here, there := g.Nodes[s], g.Nodes[by]
	for lid, exit := range t.Linear[there.Index] {
		if exit != ib.PortNone {
			t.Linear[here.Index][lid] = g.Port[link]
		}
	}
	like := t.towards(by)
	for _, e := range g.EndsOf(s) {
		for i := range e.LMC.Count() {
			lid := e.LID + ib.LID(i)
			for _, n := range g.Nodes {
				if like != ib.LIDReserved {
					t.Linear[n.Index][lid] = t.Linear[n.Index][like]
				}
			}
			t.Linear[there.Index][lid], t.Linear[here.Index][lid] = g.Port[g.Back[link]], e.Port
		}
	}
	if t.Lanes != nil && t.Lanes.Layer != nil {
		for x := range g.Nodes {
			t.Lanes.Layer[x][s], t.Lanes.Layer[s][x] = t.Lanes.Layer[x][by], t.Lanes.Layer[by][x]
		}
		t.Lanes.Layer[s][s] = t.Lanes.Layer[by][by]
	}
}

// towards is a LID that every switch routes to a switch; LIDReserved where that has none.
func (t *Tables) towards(s uint16) ib.LID {
	for _, e := range t.Graph.EndsOf(s) {
		return e.LID
	}
	return ib.LIDReserved
}
