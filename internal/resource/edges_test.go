package resource_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// edge is one request in a state that was made for it.
type edge struct {
	name    string
	before  func(b *bench)
	by      resource.Caller
	change  resource.Change
	request func(*resource.Request)
}

// many are as many of one thing as a limit is about, and more.
func many[T any](n int, x T) []T {
	list := make([]T, n)
	for i := range list {
		list[i] = x
	}
	return list
}

func redTenant(change func(*resource.Tenant)) resource.PutTenant {
	x := resource.Tenant{Name: "red", Keys: resource.KeyRange{First: 0x100, Last: 0x1FF}}
	change(&x)
	return resource.PutTenant{Tenant: x}
}

func partitionOf(k ib.PKeyBase, name, owner string) resource.PutPartition {
	return resource.PutPartition{Partition: resource.Partition{PKey: k, Name: name, Owner: owner}}
}

func ofBulk() (list []edge) {
	for _, n := range []int{resource.BulkMax, resource.BulkMax + 1} {
		for _, c := range []resource.Change{
			set(0x100, many(n, members(1)[0])), resource.RemoveMembers{PKey: 0x100, Ports: many(n, ib.PortGUID(1))},
			resource.AssignPorts{Tenant: "red", Ports: many(n, resource.Port{GUID: 1})}, resource.ReleasePorts{Ports: many(n, ib.PortGUID(9))},
		} {
			by := of("red")
			if c.Action() == "assign ports" || c.Action() == "release ports" {
				by = provider
			}
			list = append(list, edge{fmt.Sprintf("%d at once", n), nil, by, c, nil})
		}
	}
	for _, n := range []int{resource.TokensMax - 1, resource.TokensMax} {
		list = append(list, edge{fmt.Sprintf("with %d tokens", n), func(b *bench) {
			for i := range n {
				b.restore(&resource.Token{ID: fmt.Sprint("t", i), Tenant: "red", Sum: fmt.Sprintf("%064x", i)})
			}
		}, of("red"), resource.PutToken{Token: resource.Token{ID: "last", Tenant: "red", Sum: strings.Repeat("a", 64)}}, nil})
	}
	for _, n := range []int{resource.DrainsMax - 1, resource.DrainsMax} {
		drains := func(b *bench) {
			for i := range n {
				b.restore(&resource.Drain{Switch: ib.NodeGUID(0x100 + i)})
			}
		}
		for _, at := range []ib.NodeGUID{0x51, 0x100} {
			list = append(list, edge{fmt.Sprintf("with %d drained switches", n), drains, provider, resource.DrainSwitch{Drain: resource.Drain{Switch: at}}, nil})
		}
	}
	// Requests that wait for others: who is beyond the limit already may do what adds none.
	for _, n := range []int{resource.RequestsMax - 1, resource.RequestsMax, resource.RequestsMax + 5} {
		asked := func(b *bench) {
			for i := range n {
				b.restore(&resource.Member{PKey: 0x100, Port: ib.PortGUID(0x9000 + i), Membership: policy.Full, ByPartition: true, Owner: "red", PortOwner: resource.Provider})
			}
		}
		for _, g := range []ib.PortGUID{1, 2} {
			list = append(list, edge{fmt.Sprintf("with %d requests", n), asked, of("red"), set(0x100, members(g)), nil})
		}
	}
	list = append(list, edge{"the provider's requests have no such limit", func(b *bench) {
		b.do(provider, partitionOf(0x50, "own", ""))
		for i := range resource.RequestsMax + 5 {
			b.restore(&resource.Member{PKey: 0x50, Port: ib.PortGUID(0x9000 + i), Membership: policy.Full, ByPartition: true, Owner: resource.Provider, PortOwner: "red"})
		}
	}, provider, set(0x50, members(2)), nil})
	return list
}

// restore enters an object as if it had always been there.
func (b *bench) restore(o resource.Object) {
	b.Helper()
	if err := b.Restore(o, b.Last()); err != nil {
		b.Fatal(err)
	}
}

