package subnettest

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Route fills the linear forwarding table of every switch with shortest ways to all
// LIDs up to the last that was given.
func (b *Builder) Route() {
	for _, n := range b.Fabric.Switches() {
		exits := b.Exits(n)
		blocks := int(b.LID-1)/smp.LIDsPerLinearBlock + 1
		n.Switch.LFT = slices.Repeat([]ib.PortNum{ib.PortNone}, blocks*smp.LIDsPerLinearBlock)
		n.Switch.LFTRead = slices.Repeat([]bool{true}, blocks)
		n.Switch.Info.LinearFDBTop = b.LID - 1
		for lid, exit := range exits {
			n.Switch.LFT[lid] = exit
		}
	}
}

// Exits are the ports of a switch on shortest ways to the LIDs of all end ports that
// can be reached over cables, 0 to its own. Where several are equally short, LIDs
// take turns.
func (b *Builder) Exits(n *observed.Node) map[ib.LID]ib.PortNum {
	out := make(map[ib.LID]ib.PortNum)
	ways := towards(n)
	for _, p := range b.Fabric.EndPorts() {
		at := p
		if p.Node.Switch == nil {
			at = p.Peer
		}
		if at == nil || len(ways[at.Node]) == 0 {
			continue
		}
		for i := range p.Info.LMC.Count() {
			lid := p.Info.LID + ib.LID(i)
			if out[lid] = at.Num; at.Node != n {
				out[lid] = ways[at.Node][int(lid)%len(ways[at.Node])]
			}
		}
	}
	return out
}

// towards are the ports of a switch on shortest ways to all switches.
func towards(n *observed.Node) map[*observed.Node][]ib.PortNum {
	exits := map[*observed.Node][]ib.PortNum{n: {0}}
	distance := map[*observed.Node]int{n: 0}
	for at := []*observed.Node{n}; len(at) > 0; at = at[1:] {
		from := at[0]
		for i := 1; i < len(from.Ports); i++ {
			p := from.Ports[i].Peer
			if p == nil || p.Node.Switch == nil {
				continue
			}
			d, known := distance[p.Node]
			if known && d <= distance[from] {
				continue
			}
			if !known {
				distance[p.Node] = distance[from] + 1
				at = append(at, p.Node)
			}
			if from == n {
				exits[p.Node] = append(exits[p.Node], ib.PortNum(i))
				continue
			}
			for _, e := range exits[from] {
				if !slices.Contains(exits[p.Node], e) {
					exits[p.Node] = append(exits[p.Node], e)
				}
			}
		}
	}
	return exits
}

// ManagedFrom makes an end port the one through which the manager reaches the
// subnet, and gives every port that cables lead to the directed route from there.
func (b *Builder) ManagedFrom(self *observed.Port) {
	b.Fabric.Self = self
	seen := map[*observed.Port]bool{self: true}
	enter := func(p *observed.Port, path mad.Path) {
		p.Path = path
		if p.Node.Switch == nil {
			return
		}
		for i := range p.Node.Ports {
			p.Node.Ports[i].Path = path
		}
	}
	enter(self, nil)
	at := []*observed.Port{self}
	for ; len(at) > 0; at = at[1:] {
		from := at[0].Node.Ports
		if at[0].Node.Switch == nil {
			if at[0] != self {
				continue
			}
			from = from[self.Num : self.Num+1]
		}
		for i := range from {
			q := from[i].Peer
			if q == nil || seen[q.Agent()] {
				continue
			}
			seen[q.Agent()] = true
			q.Agent().Via = &from[i]
			enter(q, append(slices.Clone(at[0].Path), from[i].Num))
			at = append(at, q)
		}
	}
}

// RandomTree cables the first nodes, which are switches: each to one of those before
// it, and some more to each other. intN draws from 0 to below its argument.
func (b *Builder) RandomTree(intN func(int) int) {
	all := b.Fabric.Nodes
	for i := 1; i < len(all); i++ {
		Join(all[i], all[intN(i)])
	}
	for range intN(len(all) + 1) {
		if x, y := all[intN(len(all))], all[intN(len(all))]; x != y {
			Join(x, y)
		}
	}
}
