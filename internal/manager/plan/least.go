package plan

import (
	"cmp"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Least is how many packets the difference takes that p is made of, at the least, by stage: each block
// that differs is written once, and read back once where that isolates, and who is behind a link
// is asked once before it carries data. What the order takes besides is not in it, as narrowing
// before widening does, and neither is what a device forgets.
func (p *Plan) Least() map[string]uint64 {
	least := make(map[string]uint64, len(p.Stages))
	for _, s := range p.Stages {
		for _, op := range s.Ops {
			least[s.Name] += p.leastOf(op)
		}
	}
	return least
}

func (p *Plan) leastOf(op Op) uint64 {
	if op.Kind == Forwarding { // there are more of them than of all others
		return uint64(1 - min(op.Pass, 1)) // the last write of a block has all of it
	}
	if block := int(op.Modifier & 0xFFFF); op.Attribute == smp.AttrPKeyTable && smp.PKeyBlock(p.keysOf(op), block) != smp.PKeyBlock(p.desired.Port(op.Port).PKeys, block) {
		return 0 // another write of the block has all of it
	}
	want, differ := p.desired.Port(op.Port), Differing(op.Port, p.desired)
	switch op.Kind {
	case SwitchSettings, Lanes, Counters:
		return 1
	case CloseMulticast:
		return 0 // SwitchSettings follow
	case TakeGUIDs, NarrowMulticast:
		whole := op
		if whole.Kind = GiveGUIDs; op.Kind == NarrowMulticast {
			whole.Kind = Multicast
		}
		now, err := p.Fill(op)
		if then, other := p.Fill(whole); err != nil || other != nil || now.Data != then.Data {
			return 0 // another write of the block has all of it
		}
	case Enforce:
		if differ&^turnsOn(differ, &want.Info) != 0 || want.Reregister && hasReregistration(op.Port) {
			return 0 // Settings follow
		}
	case Settings, Yield:
		if differ&observed.ElementGuard == 0 {
			return 1
		}
	case Activate:
		if far := op.Port.Peer; far == nil || p.activates(far) && before(far, op.Port) {
			return 1
		}
	}
	return 2
}

// activates reports whether a port is to become Active.
func (p *Plan) activates(port *observed.Port) bool {
	return port.Reached && port.InfoRead && p.desired.Port(port).Activate && (port.Info.PortState == smp.PortInit || port.Info.PortState == smp.PortArmed)
}

func before(a, b *observed.Port) bool {
	return cmp.Or(cmp.Compare(a.Node.Index, b.Node.Index), cmp.Compare(a.Num, b.Num)) < 0
}
