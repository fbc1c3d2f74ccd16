package plan

import (
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Narrowing lists the parts of Diff that take keys away and give none: tables of switch
// ports and of end ports, those behind a switch port too, and enforcement that is turned
// on. Its operations may be carried out in any order, even if some fail.
func Narrowing(f *observed.Fabric, d *observed.Desired) *Plan {
	return Diff(f, d).narrowing()
}

// NarrowingAt is Narrowing at these ports.
func NarrowingAt(f *observed.Fabric, d *observed.Desired, ports []*observed.Port) *Plan {
	return DiffAt(f, d, ports).narrowing()
}

func (whole *Plan) narrowing() *Plan {
	p, ops := &Plan{fabric: whole.fabric, desired: whole.desired, goes: whole.goes}, &collected{}
	for _, s := range whole.Stages {
		for _, op := range s.Ops {
			switch op.Kind {
			case NarrowSwitch, Enforce, NarrowEnd:
				ops.add(op.Kind, op.Port, op.Attribute, op.Modifier)
			case GuardedEndKeys:
				p.narrowGuarded(op, ops.add)
			}
		}
	}
	p.arrange(ops)
	return p
}

// narrowGuarded adds the narrowing of an end port that Diff would write once.
func (p *Plan) narrowGuarded(op Op, add func(Kind, *observed.Port, mad.AttributeID, uint32)) {
	block := int(op.Modifier & 0xFFFF)
	now := op.Port.PKeys
	read := op.Port.PKeyBlockRead(block)
	if smp.PKeyBlock(p.between(op.Port), block) != smp.PKeyBlock(now, block) || !read {
		add(NarrowEnd, op.Port, op.Attribute, op.Modifier)
	}
}
