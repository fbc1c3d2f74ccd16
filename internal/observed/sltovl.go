package observed

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

var keptSLToVL = kept{
	id: smp.AttrSLToVLMappingTable, absorb: (*Port).absorbSLToVL,
	held: (*Port).heldSLToVL, place: 5, tables: (*Port).slToVLTables, blocks: (*Port).slToVLBlocks,
}

func (p *Port) absorbSLToVL(modifier uint32, data []byte) error {
	var t smp.SLToVLMappingTable
	if err := t.UnmarshalBinary(data); err != nil {
		return err
	}
	if p.Node.Switch == nil {
		p.setSLToVL(0, t)
		return nil
	}
	target, ok := smp.SplitSLToVLModifier(modifier)
	if !ok || target.AllOutputs {
		return fmt.Errorf("%s: SLToVLMappingTable modifier 0x%08x names no output port", p, modifier)
	}
	out, err := p.selected(smp.AttrSLToVLMappingTable, uint32(target.Out))
	if err != nil {
		return err
	}
	if !target.AllInputs {
		out.setSLToVL(target.In, t)
		return nil
	}
	for in := range out.Node.Ports {
		out.setSLToVL(ib.PortNum(in), t)
	}
	return nil
}

func (p *Port) setSLToVL(in ib.PortNum, t smp.SLToVLMappingTable) {
	if p.SLToVL == nil {
		inputs := 1
		if p.Node.Switch != nil { // most of them, if any
			inputs = len(p.Node.Ports)
		}
		p.SLToVL = make(map[ib.PortNum]smp.SLToVLMappingTable, inputs)
	}
	if have, read := p.SLToVL[in]; !read || have != t {
		p.SLToVL[in] = t
		p.note(smp.AttrSLToVLMappingTable)
	}
}

func (p *Port) heldSLToVL(tell tellFunc) {
	for _, in := range slices.Sorted(maps.Keys(p.SLToVL)) {
		t := p.SLToVL[in]
		modifier := uint32(0)
		if p.Node.Switch != nil {
			modifier = smp.SLToVLModifier(in, p.Num)
		}
		tell(modifier, &t, true)
	}
}

// slToVLTables are those of p for the input ports that packets can come in by.
func (p *Port) slToVLTables(s Scope, ask askFunc) {
	switch {
	case !p.queues(s):
	case p.Node.Switch == nil:
		ask(0)
	default:
		for in := range p.Node.Ports {
			if in != int(p.Num) && (in == 0 || p.Node.Ports[in].IsUp()) {
				ask(smp.SLToVLModifier(ib.PortNum(in), p.Num))
			}
		}
	}
}

// queues reports whether p sends on several virtual lanes, and s asks for their tables.
func (p *Port) queues(s Scope) bool {
	return s.QoS && p.InfoRead && p.Info.VLCap > 1 && (p.Node.Switch == nil || p.Num != 0 && p.IsUp())
}

func (p *Port) slToVLBlocks(ask askFunc) {
	for in := range p.Node.Ports { // in order of the input ports
		if _, ok := p.SLToVL[ib.PortNum(in)]; ok {
			ask(smp.SLToVLModifier(ib.PortNum(in), p.selector()))
		}
	}
}
