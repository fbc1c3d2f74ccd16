package isolation

import (
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// Every end port that was read and has IsSM set is told of, but for the reader's own, its
// master's and those that are named; the verdict is another caveat and nothing else.
func TestUnnamedManagers(t *testing.T) {
	b := subnettest.New()
	leaf := b.Switch(4, "leaf")
	self, master, rogue, plain := b.Host(leaf, "self"), b.Host(leaf, "master"), b.Host(leaf, "rogue"), b.Host(leaf, "plain")
	b.Route()
	b.ManagedFrom(self)
	self.Info.MasterSMLID = master.Info.LID
	for _, p := range []*observed.Port{self, master, rogue} {
		p.Info.CapabilityMask |= smp.CapIsSM
	}
	names := func(named func(*observed.Port) bool) (out []ib.PortGUID) {
		for _, p := range Unnamed(b.Fabric, named) {
			out = append(out, p.GUID)
		}
		return out
	}
	if got := names(nil); !slices.Equal(got, []ib.PortGUID{rogue.GUID}) {
		t.Errorf("nobody is named: %v, want %v alone", got, rogue.GUID)
	}
	if got := names(func(p *observed.Port) bool { return p == self || p == rogue }); !slices.Equal(got, []ib.PortGUID{master.GUID}) {
		t.Errorf("the master is not named: %v, want %v alone", got, master.GUID)
	}
	self.Info.MasterSMLID = 0
	plain.Info.CapabilityMask |= smp.CapIsSM
	plain.InfoRead = false
	if got := names(nil); !slices.Equal(got, []ib.PortGUID{master.GUID, rogue.GUID}) {
		t.Errorf("no master is known: %v", got)
	}
	p := Prove(b.Fabric, nil)
	before, caveats := p.Verdict, len(p.Caveats)
	if p.Heed(nil); len(p.Caveats) != caveats || len(p.Managers) != 0 {
		t.Errorf("no manager: caveats %q", p.Caveats)
	}
	p.Heed([]*observed.Port{rogue})
	if len(p.Caveats) != caveats+1 || !strings.HasPrefix(p.Caveats[caveats], CaveatManagers) || !strings.Contains(p.Caveats[caveats], "rogue") ||
		p.Verdict != before || !slices.Equal(p.Managers, []ib.PortGUID{rogue.GUID}) {
		t.Errorf("verdict %v, was %v; caveats %q; managers %v", p.Verdict, before, p.Caveats, p.Managers)
	}
}
