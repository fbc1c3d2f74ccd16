package replica

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// fill writes the tables of a device into its agent.
func (b *builder) fill(n *observed.Node) {
	if n.Contested {
		b.gap(n.GUID(), 0, "another device claims the same GUID")
	}
	if n.Info.PartitionCap == 0 {
		b.gap(n.GUID(), 0, "PartitionCap is 0")
	}
	if n.Switch != nil {
		b.fillSwitch(n)
	}
	for i := range n.Ports {
		p := &n.Ports[i]
		if i == 0 && n.Switch == nil || p.Peer == nil && !p.IsEnd() && !p.IsUp() {
			continue
		}
		if p.IsEnd() && !p.Reached && n.Switch == nil {
			continue // another port of this device is in another subnet, or dark
		}
		b.fillKeys(p)
		if !p.InfoRead {
			b.gap(n.GUID(), p.Num, "PortInfo was not read")
			continue
		}
		b.fillPort(p)
		b.fillLanes(p)
	}
}

func (b *builder) fillSwitch(n *observed.Node) {
	s := n.Switch
	if !s.InfoRead {
		b.gap(n.GUID(), 0, "SwitchInfo was not read")
		return
	}
	if err := b.set(n, 0, 0, &smp.SwitchInfo{
		LinearFDBTop: s.Info.LinearFDBTop, DefaultPort: s.Info.DefaultPort, LifeTimeValue: s.Info.LifeTimeValue,
		DefaultMulticastPrimaryPort: ib.PortNone, DefaultMulticastNotPrimaryPort: ib.PortNone,
	}); err != nil {
		b.gap(n.GUID(), 0, "%v", err)
	}
	blocks := 0
	if s.Info.LinearFDBCap != 0 {
		blocks = min(int(s.Info.LinearFDBTop), int(s.Info.LinearFDBCap)-1)/smp.LIDsPerLinearBlock + 1
	}
	for block := range blocks {
		if block >= len(s.LFTRead) || !s.LFTRead[block] {
			if s.Info.LinearFDBTop != 0 {
				b.gap(n.GUID(), 0, "LinearForwardingTable block %d was not read", block)
			}
			continue
		}
		var t smp.LinearForwardingTable
		copy(t.Ports[:], s.LFT[block*smp.LIDsPerLinearBlock:])
		if err := b.set(n, 0, uint32(block), &t); err != nil {
			b.gap(n.GUID(), 0, "block %d: %v", block, err)
		}
	}
	for block := range (int(s.Info.RandomFDBCap) + smp.RandomEntriesPerBlock - 1) / smp.RandomEntriesPerBlock {
		if block >= len(s.RFTRead) || !s.RFTRead[block] {
			b.gap(n.GUID(), 0, "RandomForwardingTable block %d was not read", block)
			continue
		}
		var t smp.RandomForwardingTable
		copy(t.Entries[:], s.RFT[block*smp.RandomEntriesPerBlock:])
		if err := b.set(n, 0, uint32(block), &t); err != nil {
			b.gap(n.GUID(), 0, "block %d: %v", block, err)
		}
	}
}

// fillKeys writes a P_Key table. A block that was not read is left empty.
func (b *builder) fillKeys(p *observed.Port) {
	selector := ib.PortNum(0)
	if p.Node.Switch != nil {
		selector = p.Num
	}
	matters := p.IsEnd() || p.InfoRead && (p.Info.PartitionEnforcementInbound || p.Info.PartitionEnforcementOutbound)
	blocks := p.PKeyBlocks()
	if p.IsEnd() {
		blocks = max(blocks, 1) // a device without a table has one with the default key
	}
	for block := range blocks {
		var t smp.PKeyTable
		if first := block * smp.PKeysPerBlock; p.PKeyBlockRead(block) && first < len(p.PKeys) {
			copy(t.Keys[:], p.PKeys[first:])
		} else if matters {
			b.gap(p.Node.GUID(), p.Num, "P_KeyTable block %d was not read", block)
		}
		if err := b.set(p.Node, p.Num, smp.PKeyModifier(selector, uint16(block)), &t); err != nil {
			b.gap(p.Node.GUID(), p.Num, "block %d: %v", block, err)
		}
	}
}

