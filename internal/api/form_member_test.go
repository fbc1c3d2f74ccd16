package api

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/test/storetest"
)

// Whose a port is, and whose consent a member waits for, is told to the owner of the port and the
// provider; to the owner of the partition not, whether it waits or both agreed, and not whether
// anybody owns the port.
func TestWhoIsToldWhoseAMemberIs(t *testing.T) {
	s := storetest.NewState(t, 1, 2, 3)
	show := func(tenant string, g ib.PortGUID) Member {
		return MemberOf(s.State, storetest.By(tenant), s.Member(0x100, g))
	}
	check := func(step string, g ib.PortGUID, want map[string]Member) {
		t.Helper()
		for tenant, w := range want {
			w.Port, w.Membership = g.String(), "full"
			if got := show(tenant, g); got != w {
				t.Errorf("%s: %s is shown %+v, want %+v", step, tenant, got, w)
			}
		}
	}
	s.Ask("red", 0x100, 2)
	check("invited", 2, map[string]Member{
		"red": {State: "waiting", Waits: "another"}, "blue": {Owner: "blue", State: "waiting", Waits: "blue"}, resource.Provider: {Owner: "blue", State: "waiting", Waits: "blue"},
	})
	s.Do(resource.Provider, resource.AssignPorts{Tenant: "blue", Ports: []resource.Port{{GUID: 4}}})
	s.Ask("blue", 0x100, 4)
	check("blue asks", 4, map[string]Member{
		"red": {State: "waiting", Waits: "red"}, "blue": {Owner: "blue", State: "waiting", Waits: "red"}, resource.Provider: {Owner: "blue", State: "waiting", Waits: "red"},
	})
	s.Ask("blue", 0x100, 2)
	check("agreed", 2, map[string]Member{"red": {State: "member"}, "blue": {Owner: "blue", State: "member"}, resource.Provider: {Owner: "blue", State: "member"}})
	s.Do("red", resource.SetMembers{PKey: 0x100, Members: []resource.Member{{Port: 2, Membership: policy.Full, Index0: true}}})
	check("red asks for more", 2, map[string]Member{
		"red": {State: "member", Asked: "full", Waits: "another"}, "blue": {Owner: "blue", State: "member", Asked: "full", Waits: "blue"}, resource.Provider: {Owner: "blue", State: "member", Asked: "full", Waits: "blue"},
	})
	s.Do(resource.Provider, resource.ReleasePorts{Ports: []ib.PortGUID{3}})
	s.Ask("red", 0x100, 3)
	s.Ask("red", 0x100, 77)
	check("between two owners", 3, map[string]Member{"red": {State: "waiting", Waits: "another"}})
	check("of the provider", 77, map[string]Member{"red": {State: "waiting", Waits: "another"}, resource.Provider: {Owner: resource.Provider, State: "waiting", Waits: resource.Provider}})
	check("its own", 1, map[string]Member{"red": {Owner: "red", State: "member"}})
}

// A partition counts the members that a caller sees, and those of them that wait.
func TestAPartitionCountsWhatIsSeen(t *testing.T) {
	s := storetest.NewState(t, 1, 2, 3)
	s.Ask("red", 0x100, 2)
	s.Ask("red", 0x100, 3)
	s.Ask("zinc", 0x100, 3)
	for tenant, want := range map[string][2]int{"red": {3, 1}, "blue": {1, 1}, "zinc": {1, 0}, resource.Provider: {3, 1}} {
		if got := PartitionOf(s.State, storetest.By(tenant), s.Partition(0x100)); got.Members != want[0] || got.Waiting != want[1] || got.Owner != "red" || got.Name != "red-net" {
			t.Errorf("%s is shown %+v, want %d members, %d of them waiting", tenant, got, want[0], want[1])
		}
	}
}
