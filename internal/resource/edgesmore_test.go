package resource_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// seq does changes by red, or by the provider where only he may.
func seq(changes ...resource.Change) func(*bench) {
	return func(b *bench) {
		for _, c := range changes {
			if _, err := b.plan(of("red"), c); err != nil {
				b.do(provider, c)
			} else {
				b.do(of("red"), c)
			}
		}
	}
}

// ofMembers are members at the edge of a quota, of a table, and of what two owners agreed to.
func ofMembers() (list []edge) {
	quota := func(q resource.Quota) resource.Change { return redTenant(func(x *resource.Tenant) { x.Quota = q }) }
	for _, q := range []resource.Quota{{Partitions: -1}, {Members: -1}, {KeysPerPort: -1}, {ChangesPerMinute: -1}} {
		list = append(list, edge{"a quota below 0", nil, provider, quota(q), nil})
	}
	ports := resource.AssignPorts{Tenant: "red", Ports: []resource.Port{{GUID: 3}, {GUID: 4}}}
	second := partitionOf(0x101, "second", "red")
	host := []resource.Member{{Port: 1, Membership: policy.Full, Host: "h"}}
	both := []resource.Member{{Port: 1, Membership: policy.Both}}
	allow := resource.PutFile{File: resource.File{Name: "p.conf", Text: "Default=0x7fff : ALL=limited ;\n", AllowBoth: true}}
	sized := func(keys int) func(*resource.Request) {
		return func(r *resource.Request) { r.Fabric = tables{1: keys} }
	}
	index0 := func(as policy.Membership) []resource.Member {
		return []resource.Member{{Port: 1, Membership: as, Index0: true}}
	}
	list = append(list,
		edge{"three members where two may be, one of them less", seq(ports, set(0x100, members(1, 3, 4)), quota(resource.Quota{Members: 2})), of("red"), set(0x100, limited(1)), nil},
		edge{"three members where two may be, and one more", seq(ports, set(0x100, members(1, 3)), quota(resource.Quota{Members: 2})), of("red"), set(0x100, members(4)), nil},
		edge{"a port in two partitions where it may be in one, with more", seq(second, set(0x100, limited(1)), set(0x101, members(1)), quota(resource.Quota{KeysPerPort: 1})), of("red"), set(0x100, members(1)), nil},
		edge{"a port in one partition where it may be in one, and a second", seq(second, set(0x101, members(1)), quota(resource.Quota{KeysPerPort: 1})), of("red"), set(0x100, members(1)), nil},
		edge{"a table that is full", seq(second, set(0x101, members(1))), of("red"), set(0x100, members(1)), sized(2)},
		edge{"a table with room for it", seq(second, set(0x101, members(1))), of("red"), set(0x100, members(1)), sized(3)},
		edge{"a name in a table that is too small", seq(second, set(0x100, members(1)), set(0x101, members(1))), of("red"), set(0x100, host), sized(2)},
		edge{"less in a table that is too small", seq(second, set(0x100, members(1)), set(0x101, members(1))), of("red"), set(0x100, limited(1)), sized(2)},
		edge{"more in a table that is too small", seq(second, set(0x100, limited(1)), set(0x101, members(1))), of("red"), set(0x100, members(1)), sized(2)},
		edge{"two keys in a table with room for one", seq(allow), of("red"), set(0x100, both), sized(2)},
		edge{"two keys in a table with room for two", seq(allow), of("red"), set(0x100, both), sized(3)},
		edge{"two keys that are asked for need their room", func(b *bench) {
			seq(allow)(b)
			b.do(of("red"), set(0x100, members(1)))
			b.do(of("blue"), partitionOf(0x201, "b", ""))
			b.do(of("blue"), set(0x201, members(1)))
			b.do(of("red"), set(0x201, members(1)))
			b.do(of("red"), set(0x201, both))
		}, of("red"), resource.AmendPartition{PKey: 0x101, Make: &resource.Partition{Name: "z"}, Set: members(1)}, sized(4)},
		edge{"two keys that are asked for in a table without room", func(b *bench) {
			seq(allow)(b)
			b.do(of("blue"), set(0x200, members(1)))
			b.do(of("red"), set(0x200, members(1)))
		}, of("red"), set(0x200, both), sized(2)},
		edge{"a second key at index 0", seq(second, set(0x101, index0(policy.Full))), of("red"), set(0x100, index0(policy.Full)), nil},
		edge{"the same key at index 0", seq(set(0x100, index0(policy.Limited))), of("red"), set(0x100, index0(policy.Full)), nil},
		edge{"index 0 is the port's owner's to give", func(b *bench) {
			b.do(of("blue"), set(0x200, members(1)))
			b.do(of("red"), set(0x200, members(1)))
		}, of("blue"), set(0x200, index0(policy.Full)), nil},
		edge{"and he takes it himself", func(b *bench) {
			b.do(of("blue"), set(0x200, members(1)))
			b.do(of("red"), set(0x200, members(1)))
		}, of("red"), set(0x200, index0(policy.Full)), nil},
		edge{"what index 0 has stays there without a word", func(b *bench) {
			b.do(of("blue"), set(0x200, index0(policy.Limited)))
			b.do(of("red"), set(0x200, index0(policy.Limited)))
		}, of("blue"), set(0x200, index0(policy.Full)), nil},
		edge{"an amendment with index 0 that waits is refused", func(b *bench) {
			b.do(of("blue"), set(0x200, members(1)))
			b.do(of("red"), set(0x200, members(1)))
		}, of("blue"), resource.AmendPartition{PKey: 0x200, Set: index0(policy.Full)}, nil},
		edge{"an amendment with somebody else's port", nil, of("red"), resource.AmendPartition{PKey: 0x100, Set: members(2)}, nil},
		edge{"an amendment that empties what a second person has to see", seq(set(0x100, members(1)), redTenant(func(x *resource.Tenant) { x.ApproveRemovals = true })), of("red"), resource.AmendPartition{PKey: 0x100, Remove: []ib.PortGUID{1}, Empty: true}, nil},
		edge{"an amendment by who has not seen the last change", seq(set(0x100, members(1))), of("red"), resource.AmendPartition{PKey: 0x100, Name: "n"}, func(r *resource.Request) { r.Seen = 3 }},
		edge{"a removal of nobody deletes nothing", nil, of("red"), resource.RemoveMembers{PKey: 0x100, Ports: []ib.PortGUID{1}, DeleteEmptied: true}, nil},
		edge{"a tenant without keys", func(b *bench) {
			b.do(provider, resource.PutTenant{Tenant: resource.Tenant{Name: "green"}})
		}, of("green"), partitionOf(0, "mine", ""), nil},
		edge{"a tenant that has used its keys", seq(resource.DeletePartition{PKey: 0x100}, redTenant(func(x *resource.Tenant) { x.Keys = resource.KeyRange{First: 0x100, Last: 0x100} }), partitionOf(0x100, "x", "red")), of("red"), partitionOf(0, "y", ""), nil},
		edge{"who is bound takes the lowest number of his own", nil, of("red"), partitionOf(0, "mine", ""), func(r *resource.Request) { r.By.Keys = resource.KeyRange{First: 0x105, Last: 0x106} }},
		edge{"who is bound has used his own", seq(partitionOf(0x105, "a", "red")), of("red"), partitionOf(0, "mine", ""), func(r *resource.Request) { r.By.Keys = resource.KeyRange{First: 0x105, Last: 0x105} }},
		edge{"the lowest number that no tenant has", seq(redTenant(func(x *resource.Tenant) { x.Keys = resource.KeyRange{First: 0x1, Last: 0x1FF} })), provider, partitionOf(0, "mine", ""), nil},
		edge{"a number that the policy file has, for who is bound", seq(file("partitions: [{name: a, pkey: 0x10}]\n")), provider, set(0x10, members(9)), func(r *resource.Request) { r.By.Keys = resource.KeyRange{First: 0x10, Last: 0x11} }},
		edge{"keys from another's first on", nil, provider, resource.PutTenant{Tenant: resource.Tenant{Name: "green", Keys: resource.KeyRange{First: 0x60, Last: 0x100}}}, nil},
		edge{"keys to before another's first", nil, provider, resource.PutTenant{Tenant: resource.Tenant{Name: "green", Keys: resource.KeyRange{First: 0x60, Last: 0xFF}}}, nil},
		edge{"a long name for a long tenant", func(b *bench) {
			b.do(provider, resource.PutTenant{Tenant: resource.Tenant{Name: strings.Repeat("t", 40), Keys: resource.KeyRange{First: 0x300, Last: 0x3FF}}})
		}, provider, partitionOf(0x300, strings.Repeat("n", min(40, policy.NameMax-40)), strings.Repeat("t", 40)), nil},
		edge{"there is no partition of the file for a tenant", seq(file("partitions: [{name: a, pkey: 0x10}]\n")), of("red"), set(0x10, members(1)), nil},
	)
	return list
}

