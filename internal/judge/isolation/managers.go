package isolation

import (
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// CaveatManagers begins the caveat of Heed, which goes on with the ports.
const CaveatManagers = "IsSM is set where nobody named a port: programs of its host receive management packets, which no P_Key keeps apart"

// Unnamed lists the end ports that have IsSM set, but for those of managers that are named:
// where named is nil, the port from which the subnet was read, and the one that it takes for
// its master's.
func Unnamed(f *observed.Fabric, named func(*observed.Port) bool) (out []*observed.Port) {
	if named == nil {
		named = func(p *observed.Port) bool {
			self := f.Self
			return self != nil && (p == self || self.InfoRead && p.Info.LID != 0 && p.Info.LID == self.Info.MasterSMLID)
		}
	}
	for _, p := range f.EndPorts() {
		if p.InfoRead && p.Info.CapabilityMask.Has(smp.CapIsSM) && !named(p) {
			out = append(out, p)
		}
	}
	return out
}

// Heed adds what managers that nobody named leave to hosts: the verdict is on packets that
// have a P_Key or are raw, and what they receive is neither.
func (p *Proof) Heed(unnamed []*observed.Port) {
	var t tally
	for _, q := range unnamed {
		p.Managers = append(p.Managers, q.GUID)
		t.add(CaveatManagers, q.String())
	}
	p.Caveats = append(p.Caveats, t.lines("")...)
}
