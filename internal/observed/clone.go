package observed

import (
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
)

// Clone is a copy of a snapshot that has nothing in common with it but what nobody writes to:
// forwarding tables that switches share, and why strangers were refused. No change is noted
// in it.
func (f *Fabric) Clone() *Fabric {
	out := &Fabric{Nodes: make([]*Node, len(f.Nodes)), byNode: make(map[ib.NodeGUID]*Node, len(f.byNode))}
	twins := make(map[*Node]*Node, len(f.Nodes))
	for i, n := range f.Nodes {
		c := *n
		c.fabric, c.Ports = out, slices.Clone(n.Ports)
		if n.Switch != nil {
			c.Switch = n.Switch.clone()
		}
		out.Nodes[i], twins[n] = &c, &c
	}
	for g, n := range f.byNode {
		if c := twins[n]; c != nil {
			out.byNode[g] = c
		}
	}
	twin := func(p *Port) *Port {
		if p == nil || twins[p.Node] == nil {
			return nil // what is not in the snapshot is not in the copy
		}
		return &twins[p.Node].Ports[p.Num]
	}
	for _, n := range out.Nodes {
		for i := range n.Ports {
			n.Ports[i].own(n, twin)
		}
	}
	out.Self = twin(f.Self)
	return out
}

// own makes what a port of another snapshot points to the port's own.
func (p *Port) own(n *Node, twin func(*Port) *Port) {
	p.Node, p.Via, p.Peer = n, twin(p.Via), twin(p.Peer)
	p.Path = slices.Clone(p.Path)
	if p.Stranger != nil {
		stranger := *p.Stranger
		p.Stranger = &stranger
	}
	p.PKeys, p.PKeysRead = slices.Clone(p.PKeys), slices.Clone(p.PKeysRead)
	p.VLArbitration, p.SLToVL = slices.Clone(p.VLArbitration), maps.Clone(p.SLToVL)
	p.GUIDInfo, p.VendorDiag = maps.Clone(p.GUIDInfo), maps.Clone(p.VendorDiag)
}

func (s *Switch) clone() *Switch {
	c := *s
	if !s.sharesLFT {
		c.LFT = slices.Clone(s.LFT)
	}
	c.LFTRead = slices.Clone(s.LFTRead)
	c.RFT, c.RFTRead = slices.Clone(s.RFT), slices.Clone(s.RFTRead)
	c.MFT = maps.Clone(s.MFT)
	return &c
}
