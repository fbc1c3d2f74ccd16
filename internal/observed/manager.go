package observed

import "github.com/ibwarden/ibwarden/ib"

// Manager is the port that the port which was read from takes for the master
// subnet manager's; where nobody has that LID, it is that port itself. What other
// ports say of their master does not count: hosts that are many would choose who is
// taken for the manager.
func (f *Fabric) Manager() *Port {
	if f.Self == nil || !f.Self.InfoRead {
		return f.Self
	}
	lid := f.Self.Info.MasterSMLID
	if !lid.IsUnicast() || f.Self.Answers(lid) {
		return f.Self
	}
	for _, p := range f.EndPorts() {
		if p.Answers(lid) {
			return p
		}
	}
	return f.Self
}

// Answers reports whether a LID is one of the port's 1<<LMC, as far as its
// PortInfo was read.
func (p *Port) Answers(lid ib.LID) bool {
	return p.InfoRead && p.Info.LID != 0 && lid >= p.Info.LID && int(lid) < int(p.Info.LID)+1<<p.Info.LMC
}
