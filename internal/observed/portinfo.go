package observed

import (
	"github.com/ibwarden/ibwarden/ib/smp"
)

var keptPortInfo = kept{
	id: smp.AttrPortInfo, absorb: (*Port).absorbPortInfo, unread: (*Port).unreadPortInfo,
	held: (*Port).heldPortInfo, place: 2, blocks: (*Port).portInfoBlocks,
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
		tell(uint32(p.selector()), &p.Info, p.InfoRead)
	}
}

func (p *Port) portInfoBlocks(ask askFunc) { ask(uint32(p.selector())) }
