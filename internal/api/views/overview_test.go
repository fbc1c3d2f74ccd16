package views

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/test/storetest"
)

// The numbers of a tenant are of what it sees; those of the fabric are the provider's.
func TestNumbersAsWhom(t *testing.T) {
	b := subnettest.New()
	leaf := b.Switch(4, "leaf")
	red, blue, zinc := b.Host(leaf, "red"), b.Host(leaf, "blue"), b.Host(leaf, "zinc")
	s := storetest.NewState(t, red.GUID, blue.GUID, zinc.GUID)
	s.Ask("red", 0x100, blue.GUID)
	s.Do(resource.Provider, resource.AssignPorts{Tenant: "zinc", Ports: []resource.Port{{GUID: 90}}})
	s.Do(resource.Provider, resource.AssignPorts{Tenant: "zinc", Ports: []resource.Port{{GUID: 91}}})
	s.Do(resource.Provider, resource.ReleasePorts{Ports: []ib.PortGUID{91}})
	s.Do(resource.Provider, resource.PutTenant{Tenant: resource.Tenant{Name: "blue", Keys: s.Tenant("blue").Keys, ApproveRemovals: true}})
	s.Do("blue", resource.DeletePartition{PKey: 0x200}) // which waits
	for tenant, want := range map[string][5]int{        // tenants, partitions, members, ports, approvals
		"red": {1, 1, 2, 1, 0}, "blue": {1, 2, 2, 1, 1}, "zinc": {1, 1, 1, 2, 0}, "none": {}, "": {}, resource.Provider: {3, 3, 4, 4, 1},
	} {
		got := StatusOf(s.State, storetest.By(tenant), b.Fabric, nil, time.Time{}, "v", "")
		if n := [5]int{got.Tenants, got.Partitions, got.Members, got.Ports, got.Approvals}; n != want || got.Verdict != "unknown" {
			t.Errorf("%q: %v, want %v", tenant, n, want)
		}
		if (got.Fabric != nil) != (tenant == resource.Provider) {
			t.Errorf("%q: the fabric is %+v", tenant, got.Fabric)
		}
	}
	bound := resource.Caller{Name: "tok-1", Tenant: resource.Provider, Keys: resource.KeyRange{First: 1, Last: 2}}
	if got := StatusOf(s.State, bound, b.Fabric, nil, time.Time{}, "v", ""); got.Fabric != nil || got.Partitions != 0 || got.Members != 0 {
		t.Errorf("who is bound to partitions is told %+v", got)
	}
}