// ofSecondPerson are changes of a tenant that has its removals approved: what takes something
// away waits, and nothing else does.
func ofSecondPerson() (list []edge) {
	careful := func(more ...func(*bench)) func(*bench) {
		return func(b *bench) {
			b.do(provider, redTenant(func(x *resource.Tenant) { x.ApproveRemovals = true }))
			for _, f := range more {
				f(b)
			}
		}
	}
	has := func(list []resource.Member) func(*bench) {
		return func(b *bench) { b.do(of("red"), set(0x100, list)) }
	}
	renamed := resource.Member{Port: 1, Membership: policy.Full, Host: "h"}
	unwritten := set(0x100, []resource.Member{{Port: 1, Membership: policy.Limited, Asked: resource.Ask{Membership: 99}}})
	list = append(list,
		edge{"more waits for nobody", careful(has(limited(1))), of("red"), set(0x100, members(1)), nil},
		edge{"less waits", careful(has(members(1))), of("red"), set(0x100, limited(1)), nil},
		edge{"another name waits for nobody", careful(has(members(1))), of("red"), set(0x100, []resource.Member{renamed}), nil},
		edge{"less of what is only asked for waits for nobody", careful(has(members(2))), of("red"), set(0x100, limited(2)), nil},
		edge{"what cannot be kept is not done", careful(has(members(1))), of("red"), unwritten, nil},
		edge{"a tenant stops to ask a second person: the provider may do that to him", careful(), provider, redTenant(func(*resource.Tenant) {}), nil},
		edge{"the provider does not lift alone what binds him", func(b *bench) {
			b.do(provider, resource.PutTenant{Tenant: resource.Tenant{Name: resource.Provider, ApproveRemovals: true}})
		}, provider, resource.PutTenant{Tenant: resource.Tenant{Name: resource.Provider}}, nil},
		edge{"but he does what binds other tenants", func(b *bench) {
			b.do(provider, resource.PutTenant{Tenant: resource.Tenant{Name: resource.Provider, ApproveRemovals: true}})
			b.do(provider, redTenant(func(x *resource.Tenant) { x.ApproveRemovals = true }))
		}, provider, redTenant(func(*resource.Tenant) {}), nil},
	)
	wait := func(n, size int) func(*bench) {
		return careful(has(members(1)), func(b *bench) {
			for i := range n {
				b.restore(&resource.Approval{ID: fmt.Sprint("w", i), Tenant: "red", By: "red-9", Change: []byte(`"` + strings.Repeat("x", size-2) + `"`), Expires: b.at.Add(time.Hour)})
			}
			b.restore(&resource.Approval{ID: "other", Tenant: "blue", Change: []byte(`"` + strings.Repeat("x", size) + `"`)})
		})
	}
	remove := resource.RemoveMembers{PKey: 0x100, Ports: []ib.PortGUID{1}}
	own := len(`{"action":"remove members","fields":{"pkey":"0x0100","ports":["0x0000000000000001"]}}`)
	list = append(list,
		edge{"one less than may wait", wait(resource.ApprovalsMax-1, 2), of("red"), remove, nil},
		edge{"as many as may wait", wait(resource.ApprovalsMax, 2), of("red"), remove, nil},
		edge{"as long as may wait together", wait(1, resource.ApprovalSizeMax-own), of("red"), remove, nil},
		edge{"one byte longer than may wait together", wait(1, resource.ApprovalSizeMax-own+1), of("red"), remove, nil},
		edge{"a name that another has", wait(1, 2), of("red"), remove, func(r *resource.Request) { r.ID = "w0" }},
	)
	// What waits was planned on what there was.
	held := func(c resource.Change, then ...resource.Change) func(*bench) {
		return careful(has(members(1)), func(b *bench) {
			d, err := b.Plan(resource.Request{Change: c, By: of("red"), At: b.at, Seen: resource.Unseen, Proved: b.Last(), ID: "w"})
			if err != nil || d.Approval() == nil {
				b.Fatalf("%s: %v, %v", c.Action(), d.Words, err)
			}
			b.Commit(d, b.Last()+1, of("red"), b.at)
			for _, c := range then {
				b.do(of("red"), c)
			}
		})
	}
	second := resource.Caller{Name: "red-2", Tenant: "red"}
	approve := resource.Approve{ID: "w"}
	more := set(0x100, []resource.Member{{Port: 1, Membership: policy.Full, Host: "new"}})
	named := partitionOf(0x100, "renamed", "")
	for _, c := range []resource.Change{
		remove, set(0x100, limited(1)), resource.SetMembers{PKey: 0x100, All: true}, resource.DeletePartition{PKey: 0x100},
		resource.AmendPartition{PKey: 0x100, Remove: []ib.PortGUID{1}, Empty: true},
	} {
		list = append(list, edge{"nothing changed", held(c), second, approve, nil}, edge{"the member changed", held(c, more), second, approve, nil}, edge{"the partition changed", held(c, named), second, approve, nil})
	}
	list = append(list,
		edge{"a change that is none", careful(func(b *bench) {
			b.restore(&resource.Approval{ID: "w", Tenant: "red", By: "x", Change: []byte(`{"action":"nothing"}`), Expires: b.at.Add(1)})
		}), second, approve, nil},
		edge{"a change that cannot wait", careful(func(b *bench) {
			b.restore(&resource.Approval{ID: "w", Tenant: "red", By: "x", Change: []byte(`{"action":"approve","fields":{"id":"w"}}`), Expires: b.at.Add(1)})
		}), second, approve, nil},
	)
	// Who made the token of whoever asked is no second person, nor who answers for it.
	for _, by := range []string{"red-1", "made", "red-2"} {
		list = append(list, edge{"asked for by a token of red-1, approved by " + by, careful(has(members(1)), func(b *bench) {
			b.do(of("red"), resource.PutToken{Token: resource.Token{ID: "made", Tenant: "red", Sum: strings.Repeat("c", 64)}})
			d, err := b.Plan(resource.Request{Change: remove, By: resource.Caller{Name: "made", Tenant: "red"}, At: b.at, Seen: resource.Unseen, Proved: b.Last(), ID: "w"})
			if err != nil {
				b.Fatal(err)
			}
			b.Commit(d, b.Last()+1, of("red"), b.at)
		}), resource.Caller{Name: by, Tenant: "red"}, approve, nil})
	}
	return list
}

