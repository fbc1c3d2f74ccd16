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

// Blocks lists everything in the fabric that was read, or can be, and that another
// manager could change: PortInfo, P_Key tables of ports that face end ports or strangers,
// and of all other tables the blocks that were read.
func (f *Fabric) Blocks() (out []Block) {
	for _, n := range f.Nodes {
		for i := range n.Ports {
			if p := &n.Ports[i]; p.Reached {
				out = p.appendBlocks(out, ofPorts)
			}
		}
		if n.Switch != nil {
			out = n.Ports[0].appendBlocks(out, ofSwitches)
		}
	}
	return out
}

// ofPorts and ofSwitches are the attributes that another manager could change, by what
// they belong to.
var ofPorts, ofSwitches = func() (ports, switches []kept) {
	for _, x := range attributes {
		switch d, _ := smp.Describe(x.id); {
		case x.blocks == nil:
		case d.Of == smp.OfSwitch:
			switches = append(switches, x)
		default:
			ports = append(ports, x)
		}
	}
	return ports, switches
}()

// appendBlocks adds the blocks that p has of some attributes.
func (p *Port) appendBlocks(out []Block, of []kept) []Block {
	for i := range of {
		x := &of[i]
		x.blocks(p, func(modifier uint32) { out = append(out, Block{p, x.id, modifier}) })
	}
	return out
}

// selector is what a modifier names p by: its number on a switch, else 0.
func (p *Port) selector() ib.PortNum {
	if p.Node.Switch == nil {
		return 0
	}
	return p.Num
}

func (p *Port) portInfoBlocks(ask func(uint32)) { ask(uint32(p.selector())) }

func (p *Port) pkeyBlocks(ask func(uint32)) {
	if p.IsEnd() || p.FacesEnd() || p.FacesStranger() {
		for block := range p.PKeyBlocks() {
			ask(smp.PKeyModifier(p.selector(), uint16(block)))
		}
	}
}

func (p *Port) guidBlocks(ask func(uint32)) {
	for block := range p.GUIDBlocks() {
		if _, ok := p.GUIDInfo[uint32(block)]; ok {
			ask(uint32(block))
		}
	}
}

func (p *Port) slToVLBlocks(ask func(uint32)) {
	for in := range p.Node.Ports { // in order of the input ports
		if _, ok := p.SLToVL[ib.PortNum(in)]; ok {
			ask(smp.SLToVLModifier(ib.PortNum(in), p.selector()))
		}
	}
}

func (p *Port) vlArbitrationBlocks(ask func(uint32)) {
	for part := range p.VLArbitration {
		ask(smp.VLArbModifier(smp.VLArbPart(part+1), p.selector()))
	}
}

func (p *Port) lftBlocks(ask func(uint32)) {
	for block := range p.Node.Switch.LFTRead {
		ask(uint32(block))
	}
}

func (p *Port) rftBlocks(ask func(uint32)) {
	for block := range p.Node.Switch.RFTRead {
		ask(uint32(block))
	}
}

func (p *Port) mftBlocks(ask func(uint32)) {
	for _, modifier := range slices.Sorted(maps.Keys(p.Node.Switch.MFT)) {
		ask(modifier)
	}
}