// ofPorts are ports and pools that change hands, with their aliases.
func ofPorts() (list []edge) {
	const alias = ib.PortGUID(0x0200_0000_0000_1001)
	aliases := file("aliases: [{port: 0x1001, guids: [0x0200000000001001]}, {port: 0x9, guids: [0x0200000000000009]}]\npartitions: [{name: f, members: {full: [0x200000000000009]}}]\n")
	own := partitionOf(0x50, "own", resource.Provider)
	assign := func(tenant string, g ib.PortGUID) resource.Change {
		return resource.AssignPorts{Tenant: tenant, Ports: []resource.Port{{GUID: g}}}
	}
	pool := func(tenant string, first, last ib.PortGUID) resource.Change {
		return resource.AssignPool{Tenant: tenant, First: first, Last: last}
	}
	return append(list,
		edge{"a port whose alias the file names", seq(aliases), provider, assign("red", 9), nil},
		edge{"that port stays the provider's", seq(aliases), provider, assign(resource.Provider, 9), nil},
		edge{"a port whose alias is in a partition", seq(aliases, own, set(0x50, members(alias))), provider, assign("red", 0x1001), nil},
		edge{"a port whose alias has an owner of its own", seq(aliases, own, assign("blue", alias), assign("red", 0x1001)), provider, resource.ReleasePorts{Ports: []ib.PortGUID{0x1001}}, nil},
		edge{"a port whose alias is a member, taken", seq(aliases, assign("red", 0x1001), set(0x100, members(0x1001, alias))), provider, resource.ReleasePorts{Ports: []ib.PortGUID{0x1001}}, nil},
		edge{"a pool with a port whose alias is a member", seq(aliases, own, set(0x50, members(alias))), provider, pool("red", 0x1000, 0x1FFF), nil},
		edge{"a pool with a port whose alias has an owner", seq(aliases, assign("blue", alias), func() resource.Change { return pool("red", 0x1000, 0x1FFF) }()), provider, resource.ReleasePool{First: 0x1000}, nil},
		edge{"a pool with a port whose alias is in another pool", func(b *bench) {
			seq(aliases, pool("blue", alias, alias+1))(b)
			b.do(of("blue"), set(0x200, members(alias)))
		}, provider, pool("red", 0x1000, 0x1FFF), nil},
		edge{"a pool with a port of its own in a partition", seq(aliases, own, set(0x50, members(0x1001)), assign(resource.Provider, 0x1001)), provider, pool("red", 0x1000, 0x1FFF), nil},
		edge{"a pool with a member", seq(own, set(0x50, members(0x1002))), provider, pool("red", 0x1000, 0x1FFF), nil},
		edge{"a pool for the provider with its own member", seq(own, set(0x50, members(0x1002))), provider, pool(resource.Provider, 0x1000, 0x1FFF), nil},
		edge{"a pool with what was asked", seq(set(0x100, members(0x1002))), provider, pool("blue", 0x1000, 0x1FFF), nil},
		edge{"a pool with what its new owner asked", seq(set(0x100, members(0x1002))), provider, pool("red", 0x1000, 0x1FFF), nil},
		edge{"a pool that is taken, with members", seq(pool("red", 0x1000, 0x1FFF), set(0x100, members(0x1002, 0x1003))), provider, resource.ReleasePool{First: 0x1000}, nil},
		edge{"a pool with a port that the file names", seq(file("partitions: [{name: f, members: {full: [0x1003, 0x1002]}}]\n")), provider, pool("red", 0x1000, 0x1FFF), nil},
		edge{"the provider's pool with a port that the file names", seq(file("partitions: [{name: f, members: {full: [0x1003, 0x1002]}}]\n")), provider, pool(resource.Provider, 0x1000, 0x1FFF), nil},
		edge{"the provider's port that the file names is not released", seq(file("partitions: [{name: f, members: {full: [0x9]}}]\n")), provider, resource.ReleasePorts{Ports: []ib.PortGUID{9}}, nil},
		edge{"the provider's port that nothing names is", nil, provider, resource.ReleasePorts{Ports: []ib.PortGUID{9}}, nil},
		edge{"no GUID at all", nil, provider, resource.ReleasePorts{Ports: []ib.PortGUID{0}}, nil},
		edge{"a port whose alias is a member, moved", seq(aliases, assign("red", 0x1001), set(0x100, members(0x1001, alias))), provider, resource.MovePorts{Tenant: "blue", Ports: []ib.PortGUID{0x1001}}, nil},
		edge{"a port whose alias the file names, moved", seq(aliases), provider, resource.MovePorts{Tenant: "red", Ports: []ib.PortGUID{9}}, nil},
		edge{"a place of another port", seq(resource.AssignPorts{Tenant: "red", Ports: []resource.Port{{GUID: 3, Switch: 0x51, SwitchPort: 1}}}), provider, resource.AssignPorts{Tenant: "red", Ports: []resource.Port{{GUID: 4, Switch: 0x51, SwitchPort: 1}}}, nil},
		edge{"the place of a port that was released", seq(resource.AssignPorts{Tenant: "red", Ports: []resource.Port{{GUID: 3, Switch: 0x51, SwitchPort: 1}}}, resource.ReleasePorts{Ports: []ib.PortGUID{3}}), provider, resource.AssignPorts{Tenant: "red", Ports: []resource.Port{{GUID: 4, Switch: 0x51, SwitchPort: 1}}}, nil},
	)
}

