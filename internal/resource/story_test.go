package resource_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// step is one request of a story. Seen is "unseen" unless it is given, Proved the last
// revision.
type step struct {
	by      resource.Caller
	change  resource.Change
	later   time.Duration // after the step before
	request func(*resource.Request)
}

// story goes through approvals, amendments, rollbacks, stale requests, quotas and what is
// forgotten: what decisions.txt, where each change meets the same state, does not have.
func story() (list []step) {
	const red, blue = ib.PKeyBase(0x100), ib.PKeyBase(0x200)
	one, two, other := of("red"), resource.Caller{Name: "red-2", Tenant: "red"}, of("blue")
	bound := of("red")
	bound.Keys = resource.KeyRange{First: 0x101, Last: 0x10F}
	add := func(by resource.Caller, changes ...resource.Change) {
		for _, c := range changes {
			list = append(list, step{by: by, change: c})
		}
	}
	with := func(by resource.Caller, c resource.Change, later time.Duration, request func(*resource.Request)) {
		list = append(list, step{by, c, later, request})
	}
	seen := func(n uint64) func(*resource.Request) { return func(r *resource.Request) { r.Seen = n } }
	proved := func(n uint64) func(*resource.Request) { return func(r *resource.Request) { r.Proved = n } }
	amend := func(k ib.PKeyBase, change func(*resource.AmendPartition)) resource.AmendPartition {
		c := resource.AmendPartition{PKey: k}
		change(&c)
		return c
	}
	remove := func(k ib.PKeyBase, guids ...ib.PortGUID) resource.RemoveMembers {
		return resource.RemoveMembers{PKey: k, Ports: guids}
	}
	yes, sl, mtu, rate := true, ib.SL(3), ib.MTU2048, ib.Rate(3)

	// Amendments.
	for _, by := range []resource.Caller{one, other, bound, provider} {
		add(by, amend(0, func(*resource.AmendPartition) {}), amend(0x7FFF, func(*resource.AmendPartition) {}), amend(0x102, func(*resource.AmendPartition) {}), amend(red, func(*resource.AmendPartition) {}))
	}
	host := func(g ib.PortGUID, name string) resource.Member {
		return resource.Member{Port: g, Membership: policy.Full, Host: name}
	}
	add(one,
		amend(0x102, func(c *resource.AmendPartition) {
			c.Make = &resource.Partition{Name: "made", Owner: "blue", PKey: 0x55}
		}),
		amend(0x102, func(c *resource.AmendPartition) { c.Make = &resource.Partition{Name: "again"} }),
		amend(0x102, func(c *resource.AmendPartition) {
			c.Name, c.IPoIB, c.SL, c.MTU, c.Rate = "named", &yes, &sl, &mtu, &rate
		}),
		amend(0x102, func(c *resource.AmendPartition) { c.Name = "storage" }),
		amend(0x102, func(c *resource.AmendPartition) { c.Name = "training" }),
		amend(0x102, func(c *resource.AmendPartition) {
			c.Set = []resource.Member{host(1, "h1"), host(3, "h1"), host(7, "h2"), host(0x1001, "")}
		}),
		amend(0x102, func(c *resource.AmendPartition) { c.Set = members(2) }),
		amend(0x102, func(c *resource.AmendPartition) {
			c.Set = []resource.Member{{Port: 1, Membership: policy.Full, Index0: true}}
		}),
		amend(0x102, func(c *resource.AmendPartition) { c.Set = []resource.Member{{Port: 1, Membership: policy.Limited}} }),
		amend(0x102, func(c *resource.AmendPartition) { c.Set = members(1, 1) }),
		amend(0x102, func(c *resource.AmendPartition) { c.RemoveHosts = []string{"", "nobody"} }),
		amend(0x102, func(c *resource.AmendPartition) { c.RemoveHosts = []string{"h1"} }),
		amend(0x102, func(c *resource.AmendPartition) { c.Remove = []ib.PortGUID{99} }),
		amend(0x102, func(c *resource.AmendPartition) { c.All, c.Set = true, members(7) }),
		amend(0x102, func(c *resource.AmendPartition) { c.Remove, c.Empty = []ib.PortGUID{8}, true }),
		amend(0x102, func(c *resource.AmendPartition) { c.All = true }),
		amend(0x102, func(c *resource.AmendPartition) { c.Remove, c.Empty = []ib.PortGUID{8}, true }),
		amend(0x102, func(c *resource.AmendPartition) { c.Set = members(7) }),
		amend(0x102, func(c *resource.AmendPartition) { c.Remove, c.Empty = []ib.PortGUID{7}, true }),
	)
	add(other, amend(red, func(c *resource.AmendPartition) { c.Remove = []ib.PortGUID{1} }))

	// Requests between owners.
	index0 := func(g ib.PortGUID, as policy.Membership) []resource.Member {
		return []resource.Member{{Port: g, Membership: as, Index0: true}}
	}
	add(one, resource.Consent{PKey: blue, Port: 1, Membership: policy.Limited}, resource.Consent{PKey: blue, Port: 1, Membership: policy.Full}, set(blue, index0(1, policy.Full)), set(red, index0(1, policy.Full)), set(blue, index0(1, policy.Limited)), set(blue, limited(1)))
	add(other, set(blue, members(1)), set(red, limited(2)), set(red, members(2)), resource.Refuse{PKey: red, Port: 1}, resource.Refuse{PKey: blue, Port: 1})
	add(one, resource.Refuse{PKey: blue, Port: 1}, set(red, limited(2)), set(red, members(2)))
	add(other, resource.Consent{PKey: red, Port: 2, Membership: policy.Full}, set(blue, members(1)))
	add(one, resource.Consent{PKey: blue, Port: 1, Membership: policy.Full})
	add(provider, set(red, members(9)), set(0x50, members(1)), set(blue, index0(1, policy.Full)), resource.Refuse{PKey: 0x50, Port: 1})

	// What the caller has seen.
	for _, n := range []uint64{0, 10, 30, 1000} {
		with(one, set(red, limited(7)), 0, seen(n))
		with(other, set(red, limited(2)), 0, seen(n))
		with(one, resource.PutPartition{Partition: resource.Partition{PKey: red, Name: fmt.Sprint("training", n)}}, 0, seen(n))
		with(one, resource.DeletePartition{PKey: red}, 0, func(r *resource.Request) { r.Seen, r.By.ReadOnly = n, n == 1000 })
	}
	add(one, resource.PutPartition{Partition: resource.Partition{PKey: red, Name: "training"}}, set(red, members(1, 3)))
	add(other, set(red, members(2)))

	// What is known of the fabric.
	fabric := func(t tables) func(*resource.Request) { return func(r *resource.Request) { r.Fabric = t } }
	add(provider, resource.PutTenant{Tenant: resource.Tenant{Name: "red", Keys: resource.KeyRange{First: 0x100, Last: 0x1FF}, KnownPortsOnly: true, Quota: resource.Quota{KeysPerPort: 3, Members: 12, Partitions: 3}}})
	with(one, set(0x101, members(1)), 0, nil)
	with(one, set(0x101, members(1)), 0, fabric(tables{2: 8}))
	with(one, set(0x101, members(1)), 0, fabric(tables{1: 3}))
	with(one, set(0x101, members(1)), 0, fabric(tables{1: 4}))
	with(one, resource.PutPartition{Partition: resource.Partition{PKey: 0x103, Name: "third"}}, 0, nil)
	with(one, resource.PutPartition{Partition: resource.Partition{PKey: 0x104, Name: "fourth"}}, 0, nil)
	with(one, set(0x103, members(1)), 0, fabric(tables{1: 9}))
	with(one, set(0x103, members(3)), 0, fabric(tables{3: 3}))
	with(one, set(0x101, members(3)), 0, fabric(tables{3: 3}))
	with(one, set(0x103, limited(3)), 0, fabric(tables{3: 2}))
	with(one, set(0x103, members(7, 0x1001, 0x1002, 0x1003, 0x1004)), 0, fabric(tables{7: 9, 0x1001: 9, 0x1002: 9, 0x1003: 9, 0x1004: 9}))
	with(one, set(0x103, members(0x1006, 0x1007, 0x1008)), 0, fabric(tables{0x1006: 9, 0x1007: 9, 0x1008: 9}))
	with(one, remove(0x103, 7, 99, 0x1001), 0, nil)
	with(other, remove(0x103, 3), 0, nil)

	// A second person.
	tenant := func(change func(*resource.Tenant)) resource.PutTenant {
		x := resource.Tenant{Name: "red", Keys: resource.KeyRange{First: 0x100, Last: 0x1FF}}
		change(&x)
		return resource.PutTenant{Tenant: x}
	}
	add(provider, tenant(func(x *resource.Tenant) { x.ApproveRemovals = true }))
	named := func(id string) func(*resource.Request) {
		return func(r *resource.Request) { r.ID, r.Why = id, "because" }
	}
	with(one, remove(0x103, 3), 0, nil)
	with(one, remove(0x103, 0x1002), 0, named("held"))
	with(one, remove(0x103, 0x1002), 0, named("held"))
	add(one, resource.Approve{ID: "held"}, resource.Reject{ID: "none"}, resource.Approve{ID: "none"})
	add(other, resource.Approve{ID: "held"}, resource.Reject{ID: "held"})
	with(two, set(0x103, limited(0x1002)), 0, named("less"))
	add(one, resource.Approve{ID: "less"})
	add(two, resource.Approve{ID: "held"})
	with(two, resource.DeletePartition{PKey: 0x103}, 0, named("late"))
	with(one, resource.Approve{ID: "late"}, resource.ApprovalLife, nil)
	add(one, resource.Reject{ID: "late"})
	with(two, resource.DeletePartition{PKey: 0x103}, 0, named("soon"))
	with(one, resource.Approve{ID: "soon"}, resource.ApprovalLife-1, nil)
	add(provider, tenant(func(*resource.Tenant) {}))

	// Tokens that end, and are made by others.
	token := func(id, digit string, expires time.Time) resource.PutToken {
		return resource.PutToken{Token: resource.Token{ID: id, Tenant: "red", Sum: strings.Repeat(digit, 64), Expires: expires}}
	}
	end := time.Unix(1e9, 0).Add(2 * resource.ApprovalLife)
	short := resource.Caller{Name: "t1", Tenant: "red", Expires: end}
	add(one, token("t1", "1", end))
	add(short, token("t2", "2", time.Time{}), token("t2", "2", end.Add(1)), token("t2", "2", end), token("t3", "2", end))
	add(resource.Caller{Name: "t2", Tenant: "red"}, token("t3", "3", end))
	add(provider, token("t4", "4", end))
	add(one, resource.DeleteToken{ID: "t2", KeepMade: true})
	add(other, resource.DeleteToken{ID: "t1"})
	add(one, token("t5", "5", end.Add(-time.Hour)))
	with(provider, resource.Trim{}, resource.ApprovalLife, nil)
	add(one, resource.DeleteToken{ID: "t1"})

	// Rollbacks.
	for _, by := range []resource.Caller{provider, one, other, bound} {
		for _, c := range []resource.Rollback{{To: resource.Unseen}, {To: 1 << 40}, {To: 1, Tenant: "none"}, {To: 1, Tenant: "blue", Target: []resource.Target{}}} {
			add(by, c)
		}
	}
	add(one, back{to: 30}, back{to: 40})
	add(other, back{to: 25}, back{to: 30, tenant: "blue"}, back{to: 30, tenant: "red"})
	add(provider, file("default: limited\npartitions:\n- {name: shop, pkey: 0x11, members: {full: [0x9]}}\n"), back{to: 35, tenant: "red"}, back{to: 28}, back{to: 45})
	with(one, back{to: 30}, 0, seen(3))
	add(provider, file("default: full\npartitions:\n- {name: nodes}\n- {name: more}\n"), file("default: full\npartitions:\n- {name: nodes}\n"), resource.PutPartition{Partition: resource.Partition{Name: "free"}}, back{to: 0, tenant: "blue"}, back{to: 2})

	// What has not been proved yet.
	unproved := proved(0)
	with(provider, resource.ReleasePorts{Ports: []ib.PortGUID{4, 4, 2}}, 0, unproved)
	with(provider, resource.AssignPorts{Tenant: "blue", Ports: []resource.Port{{GUID: 4}}}, 0, unproved)
	with(provider, resource.AssignPorts{Tenant: "blue", Ports: []resource.Port{{GUID: 4}}}, 0, nil)
	with(provider, resource.ReleasePool{First: 0x2000}, 0, unproved)
	with(provider, resource.AssignPool{Tenant: "red", First: 0x2000, Last: 0x2FFF}, 0, unproved)
	with(provider, resource.AssignPool{Tenant: "red", First: 0x2000, Last: 0x2FFE}, 0, nil)
	with(provider, resource.AssignPool{Tenant: "red", First: 0x2001, Last: 0x2FFF}, 0, nil)
	with(provider, resource.AssignPorts{Tenant: "blue", Ports: []resource.Port{{GUID: 0x2005}}}, 0, nil)
	with(provider, resource.AssignPool{Tenant: "red", First: 0x1FFF + 1, Last: 0x2FFF}, 0, nil)
	add(provider, resource.ReleasePool{First: 0x2000}, resource.AssignPool{Tenant: resource.Provider, First: 0x2000, Last: 0x2FFF})

	// Too many in a minute, and what is forgotten in the end.
	quick := func(n int) func(*resource.Request) { return func(r *resource.Request) { r.Refused = n } }
	add(provider, tenant(func(x *resource.Tenant) { x.Quota.ChangesPerMinute = 3 }))
	with(one, set(0x101, members(7)), time.Minute, quick(3))
	with(one, set(0x101, members(7)), 0, quick(2))
	with(one, set(0x101, members(0x1001)), 0, quick(2))
	with(one, set(0x101, members(0x1001)), 0, quick(1))
	with(one, remove(0x101, 0x1001), time.Minute, nil)
	add(one, resource.Trim{})
	with(provider, resource.Trim{}, 0, nil)
	with(provider, resource.Trim{}, resource.RemovedLife, proved(50))
	with(provider, resource.Trim{}, 1, nil)
	add(one, resource.PutPartition{Partition: resource.Partition{Name: "x"}, Members: []resource.Member{}})
	for _, long := range []int{0, 1} {
		with(one, resource.Trim{}, 0, func(r *resource.Request) { r.By.Name = strings.Repeat("n", resource.CallerMax+long) })
		with(one, set(0x101, members(1)), 0, func(r *resource.Request) { r.Why = strings.Repeat("w", resource.WhyMax+long) })
	}
	return list
}

