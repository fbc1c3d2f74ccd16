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
// can be reached over cables, the lowest where there are several; 0 is the switch
// itself.
func (b *Builder) Exits(n *observed.Node) map[ib.LID]ib.PortNum {
	out := make(map[ib.LID]ib.PortNum)
	towards := Towards(n)
	for _, p := range b.Fabric.EndPorts() {
		at := p
		if p.Node.Switch == nil {
			at = p.Peer
		}
		if at == nil {
			continue
		}
		exit, known := towards[at.Node]
		if at.Node == n {
			exit = at.Num
		}
		for i := range p.Info.LMC.Count() {
			if known {
				out[p.Info.LID+ib.LID(i)] = exit
			}
		}
	}
	return out
}

// Towards are the ports of a switch on shortest ways to all switches, 0 to itself.
func Towards(n *observed.Node) map[*observed.Node]ib.PortNum {
	exit := map[*observed.Node]ib.PortNum{n: 0}
	walk(n, func(from *observed.Port, to *observed.Node) bool {
		if _, known := exit[to]; known || to.Switch == nil {
			return false
		}
		if exit[to] = exit[from.Node]; from.Node == n {
			exit[to] = from.Num
		}
		return true
	})
	return exit
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

// walk visits nodes over cables in the order of their distance; on says whether it
// goes on from a node that was met.
func walk(n *observed.Node, on func(from *observed.Port, to *observed.Node) bool) {
	for at := []*observed.Node{n}; len(at) > 0; at = at[1:] {
		for i := 1; i < len(at[0].Ports); i++ {
			if p := &at[0].Ports[i]; p.Peer != nil && on(p, p.Peer.Node) {
				at = append(at, p.Peer.Node)
			}
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
