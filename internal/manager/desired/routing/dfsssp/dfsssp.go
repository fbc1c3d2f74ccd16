package dfsssp

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
)

// DFSSSP routes by balanced shortest paths that cannot deadlock in the virtual lanes and
// layers that there are.
func DFSSSP(in *graph.Input) (*graph.Routes, error) {
	room := min(in.VLs, in.Layers)
	if room < 1 || in.VLs > maxLayers {
		return nil, fmt.Errorf("%d virtual lanes and %d layers, want 1 to %d and at least 1", in.VLs, in.Layers, maxLayers)
	}
	lids, tour := routed(in.Graph), in.Tour()
	if in.Last != nil {
		if out := again(in, lids, room); out != nil {
			return out, nil
		}
	}
	c := newCabling(in.Graph, graph.Order(in.Graph))
	n := len(in.Nodes)
	h := newChooser(c, in.Unrouted(), false)
	if !h.run(tour, n*(n-1)/2/alikeShare) {
		h = newChooser(c, in.Unrouted(), true)
		h.run(tour, n*n)
	}
	open, spare := h.pack(lids, room)
	if len(open) > 0 && room == 1 {
		return graph.UpDown(in)
	}
	out := &graph.Routes{Linear: h.linear, Order: c.height}
	if len(open) > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%d pairs of switches may take longer paths than the shortest, which are not free of deadlock by %d layers", len(open), room))
	}
	m := newRepairer(h, lids)
	m.run(append(open, spare...))
	newEvener(m, room, h.alike).run()
	follow(in.Graph, out.Linear, lids)
	out.Lanes = m.lanes()
	return out, nil
}

// maxLayers is the number of data virtual lanes that there can be.
const maxLayers = 15

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
