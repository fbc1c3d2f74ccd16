package plan

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// seek notes the LIDs that a port is to have and does not have: who has one loses it first.
func (p *Plan) seek(port *observed.Port) {
	want := p.desired.Port(port)
	if want.Elements&observed.ElementLID == 0 || !port.InfoRead || !want.Info.LID.IsUnicast() ||
		want.Info.LID == port.Info.LID && want.Info.LMC <= port.Info.LMC {
		return
	}
	if p.sought == nil {
		p.sought = make([]*observed.Port, ib.LIDUnicastMax+1)
	}
	for k := range want.Info.LMC.Count() {
		if l := want.Info.LID + ib.LID(k); l.IsUnicast() {
			p.sought[l] = port
		}
	}
}

// yields reports whether a port has a LID that another is to have.
func (p *Plan) yields(port *observed.Port) bool {
	if p.sought == nil {
		return false
	}
	for k := range port.Info.LMC.Count() {
		if l := port.Info.LID + ib.LID(k); l.IsUnicast() && p.sought[l] != nil && p.sought[l] != port {
			return true
		}
	}
	return false
}
