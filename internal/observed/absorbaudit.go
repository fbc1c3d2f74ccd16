package observed

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

func (p *Port) absorbSMInfo(_ uint32, data []byte) error {
	if !p.IsEnd() {
		return fmt.Errorf("%s: no subnet manager is behind an external switch port", p)
	}
	if err := p.SMInfo.UnmarshalBinary(data); err != nil {
		return err
	}
	p.SMInfoRead = true
	p.note(smp.AttrSMInfo)
	return nil
}

func (p *Port) unreadSMInfo(uint32) {
	p.SMInfoRead = false
	p.noteNode(smp.AttrSMInfo)
}

// absorbGUIDInfo enters a block of the port that was asked, port 0 on a switch.
func (p *Port) absorbGUIDInfo(modifier uint32, data []byte) error {
	q, err := p.selected(smp.AttrGUIDInfo, 0)
	if err != nil {
		return err
	}
	if modifier >= smp.GUIDInfoBlocks {
		return fmt.Errorf("%s: GUIDInfo block %d, want 0 to %d", q, modifier, smp.GUIDInfoBlocks-1)
	}
	var g smp.GUIDInfo
	if err := g.UnmarshalBinary(data); err != nil {
		return err
	}
	if q.GUIDInfo == nil {
		q.GUIDInfo = make(map[uint32]smp.GUIDInfo)
	}
	if have, read := q.GUIDInfo[modifier]; !read || have != g {
		q.GUIDInfo[modifier] = g
		q.note(smp.AttrGUIDInfo)
	}
	return nil
}

func (p *Port) unreadGUIDInfo(block uint32) {
	if delete(p.GUIDInfo, block); len(p.GUIDInfo) == 0 {
		p.GUIDInfo = nil
	}
	p.noteNode(smp.AttrGUIDInfo)
}

func (p *Port) unreadMFT(modifier uint32) {
	if s := p.Node.Switch; s != nil {
		if delete(s.MFT, modifier); len(s.MFT) == 0 {
			s.MFT = nil
		}
	}
	p.noteNode(smp.AttrMulticastForwardingTable)
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

// LeadsSomewhere reports whether packets that a switch sends by a port arrive
// anywhere: the port exists, and is not the switch itself when that takes no
// data packets.
func (n *Node) LeadsSomewhere(p ib.PortNum) bool {
	return int(p) < len(n.Ports) && (p != 0 || n.Switch.Info.EnhancedPort0)
}

// MFTPositions is the number of positions of the multicast forwarding table:
// one for each 16 ports, port 0 included.
func (n *Node) MFTPositions() int {
	return (len(n.Ports) + smp.PortsPerPosition - 1) / smp.PortsPerPosition
}

// mlidFirst is the first multicast LID.
const mlidFirst = 0xC000

// Aliases are the GUIDs of p besides its own, as far as they were read, by
// their index in the table.
func (p *Port) Aliases() []Alias {
	var out []Alias
	for block := range p.GUIDBlocks() {
		t := p.GUIDInfo[uint32(block)]
		for i, g := range t.GUIDs {
			index := block*smp.GUIDsPerBlock + i
			if g != 0 && index > 0 && index < int(p.Info.GUIDCap) {
				out = append(out, Alias{index, ib.PortGUID(g)})
			}
		}
	}
	return out
}

// Alias is an entry of a table of GUIDs.
type Alias struct {
	Index int
	GUID  ib.PortGUID
}

// GUIDBlocks is the number of blocks of p's table of GUIDs.
func (p *Port) GUIDBlocks() int {
	return (int(p.Info.GUIDCap) + smp.GUIDsPerBlock - 1) / smp.GUIDsPerBlock
}
