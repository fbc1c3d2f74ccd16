package observed

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib/smp"
)

// keptSMInfo is read where a port says that a subnet manager is behind it.
var keptSMInfo = kept{
	id: smp.AttrSMInfo, absorb: (*Port).absorbSMInfo, unread: (*Port).unreadSMInfo,
	held: (*Port).heldSMInfo, place: 6, tables: (*Port).smInfoTables,
}

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

func (p *Port) heldSMInfo(tell tellFunc) {
	if p.SMInfoRead || p.SMInfo != (smp.SMInfo{}) {
		tell(0, &p.SMInfo, p.SMInfoRead)
	}
}

func (p *Port) smInfoTables(s Scope, ask askFunc) {
	if s.Audit && p.IsEnd() && p.InfoRead && p.Info.CapabilityMask.Has(smp.CapIsSM) {
		ask(0)
	}
}
