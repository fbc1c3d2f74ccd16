package resource_test

import (
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
)

func file(text string) resource.PutFile {
	return resource.PutFile{File: resource.File{Name: "p.yaml", Text: "version: 1\n" + text}}
}

func TestAFileNamesNoPortOfATenant(t *testing.T) {
	b := twoTenants(t)
	for _, text := range []string{
		"partitions: [{name: a, members: {full: [0x2]}}]",
		"partitions: [{name: a, members: {full: [{port: 0x2, at: \"s:1\"}]}}]",
		"groups: {g: [0x9, {port: 0x2}]}\npartitions: [{name: a, members: {full: [g]}}]",
		"trusted: [0x2]\npartitions: [{name: a}]",
	} {
		r := b.refusal(provider, file(text))
		if r.Reason != resource.Conflict || !strings.Contains(r.Detail, "port 0x0000000000000002 is tenant blue's") || !strings.Contains(r.Detail, "p.yaml:2") {
			t.Errorf("%s: %s: %v", text, r.Reason, r)
		}
	}
	// By ALL and the like it does not mean them.
	b.do(provider, file("default: full\npartitions: [{name: a, members: {full: [ALL]}}]"))
	ports := []policy.EndPort{{PortGUID: 1}, {PortGUID: 2}, {PortGUID: 3}}
	res, err := b.Policy().Resolve(ports, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range res.Partitions {
		if len(part.Full) > 0 && (len(part.Full) != 1 || part.Full[0] != 3) {
			t.Errorf("%s: full members %v: want port 3 alone", part.Name, part.Full)
		}
	}
	// A base that names one is narrowed.
	s := resource.New(&policy.Policy{Default: policy.Limited, Partitions: []policy.Partition{{Name: "a", PKey: 5, Members: []policy.Member{
		{Selector: policy.Selector{Kind: policy.SelectPort, GUID: 2}, Membership: policy.Full}}}}})
	if err := s.Restore(&resource.Port{GUID: 2, Owner: "blue"}, 1); err != nil {
		t.Fatal(err)
	}
	if m := s.Policy().Partitions[0].Members; len(m) != 0 {
		t.Errorf("blue's port gets the key of the base's partition: %+v", m)
	}
	// And a port that the file names is not given away.
	b.do(provider, file("partitions: [{name: a, members: {full: [0x3]}}]"))
	b.refused(resource.Conflict, provider, resource.AssignPorts{Tenant: "red", Ports: []resource.Port{{GUID: 3}}})
	b.refused(resource.Conflict, provider, resource.AssignPool{Tenant: "red", First: 3, Last: 9})
}

func TestAFileClaimsNothingOfOthers(t *testing.T) {
	b := twoTenants(t)
	b.do(provider, resource.PutPartition{Partition: resource.Partition{Name: "own", PKey: 1}})
	r := b.refusal(provider, file("partitions: [{name: a, pkey: 0x100}, {name: own, pkey: 7}, {name: c, pkey: 0x1fe}]"))
	for _, want := range []string{`partition "a" states P_Key 0x0100, which red's partition "training" has`, `"own" has the name of provider's partition 0x0001`, `"c" states P_Key 0x01fe, which is tenant red's`} {
		if !strings.Contains(r.Detail, want) {
			t.Errorf("%v does not say %q", r, want)
		}
	}
	// Numbers that it does not state are nobody's: neither the API's nor a tenant's.
	b.do(provider, file("partitions: [{name: a}, {name: b}]"))
	numbers := b.File().Numbers
	if numbers["a"] != 2 || numbers["b"] != 3 {
		t.Errorf("numbers %v: want 2 and 3", numbers)
	}
	b.refused(resource.Exists, provider, resource.PutPartition{Partition: resource.Partition{Name: "x", PKey: 2}})
	b.refused(resource.Conflict, provider, resource.PutTenant{Tenant: resource.Tenant{Name: "green", Keys: resource.KeyRange{First: 2, Last: 9}}})
	b.do(provider, resource.PutPartition{Partition: resource.Partition{Name: "x"}})
	if b.Partition(4) == nil {
		t.Errorf("the provider's next partition is none with number 4: %v", b.Partitions(resource.Provider))
	}
	// They are kept, and what the file does not name of others' stays.
	b.do(provider, file("partitions: [{name: z}, {name: b}]"))
	if n := b.File().Numbers; n["b"] != 3 || n["z"] == 2 || b.Partition(0x100) == nil {
		t.Errorf("numbers %v", n)
	}
	b.refused(resource.Invalid, provider, file("partitions: [{name: a, color: red}]"))
	b.refused(resource.Forbidden, of("red"), file("partitions: [{name: a}]"))
}

// An alias brings no key to a port whose owner did not agree.
func TestAliasesHaveTheOwnerOfTheirPort(t *testing.T) {
	b := twoTenants(t)
	const alias = ib.PortGUID(0x0200_0000_0000_0001)
	text := "aliases: [{port: PORT, guids: [0x0200000000000001]}]\npartitions: [{name: a}]"
	b.do(provider, file(strings.Replace(text, "PORT", "0x2", 1)))
	b.do(provider, resource.PutPartition{Partition: resource.Partition{Name: "own", PKey: 0x20}, Members: members(alias)})
	b.has(alias)
	if o := b.Owner(alias); o != "blue" {
		t.Errorf("the alias of blue's port is %q's", o)
	}
	b.do(provider, resource.RemoveMembers{PKey: 0x20, Ports: []ib.PortGUID{alias}})
	b.do(of("blue"), set(0x200, members(alias)))
	b.has(alias, 0x200)
	b.refused(resource.Conflict, provider, file(strings.Replace(text, "PORT", "0x1", 1)))
	b.do(of("blue"), resource.RemoveMembers{PKey: 0x200, Ports: []ib.PortGUID{alias}})
	b.do(provider, file("partitions: [{name: a}]"))
	b.do(provider, resource.AssignPorts{Tenant: "red", Ports: []resource.Port{{GUID: alias}}})
	b.do(of("red"), set(0x100, members(alias)))
	b.has(alias, 0x100)
	// Red's alias on blue's port would bring red's key there.
	b.do(provider, file(strings.Replace(text, "PORT", "0x2", 1)))
	b.has(alias)
}

// What is exported changes nothing where it is applied, and a file that says the same
// as what is in force makes no edit.
func TestExportAppliedChangesNothing(t *testing.T) {
	b := twoTenants(t)
	b.do(provider, file("default: none\ndescriptions: trusted\ngroups: {g: [\"n*\"]}\npartitions: [{name: a, members: {full: [g, 0x9]}, ipoib: true}, {name: b, pkey: 0x33, index0: true, members: {limited: [ALL_CAS]}}]\nservices: [{name: disks, offered_by: [0x9], to: [a, g]}]"))
	b.do(of("red"), set(0x100, members(1)))
	b.do(of("red"), set(0x100, members(2)))
	b.do(of("blue"), set(0x100, members(2)))
	b.do(provider, resource.AssignPool{Tenant: "blue", First: 0x50, Last: 0x60})
	export := resource.PutFile{File: resource.File{Name: "export.yaml", Text: string(b.Export())}}
	d, err := b.plan(provider, export)
	if err != nil || len(d.Edits) != 0 {
		t.Fatalf("%v, %+v\n%s", err, d, export.Text)
	}
	// On an empty store it is all the file's; here, something else of red's is red's.
	b.do(of("red"), resource.RemoveMembers{PKey: 0x100, Ports: []ib.PortGUID{2}})
	b.refused(resource.Exists, provider, export)
	empty := newBench(t)
	empty.do(provider, export)
	empty.has(2, 0x100)
}
