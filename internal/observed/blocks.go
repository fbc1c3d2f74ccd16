package observed

import (
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// Block is one block of an attribute of a port, as a request names it.
type Block struct {
	Port      *Port
	Attribute mad.AttributeID
	Modifier  uint32
}

// Blocks lists everything in the fabric that was read, or can be, and that
// somebody else could change: PortInfo, P_Key tables where end ports or
// strangers are, and of all other tables the blocks that were read.
func (f *Fabric) Blocks() (out []Block) {
	add := func(p *Port, a mad.AttributeID, modifier uint32) { out = append(out, Block{p, a, modifier}) }
	for _, n := range f.Nodes {
		for i := range n.Ports {
			if p := &n.Ports[i]; p.Reached {
				p.blocks(add)
			}
		}
		if n.Switch == nil {
			continue
		}
		for block := range n.Switch.LFTRead {
			add(&n.Ports[0], smp.AttrLinearForwardingTable, uint32(block))
		}
		for block := range n.Switch.RFTRead {
			add(&n.Ports[0], smp.AttrRandomForwardingTable, uint32(block))
		}
		for _, modifier := range slices.Sorted(maps.Keys(n.Switch.MFT)) {
			add(&n.Ports[0], smp.AttrMulticastForwardingTable, modifier)
		}
	}
	return out
}

func (p *Port) blocks(add func(*Port, mad.AttributeID, uint32)) {
	selector := ib.PortNum(0)
	if p.Node.Switch != nil {
		selector = p.Num
	}
	add(p, smp.AttrPortInfo, uint32(selector))
	if p.IsEnd() || p.FacesEnd() || p.FacesStranger() {
		for block := range p.PKeyBlocks() {
			add(p, smp.AttrPKeyTable, smp.PKeyModifier(selector, uint16(block)))
		}
	}
	for block := range p.GUIDBlocks() {
		if _, ok := p.GUIDInfo[uint32(block)]; ok {
			add(p, smp.AttrGUIDInfo, uint32(block))
		}
	}
	for in := range p.Node.Ports { // in order of the input ports
		if _, ok := p.SLToVL[ib.PortNum(in)]; ok {
			add(p, smp.AttrSLToVLMappingTable, smp.SLToVLModifier(ib.PortNum(in), selector))
		}
	}
	for part := range p.VLArbitration {
		add(p, smp.AttrVLArbitrationTable, smp.VLArbModifier(smp.VLArbPart(part+1), selector))
	}
}