// back is a rollback whose target the test makes of the diffs since.
type back struct {
	resource.Change
	to     uint64
	tenant string
}

func (b back) Action() string { return fmt.Sprintf("roll back to %d of %q", b.to, b.tenant) }

// TestStory: what comes of each request after the other, and what each caller may see of it.
// testdata/story.txt has all of it: go test -update writes it, and the difference is to be read.
func TestStory(t *testing.T) {
	b := town(t)
	var out strings.Builder
	var diffs []resource.Diff // by revision, from the first of the story
	first := b.Last()
	for _, x := range story() {
		b.at = b.at.Add(x.later)
		c := x.change
		r := resource.Request{Change: c, By: x.by, At: b.at, Seen: resource.Unseen, Proved: b.Last()}
		if to, is := c.(back); is {
			var later []resource.Diff
			for n := b.Last(); n > max(to.to, first); n-- {
				later = append(later, diffs[n-first-1])
			}
			r.Change = resource.NewRollback(to.to, to.tenant, later)
		}
		if x.request != nil {
			x.request(&r)
		}
		fmt.Fprintf(&out, "%s: %s %.200s\n", x.by.Name, c.Action(), strings.ReplaceAll(fmt.Sprintf("%v", describe(c)), "\n", " "))
		d, err := b.Plan(r)
		var refusal *resource.Refusal
		switch {
		case errors.As(err, &refusal):
			fmt.Fprintf(&out, "  refused, %s: %s\n", refusal.Reason, strings.ReplaceAll(err.Error(), "\n", " "))
			continue
		case err != nil:
			t.Fatalf("%v is no refusal", err)
		}
		for _, e := range d.Edits {
			fmt.Fprintf(&out, "  %s%s\n", edited(e), seenBy(e))
		}
		for i, words := range d.Words {
			fmt.Fprintf(&out, "  %s [%s]\n", words, d.About[i])
		}
		if len(d.Edits) == 0 {
			continue
		}
		fmt.Fprintf(&out, "  concerns %v\n", b.Touches(d))
		b.Commit(d, b.Last()+1, r.By, b.at)
		diffs = append(diffs, d)
		b.views(&out)
	}
	path := filepath.Join("testdata", "story.txt")
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

// describe is a change in one line, without the target of a rollback.
func describe(c resource.Change) any {
	if _, is := c.(back); is {
		return ""
	}
	data, err := resource.EncodeChange(c)
	if err != nil {
		return err
	}
	return string(data)
}

// views of the state, by tenant: the last revision that each may see of each partition, and
// how many members.
func (b *bench) views(out *strings.Builder) {
	bound := of("red")
	bound.Keys = resource.KeyRange{First: 0x101, Last: 0x10F}
	for _, by := range []resource.Caller{provider, of("red"), of("blue"), bound, of("nobody"), {}} {
		var view []string
		for _, p := range b.Visible(by) {
			members, waiting := b.CountVisible(by, p.PKey)
			shown := 0
			for _, m := range b.Members(p.PKey) {
				if b.SeesMember(by, m) {
					shown++
				}
			}
			if shown != members {
				b.Errorf("%s counts %d members of %v and sees %d", by.Name, members, p.PKey, shown)
			}
			view = append(view, fmt.Sprintf("%v r%d %d/%d", p.PKey, b.TouchedFor(by, p.PKey), members, waiting))
		}
		if len(view) > 0 {
			fmt.Fprintf(out, "    %s%v sees %s\n", by.Tenant, by.Keys, strings.Join(view, ", "))
		}
	}
}

// seenBy is who may see one object as it was, and as it is.
func seenBy(e resource.Edit) string {
	bound := of("red")
	bound.Keys = resource.KeyRange{First: 0x101, Last: 0x10F}
	text := ""
	for _, o := range []resource.Object{e.Before, e.After} {
		if o == nil {
			continue
		}
		var who []string
		for _, by := range []resource.Caller{of("red"), of("blue"), provider} {
			if resource.SeesObject(by, o) {
				who = append(who, by.Tenant)
			}
		}
		if resource.SeesObject(bound, o) {
			who = append(who, "bound")
		}
		text += " " + strings.Join(who, "+")
	}
	return text
}
