package resource_test

import (
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
)

func into(keys ...ib.PKeyBase) (list []resource.Joined) {
	for _, k := range keys {
		list = append(list, resource.Joined{PKey: k, Membership: policy.Full})
	}
	return list
}

// TestMove: in one change a port leaves all partitions, its own tenant's and others', is the other tenant's, and is
// in the partitions that are named.
func TestMove(t *testing.T) {
	b := town(t)
	b.do(of("red"), resource.Consent{PKey: 0x200, Port: 1, Membership: policy.Full})
	b.has(1, 0x100, 0x200)
	c := resource.MovePorts{Tenant: "blue", Ports: []ib.PortGUID{1, 3, 1, 0x1005, 8}, Into: into(0x200)}
	d, err := b.plan(provider, c)
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Join(d.Words, "\n")
	for _, want := range []string{"is no longer a member of 0x0100", "0000000000000001 is taken from tenant red", "0000000000000001 is tenant blue's", `tenant blue is a full member of 0x0200`} {
		if !strings.Contains(words, want) {
			t.Errorf("want %q in\n%s", want, words)
		}
	}
	b.do(provider, c)
	for _, g := range c.Ports {
		if b.has(g, 0x200); b.Owner(g) != "blue" {
			t.Errorf("port %v is %q's", g, b.Owner(g))
		}
	}
	b.refused(resource.NotFound, of("red"), resource.Consent{PKey: 0x200, Port: 1, Membership: policy.Full})
	// Back again, into none: then red puts it where it was.
	b.do(provider, resource.MovePorts{Tenant: "red", Ports: []ib.PortGUID{1}})
	b.has(1)
	b.do(of("red"), set(0x100, members(1)))
	// Within a tenant: it stays where it is named, leaves the rest, and as what it is said to be.
	b.do(of("red"), set(0x101, members(1)))
	b.do(provider, resource.MovePorts{Tenant: "red", Ports: []ib.PortGUID{1}, Into: []resource.Joined{{PKey: 0x101, Membership: policy.Limited, Index0: true}}})
	b.has(1, 0x101)
	if m := b.Member(0x101, 1); m.Membership != policy.Limited || !m.Index0 {
		t.Errorf("%+v", m)
	}
	// An alias goes with its port, and a place stays.
	const alias = 0x0200000000000107
	b.do(of("red"), set(0x100, members(7, alias)))
	b.do(provider, resource.MovePorts{Tenant: "blue", Ports: []ib.PortGUID{7, 4}, Into: into(0x200)})
	b.has(7, 0x200)
	b.has(alias)
	if p := b.Port(4); p.Switch != 0x51 || p.SwitchPort != 7 || p.Owner != "blue" {
		t.Errorf("%+v", p)
	}
	// To the provider, and the policy file counts for it.
	b.do(provider, resource.MovePorts{Tenant: resource.Provider, Ports: []ib.PortGUID{7}, Into: into(0x50)})
	b.has(7, 0x50)
	if b.Policy().IsApart(7) {
		t.Error("the policy file does not count for the provider's port")
	}
}

// TestMoveIsRefused: and then nothing is moved.
func TestMoveIsRefused(t *testing.T) {
	b := town(t)
	move := func(tenant string, in []resource.Joined, ports ...ib.PortGUID) resource.MovePorts {
		return resource.MovePorts{Tenant: tenant, Ports: ports, Into: in}
	}
	b.refused(resource.Forbidden, of("red"), move("red", nil, 1))
	b.refused(resource.Forbidden, of("blue"), move("blue", into(0x200), 1))
	b.refused(resource.NotFound, provider, move("none", nil, 1))
	b.refused(resource.NotFound, provider, move("blue", into(0x300), 1))
	b.refused(resource.Conflict, provider, move("blue", into(0x100), 1))
	b.refused(resource.Conflict, provider, move("blue", into(0x10), 1)) // of the policy file
	b.refused(resource.Invalid, provider, move("blue", into(0x200, 0x200), 1))
	b.refused(resource.Invalid, provider, move("blue", make([]resource.Joined, resource.IntoMax+1), 1))
	b.refused(resource.Invalid, provider, move("blue", nil, make([]ib.PortGUID, resource.BulkMax+1)...))
	b.refused(resource.Invalid, provider, move("blue", nil, 0))
	b.refused(resource.Invalid, provider, move("blue", []resource.Joined{{PKey: 0x200}}, 1))
	b.refused(resource.Conflict, provider, move("blue", into(0x200), 9)) // stands in the policy file
	b.do(provider, resource.PutTenant{Tenant: resource.Tenant{Name: "blue", Keys: resource.KeyRange{First: 0x200, Last: 0x2FF}, Quota: resource.Quota{Members: 2}}})
	b.refused(resource.OverQuota, provider, move("blue", into(0x200), 1, 3))
	b.has(1, 0x100)
	if b.Owner(3) != "red" {
		t.Error("a refused move moves")
	}
	// Between two owners: as with assign, when the release has been proved.
	b.do(provider, resource.ReleasePorts{Ports: []ib.PortGUID{3}})
	r := resource.Request{Change: move("blue", nil, 3), By: provider, At: b.at, Seen: resource.Unseen, Proved: b.Last() - 1}
	if _, err := b.Plan(r); err == nil || !strings.Contains(err.Error(), "has not been proved") {
		t.Errorf("%v", err)
	}
	b.do(provider, move("blue", nil, 3))
	// Where removals of the provider take a second person, a move does.
	b.do(provider, resource.PutTenant{Tenant: resource.Tenant{Name: resource.Provider, ApproveRemovals: true}})
	id := b.ask(provider, move("blue", into(0x200), 1))
	b.has(1, 0x100)
	b.do(resource.Caller{Name: "second", Tenant: resource.Provider}, resource.Approve{ID: id})
	b.has(1, 0x200)
}
