package graph

import (
	"github.com/ibwarden/ibwarden/ib"
)

// MinHop routes by shortest paths.
func MinHop(in *Input) (*Routes, error) {
	return compute(in, &heights{Graph: in.Graph}, (*paths).minHop), nil
}

// UpDown routes by shortest paths among those that never go up after they went down.
func UpDown(in *Input) (*Routes, error) {
	order := Order(in.Graph)
	h := &heights{Graph: in.Ordered(order)}
	h.split()
	out := compute(in, h, (*paths).upDown)
	out.Order = make([]uint16, len(order))
	for i, s := range order {
		out.Order[s] = uint16(i)
	}
	return out, nil
}

const (
	// Routes are balanced again, so many times, where the fullest link carries more than the
	// mean of those in use and one part in evenShare of it, and there are no more than
	// mostAgain entries in all tables.
	rounds    = 2
	evenShare = 8
	mostAgain = 4 << 20
)

func compute(in *Input, h *heights, find func(p *paths, to uint16)) *Routes {
	out := &Routes{Linear: in.Unrouted()}
	p, b := newPaths(h), newBalance(h, in.Senders, out.Linear)
	tour := in.Tour()
	each := func(route func(e End)) {
		for _, s := range tour {
			d := uint16(h.Index[in.Nodes[s].Index])
			if ends := h.EndsOf(d); len(ends) > 0 {
				find(p, d)
				for _, e := range ends {
					route(e)
				}
			}
		}
	}
	each(func(e End) { b.route(p, e) })
	for range rounds {
		if len(in.Nodes)*len(in.Ends) > mostAgain || b.isEven() {
			break
		}
		each(func(e End) {
			if e.Port != 0 && e.LMC == 0 {
				b.again(p, e)
			}
		})
	}
	return out
}

// heights is a graph whose switches are in an order: place 0 is the highest. After split
// the links that lead up come before lower[s], those that lead down from there, and
// Back is no longer valid.
type heights struct {
	*Graph
	lower []int32
}

// split sorts the links of every switch into those up and those down, each by
// exit port.
func (g *heights) split() {
	g.Back = nil
	g.lower = make([]int32, len(g.Nodes))
	var to []uint16
	var port []ib.PortNum
	for s := range g.Nodes {
		at, end := g.First[s], g.First[s+1]
		to, port = append(to[:0], g.To[at:end]...), append(port[:0], g.Port[at:end]...)
		for _, up := range []bool{true, false} {
			for i, t := range to {
				if (int(t) < s) == up {
					g.To[at], g.Port[at] = t, port[i]
					at++
				}
			}
			if up {
				g.lower[s] = at
			}
		}
	}
}

// above returns the higher of the neighbours.
func (g *heights) above(s uint16) []uint16 { return g.To[g.First[s]:g.lower[s]] }

// below returns the lower of the neighbours.
func (g *heights) below(s uint16) []uint16 { return g.To[g.lower[s]:g.First[s+1]] }
