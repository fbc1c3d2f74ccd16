package routing

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
)

// Packets of multicast groups wait for links too. All trees keep to one order of the
// switches, in which no packet goes up after it went down, so that they close no circle
// among themselves. Where unicast paths of the groups' service level keep to the same order,
// they close none together. Where there is no such order, groups get a layer and a virtual
// lane of their own, if there is room.

// leadGroups finds the order and, where none serves unicast paths too, makes a layer where
// there is room for it.
func (t *Tables) leadGroups(g *graph.Graph, room graph.Room) {
	list := graph.Order(g)
	if t.Order != nil {
		for s, place := range t.Order {
			list[place] = uint16(s)
		}
	}
	for _, s := range list {
		t.order = append(t.order, g.Nodes[s].GUID())
	}
	if !t.By.UsesLanes() || t.Order != nil || t.Lanes == nil && t.keepsTo(g, list) || !t.hasRoom(room) {
		return
	}
	lanes := graph.Lanes{Layers: 1, VLs: 1}
	if t.Lanes != nil {
		lanes = *t.Lanes
	}
	lanes.Groups = true
	t.Lanes = &lanes
}

// drainedLast notes the drained switches: each hangs on one of the others.
func (t *Tables) drainedLast(places []uint16) {
	for _, s := range places {
		t.drained = append(t.drained, t.Graph.Nodes[s].GUID())
	}
}

// hasRoom reports whether there is room for one more layer and virtual lane.
func (t *Tables) hasRoom(room graph.Room) bool {
	if t.Lanes == nil {
		return room.VLs > 1 && room.Layers > 1
	}
	return t.Lanes.VLs < room.VLs && t.Lanes.Layers < room.Layers
}

// leastRoom is the number of virtual lanes from which on routes leave one to groups.
const leastRoom = 3

// routeForGroups takes routes with one virtual lane less where the first ones leave none to
// groups, if there are such routes.
func (t *Tables) routeForGroups(r *Request, in *graph.Input) error {
	if err := t.route(r, in); err != nil || t.Lanes == nil || t.Order != nil || t.hasRoom(in.Room) || in.VLs < leastRoom {
		return err
	}
	less := *in
	less.Room = graph.Room{VLs: in.VLs - 1, Layers: max(1, in.Layers-1)}
	other := *t
	if err := other.route(&Request{Engine: t.By, File: r.File}, &less); err == nil {
		other.Notes = t.Notes
		*t = other
	}
	return nil
}

// keepsTo reports whether no packet goes up in an order of the switches after it went down.
func (t *Tables) keepsTo(g *graph.Graph, order []uint16) bool {
	place := make([]uint16, len(order))
	for i, s := range order {
		place[s] = uint16(i)
	}
	exit := make([][]int32, len(g.Nodes)) // by switch and port, the switch behind it, -1 for none
	for s, n := range g.Nodes {
		exit[s] = slices.Repeat([]int32{-1}, len(n.Ports))
		for l := g.First[s]; l < g.First[s+1]; l++ {
			exit[s][g.Port[l]] = int32(g.To[l])
		}
	}
	next := func(s uint16, lid ib.LID) int32 {
		port := t.Linear[g.Nodes[s].Index][lid]
		if int(port) >= len(exit[s]) {
			return -1
		}
		return exit[s][port]
	}
	for _, e := range g.Ends {
		for i := range e.LMC.Count() {
			lid := e.LID + ib.LID(i)
			for s := range g.Nodes {
				by := next(uint16(s), lid)
				if by < 0 || place[by] < place[s] {
					continue
				}
				if to := next(uint16(by), lid); to >= 0 && place[to] < place[by] {
					return false
				}
			}
		}
	}
	return true
}

// GroupOrder lists the switches by node GUID from the highest to the lowest, in the order
// that multicast trees keep to.
func (t *Tables) GroupOrder() []ib.NodeGUID {
	if len(t.drained) == 0 {
		return t.order
	}
	out := slices.DeleteFunc(slices.Clone(t.order), func(g ib.NodeGUID) bool { return slices.Contains(t.drained, g) })
	return append(out, t.drained...)
}
