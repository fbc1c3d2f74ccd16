package dfsssp

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/updn"
)

// DFSSSP routes by balanced shortest paths that cannot deadlock in the virtual lanes and
// layers that there are.
func DFSSSP(in *graph.Input) (*graph.Routes, error) {
	room := min(in.VLs, in.Layers)
	if room < 1 || in.VLs > maxLayers {
		return nil, fmt.Errorf("%d virtual lanes and %d layers, want 1 to %d and at least 1", in.VLs, in.Layers, maxLayers)
	}
	lids, tour, first := routed(in.Graph), in.Tour(), updn.Order(in.Graph)
	var best *chooser
	for _, p := range prices {
		for orders := 1; orders <= min(2, room); orders++ {
			c := newCabling(in.Graph)
			c.addLayer(first)
			if orders == 2 {
				c.addLayer(c.around(c.farthest(c.tops())))
			}
			h := newChooser(c, in.Unrouted(), p)
			h.run(tour)
			h.pack(lids, room)
			if best == nil || h.better(best) {
				best = h
			}
			if len(h.sets) == 0 {
				break // no circle that a second order could resolve
			}
		}
		if best.open == 0 {
			break
		}
	}
	out := &graph.Routes{Linear: best.linear}
	if best.open > 0 && room == 1 {
		return updn.UpDown(in)
	}
	if best.open > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%d pairs of switches may take longer paths than the shortest, which are not free of deadlock by %d layers", best.open, room))
	}
	m := newMender(best, lids)
	m.run()
	follow(in.Graph, out.Linear, lids)
	out.Lanes = m.lanes()
	return out, nil
}

// prices are what is tried for a path that is free in no layer, until all get one: the
// higher it is the fewer lanes are needed, and the less even is the load.
var prices = []price{4, 2, 1, 0}

// maxLayers is the number of data virtual lanes that there can be.
const maxLayers = 15

// tops is, for each island, the highest switch of the home layer.
func (c *cabling) tops() []uint16 {
	var out []uint16
	seen := make([]bool, len(c.Nodes))
	dist := make([]uint16, len(c.Nodes))
	var queue []uint16
	for _, s := range c.lists[home] {
		if seen[s] {
			continue
		}
		queue = c.Distances(dist, queue, s)
		for _, t := range queue {
			seen[t] = true
		}
		out = append(out, s)
	}
	return out
}

// farthest is, for each island, the switch that is farthest from that of the list.
func (c *cabling) farthest(tops []uint16) []uint16 {
	out := slices.Clone(tops)
	dist := make([]uint16, len(c.Nodes))
	var queue []uint16
	for i, top := range tops {
		queue = c.Distances(dist, queue, top)
		out[i] = slices.MinFunc(queue, func(a, b uint16) int {
			return cmp.Or(cmp.Compare(dist[b], dist[a]), cmp.Compare(a, b))
		})
	}
	return out
}

// around lists all switches by their distance from some.
func (c *cabling) around(roots []uint16) []uint16 {
	dist := make([]uint16, len(c.Nodes))
	out := c.Distances(dist, nil, roots...)
	slices.SortFunc(out, func(a, b uint16) int {
		return cmp.Or(cmp.Compare(dist[a], dist[b]), cmp.Compare(a, b))
	})
	return out
}

// follow leads what is for a switch with CAs the way of its CAs.
func follow(g *graph.Graph, linear [][]ib.PortNum, lids [][]ib.LID) {
	for _, e := range g.Ends {
		if e.Port != 0 || g.Hosts[e.At] == 0 {
			continue
		}
		for i := range e.LMC.Count() {
			like := lids[e.At][i%len(lids[e.At])]
			for s, n := range g.Nodes {
				if s != int(e.At) {
					linear[n.Index][int(e.LID)+i] = linear[n.Index][like]
				}
			}
		}
	}
}

// routed is, by switch, the LIDs that get paths of their own: those of its CAs, or its own
// where it has none.
func routed(g *graph.Graph) [][]ib.LID {
	out := make([][]ib.LID, len(g.Nodes))
	for _, e := range g.Ends {
		for i := range e.LMC.Count() {
			if e.Port != 0 || g.Hosts[e.At] == 0 {
				out[e.At] = append(out[e.At], e.LID+ib.LID(i))
			}
		}
	}
	return out
}
