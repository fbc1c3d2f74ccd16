package resource_test

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// A port of another is seen while it is a member to which both owners agreed: after no
// half step, from whichever side, and not after either owner ended it.
func TestSightFollowsBothConsents(t *testing.T) {
	b := twoTenants(t)
	b.do(of("blue"), resource.SetMembers{PKey: 0x200, Members: members(2)})
	limited := []resource.Member{{Port: 2, Membership: policy.Limited}}
	bound := resource.Caller{Name: "tok-1", Tenant: "red", Keys: resource.KeyRange{First: 0x100, Last: 0x1FF}}
	ops := resource.Caller{Name: "tok-2", Tenant: resource.Provider, Keys: resource.KeyRange{First: 0x100, Last: 0x2FF}}
	check := func(step string, want resource.Sight, part bool) {
		t.Helper()
		for _, x := range []struct {
			by   resource.Caller
			port ib.PortGUID
			want resource.Sight
		}{
			{of("red"), 2, want}, {of("blue"), 1, resource.SightNone}, {of("green"), 2, resource.SightNone}, {of("green"), 1, resource.SightNone},
			{of("red"), 1, resource.SightWhole}, {of("blue"), 2, resource.SightWhole}, {of("red"), 77, resource.SightNone}, {of(""), 2, resource.SightNone},
			{provider, 1, resource.SightWhole}, {provider, 2, resource.SightWhole}, {provider, 77, resource.SightWhole},
			{bound, 1, resource.SightWhole}, {bound, 2, resource.SightNone}, {ops, 1, resource.SightNone}, {ops, 2, resource.SightNone}, {ops, 77, resource.SightWhole},
		} {
			if got := b.SightOf(x.by, x.port); got != x.want {
				t.Errorf("%s: %q has the sight %d of port %v: want %d", step, x.by.Tenant, got, x.port, x.want)
			}
		}
		if got, want := b.SeesKey(of("red"), 2, 0x100), want == resource.SightMember; got != want {
			t.Errorf("%s: red knows of the port's key 0x0100: %v", step, got)
		}
		for _, k := range []ib.PKeyBase{0x200, 0x300} {
			if b.SeesKey(of("red"), 2, k) || b.SeesKey(of("green"), 2, k) {
				t.Errorf("%s: others know of the port's key %v", step, k)
			}
		}
		if got := b.SeesKey(of("red"), 2, ib.PKeyBaseDefault); got != (want == resource.SightMember) {
			t.Errorf("%s: red knows of the port's key of the default partition: %v", step, got)
		}
		if !b.SeesKey(of("red"), 1, ib.PKeyBaseDefault) || !b.SeesKey(of("red"), 1, 0x100) || b.SeesKey(of("red"), 1, 0x200) || b.SeesKey(bound, 1, 0x200) || b.SeesKey(ops, 77, 0x300) || !b.SeesKey(provider, 1, 0x200) {
			t.Errorf("%s: the keys of red's own port are not as they were", step)
		}
		if got := b.TakesPart(of("blue"), 0x100); got != part || !b.TakesPart(of("red"), 0x100) || !b.TakesPart(provider, 0x100) || b.TakesPart(of("green"), 0x100) || b.TakesPart(of("red"), 0x200) || b.TakesPart(provider, 0x300) {
			t.Errorf("%s: blue takes part in 0x0100: %v, want %v; or another is wrong", step, got, part)
		}
	}
	check("at first", resource.SightNone, false)
	b.do(of("red"), resource.SetMembers{PKey: 0x100, Members: members(2)})
	check("invited", resource.SightNone, false)
	b.do(of("blue"), resource.SetMembers{PKey: 0x100, Members: limited})
	check("blue asks for something else", resource.SightNone, false)
	b.do(of("red"), resource.SetMembers{PKey: 0x100, Members: limited})
	check("agreed", resource.SightMember, true)
	b.do(of("red"), resource.SetMembers{PKey: 0x100, Members: members(2)})
	check("red asks for more", resource.SightMember, true)
	b.do(of("blue"), resource.Refuse{PKey: 0x100, Port: 2})
	check("blue declines more", resource.SightMember, true)
	b.do(of("blue"), resource.RemoveMembers{PKey: 0x100, Ports: []ib.PortGUID{2}})
	check("blue left", resource.SightNone, false)
	b.do(of("red"), resource.SetMembers{PKey: 0x100, Members: members(2)})
	b.do(of("blue"), resource.Refuse{PKey: 0x100, Port: 2})
	check("declined", resource.SightNone, false)
	b.do(of("red"), resource.SetMembers{PKey: 0x100, Members: members(2)})
	b.do(of("blue"), resource.Consent{PKey: 0x100, Port: 2, Membership: policy.Full})
	check("agreed again", resource.SightMember, true)
	b.do(provider, resource.ReleasePorts{Ports: []ib.PortGUID{2}})
	if b.SightOf(of(""), 2) != resource.SightNone || b.SightOf(of("red"), 2) != resource.SightNone || b.SightOf(of("blue"), 2) != resource.SightNone || b.SightOf(provider, 2) != resource.SightWhole {
		t.Error("a port between two owners is seen by tenants")
	}
}

// The provider's own ports, switches among them, open by an invitation as little as others.
func TestSightOfTheProvidersPorts(t *testing.T) {
	b := twoTenants(t)
	b.do(of("red"), resource.SetMembers{PKey: 0x100, Members: members(50)})
	if got := b.SightOf(of("red"), 50); got != resource.SightNone {
		t.Errorf("invited: %d", got)
	}
	b.do(provider, resource.Consent{PKey: 0x100, Port: 50, Membership: policy.Full})
	if got := b.SightOf(of("red"), 50); got != resource.SightMember {
		t.Errorf("agreed: %d", got)
	}
	b.do(provider, resource.AssignPorts{Tenant: "red", Ports: []resource.Port{{GUID: 60}}})
	b.do(provider, resource.PutPartition{Partition: resource.Partition{Name: "services", PKey: 0x300}})
	b.do(provider, resource.SetMembers{PKey: 0x300, Members: members(60, 50)})
	if got := b.TakesPart(of("red"), 0x300); got {
		t.Error("red takes part in a partition of the provider that only asked for its port")
	}
	b.do(of("red"), resource.Consent{PKey: 0x300, Port: 60, Membership: policy.Full})
	if got := b.TakesPart(of("red"), 0x300); !got {
		t.Error("red takes no part in a partition of the provider that it agreed to")
	}
	b.do(of("red"), resource.RemoveMembers{PKey: 0x100, Ports: []ib.PortGUID{50}})
	if got := b.SightOf(of("red"), 50); got != resource.SightNone {
		t.Errorf("another member of a partition of the provider: %d", got)
	}
}
