package observed

import (
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib/smp"
)

var keptRFT = kept{
	id: smp.AttrRandomForwardingTable, absorb: (*Port).absorbRFT, unread: (*Port).unreadRFT,
	held: (*Port).heldRFT, place: 10, tables: (*Port).rftTables, blocks: (*Port).rftBlocks,
}

func (p *Port) absorbRFT(modifier uint32, data []byte) error {
	s := p.Node.Switch
	if s == nil {
		return p.misplaced(smp.AttrRandomForwardingTable)
	}
	var t smp.RandomForwardingTable
	if err := t.UnmarshalBinary(data); err != nil {
		return err
	}
	block := int(modifier)
	if block*smp.RandomEntriesPerBlock >= int(s.Info.RandomFDBCap) {
		return fmt.Errorf("%s: RandomForwardingTable block %d, the table has %d entries", p, block, s.Info.RandomFDBCap)
	}
	for len(s.RFTRead) <= block {
		s.RFTRead = append(s.RFTRead, false)
		s.RFT = append(s.RFT, make([]smp.RandomEntry, smp.RandomEntriesPerBlock)...)
	}
	have := s.RFT[block*smp.RandomEntriesPerBlock:][:smp.RandomEntriesPerBlock]
	if !s.RFTRead[block] || !slices.Equal(have, t.Entries[:]) {
		p.noteNode(smp.AttrRandomForwardingTable)
	}
	s.RFTRead[block] = true
	copy(have, t.Entries[:])
	return nil
}

func (p *Port) unreadRFT(block uint32) {
	if s := p.Node.Switch; s != nil && int(block) < len(s.RFTRead) {
		s.RFTRead[block] = false
	}
	p.noteNode(smp.AttrRandomForwardingTable)
}

func (p *Port) heldRFT(tell tellFunc) {
	s := p.Node.Switch
	for block, read := range s.RFTRead {
		var t smp.RandomForwardingTable
		copy(t.Entries[:], s.RFT[block*smp.RandomEntriesPerBlock:])
		tell(uint32(block), &t, read)
	}
}

func (p *Port) rftTables(s Scope, ask askFunc) {
	if !s.Forwarding {
		return
	}
	blocks := (int(p.Node.Switch.Info.RandomFDBCap) + smp.RandomEntriesPerBlock - 1) / smp.RandomEntriesPerBlock
	for block := range blocks {
		ask(uint32(block))
	}
}

func (p *Port) rftBlocks(ask askFunc) {
	for block := range p.Node.Switch.RFTRead {
		ask(uint32(block))
	}
}
