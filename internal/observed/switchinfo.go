package observed

import (
	"github.com/ibwarden/ibwarden/ib/smp"
)

// keptSwitchInfo comes first in a file: it has the sizes of the tables.
var keptSwitchInfo = kept{
	id: smp.AttrSwitchInfo, absorb: (*Port).absorbSwitchInfo, unread: (*Port).unreadSwitchInfo,
	held: (*Port).heldSwitchInfo, place: 1,
}

func (p *Port) absorbSwitchInfo(_ uint32, data []byte) error {
	s := p.Node.Switch
	if s == nil {
		return p.misplaced(smp.AttrSwitchInfo)
	}
	before, read := s.Info, s.InfoRead
	if err := s.Info.UnmarshalBinary(data); err != nil {
		return err
	}
	before.PortStateChange = s.Info.PortStateChange // which tells of ports, and is put back
	if s.InfoRead = true; !read || s.Info != before {
		p.noteNode(smp.AttrSwitchInfo)
	}
	return nil
}

func (p *Port) unreadSwitchInfo(uint32) {
	if s := p.Node.Switch; s != nil {
		s.InfoRead = false
	}
	p.noteNode(smp.AttrSwitchInfo)
}

func (p *Port) heldSwitchInfo(tell tellFunc) {
	if s := p.Node.Switch; s.InfoRead || s.Info != (smp.SwitchInfo{}) {
		tell(0, &s.Info, s.InfoRead)
	}
}