// rolled is a rollback to before a number of changes.
func rolled(tenant string, before func(*bench), changes ...func(*bench) (resource.Caller, resource.Change)) (func(*bench), *resource.Rollback) {
	var back resource.Rollback
	return func(b *bench) {
		before(b)
		to := b.Last()
		var diffs []resource.Diff
		for _, change := range changes {
			by, c := change(b)
			d, err := b.plan(by, c)
			if err != nil {
				b.Fatalf("%s: %v", c.Action(), err)
			}
			b.Commit(d, b.Last()+1, by, b.at)
			diffs = append([]resource.Diff{d}, diffs...)
		}
		back = resource.NewRollback(to, tenant, diffs)
	}, &back
}

func by(who resource.Caller, c resource.Change) func(*bench) (resource.Caller, resource.Change) {
	return func(*bench) (resource.Caller, resource.Change) { return who, c }
}

// ofRollbacks are rollbacks over what others have done since.
func ofRollbacks() (list []edge) {
	add := func(name string, who resource.Caller, tenant string, before func(*bench), changes ...func(*bench) (resource.Caller, resource.Change)) {
		was, back := rolled(tenant, before, changes...)
		list = append(list, edge{name, was, who, nil, func(r *resource.Request) { r.Change = *back }},
			edge{name + ", by who has not seen it", was, who, nil, func(r *resource.Request) { r.Change, r.Seen = *back, 3 }})
	}
	red, blue := of("red"), of("blue")
	agreed := func(b *bench) {
		b.do(red, set(0x100, members(2, 1)))
		b.do(blue, set(0x100, members(2)))
	}
	add("names that were exchanged", red, "", func(b *bench) { b.do(red, partitionOf(0x101, "second", "")) },
		by(red, partitionOf(0x100, "x", "")), by(red, partitionOf(0x101, "training", "")), by(red, partitionOf(0x100, "second", "")))
	add("a member less", red, "", agreed, by(red, set(0x100, limited(1))))
	add("what the owner of the port took back, by him", blue, "", agreed, by(blue, resource.RemoveMembers{PKey: 0x100, Ports: []ib.PortGUID{2}}))
	add("what the owner of the port took back, by the owner of the partition", red, "", agreed, by(blue, resource.RemoveMembers{PKey: 0x100, Ports: []ib.PortGUID{2}}))
	add("what the owner of the port took back, by the provider", provider, "", agreed, by(blue, resource.RemoveMembers{PKey: 0x100, Ports: []ib.PortGUID{2}}))
	add("a consent that was given since", red, "", func(b *bench) { b.do(red, set(0x100, members(2))) }, by(blue, set(0x100, members(2))))
	add("a partition that was made since", red, "", func(*bench) {}, by(red, partitionOf(0x101, "new", "")), by(red, set(0x101, members(1))))
	add("a partition that was deleted since", red, "", agreed, by(red, resource.DeletePartition{PKey: 0x100}))
	add("index 0 since", red, "", func(b *bench) { b.do(red, set(0x100, members(1))) }, by(red, set(0x100, []resource.Member{{Port: 1, Membership: policy.Full, Index0: true}})))
	add("a number that another tenant has since", provider, "red", func(b *bench) {
		b.do(red, set(0x100, members(2)))
		b.do(blue, set(0x100, members(2)))
	},
		by(red, resource.DeletePartition{PKey: 0x100}),
		by(provider, redTenant(func(x *resource.Tenant) { x.Keys = resource.KeyRange{First: 0x110, Last: 0x1FF} })),
		by(provider, resource.PutTenant{Tenant: resource.Tenant{Name: "blue", Keys: resource.KeyRange{First: 0x200, Last: 0x2FF}}}),
	)
	base := func(b *bench) {
		b.State = resource.New(&policy.Policy{Default: policy.Limited, Partitions: []policy.Partition{{Name: "given", PKey: 5}}})
	}
	add("the base has the number", provider, "", base, by(provider, file("partitions: []\n")), by(provider, partitionOf(5, "mine", "")))
	add("the base has the name", provider, "", base, by(provider, file("partitions: []\n")), by(provider, partitionOf(6, "given", "")))
	add("the base is as it was", provider, "", base, by(provider, file("partitions: [{name: other, pkey: 0x7}]\n")))
	for _, to := range []uint64{0, 1} {
		list = append(list, edge{"to the last revision, and one beyond", nil, provider, nil, func(r *resource.Request) {
			r.Change = resource.Rollback{To: r.Proved + to, Target: []resource.Target{}}
		}})
	}
	return list
}

