package observed

import (
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

var keptLFT = kept{
	id: smp.AttrLinearForwardingTable, absorb: (*Port).absorbLFT, unread: (*Port).unreadLFT,
	held: (*Port).heldLFT, place: 9, tables: (*Port).lftTables, blocks: (*Port).lftBlocks,
}

func (p *Port) absorbLFT(modifier uint32, data []byte) error {
	s := p.Node.Switch
	if s == nil {
		return p.misplaced(smp.AttrLinearForwardingTable)
	}
	var t smp.LinearForwardingTable
	if err := t.UnmarshalBinary(data); err != nil {
		return err
	}
	block := int(modifier)
	if block*smp.LIDsPerLinearBlock >= int(s.Info.LinearFDBCap) {
		return fmt.Errorf("%s: LinearForwardingTable block %d, the table has %d entries", p, block, s.Info.LinearFDBCap)
	}
	for len(s.LFTRead) <= block {
		s.LFTRead = append(s.LFTRead, false)
		s.LFT, s.sharesLFT = append(s.LFT, unrouted[:]...), false
	}
	if s.sharesLFT && !slices.Equal(s.LFT[block*smp.LIDsPerLinearBlock:][:smp.LIDsPerLinearBlock], t.Ports[:]) {
		s.LFT, s.sharesLFT = slices.Clone(s.LFT), false
	}
	have := s.LFT[block*smp.LIDsPerLinearBlock:][:smp.LIDsPerLinearBlock]
	if !s.LFTRead[block] || !slices.Equal(have, t.Ports[:]) {
		p.noteNode(smp.AttrLinearForwardingTable)
	}
	s.LFTRead[block] = true
	if !s.sharesLFT {
		copy(have, t.Ports[:])
	}
	return nil
}

// ReserveLFT makes room for so many entries of the linear forwarding table.
func (s *Switch) ReserveLFT(entries int) {
	size := (entries + smp.LIDsPerLinearBlock - 1) / smp.LIDsPerLinearBlock * smp.LIDsPerLinearBlock
	if cap(s.LFT) < size && !s.sharesLFT {
		s.LFT = append(make([]ib.PortNum, 0, size), s.LFT...)
	}
}

// ShareLFT has the switch keep no linear forwarding table of its own where that is the same as
// another, which nobody changes any more, up to the end of its last block.
func (s *Switch) ShareLFT(table []ib.PortNum) {
	if !s.sharesLFT && len(s.LFT) > 0 && len(s.LFT) <= cap(table) && slices.Equal(s.LFT, table[:len(s.LFT)]) {
		s.LFT, s.sharesLFT = table[:len(s.LFT):len(s.LFT)], true
	}
}

var unrouted = func() (b [smp.LIDsPerLinearBlock]ib.PortNum) {
	for i := range b {
		b[i] = ib.PortNone
	}
	return b
}()

func (p *Port) unreadLFT(block uint32) {
	if s := p.Node.Switch; s != nil && int(block) < len(s.LFTRead) {
		s.LFTRead[block] = false
	}
	p.noteNode(smp.AttrLinearForwardingTable)
}

func (p *Port) heldLFT(tell tellFunc) {
	s := p.Node.Switch
	for block, read := range s.LFTRead {
		var t smp.LinearForwardingTable
		copy(t.Ports[:], s.LFT[block*smp.LIDsPerLinearBlock:])
		tell(uint32(block), &t, read)
	}
}

// lftTables are the part of the table that is in force.
func (p *Port) lftTables(s Scope, ask askFunc) {
	info := &p.Node.Switch.Info
	if !s.Forwarding || info.LinearFDBCap == 0 || info.LinearFDBTop == 0 {
		return
	}
	top := min(int(info.LinearFDBTop), int(info.LinearFDBCap)-1)
	for block := range top/smp.LIDsPerLinearBlock + 1 {
		ask(uint32(block))
	}
}

func (p *Port) lftBlocks(ask askFunc) {
	for block := range p.Node.Switch.LFTRead {
		ask(uint32(block))
	}
}
