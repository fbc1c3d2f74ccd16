package observed

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

var keptMFT = kept{
	id: smp.AttrMulticastForwardingTable, absorb: (*Port).absorbMFT, unread: (*Port).unreadMFT,
	held: (*Port).heldMFT, place: 11, tables: (*Port).mftTables, blocks: (*Port).mftBlocks,
}

func (p *Port) absorbMFT(modifier uint32, data []byte) error {
	s := p.Node.Switch
	if s == nil {
		return p.misplaced(smp.AttrMulticastForwardingTable)
	}
	block, position, ok := smp.SplitMFTModifier(modifier)
	if !ok || int(block)*smp.MLIDsPerBlock >= int(s.Info.MulticastFDBCap) ||
		int(position)*smp.PortsPerPosition >= len(p.Node.Ports) {
		return fmt.Errorf("%s: MulticastForwardingTable modifier 0x%08x, the table has %d entries and the switch %d ports",
			p, modifier, s.Info.MulticastFDBCap, len(p.Node.Ports)-1)
	}
	var t smp.MulticastForwardingTable
	if err := t.UnmarshalBinary(data); err != nil {
		return err
	}
	if s.MFT == nil {
		s.MFT = make(map[uint32]smp.MulticastForwardingTable)
	}
	if have, read := s.MFT[modifier]; !read || have != t {
		s.MFT[modifier] = t
		p.noteNode(smp.AttrMulticastForwardingTable)
	}
	return nil
}

func (p *Port) unreadMFT(modifier uint32) {
	if s := p.Node.Switch; s != nil {
		if delete(s.MFT, modifier); len(s.MFT) == 0 {
			s.MFT = nil
		}
	}
	p.noteNode(smp.AttrMulticastForwardingTable)
}

func (p *Port) heldMFT(tell tellFunc) {
	s := p.Node.Switch
	for _, modifier := range slices.Sorted(maps.Keys(s.MFT)) {
		t := s.MFT[modifier]
		tell(modifier, &t, true)
	}
}

func (p *Port) mftTables(s Scope, ask askFunc) {
	blocks := p.Node.MFTBlocks()
	switch {
	case s.Multicast:
	case s.MulticastTop < ib.LIDMulticastMin:
		return
	default:
		blocks = min(blocks, (int(s.MulticastTop)-int(ib.LIDMulticastMin))/smp.MLIDsPerBlock+1)
	}
	for block := range blocks {
		for position := range p.Node.MFTPositions() {
			ask(smp.MFTModifier(uint16(block), uint8(position)))
		}
	}
}

func (p *Port) mftBlocks(ask askFunc) {
	for _, modifier := range slices.Sorted(maps.Keys(p.Node.Switch.MFT)) {
		ask(modifier)
	}
}

// MFTBlocks is the number of blocks of the multicast forwarding table that can
// be in force: up to MulticastFDBTop where the switch says that it has one.
func (n *Node) MFTBlocks() int {
	if n.Switch == nil || n.Switch.Info.MulticastFDBCap == 0 {
		return 0
	}
	entries := int(n.Switch.Info.MulticastFDBCap)
	if n.Ports[0].InfoRead && n.Ports[0].Info.CapabilityMask.Has(smp.CapMulticastFDBTop) {
		entries = min(entries, max(0, int(n.Switch.Info.MulticastFDBTop)-int(mlidFirst)+1))
	}
	return (entries + smp.MLIDsPerBlock - 1) / smp.MLIDsPerBlock
}

// MFTPositions is the number of positions of the multicast forwarding table:
// one for each 16 ports, port 0 included.
func (n *Node) MFTPositions() int {
	return (len(n.Ports) + smp.PortsPerPosition - 1) / smp.PortsPerPosition
}

// mlidFirst is the first multicast LID.
const mlidFirst = 0xC000
