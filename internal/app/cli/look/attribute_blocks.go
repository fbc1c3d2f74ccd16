// attribute*.go: reads one attribute of one device, by a name that a person gives it: of a
// running fabric, by a request of its own, or of a snapshot. It sets counters back to zero, and
// writes nothing else.

package look

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// AttributePart names what of an attribute is meant: a block and a position in it, a part, or an input port.
type AttributePart struct {
	N      uint16
	Second uint8
	// Some reports whether one was named; else all that the device has are meant.
	Some bool
}

// modifiers are those by which a port is asked.
func modifiers(k AttributeKind, p *observed.Port, part AttributePart) ([]uint32, error) {
	own := ib.PortNum(0)
	if p.Node.Switch != nil {
		own = p.Num
	}
	m := k.Layout.Modifier
	if k.Performance || m == smp.ModifierNone || m == smp.ModifierControl {
		if part.Some {
			return nil, fmt.Errorf("%s has no blocks", k.Name)
		}
		return []uint32{0}, nil
	}
	if m == smp.ModifierPort {
		if part.Some {
			return nil, fmt.Errorf("%s has no blocks: a port is named DEVICE:PORT", k.Name)
		}
		if own == 0 && !p.Reached {
			own = p.Num // another port of the device answers for it
		}
		return []uint32{p.Modifier(k.ID, uint32(own))}, nil
	}
	if part.Some {
		if m == smp.ModifierInputOutput {
			return []uint32{smp.SLToVLModifier(ib.PortNum(part.N), own)}, nil
		}
		return []uint32{m.For(own, part.N, part.Second)}, nil
	}
	return every(k, p, own), nil
}

// every are the modifiers of all blocks that the port says it has, and of the first where it says
// nothing.
func every(k AttributeKind, p *observed.Port, own ib.PortNum) (out []uint32) {
	wide := observed.Scope{Forwarding: true, QoS: true, Audit: true, Aliases: true, Multicast: true}
	p.Node.Tables(wide, func(b observed.Block) {
		if b.Attribute == k.ID && (b.Port == p || k.Layout.Of == smp.OfSwitch) {
			out = append(out, b.Modifier)
		}
	})
	if out == nil {
		first := uint16(0)
		if k.Layout.Modifier == smp.ModifierPartPort {
			first = uint16(smp.VLArbLowFirst)
		}
		second := uint8(0)
		if k.Layout.Modifier == smp.ModifierInputOutput {
			second = uint8(own)
		}
		out = []uint32{k.Layout.Modifier.For(own, first, second)}
	}
	return out
}

// Where says which block a modifier names, where entries are not counted on over the blocks; empty
// for the others.
func (k AttributeKind) Where(p *observed.Port, modifier uint32) string {
	switch {
	case k.Layout.Modifier == smp.ModifierPartPort:
		part, _, _ := smp.SplitVLArbModifier(modifier)
		table := "low priority"
		if part.IsHigh() {
			table = "high priority"
		}
		return fmt.Sprintf("%s, part %d", table, part)
	case k.Layout.Modifier == smp.ModifierInputOutput && p.Node.Switch != nil:
		x, _ := smp.SplitSLToVLModifier(modifier)
		return fmt.Sprintf("from input port %d", x.In)
	case k.Layout.Modifier == smp.ModifierBlockPosition:
		block, position, _ := smp.SplitMFTModifier(modifier)
		return fmt.Sprintf("block %d, position %d", block, position)
	case k.Layout.Modifier == smp.ModifierBlock && k.Layout.PerBlock == 0:
		return fmt.Sprintf("block %d", modifier)
	}
	return ""
}
