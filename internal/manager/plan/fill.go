package plan

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Write is the content of one operation, worked out when it is sent.
type Write struct {
	Data [mad.DataSize]byte
	// Elements are the elements of PortInfo that the write changes.
	Elements observed.Element
	// MKey is the M_Key that a port is to hold from then on, 0 for no other.
	MKey ib.MKey
	// State is the PortState that a PortInfo write asks for, 0 for none.
	State smp.PortState
	// Adds and Removes are the partitions that a P_KeyTable write gives to a
	// port, or gives more of, and takes away.
	Adds, Removes []ib.PKeyBase
	// Gives and Takes are the alias GUIDs that a GUIDInfo write gives to a port
	// and takes from it.
	Gives, Takes []ib.PortGUID
	// Asks reports whether a host is asked to register again.
	Asks bool
	// ReadBack asks for the block to be read again after the write: what
	// isolates is believed only when a device shows it.
	ReadBack bool
}

// pkeyTable is a block of a P_Key table.
var pkeyTable = Attribute{
	Held: func(p *observed.Port, modifier uint32) (Encoder, bool) {
		block := int(modifier & 0xFFFF)
		return &smp.PKeyTable{Keys: smp.PKeyBlock(p.PKeys, block)}, p.PKeyBlockRead(block)
	},
	Wanted: func(p *observed.Port, d *observed.Desired, modifier uint32) Encoder {
		return &smp.PKeyTable{Keys: smp.PKeyBlock(d.Port(p).PKeys, int(modifier&0xFFFF))}
	},
	Enter: func(p *observed.Port, d *observed.Desired, modifier uint32, block []byte) error {
		var t smp.PKeyTable
		if err := t.UnmarshalBinary(block); err != nil {
			return err
		}
		want := d.Port(p)
		if want.PKeys == nil {
			want.PKeys = slices.Clone(p.PKeys)
		}
		if start := int(modifier&0xFFFF) * smp.PKeysPerBlock; start < len(want.PKeys) {
			copy(want.PKeys[start:], t.Keys[:])
		}
		return nil
	},
	MustBeRead: true,
	fill:       (*Plan).fillPKeys,
}

func (p *Plan) fillPKeys(op Op) (Write, error) {
	block := int(op.Modifier & 0xFFFF)
	now, want := op.Port.PKeys, p.desired.Port(op.Port).PKeys
	t := smp.PKeyTable{Keys: smp.PKeyBlock(p.keysOf(op), block)}
	w := Write{ReadBack: true}
	for _, k := range t.Keys {
		if k.IsValid() && Permitted(now, k) != k {
			w.Adds = append(w.Adds, k.Base())
		}
	}
	kept := inUse(want)
	for _, k := range smp.PKeyBlock(now, block) {
		if k.IsValid() && Permitted(kept, k) != k {
			w.Removes = append(w.Removes, k.Base())
		}
	}
	return p.encoded(w, &t)
}

// portInfo has the elements that differ as they are wanted, and all others as they are.
var portInfo = Attribute{
	Held: func(p *observed.Port, _ uint32) (Encoder, bool) { return &p.Info, true },
	Wanted: func(p *observed.Port, d *observed.Desired, _ uint32) Encoder {
		info := p.Info
		Differing(p, d).Copy(&info, &d.Port(p).Info)
		return &info
	},
	fill: (*Plan).fillPortInfo,
}

func (p *Plan) fillPortInfo(op Op) (Write, error) {
	port, want := op.Port, p.desired.Port(op.Port)
	info := &p.info // p's: one of its own would be allocated for each write
	*info = port.Info
	info.PortState, info.PortPhysicalState = smp.PortStateNoChange, smp.PhysNoChange
	info.LinkDownDefaultState = 0
	info.ClientReregister = false
	var w Write
	switch op.Kind {
	case MKeys:
		// All three, and whether or not the device forgot one of them before.
		w.Elements, w.MKey = want.Elements&mkeyElements, want.Info.MKey
	case Enforce:
		w.Elements = turnsOn(Differing(port, p.desired), &want.Info)
	case Settings, Yield:
		w.Elements = Differing(port, p.desired)
		if want.Activate && port.Info.PortState == smp.PortInit {
			w.State = smp.PortArmed
		}
	case Counters:
		w.Elements = observed.ElementViolations
	case Activate:
		w.State = smp.PortActive
	}
	w.Elements.Copy(info, &want.Info)
	if w.Elements&observed.ElementLinkSpeedExtEnabled != 0 && want.Info.LinkSpeedExtEnabled == 0 {
		info.LinkSpeedExtEnabled = smp.LinkSpeedExtDisable // 0 would leave it as it is
	}
	w.ReadBack = w.Elements&observed.ElementGuard != 0
	info.PortState = w.State
	lost := observed.ElementLID | observed.ElementMasterSMLID
	if want.Registered {
		lost = 0
	}
	if (op.Kind == Settings || op.Kind == Yield) && (want.Reregister || w.Elements&lost != 0) {
		// Subscriptions and multicast joins were lost, or made with another
		// manager or from another address.
		info.ClientReregister = hasReregistration(port)
		w.Asks = info.ClientReregister
	}
	return p.encoded(w, info)
}

// WidensOf reports whether a P_KeyTable write gives a port one of the bases.
func (w *Write) WidensOf(bases map[ib.PKeyBase]bool) bool {
	return slices.ContainsFunc(w.Adds, func(b ib.PKeyBase) bool { return bases[b] })
}
