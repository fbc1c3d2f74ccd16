package dfsssp

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/updn"
)

// DFSSSP routes by balanced shortest paths that cannot deadlock in in.VLs virtual lanes.
func DFSSSP(in *graph.Input) (*graph.Routes, error) {
	if in.VLs < 1 || in.VLs > maxLayers {
		return nil, fmt.Errorf("%d virtual lanes, want 1 to %d", in.VLs, maxLayers)
	}
	out := &graph.Routes{Linear: in.Unrouted()}
	c, tour := newCabling(in.Graph), in.Tour()
	c.addLayer(updn.Order(in.Graph))
	h := choose(c, out.Linear, tour)
	roots := [][]uint16{c.tops()}
	for h.unplaced() > 0 && len(c.orders) < in.VLs {
		roots = append(roots, c.farthest(roots))
		c.addLayer(c.around(roots[len(roots)-1]))
		h = choose(c, out.Linear, tour)
	}
	if n := h.unplaced(); n > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%d pairs of switches may take longer paths than the shortest: those are not free of deadlock by %d virtual lanes", n, in.VLs))
	}
	m := newMender(c, h)
	m.run()
	follow(c, out.Linear)
	out.Lanes = m.lanes()
	return out, nil
}

// maxLayers is the number of data virtual lanes that there can be.
const maxLayers = 15

// choose chooses the paths to all LIDs.
func choose(c *cabling, linear [][]ib.PortNum, tour []uint16) *chooser {
	h := newChooser(c, linear)
	for _, s := range tour {
		if ends := c.EndsOf(s); len(ends) > 0 {
			h.head(s)
			for _, e := range ends {
				h.route(e)
			}
		}
	}
	return h
}

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

// farthest is, for each island, the switch that is farthest from those before.
func (c *cabling) farthest(before [][]uint16) []uint16 {
	nearest := slices.Repeat([]uint16{graph.Unset}, len(c.Nodes))
	dist := make([]uint16, len(c.Nodes))
	var queue []uint16
	for _, roots := range before {
		queue = c.Distances(dist, queue, roots...)
		for s, d := range dist {
			nearest[s] = min(nearest[s], d)
		}
	}
	out := slices.Clone(before[0])
	for i, root := range out {
		queue = c.Distances(dist, queue, root)
		out[i] = slices.MaxFunc(queue, func(a, b uint16) int {
			return cmp.Or(cmp.Compare(nearest[a], nearest[b]), cmp.Compare(b, a))
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
func follow(c *cabling, linear [][]ib.PortNum) {
	for r := range c.Nodes {
		var lids []ib.LID
		for _, e := range c.EndsOf(uint16(r)) {
			for i := range e.LMC.Count() {
				if e.Port != 0 {
					lids = append(lids, e.LID+ib.LID(i))
				}
			}
		}
		for _, e := range c.EndsOf(uint16(r)) {
			if e.Port != 0 || len(lids) == 0 {
				continue
			}
			for i := range e.LMC.Count() {
				for s, n := range c.Nodes {
					if s != r {
						linear[n.Index][int(e.LID)+i] = linear[n.Index][lids[i%len(lids)]]
					}
				}
			}
		}
	}
}