// ofFiles are policy files over one another, by a provider whose removals are approved.
func ofFiles() (list []edge) {
	had := "default: limited\ngroups: {g: [0xA]}\npartitions:\n- {name: a, pkey: 0x10, members: {full: [0x9], limited: [0x8]}}\n- {name: b, pkey: 0x11}\n"
	careful := func(b *bench) {
		b.do(provider, file(had))
		b.do(provider, resource.PutTenant{Tenant: resource.Tenant{Name: resource.Provider, ApproveRemovals: true}})
	}
	for _, x := range [][3]string{
		{"more", "0x8]}}", "0x8, 0xB]}}"}, {"a member less", "limited: [0x8]", "limited: []"}, {"a membership less", "full: [0x9], limited: [0x8]", "limited: [0x8, 0x9]"}, {"a membership more", "limited: [0x8]", "full: [0x8]"},
		{"a partition less", "- {name: b, pkey: 0x11}\n", ""}, {"another name", "name: b", "name: c"}, {"default none", "limited\n", "none\n"}, {"default full", "limited\n", "full\n"}, {"another group", "[0xA]", "[0xB]"}, {"a group by another name", "g: ", "h: "}, {"a second group", "[0xA]}", "[0xA], h: [0xB]}"},
	} {
		text := strings.Replace(had, x[1], x[2], 1)
		if x[1] == "limited: [0x8]" && x[2] == "full: [0x8]" {
			text = strings.Replace(had, "full: [0x9], limited: [0x8]", "full: [0x9, 0x8]", 1)
		}
		list = append(list, edge{"a file with " + x[0], careful, provider, file(text), nil})
	}
	list = append(list, edge{"default limited after full", func(b *bench) {
		b.do(provider, file("default: full\n"))
		b.do(provider, resource.PutTenant{Tenant: resource.Tenant{Name: resource.Provider, ApproveRemovals: true}})
	}, provider, file("default: limited\n"), nil})
	own := func(change func(*resource.PutPartition)) func(*bench) {
		return func(b *bench) {
			c := partitionOf(0x50, "own", "")
			c.Members = members(9)
			change(&c)
			b.do(provider, c)
		}
	}
	const same = "partitions: [{name: own, pkey: 0x50, may_be_absent: true, members: {full: [0x9]}}]\n"
	for _, x := range []struct {
		name   string
		change func(*resource.PutPartition)
	}{
		{"just so", func(*resource.PutPartition) {}}, {"of another name", func(c *resource.PutPartition) { c.Name = "other" }}, {"of another number", func(c *resource.PutPartition) { c.PKey = 0x51 }},
		{"of another level", func(c *resource.PutPartition) { c.SL = 3 }}, {"with IP", func(c *resource.PutPartition) { c.IPoIB = true }}, {"with another member", func(c *resource.PutPartition) { c.Members = members(8) }},
		{"with one more member", func(c *resource.PutPartition) { c.Members = members(8, 9) }}, {"with a limited member", func(c *resource.PutPartition) { c.Members = limited(9) }}, {"without members", func(c *resource.PutPartition) { c.Members = nil }},
	} {
		list = append(list, edge{"a partition of the API that is " + x.name, own(x.change), provider, file(same), nil})
	}
	list = append(list,
		edge{"with IP in both", own(func(c *resource.PutPartition) { c.IPoIB = true }), provider, file(strings.Replace(same, "may_be_absent", "ipoib: true, may_be_absent", 1)), nil},
		edge{"with IP in both, at another rate", own(func(c *resource.PutPartition) { c.IPoIB, c.Rate = true, 2 }), provider, file(strings.Replace(same, "may_be_absent", "ipoib: true, may_be_absent", 1)), nil},
		edge{"no number is left", func(b *bench) {
			b.do(provider, redTenant(func(x *resource.Tenant) { x.Keys = resource.KeyRange{First: 1, Last: 0x1FF} }))
			b.do(provider, resource.PutTenant{Tenant: resource.Tenant{Name: "green", Keys: resource.KeyRange{First: 0x300, Last: 0x7FFE}}})
		}, provider, file("partitions: [{name: a}]\n"), nil},
		edge{"a port between two owners", func(b *bench) { b.do(provider, resource.ReleasePorts{Ports: []ib.PortGUID{1}}) }, provider, file("partitions: [{name: a, members: {full: [0x1, 0x2]}}]\n"), nil},
		edge{"a number that was given up and not proved", func(b *bench) {
			b.do(of("red"), set(0x100, members(1)))
			b.do(of("red"), resource.DeletePartition{PKey: 0x100})
			b.do(provider, redTenant(func(x *resource.Tenant) { x.Keys = resource.KeyRange{First: 0x110, Last: 0x1FF} }))
		}, provider, file("partitions: [{name: a, pkey: 0x100}]\n"), func(r *resource.Request) { r.Proved = 1 }},
		edge{"an alias of a member that gets another owner", func(b *bench) {
			b.do(provider, file("aliases: [{port: 0x1, guids: [0x0200000000000001]}]\n"))
			b.do(of("red"), set(0x100, members(0x0200_0000_0000_0001)))
		}, provider, file("aliases: [{port: 0x2, guids: [0x0200000000000001]}]\n"), nil},
		edge{"an alias of a member that is none any more", func(b *bench) {
			b.do(provider, file("aliases: [{port: 0x1, guids: [0x0200000000000001]}]\n"))
			b.do(of("red"), set(0x100, members(0x0200_0000_0000_0001)))
		}, provider, file("partitions: []\n"), nil},
		edge{"an alias of a member that gets another port of its owner", func(b *bench) {
			b.do(provider, resource.AssignPorts{Tenant: "red", Ports: []resource.Port{{GUID: 3}}})
			b.do(provider, file("aliases: [{port: 0x1, guids: [0x0200000000000001]}]\n"))
			b.do(of("red"), set(0x100, members(0x0200_0000_0000_0001)))
		}, provider, file("aliases: [{port: 0x3, guids: [0x0200000000000001]}]\n"), nil},
	)
	return list
}

