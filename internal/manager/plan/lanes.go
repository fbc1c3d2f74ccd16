package plan

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// slToVL is the mapping for one input port, or for all of them.
var slToVL = Attribute{
	Held: func(p *observed.Port, modifier uint32) (Encoder, bool) {
		t, read := p.SLToVL[inputOf(p, modifier)]
		return &t, read
	},
	Wanted: func(p *observed.Port, d *observed.Desired, modifier uint32) Encoder {
		return d.Port(p).SLToVLFrom(inputOf(p, modifier))
	},
	Enter: func(p *observed.Port, d *observed.Desired, modifier uint32, data []byte) error {
		var t smp.SLToVLMappingTable
		if err := t.UnmarshalBinary(data); err != nil {
			return err
		}
		want := d.Port(p)
		if target, _ := smp.SplitSLToVLModifier(modifier); p.Node.Switch == nil || target.AllInputs {
			want.SLToVL = []*smp.SLToVLMappingTable{&t}
			return nil
		}
		if n := len(p.Node.Ports); len(want.SLToVL) < n {
			want.SLToVL = make([]*smp.SLToVLMappingTable, n)
		}
		want.SLToVL[inputOf(p, modifier)] = &t
		return nil
	},
}

// inputOf is an input port that a modifier of SLToVLMappingTable speaks of.
func inputOf(p *observed.Port, modifier uint32) ib.PortNum {
	if p.Node.Switch == nil {
		return 0
	}
	t, _ := smp.SplitSLToVLModifier(modifier)
	return t.In
}

// vlArbitration is one part of the tables of VL arbitration.
var vlArbitration = Attribute{
	Held: func(p *observed.Port, modifier uint32) (Encoder, bool) {
		part := int(modifier>>16) - 1
		if part < 0 || part >= len(p.VLArbitration) {
			return &smp.VLArbitrationTable{}, false
		}
		return &p.VLArbitration[part], true
	},
	Wanted: func(p *observed.Port, d *observed.Desired, modifier uint32) Encoder {
		return d.Port(p).VLArbitration[modifier>>16-1]
	},
	Enter: func(p *observed.Port, d *observed.Desired, modifier uint32, data []byte) error {
		var t smp.VLArbitrationTable
		if err := t.UnmarshalBinary(data); err != nil {
			return err
		}
		want := d.Port(p)
		if part := int(modifier>>16) - 1; part >= 0 && part < len(want.VLArbitration) {
			want.VLArbitration[part] = &t
		}
		return nil
	},
}

func (p *Plan) diffLanes(port *observed.Port, add addFunc) {
	want := p.desired.Port(port)
	if want.SLToVL != nil {
		diffSLToVL(port, want, add)
	}
	selector := ib.PortNum(0)
	if port.Node.Switch != nil {
		selector = port.Num
	}
	for i, t := range want.VLArbitration {
		if t == nil || i < len(port.VLArbitration) && port.VLArbitration[i] == *t {
			continue
		}
		add(Lanes, port, smp.AttrVLArbitrationTable, smp.VLArbModifier(smp.VLArbPart(i+1), selector))
	}
}

// diffSLToVL wants a mapping for every port that packets can come in by; a
// switch that can takes one for all of them in a single write.
func diffSLToVL(port *observed.Port, want *observed.DesiredPort, add addFunc) {
	if port.Node.Switch == nil {
		if have, ok := port.SLToVL[0]; !ok || have != *want.SLToVLFrom(0) {
			add(Lanes, port, smp.AttrSLToVLMappingTable, 0)
		}
		return
	}
	atOnce := len(want.SLToVL) == 1 && port.Node.Switch.Info.OptimizedSLToVLMappingProgramming&1 != 0
	for in := range port.Node.Ports {
		q := ib.PortNum(in)
		if q == port.Num || (in != 0 && !port.Node.Ports[in].IsUp()) {
			continue
		}
		wanted := want.SLToVLFrom(q)
		if have, ok := port.SLToVL[q]; wanted == nil || ok && have == *wanted {
			continue
		}
		if atOnce {
			add(Lanes, port, smp.AttrSLToVLMappingTable, smp.SLToVLTarget{Out: port.Num, AllInputs: true}.Modifier())
			return
		}
		add(Lanes, port, smp.AttrSLToVLMappingTable, smp.SLToVLModifier(q, port.Num))
	}
}