// fillPort writes PortInfo and brings the port into its state, and looks whether
// the port has become what it was read to be.
func (b *builder) fillPort(p *observed.Port) {
	agent, was := b.r.fabric.Agent(p.Node.GUID()), &p.Info
	selector := uint32(0)
	if p.Node.Switch != nil {
		selector = uint32(p.Num)
	}
	write := smp.PortInfo{
		LID: was.LID, LMC: was.LMC, MasterSMLID: 1, NeighborMTU: was.NeighborMTU, OperationalVLs: was.OperationalVLs,
		VLHighLimit: was.VLHighLimit, HOQLife: was.HOQLife, VLStallCount: was.VLStallCount,
		PartitionEnforcementInbound: was.PartitionEnforcementInbound, PartitionEnforcementOutbound: was.PartitionEnforcementOutbound,
		FilterRawInbound: was.FilterRawInbound, FilterRawOutbound: was.FilterRawOutbound,
	}
	// A device may refuse values that were read. The result is checked below.
	_ = b.set(p.Node, p.Num, selector, &write)
	for _, state := range []smp.PortState{smp.PortArmed, smp.PortActive} {
		if now := agent.Port(p.Num).PortState; was.PortState >= state && now != smp.PortDown && now < state {
			write.PortState = state
			_ = b.set(p.Node, p.Num, selector, &write)
		}
	}
	is := agent.Port(p.Num)
	differs := func(name string, was, is any) {
		if was != is {
			b.gap(p.Node.GUID(), p.Num, "%s was read as %v, and is %v here", name, was, is)
		}
	}
	if p.IsEnd() && was.LID.IsUnicast() {
		differs("LID", was.LID, is.LID)
		if p.Num != 0 {
			differs("LMC", was.LMC, is.LMC)
		}
	}
	if p.Num != 0 || b.nodes[p.Node.GUID()].EnhancedPort0 {
		differs("PortState", was.PortState, is.PortState)
		differs("OperationalVLs", was.OperationalVLs, is.OperationalVLs)
	}
	if s := p.Node.Switch; s != nil && p.Num != 0 && s.InfoRead {
		can := s.Info.PartitionEnforcementCap > 0
		differs("PartitionEnforcementInbound", can && s.Info.InboundEnforcementCap && was.PartitionEnforcementInbound, is.PartitionEnforcementInbound)
		differs("PartitionEnforcementOutbound", can && s.Info.OutboundEnforcementCap && was.PartitionEnforcementOutbound, is.PartitionEnforcementOutbound)
		differs("FilterRawInbound", s.Info.FilterRawInboundCap && was.FilterRawInbound, is.FilterRawInbound)
		differs("FilterRawOutbound", s.Info.FilterRawOutboundCap && was.FilterRawOutbound, is.FilterRawOutbound)
	}
}

// fillLanes writes the tables of virtual lanes of an exit.
func (b *builder) fillLanes(p *observed.Port) {
	if p.Num == 0 || smp.DataVLs(p.Info.VLCap) < 2 || !p.IsUp() {
		return
	}
	b.fillTurns(p)
	if p.Node.Switch == nil {
		b.fillLane(p, 0, 0)
		return
	}
	for in := range p.Node.Ports {
		if in != int(p.Num) && (in == 0 || p.Node.Ports[in].IsUp()) {
			b.fillLane(p, ib.PortNum(in), smp.SLToVLModifier(ib.PortNum(in), p.Num))
		}
	}
}

// fillTurns writes the VLArbitrationTables of an exit. Tables without a weight are
// what a device has before anybody wrote them, and then its virtual lanes take turns.
func (b *builder) fillTurns(p *observed.Port) {
	selector, written := ib.PortNum(0), false
	if p.Node.Switch != nil {
		selector = p.Num
	}
	for _, t := range p.VLArbitration {
		written = written || slices.ContainsFunc(t.Entries[:], func(e smp.VLArbitrationEntry) bool { return e.Weight > 0 })
	}
	for i := range p.VLArbitration {
		part := smp.VLArbPart(i + 1)
		entries := p.Info.VLArbitrationLowCap
		if part.IsHigh() {
			entries = p.Info.VLArbitrationHighCap
		}
		if !written || part.First() >= int(entries) {
			continue
		}
		if err := b.set(p.Node, p.Num, smp.VLArbModifier(part, selector), &p.VLArbitration[i]); err != nil {
			b.gap(p.Node.GUID(), p.Num, "part %d: %v", part, err)
		}
	}
}

func (b *builder) fillLane(p *observed.Port, in ib.PortNum, modifier uint32) {
	t, read := p.SLToVL[in]
	if !read {
		b.gap(p.Node.GUID(), p.Num, "SLtoVLMappingTable from port %d was not read", in)
		for i := range t.VLs {
			t.VLs[i] = ib.VLManagement // that is, dropped
		}
	}
	if err := b.set(p.Node, p.Num, modifier, &t); err != nil {
		b.gap(p.Node.GUID(), p.Num, "from port %d: %v", in, err)
	}
}