// TestEdges: what comes of requests at the edge of a limit, of a second person's part and of
// what a file may say. testdata/edges.txt has all of it: go test -update writes it, and the
// difference is to be read.
func TestEdges(t *testing.T) {
	var out strings.Builder
	for _, x := range slices.Concat(ofBulk(), ofSecondPerson(), ofFiles(), ofMembers(), ofPorts(), ofRollbacks()) {
		b := twoTenants(t)
		if x.before != nil {
			x.before(b)
		}
		fmt.Fprintf(&out, "%s: %s: %s\n", x.name, x.by.Name, b.follows(x))
	}
	path := filepath.Join("testdata", "edges.txt")
	if updating() {
		if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(out.String(), "\n")); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// follows is what comes of an edge, in one line.
func (b *bench) follows(x edge) string {
	r := resource.Request{Change: x.change, By: x.by, At: b.at, Seen: resource.Unseen, Proved: b.Last()}
	if x.request != nil {
		x.request(&r)
	}
	d, err := b.Plan(r)
	switch refusal, is := err.(*resource.Refusal); {
	case is:
		return fmt.Sprintf("%s: refused, %s: %s", r.Change.Action(), refusal.Reason, strings.Join(strings.Fields(err.Error()), " "))
	case err != nil:
		b.Fatal(err)
	case len(d.Edits) == 0:
		return "nothing to do"
	}
	words := r.Change.Action() + ": " + strings.Join(d.Words[:min(3, len(d.Words))], "; ")
	b.Commit(d, b.Last()+1, r.By, b.at)
	return fmt.Sprintf("%d edits: %s", len(d.Edits), words)
}
