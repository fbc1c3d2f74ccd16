package views

import (
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/test/storetest"
)

// A tenant sees all of its own ports, and of a device of two owners its own: also while another's port
// is a member of its partition, or asked for.
func TestInventoryAsATenantSeesIt(t *testing.T) {
	b := subnettest.New()
	leaf := b.Switch(4, "leaf")
	red, blue, zinc := b.Host(leaf, "red"), b.Host(leaf, "blue"), b.Host(leaf, "zinc")
	both := b.Node(ib.NodeCA, 2, "both")
	s := storetest.NewState(t, red.GUID, blue.GUID, zinc.GUID)
	s.Do(resource.Provider, resource.AssignPorts{Tenant: "red", Ports: []resource.Port{{GUID: both.Ports[1].GUID}}})
	s.Do(resource.Provider, resource.AssignPorts{Tenant: "blue", Ports: []resource.Port{{GUID: both.Ports[2].GUID}}})
	s.Ask("red", 0x100, blue.GUID)
	s.Ask("blue", 0x100, blue.GUID)
	s.Ask("red", 0x100, zinc.GUID)
	guid := func(i int) string { return both.Ports[i].GUID.String() }
	for tenant, want := range map[string][]string{"red": {guid(1)}, "blue": {guid(2)}, "zinc": {}, "none": {}, "": {}, resource.Provider: {guid(1), guid(2)}} {
		c := storetest.By(tenant)
		if got := EndPortsOf(s.State, c, both); !slices.Equal(got, want) || !slices.Equal(NodeOf(s.State, c, both, time.Time{}).EndPorts, want) {
			t.Errorf("%s sees %v of a device of two, want %v", tenant, got, want)
		}
		for owner, p := range map[string]ib.PortGUID{"red": red.GUID, "blue": blue.GUID, "zinc": zinc.GUID, resource.Provider: leaf.Ports[0].GUID} {
			if got, want := Sees(s.State, c, p), tenant == owner || tenant == resource.Provider; got != want {
				t.Errorf("%s sees the port of %s: %v", tenant, owner, got)
			}
		}
	}
	if got := PortOf(s.State, resource.Caller{Tenant: resource.Provider}, zinc.GUID, zinc, nil); got.Owner != "zinc" || got.LID != int(zinc.Info.LID) || got.Switch != leaf.GUID().String() || !slices.Equal(got.Partitions, []string{"0x0100", "0x0300"}) {
		t.Errorf("%+v", got)
	}
}
