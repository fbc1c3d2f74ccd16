package graph

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Senders says which CA and router ports send to which, where it is not each to all. It does
// not depend on the order of the switches of a graph.
type Senders struct {
	of map[ib.LID][]crowd // by the first LID of an end port
}

// Tenant is ports that send to each other: full members to all, limited ones to full ones.
type Tenant struct{ Full, Limited []ib.PortGUID }

// crowd is the ports of a tenant that send to one of its members, by switch.
type crowd []senders

type senders struct {
	at *observed.Node
	n  uint32
}

// NewSenders returns who sends to whom among the destinations.
func NewSenders(destinations []Destination, tenants []Tenant) *Senders {
	s := &Senders{of: make(map[ib.LID][]crowd)}
	ports := make(map[ib.PortGUID][]Destination, len(destinations))
	for _, d := range destinations {
		if d.Port.Node.Switch == nil && d.Port.IsTrained() && d.Port.Peer.Node.Switch != nil {
			ports[d.Port.GUID] = append(ports[d.Port.GUID], d)
		}
	}
	for _, t := range tenants {
		var full, all crowd
		full = full.with(ports, t.Full)
		all = append(all, full...)
		all = all.with(ports, t.Limited)
		for _, x := range []struct {
			members []ib.PortGUID
			from    crowd
		}{{t.Full, all}, {t.Limited, full}} {
			for _, guid := range x.members {
				for _, d := range ports[guid] {
					if len(x.from) > 0 {
						s.of[d.LID] = append(s.of[d.LID], x.from)
					}
				}
			}
		}
	}
	return s
}

// with is c with more members.
func (c crowd) with(ports map[ib.PortGUID][]Destination, members []ib.PortGUID) crowd {
	place := make(map[*observed.Node]int, len(c))
	for i := range c {
		place[c[i].at] = i
	}
	for _, guid := range members {
		for _, d := range ports[guid] {
			at := d.Port.Peer.Node
			i, known := place[at]
			if !known {
				i = len(c)
				place[at] = i
				c = append(c, senders{at: at})
			}
			c[i].n++
		}
	}
	return c
}

// Flow writes into flow how many CA and router ports at each switch of g send to e; without
// Senders all do.
func (s *Senders) Flow(g *Graph, e End, flow []uint32) {
	if s == nil {
		copy(flow, g.Hosts)
		return
	}
	clear(flow)
	for _, c := range s.of[e.LID] {
		for _, x := range c {
			if at := g.Index[x.at.Index]; at >= 0 && g.Hosts[at] > 0 {
				flow[at] += x.n
			}
		}
	}
}
