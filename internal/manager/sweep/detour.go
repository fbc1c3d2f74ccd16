package sweep

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Detour gives agents whose directed route leads over a link that is down another one, where
// there is one. As with Cut, none leads over a cable that the key of the device beyond may not
// be sent over.
func Detour(f *observed.Fabric) {
	if f.Self == nil {
		return
	}
	var ways []mad.Path // by Node.Index of switches, nil where nothing leads
	for _, n := range f.Nodes {
		for i := range n.Ports {
			p := &n.Ports[i]
			if i == 0 && n.Switch == nil || !p.Reached || stands(f, p) {
				continue
			}
			if ways == nil {
				ways = waysTo(f)
			}
			to := n.Index
			if n.Switch == nil {
				if p.Peer == nil || p.Peer.Node.Switch == nil || !leadsOver(p.Peer) {
					continue
				}
				to = p.Peer.Node.Index
			}
			way := ways[to]
			switch {
			case way == nil:
			case n.Switch == nil && len(way) < mad.MaxHops:
				p.Path = append(slices.Clip(way), p.Peer.Num)
			case n.Switch != nil:
				p.Path = way
			}
		}
	}
}

// stands reports whether the directed route to a port leads to its node over links that are
// up.
func stands(f *observed.Fabric, p *observed.Port) bool {
	at := f.Self
	for i, num := range p.Path {
		if i > 0 || at.Node.Switch != nil {
			if at = at.Node.Port(num); at == nil {
				return false
			}
		}
		if !at.IsTrained() {
			return false
		}
		at = at.Peer
	}
	return at.Node == p.Node
}

// waysTo are routes to switches over links that are up, breadth first.
func waysTo(f *observed.Fabric) []mad.Path {
	ways := make([]mad.Path, len(f.Nodes))
	var queue []*observed.Node
	first := f.Self.Node
	if first.Switch == nil {
		p := f.Self
		if !p.IsTrained() || p.Peer.Node.Switch == nil || !leadsOver(p) {
			return ways
		}
		first = p.Peer.Node
		ways[first.Index] = mad.Path{p.Num}
	} else {
		ways[first.Index] = mad.Path{}
	}
	for queue = append(queue, first); len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		before := ways[n.Index]
		for i := 1; i < len(n.Ports) && len(before) < mad.MaxHops; i++ {
			p := &n.Ports[i]
			if !p.IsTrained() || p.Peer.Node.Switch == nil || ways[p.Peer.Node.Index] != nil || !leadsOver(p) {
				continue
			}
			ways[p.Peer.Node.Index] = append(slices.Clip(before), p.Num)
			queue = append(queue, p.Peer.Node)
		}
	}
	return ways
}

// leadsOver reports whether requests to the agent at the other end of a cable may take it.
func leadsOver(p *observed.Port) bool {
	return p.Peer.MKey() == 0 || p.Leads || p.Peer.Agent().Via == p
}