// What cannot be read back is refused, and says what it is.
func TestRollbacksThatCannotBeRead(t *testing.T) {
	for fields, want := range map[string]string{
		`{"to":1,"target":[{"key":"partition/0x0005","other":1}]}`:                                                     `unknown field "other"`,
		`{"to":1,"target":[{"key":"partition/0x0005","before":{"name":"a","owner":"red","new":1}}]}`:                   `unknown field "new"`,
		`{"to":1,"target":[{"key":"partition/0x0006","before":{"pkey":"0x0005","name":"a","owner":"red"}}]}`:           `object "partition/0x0006": its content is that of "partition/0x0005"`,
		`{"to":1,"target":[{"key":"thing/0x0006","before":{"pkey":"0x0005","name":"a","owner":"red","sl":0}}]}`:        `object "thing/0x0006": unknown kind "thing"`,
		`{"to":1,"target":[{"key":"partition/0x0005","before":null},{"key":"partition/0x0006","before":{"pkey":[]}}]}`: `object "partition/0x0006": `,
	} {
		if c, err := resource.DecodeChange([]byte(`{"action":"roll back","fields":` + fields + `}`)); err == nil || c != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %s", fields, c, err, want)
		}
	}
	if _, err := json.Marshal(resource.Target{Key: "x", Object: &resource.Member{Membership: 99}}); err == nil {
		t.Error("a membership that is none was written")
	}
	b := newBench(t)
	if err := b.Restore(&resource.File{Name: "f.yaml", Text: "nonsense: 1\n"}, 5); err == nil || b.File() != nil || b.Last() != 0 {
		t.Errorf("a file that cannot be read: %v, %v, revision %d", err, b.File(), b.Last())
	}
}

