package observed

import (
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

var keptPortInfo = kept{
	id: smp.AttrPortInfo, absorb: (*Port).absorbPortInfo, unread: (*Port).unreadPortInfo,
	held: (*Port).heldPortInfo, place: 2, blocks: (*Port).portInfoBlocks,
}

// PortInfoBlock is what a Block of p's PortInfo has as Modifier. A request does not have to
// have the same: see Modifier.
func (p *Port) PortInfoBlock() uint32 { return uint32(p.selector()) }

// Modifier is the attribute modifier of every request to p's agent, Get or Set, about a block of
// an attribute. It is the block's own, but for PortInfo of a device whose CapabilityMask
// has IsExtendedSpeedsSupported, on a switch that of port 0: there it has the bit by which a
// manager says that it knows extended speeds. Without the bit devices may hide those
// fields from a Get, and leave them as they are at a Set (linux-rdma/opensm 38 and 39). Before the
// capability was read, and where the device has refused the bit, it stays off.
func (p *Port) Modifier(attribute mad.AttributeID, block uint32) uint32 {
	if attribute != smp.AttrPortInfo {
		return block
	}
	agent := p.Agent()
	num, _, _ := smp.SplitPortInfoModifier(block)
	return smp.PortInfoModifier(num, agent.Info.CapabilityMask.Has(smp.CapExtendedSpeeds) && !agent.RefusesExtendedSpeeds)
}

// Unlocks reports whether a Get of a block that was sent with this modifier, and was answered,
// is to be sent once more: it was sent before it was known that Modifier has to have the bit.
func (p *Port) Unlocks(attribute mad.AttributeID, block, sent uint32) bool {
	return sent == block && p.Modifier(attribute, block) != sent
}

func (p *Port) absorbPortInfo(modifier uint32, data []byte) error {
	q, err := p.selected(smp.AttrPortInfo, modifier&portSelectMask)
	if err != nil {
		return err
	}
	before, read := q.Info, q.InfoRead
	if err := q.Info.UnmarshalBinary(data); err != nil {
		return err
	}
	if q.Info.DiagCode != before.DiagCode {
		q.VendorDiag = nil // they are about another trouble
	}
	if q.InfoRead = true; !read || !sameInfo(q.Info, before) {
		q.note(smp.AttrPortInfo)
	}
	return nil
}

func (p *Port) unreadPortInfo(modifier uint32) {
	if q, err := p.selected(smp.AttrPortInfo, modifier&portSelectMask); err == nil {
		q.InfoRead = false
		q.note(smp.AttrPortInfo)
	}
}

func (p *Port) heldPortInfo(tell tellFunc) {
	if p.InfoRead || p.Info != (smp.PortInfo{}) {
		tell(p.PortInfoBlock(), &p.Info, p.InfoRead)
	}
}

func (p *Port) portInfoBlocks(ask askFunc) { ask(p.PortInfoBlock()) }
