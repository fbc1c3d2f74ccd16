package plan

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// DiffMulticast is what of Diff is about multicast packets alone: a switch that
// leads them as it should is not written to.
func DiffMulticast(f *observed.Fabric, d *observed.Desired) *Plan {
	p, ops := &Plan{fabric: f, desired: d}, &collected{}
	for _, n := range f.Switches() {
		if d.Nodes[n.Index].Multicast == nil {
			continue
		}
		p.diffMulticast(n, ops.add)
		if p.wantSwitchInfo(n) != n.Switch.Info {
			ops.add(SwitchSettings, &n.Ports[0], smp.AttrSwitchInfo, 0)
		}
	}
	p.arrange(ops)
	return p
}

// diffMulticast wants the blocks of the multicast forwarding table. While
// packets pass the switch, a table first loses what it is not to have, on all
// switches, and then gains the rest: a mixture of an old and a new tree could
// lead in a circle. What falls out of a table goes by the default ports, so that
// these are closed before anything falls out.
func (p *Plan) diffMulticast(n *observed.Node, add addFunc) {
	want, management := p.desired.Nodes[n.Index].Multicast, &n.Ports[0]
	if want == nil || !n.Switch.InfoRead {
		return
	}
	busy, writes := carriesAny(n), false
	for _, m := range p.multicastBlocks(n) {
		now, read := n.Switch.MFT[m]
		after := want.Blocks[m]
		if read && now == after {
			continue
		}
		writes = true
		between := narrowedMasks(now, after)
		if busy && (!read || between != now) {
			add(NarrowMulticast, management, smp.AttrMulticastForwardingTable, m)
			if between == after {
				continue // the narrowing is all there is to do
			}
		}
		add(Multicast, management, smp.AttrMulticastForwardingTable, m)
	}
	if writes && busy && p.closed(n) != n.Switch.Info {
		add(CloseMulticast, management, smp.AttrSwitchInfo, 0)
	}
}

// multicastBlocks are the blocks that n holds or is to hold, in order, and
// those that may hold anything and are to be in force.
func (p *Plan) multicastBlocks(n *observed.Node) (modifiers []uint32) {
	want := p.desired.Nodes[n.Index].Multicast
	for m := range n.Switch.MFT {
		modifiers = append(modifiers, m)
	}
	for m := range want.Blocks {
		if _, read := n.Switch.MFT[m]; !read {
			modifiers = append(modifiers, m)
		}
	}
	inForce := n.MFTBlocks()
	if hasTop(n) {
		inForce = 0
		if want.Top >= ib.LIDMulticastMin {
			last, _ := smp.MFTPlace(want.Top)
			inForce = int(last) + 1
		}
	}
	for block := range inForce {
		for position := range n.MFTPositions() {
			m := smp.MFTModifier(uint16(block), uint8(position))
			_, read := n.Switch.MFT[m]
			if _, wanted := want.Blocks[m]; !read && !wanted {
				modifiers = append(modifiers, m)
			}
		}
	}
	slices.Sort(modifiers)
	return modifiers
}

// carriesAny reports whether packets may pass any port of a switch now.
func carriesAny(n *observed.Node) bool {
	return slices.ContainsFunc(n.Ports[1:], func(p observed.Port) bool { return carriesData(&p) })
}

// narrowedMasks are the ports that both blocks have.
func narrowedMasks(now, after smp.MulticastForwardingTable) (b smp.MulticastForwardingTable) {
	for i := range b.Masks {
		b.Masks[i] = now.Masks[i] & after.Masks[i]
	}
	return b
}

// hasTop reports whether the switch bounds its table by MulticastFDBTop.
func hasTop(n *observed.Node) bool {
	return n.Ports[0].InfoRead && n.Ports[0].Info.CapabilityMask.Has(smp.CapMulticastFDBTop)
}

// closed is SwitchInfo as it is, but for the default ports of multicast
// packets that are not to stay.
func (p *Plan) closed(n *observed.Node) smp.SwitchInfo {
	want, info := p.desired.Nodes[n.Index].Multicast, n.Switch.Info
	if n.Ports[0].Forgets&observed.ElementDefaultMulticastPorts != 0 {
		return info
	}
	for _, x := range []struct {
		have *ib.PortNum
		want ib.PortNum
	}{
		{&info.DefaultMulticastPrimaryPort, want.Primary}, {&info.DefaultMulticastNotPrimaryPort, want.NotPrimary},
	} {
		if *x.have != x.want && n.LeadsSomewhere(*x.have) {
			*x.have = ib.PortNone
		}
	}
	return info
}

// wantMulticastInfo enters what SwitchInfo should say of multicast packets.
func (p *Plan) wantMulticastInfo(n *observed.Node, info *smp.SwitchInfo) {
	want, forgets := p.desired.Nodes[n.Index].Multicast, n.Ports[0].Forgets
	if want == nil {
		return
	}
	if forgets&observed.ElementDefaultMulticastPorts == 0 {
		closed := p.closed(n)
		info.DefaultMulticastPrimaryPort = closed.DefaultMulticastPrimaryPort
		info.DefaultMulticastNotPrimaryPort = closed.DefaultMulticastNotPrimaryPort
		if want.Primary != ib.PortNone {
			info.DefaultMulticastPrimaryPort = want.Primary
		}
		if want.NotPrimary != ib.PortNone {
			info.DefaultMulticastNotPrimaryPort = want.NotPrimary
		}
	}
	if hasTop(n) && forgets&observed.ElementMulticastFDBTop == 0 {
		info.MulticastFDBTop = want.Top
	}
}

func (p *Plan) fillMulticast(op Op) (Write, error) {
	want := p.desired.Nodes[op.Port.Node.Index].Multicast
	t := want.Blocks[op.Modifier]
	if op.Kind == NarrowMulticast {
		t = narrowedMasks(op.Port.Node.Switch.MFT[op.Modifier], t)
	}
	return p.encoded(Write{ReadBack: true}, &t)
}

// fillSwitchInfo leaves PortStateChange alone: only who reads the ports after
// that may clear it.
func (p *Plan) fillSwitchInfo(op Op) (Write, error) {
	info := p.wantSwitchInfo(op.Port.Node)
	if op.Kind == CloseMulticast {
		info = p.closed(op.Port.Node)
	}
	info.PortStateChange = false
	return p.encoded(Write{}, &info)
}
