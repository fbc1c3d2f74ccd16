package resource_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// TestEachRuleAtItsEdge holds rules at the last thing that they allow and the first that
// they refuse, with nothing else in the way.
func TestEachRuleAtItsEdge(t *testing.T) {
	const red = ib.PKeyBase(0x100)
	tenant := func(name string, change func(*resource.Tenant)) resource.PutTenant {
		x := resource.Tenant{Name: name, Keys: resource.KeyRange{First: 0x100, Last: 0x1FF}}
		if name == "blue" {
			x.Keys = resource.KeyRange{First: 0x200, Last: 0x2FF}
		}
		change(&x)
		return resource.PutTenant{Tenant: x}
	}
	part := func(k ib.PKeyBase, name, owner string) resource.PutPartition {
		return resource.PutPartition{Partition: resource.Partition{PKey: k, Name: name, Owner: owner}}
	}
	both := []resource.Member{{Port: 1, Membership: policy.Both}}
	for _, x := range []struct {
		name   string
		before func(b *bench)
		by     resource.Caller
		change resource.Change
		want   resource.Reason // "" for allowed
	}{
		{"the last change of a minute", func(b *bench) {
			b.do(provider, tenant("red", func(x *resource.Tenant) { x.Quota.ChangesPerMinute = 2 }))
			b.at = b.at.Add(2 * time.Minute)
			b.do(of("red"), part(red, "one", ""))
		}, of("red"), part(red, "two", ""), ""},
		{"one change too many in a minute", func(b *bench) {
			b.do(provider, tenant("red", func(x *resource.Tenant) { x.Quota.ChangesPerMinute = 2 }))
			b.at = b.at.Add(2 * time.Minute)
			b.do(of("red"), part(red, "one", ""))
			b.do(of("red"), part(red, "two", ""))
		}, of("red"), part(red, "three", ""), resource.TooFast},
		{"the last partition of a quota", func(b *bench) {
			b.do(provider, tenant("red", func(x *resource.Tenant) { x.Quota.Partitions = 2 }))
		}, of("red"), part(0, "second", ""), ""},
		{"one partition too many", func(b *bench) {
			b.do(provider, tenant("red", func(x *resource.Tenant) { x.Quota.Partitions = 1 }))
		}, of("red"), part(0, "second", ""), resource.OverQuota},
		{"settings of another's partition in which one has a port", func(b *bench) {
			b.do(of("red"), set(red, members(2)))
			b.do(of("blue"), set(red, members(2)))
		}, of("blue"), resource.DeletePartition{PKey: red}, resource.Forbidden},
		{"the whole list of another's partition in which one has a port", func(b *bench) {
			b.do(of("red"), set(red, members(1, 2)))
			b.do(of("blue"), set(red, members(2)))
		}, of("blue"), resource.SetMembers{PKey: red, Members: members(2), All: true}, resource.Forbidden},
		{"both memberships where the file does not allow it", nil, of("red"), set(red, both), resource.Invalid},
		{"both memberships where the file allows it", func(b *bench) {
			b.do(provider, resource.PutFile{File: resource.File{Name: "p.conf", Text: "Default=0x7fff : ALL=limited ;\n", AllowBoth: true}})
		}, of("red"), set(red, both), ""},
		{"a port of another where requests are not wanted", nil, of("red"), resource.SetMembers{PKey: red, Members: members(2), NoRequests: true}, resource.Forbidden},
		{"an own port where requests are not wanted", nil, of("red"), resource.SetMembers{PKey: red, Members: members(1), NoRequests: true}, ""},
		{"a number that is taken, made again", nil, of("red"), resource.PutPartition{Partition: resource.Partition{PKey: red, Name: "other"}, Create: true}, resource.Exists},
		{"a partition given to another owner", func(b *bench) {
			b.do(provider, tenant("green", func(x *resource.Tenant) { x.Keys = resource.KeyRange{First: 0x300, Last: 0x3FF} }))
		}, provider, part(red, "training", "green"), resource.Exists},
		{"the name of the default partition in another case", nil, provider, part(0x50, strings.ToUpper(policy.DefaultName), ""), resource.Invalid},
		{"a name of the policy file", func(b *bench) {
			b.do(provider, file("default: limited\npartitions:\n- {name: storage, pkey: 0x10}\n"))
		}, provider, part(0x50, "storage", ""), resource.Exists},
		{"another name than those of the policy file", func(b *bench) {
			b.do(provider, file("default: limited\npartitions:\n- {name: storage, pkey: 0x10}\n"))
		}, provider, part(0x50, "storage2", ""), ""},
		{"a port of one tenant given to another", nil, provider, resource.AssignPorts{Tenant: "red", Ports: []resource.Port{{GUID: 2}}}, resource.Conflict},
		{"a port that is in a partition of the provider given to a tenant", func(b *bench) {
			b.do(provider, part(0x50, "own", ""))
			b.do(provider, set(0x50, members(9)))
		}, provider, resource.AssignPorts{Tenant: "red", Ports: []resource.Port{{GUID: 9}}}, resource.Conflict},
		{"a pool that begins where another ends", func(b *bench) {
			b.do(provider, resource.AssignPool{Tenant: "red", First: 0x1000, Last: 0x1FFF})
		}, provider, resource.AssignPool{Tenant: "blue", First: 0x1FFF, Last: 0x2FFF}, resource.Exists},
		{"a pool that ends where another begins", func(b *bench) {
			b.do(provider, resource.AssignPool{Tenant: "red", First: 0x1000, Last: 0x1FFF})
		}, provider, resource.AssignPool{Tenant: "blue", First: 0x800, Last: 0x1000}, resource.Exists},
		{"a pool beside another", func(b *bench) {
			b.do(provider, resource.AssignPool{Tenant: "red", First: 0x1000, Last: 0x1FFF})
		}, provider, resource.AssignPool{Tenant: "blue", First: 0x2000, Last: 0x2FFF}, ""},
		{"a tenant that has a partition", func(b *bench) {
			b.do(provider, resource.ReleasePorts{Ports: []ib.PortGUID{1}})
		}, provider, resource.DeleteTenant{Name: "red"}, resource.Conflict},
		{"a tenant that has a pool", func(b *bench) {
			b.do(provider, resource.ReleasePorts{Ports: []ib.PortGUID{1}})
			b.do(provider, resource.DeletePartition{PKey: red})
			b.do(provider, resource.AssignPool{Tenant: "red", First: 0x1000, Last: 0x1FFF})
		}, provider, resource.DeleteTenant{Name: "red"}, resource.Conflict},
		{"a tenant that has nothing", func(b *bench) {
			b.do(provider, resource.ReleasePorts{Ports: []ib.PortGUID{1}})
			b.do(provider, resource.DeletePartition{PKey: red})
		}, provider, resource.DeleteTenant{Name: "red"}, ""},
		{"the partition of a file, told to the provider", func(b *bench) {
			b.do(provider, file("default: limited\npartitions:\n- {name: storage, pkey: 0x10}\n"))
		}, provider, set(0x10, members(9)), resource.Conflict},
		{"the partition of a file, not told to a tenant", func(b *bench) {
			b.do(provider, file("default: limited\npartitions:\n- {name: storage, pkey: 0x10}\n"))
		}, of("red"), set(0x10, members(1)), resource.NotFound},
	} {
		t.Run(x.name, func(t *testing.T) {
			b := twoTenants(t)
			if x.before != nil {
				x.before(b)
			}
			if x.want != "" {
				b.refused(x.want, x.by, x.change)
			} else if _, err := b.plan(x.by, x.change); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAnEmptyPartitionIsDeletedByItsOwnerAlone: whose port was the last member of another's
// partition leaves it empty.
func TestAnEmptyPartitionIsDeletedByItsOwnerAlone(t *testing.T) {
	for _, by := range []string{"red", "blue"} {
		b := twoTenants(t)
		b.do(of("red"), set(0x100, members(2)))
		b.do(of("blue"), set(0x100, members(2)))
		b.do(of(by), resource.RemoveMembers{PKey: 0x100, Ports: []ib.PortGUID{2}, DeleteEmptied: true})
		if there := b.Partition(0x100) != nil; there != (by == "blue") {
			t.Errorf("removed by %s: the partition of red is there: %v", by, there)
		}
	}
}