// What is forgotten, in a Trim and where there are too many removals, has been proved.
func TestWhatIsForgotten(t *testing.T) {
	b := twoTenants(t)
	b.do(of("red"), set(0x100, members(1)))
	b.do(of("red"), resource.RemoveMembers{PKey: 0x100, Ports: []ib.PortGUID{1}})
	removed := b.Last()
	b.at = b.at.Add(resource.RemovedLife)
	for _, x := range []struct {
		later  bool
		proved uint64
		edits  int
	}{{false, removed, 0}, {true, removed - 1, 0}, {true, removed, 1}, {true, removed + 1, 1}} {
		at := b.at
		if x.later {
			at = at.Add(1)
		}
		d, err := b.Plan(resource.Request{Change: resource.Trim{}, By: provider, At: at, Seen: resource.Unseen, Proved: x.proved})
		if err != nil || len(d.Edits) != x.edits {
			t.Errorf("%+v: %d edits, %v: %v", x, len(d.Edits), err, d.Words)
		}
	}
	// A full memory of removals forgets the oldest quarter, and twice as many also what was not proved.
	b = newBench(t)
	b.restore(&resource.Tenant{Name: "red", Keys: resource.KeyRange{First: 0x100, Last: 0x1FF}})
	b.restore(&resource.Partition{PKey: 0x100, Name: "a", Owner: "red"})
	b.restore(&resource.Member{PKey: 0x100, Port: 1, Membership: policy.Full, ByPartition: true, Owner: "red"})
	has := 0
	for _, x := range []struct {
		has    int
		proved uint64
		edits  int
	}{{resource.RemovedMax - 1, 9, 2}, {resource.RemovedMax, 9, 2 + resource.RemovedMax/4}, {resource.RemovedMax, 4, 2}, {2*resource.RemovedMax - 1, 4, 2}, {2 * resource.RemovedMax, 4, 2 + resource.RemovedMax/2}} {
		for ; has < x.has; has++ {
			if err := b.Restore(&resource.Removed{PKey: 0x100, Port: ib.PortGUID(0x9000 + has), Owner: "red", At: b.at}, 5); err != nil {
				t.Fatal(err)
			}
		}
		d, err := b.Plan(resource.Request{Change: resource.RemoveMembers{PKey: 0x100, Ports: []ib.PortGUID{1}}, By: of("red"), At: b.at, Seen: resource.Unseen, Proved: x.proved})
		if err != nil || len(d.Edits) != x.edits {
			t.Errorf("%d removals, proved %d: %d edits, want %d, %v", x.has, x.proved, len(d.Edits), x.edits, err)
		}
		if i := slices.IndexFunc(d.Edits, func(e resource.Edit) bool { return e.Key == resource.RemovedKey(0x100, 0x9000) }); (i >= 0) != (x.edits > 2) {
			t.Errorf("%d removals: the oldest at %d", x.has, i)
		}
	}
}
