package dor

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
)

// routes writes the tables.
func (e *engine) routes() *graph.Routes {
	out := &graph.Routes{Linear: e.Unrouted(), Notes: e.notes()}
	for _, t := range e.all {
		for _, v := range t.part {
			e.row(t, v, out.Linear[e.Nodes[v].Index])
		}
	}
	if layers := 1<<e.bits + e.used; layers > 1 {
		out.Lanes = e.lanesOf(layers)
	}
	return out
}

// lanesOf are the lanes with so many layers.
func (e *engine) lanesOf(layers int) *graph.Lanes {
	lane := e.laneTable()
	for class := range lane[0] {
		lane[0][class] = lane[0][class][:layers]
	}
	out := &graph.Lanes{Layers: layers, VLs: e.lanes + e.used, Lane: lane}
	for s, n := range e.Nodes {
		class := make([]uint8, len(n.Ports))
		for c := e.First[s]; c < e.First[s+1]; c++ {
			for _, p := range e.Ports[c] {
				class[p] = e.tori[s].class(c)
			}
		}
		out.Class = append(out.Class, class)
		out.Layer = append(out.Layer, make([]uint8, len(e.Nodes)))
	}
	for _, t := range e.all {
		for i, v := range t.part {
			for _, d := range t.part[:i] {
				if there, back := t.walk(v, d), t.walk(d, v); there.open && back.open {
					x := layer(there, back)
					out.Layer[v][d], out.Layer[d][v] = x, x
				}
			}
		}
	}
	for v, all := range e.aside {
		for _, a := range all {
			out.Layer[v][a.to], out.Layer[a.to][v] = a.layer, a.layer
		}
	}
	return out
}

// row writes the table of switch v.
func (e *engine) row(t *torus, v uint16, table []ib.PortNum) {
	for _, d := range t.part {
		c := int32(-1)
		if d != v {
			c, _, _ = e.exit(v, d)
		}
		for _, x := range e.EndsOf(d) {
			for i := range x.LMC.Count() {
				lid := x.LID + ib.LID(i)
				if table[lid] = x.Port; d != v {
					table[lid] = e.Port(c, lid)
				}
			}
		}
	}
}

// notes say what was found.
func (e *engine) notes() (out []string) {
	for _, t := range e.all {
		kind := "mesh"
		for _, d := range t.dims {
			if d.ring {
				kind = "torus"
			}
		}
		note := fmt.Sprintf("%s of %s: %d switches", kind, t, len(t.part))
		if n := len(t.at) - len(t.part); n > 0 {
			note += fmt.Sprintf(", %d missing", n)
		}
		out = append(out, note)
	}
	count := 0
	for _, all := range e.aside {
		count += len(all)
	}
	if count > 0 {
		out = append(out, fmt.Sprintf("%d paths from switch to switch leave the order of dimensions, since something is missing", count))
	}
	return out
}
