package views

import (
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/reach"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/test/storetest"
)

// Over which partitions two ports share keys a tenant is told as far as it sees them: of a port of
// another the keys of its own partitions, when both owners agreed, whatever its table holds.
func TestAViewAtEachHalfStep(t *testing.T) {
	b := subnettest.New()
	leaf := b.Switch(4, "leaf")
	red, blue, zinc := b.Host(leaf, "red"), b.Host(leaf, "blue"), b.Host(leaf, "zinc")
	for _, p := range []*observed.Port{red, blue, zinc} {
		subnettest.SetPKeys(p, 0xffff, 0x8100, 0x8200, 0x8300)
	}
	b.Route()
	s := storetest.NewState(t, red.GUID, blue.GUID, zinc.GUID)
	snap := &snapshot.Snapshot{Fabric: b.Fabric}
	over := func(tenant string, from, to *observed.Port) (list []ib.PKeyBase) {
		v := WhyView(s.State, storetest.By(tenant), snap, nil, 0)
		if brief := tenant != resource.Provider; v.Brief != brief {
			t.Errorf("%s: brief %v", tenant, v.Brief)
		}
		for _, x := range reach.Explain(from, to, v).Shared {
			list = append(list, x.PKey)
		}
		return list
	}
	const d = ib.PKeyBaseDefault
	check := func(step string, want map[string][]ib.PKeyBase) {
		t.Helper()
		for tenant, list := range want {
			if got := over(tenant, red, blue); !slices.Equal(got, list) {
				t.Errorf("%s: %s is told that red and blue share %v, want %v", step, tenant, got, list)
			}
		}
		if got := over(resource.Provider, red, blue); len(got) != 4 {
			t.Errorf("%s: the provider is told of %v", step, got)
		}
	}
	none := []ib.PKeyBase(nil)
	check("at first", map[string][]ib.PKeyBase{"red": none, "blue": none, "zinc": none})
	s.Ask("red", 0x100, blue.GUID)
	check("invited", map[string][]ib.PKeyBase{"red": none, "blue": none, "zinc": none})
	s.Ask("blue", 0x100, blue.GUID)
	check("agreed", map[string][]ib.PKeyBase{"red": {0x100, d}, "blue": none, "zinc": none})
	s.Ask("blue", 0x200, red.GUID)
	check("blue invites", map[string][]ib.PKeyBase{"red": {0x100, d}, "blue": none})
	s.Ask("red", 0x200, red.GUID)
	check("red agrees", map[string][]ib.PKeyBase{"red": {0x100, d}, "blue": {0x200, d}, "zinc": none})
	s.Remove("blue", 0x100, blue.GUID)
	check("blue leaves", map[string][]ib.PKeyBase{"red": none, "blue": {0x200, d}})
	if v := WhyView(s.State, storetest.By("red"), snap, nil, 0); v.Names[0x100] != "red-net" || v.Names[0x200] != "blue-net" || v.Names[0x300] != "" || !v.Takes(0x100, blue.GUID) || v.Takes(0x400, red.GUID) {
		t.Errorf("red is told the names %v", v.Names)
	}
}

// No remedy adds the port of a tenant to a partition of the policy file, where it would not count.
func TestTheFileTakesNoPortOfATenant(t *testing.T) {
	s := storetest.State{TB: t, State: resource.New(&policy.Policy{Default: policy.None, Partitions: []policy.Partition{{Name: "filed", PKey: 0x50}}})}
	s.Do(resource.Provider, resource.PutTenant{Tenant: resource.Tenant{Name: "red", Keys: resource.KeyRange{First: 0x100, Last: 0x1ff}}})
	takes := func(g ib.PortGUID) bool {
		return WhyView(s.State, storetest.By(resource.Provider), &snapshot.Snapshot{Fabric: observed.NewFabric()}, nil, 0).Takes(0x50, g)
	}
	if !takes(1) || !takes(2) {
		t.Error("a port of the provider is not taken")
	}
	s.Do(resource.Provider, resource.AssignPorts{Tenant: "red", Ports: []resource.Port{{GUID: 1}}})
	if takes(1) || !takes(2) {
		t.Errorf("after port 1 was assigned to red: takes 1 %v, 2 %v", takes(1), takes(2))
	}
}
