package resource_test

import (
	"encoding/json"
	"flag"
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

// updating is whether the files below testdata are to be written again: the flag of package golden.
func updating() bool { return flag.Lookup("update").Value.String() == "true" }

// town is a state with something of each kind: partitions of red, blue, the provider and the
// file; a member that is agreed, one that is asked for by each side, one of a pool, and one that
// was removed; tokens, pools, a drained switch.
func town(t *testing.T) *bench {
	b := twoTenants(t)
	b.do(provider, file("default: limited\naliases:\n- {port: 0x7, guids: [0x0200000000000107]}\npartitions:\n- {name: storage, pkey: 0x10, members: {full: [0x9]}}\n"))
	b.do(provider, resource.AssignPorts{Tenant: "red", Ports: []resource.Port{{GUID: 3}, {GUID: 7}, {GUID: 4, Switch: 0x51, SwitchPort: 7}}})
	b.do(provider, resource.AssignPool{Tenant: "red", First: 0x1000, Last: 0x1FFF})
	b.do(provider, resource.AssignPool{Tenant: "blue", First: 0x2000, Last: 0x2FFF})
	b.do(provider, resource.PutPartition{Partition: resource.Partition{PKey: 0x50, Name: "own"}})
	b.do(provider, set(0x50, members(8)))
	b.do(of("red"), set(0x100, members(1, 3, 0x1005)))
	b.do(of("blue"), set(0x200, members(2)))
	b.do(of("red"), set(0x100, members(2)))                                                           // red asks blue
	b.do(of("blue"), set(0x200, members(1)))                                                          // and blue asks red
	b.do(of("red"), resource.RemoveMembers{PKey: 0x100, Ports: []ib.PortGUID{3}})                     // and was a member
	b.do(of("red"), resource.PutPartition{Partition: resource.Partition{PKey: 0x101, Name: "empty"}}) // of the bound caller's range
	for _, tenant := range []string{"red", "blue"} {
		b.do(of(tenant), resource.PutToken{Token: resource.Token{ID: "tok-" + tenant, Tenant: tenant, Sum: strings.Repeat(map[string]string{"red": "d", "blue": "e"}[tenant], 64)}})
	}
	b.do(provider, resource.DrainSwitch{Drain: resource.Drain{Switch: 0x51}})
	return b
}

// decisions are changes, each shown to every caller.
func decisions() (list []resource.Change) {
	const red, blue = ib.PKeyBase(0x100), ib.PKeyBase(0x200)
	tenant := func(name string, first, last ib.PKeyBase, change ...func(*resource.Tenant)) resource.PutTenant {
		x := resource.Tenant{Name: name, Keys: resource.KeyRange{First: first, Last: last}}
		for _, c := range change {
			c(&x)
		}
		return resource.PutTenant{Tenant: x}
	}
	for _, c := range []resource.PutTenant{
		tenant("green", 0x300, 0x3FF), tenant("green", 0, 0), tenant("green", 0x3FF, 0x300), tenant("green", 0x300, 0x300), tenant("green", 0x7FFE, 0x7FFE), tenant("green", 0x7FFE, 0x7FFF),
		tenant("green", 0x1FF, 0x1FF), tenant("green", 0x1, 0xFF), tenant("green", 0x60, 0xFF), tenant("green", 0x11, 0x4F), tenant("green", 0x10, 0x10), tenant("green", 0x11, 0x50),
		tenant("red", 0x100, 0x2FF), tenant("red", 0x101, 0x1FF), tenant("red", 0x100, 0x100), tenant("red", 0x100, 0x101), tenant("Green!", 0x300, 0x3FF), tenant("", 0x300, 0x3FF), tenant(resource.Provider, 0x300, 0x3FF), tenant(resource.Provider, 0, 0),
		tenant("red", 0x100, 0x1FF, func(x *resource.Tenant) { x.Quota.Partitions = -1 }), tenant("red", 0x100, 0x1FF, func(x *resource.Tenant) { x.Quota.Members = 1 }),
		tenant("red", 0x100, 0x1FF, func(x *resource.Tenant) { x.ApproveRemovals, x.KnownPortsOnly = true, true }),
	} {
		list = append(list, c)
	}
	for _, name := range []string{"red", "green", resource.Provider} {
		list = append(list, resource.DeleteTenant{Name: name})
	}
	part := func(k ib.PKeyBase, name, owner string, change ...func(*resource.Partition)) resource.PutPartition {
		x := resource.Partition{PKey: k, Name: name, Owner: owner}
		for _, c := range change {
			c(&x)
		}
		return resource.PutPartition{Partition: x}
	}
	for _, c := range []resource.PutPartition{
		part(0, "fresh", ""), part(0x102, "fresh", ""), part(0x102, "training", ""), part(0x102, "storage", ""), part(0x102, "own", ""), part(0x102, "", ""), part(0x102, "a/b", ""), part(0x102, "x\n", ""), part(0x102, "fresh", "blue"),
		part(0x102, "fresh", "red"), part(0x102, "fresh", "green"), part(0x10, "fresh", ""), part(0x51, "fresh", ""), part(0x7FFF, "fresh", ""), part(red, "training", ""), part(red, "other", ""), part(red, "other", "blue"), part(blue, "mine", ""), part(0x8100, "fresh", ""),
		part(0x102, "fresh", "", func(p *resource.Partition) { p.SL = 15 }), part(0x102, "fresh", "", func(p *resource.Partition) { p.SL = 16 }), part(0x102, "fresh", "", func(p *resource.Partition) { p.MTU = 99 }),
		part(0x102, "fresh", "", func(p *resource.Partition) { p.Rate = 1 }), part(0x102, "fresh", "", func(p *resource.Partition) { p.IPoIB, p.MTU, p.Rate = true, ib.MTU4096, 3 }),
		{Partition: resource.Partition{PKey: 0x102, Name: "fresh"}, Members: members(1, 2)}, {Partition: resource.Partition{PKey: 0x102, Name: "fresh"}, Members: members(1, 1)}, {Partition: resource.Partition{PKey: 0x101, Name: "empty"}, Create: true},
	} {
		list = append(list, c)
	}
	for _, k := range []ib.PKeyBase{red, 0x101, blue, 0x50, 0x10, 0x102, 0x7FFF} {
		list = append(list, resource.DeletePartition{PKey: k}, set(k, members(1)), set(k, members(2)), set(k, members(8)), set(k, members(9)), resource.SetMembers{PKey: k, Members: members(1), All: true}, resource.RemoveMembers{PKey: k, Ports: []ib.PortGUID{1, 2}},
			resource.Refuse{PKey: k, Port: 2}, resource.Consent{PKey: k, Port: 2, Membership: policy.Full}, resource.Consent{PKey: k, Port: 1, Membership: policy.Full})
	}
	one := func(change func(*resource.Member)) resource.SetMembers {
		m := resource.Member{Port: 1, Membership: policy.Full}
		change(&m)
		return set(0x101, []resource.Member{m})
	}
	list = append(list,
		one(func(m *resource.Member) { m.Port = 0 }), one(func(m *resource.Member) { m.Membership = 0 }), one(func(m *resource.Member) { m.Membership = 99 }), one(func(m *resource.Member) { m.Membership = policy.Both }), one(func(m *resource.Member) { m.Index0 = true }),
		one(func(m *resource.Member) { m.Host = strings.Repeat("h", resource.HostMax) }), one(func(m *resource.Member) { m.Host = strings.Repeat("h", resource.HostMax+1) }), one(func(m *resource.Member) { m.Host = "a\x1fb" }), one(func(m *resource.Member) { m.Host = "a\x7f" }), one(func(m *resource.Member) { m.Host = "a b" }),
		one(func(m *resource.Member) { m.Port = 3 }), one(func(m *resource.Member) { m.Port = 0x1FFF }), one(func(m *resource.Member) { m.Port = 0x2000 }), one(func(m *resource.Member) { m.Port = 0x0200_0000_0000_0107 }), one(func(m *resource.Member) {
			m.ByPartition, m.ByPort, m.Owner, m.PortOwner, m.Port = true, true, "red", "red", 2
		}),
		set(0x101, nil), set(0x101, members(1, 1)), set(red, members(3)), resource.SetMembers{PKey: red, Members: members(2), NoRequests: true}, resource.SetMembers{PKey: red, All: true}, resource.RemoveMembers{PKey: red}, resource.RemoveMembers{PKey: red, Ports: []ib.PortGUID{3}},
		resource.RemoveMembers{PKey: red, Ports: []ib.PortGUID{1, 2, 0x1005}, DeleteEmptied: true}, resource.Consent{PKey: red, Port: 2, Membership: policy.Limited}, resource.Consent{PKey: red, Port: 2, Membership: policy.Full, Index0: true}, resource.Consent{PKey: red, Port: 99, Membership: policy.Full}, resource.Refuse{PKey: red, Port: 99}, resource.Refuse{PKey: red, Port: 1},
	)
	assign := func(tenant string, ports ...resource.Port) resource.AssignPorts {
		return resource.AssignPorts{Tenant: tenant, Ports: ports}
	}
	list = append(list,
		assign("red", resource.Port{GUID: 6}), assign("green", resource.Port{GUID: 6}), assign("", resource.Port{GUID: 6}), assign(resource.Provider, resource.Port{GUID: 6}), assign("red"), assign("red", resource.Port{}), assign("red", resource.Port{GUID: 6}, resource.Port{GUID: 6}), assign("red", resource.Port{GUID: 1}),
		assign("blue", resource.Port{GUID: 1}), assign("red", resource.Port{GUID: 8}), assign("red", resource.Port{GUID: 9}), assign("red", resource.Port{GUID: 0x0200_0000_0000_0107}), assign("blue", resource.Port{GUID: 0x1006}), assign("blue", resource.Port{GUID: 0x1005}), assign("red", resource.Port{GUID: 6, Switch: 0x51, SwitchPort: 7}),
		assign("red", resource.Port{GUID: 6, Switch: 0x51, SwitchPort: 8}), assign("red", resource.Port{GUID: 6, Switch: 0x51}), assign("red", resource.Port{GUID: 6, SwitchPort: 3}), assign("red", resource.Port{GUID: 6, Switch: 0x51, SwitchPort: 254}), assign("red", resource.Port{GUID: 6, Switch: 0x51, SwitchPort: 255}), assign("red", resource.Port{GUID: 4}),
		resource.ReleasePorts{Ports: []ib.PortGUID{1}}, resource.ReleasePorts{Ports: []ib.PortGUID{2, 4}}, resource.ReleasePorts{Ports: []ib.PortGUID{6}}, resource.ReleasePorts{}, resource.ReleasePorts{Ports: []ib.PortGUID{0x1005}},
		resource.MovePorts{Tenant: "blue", Ports: []ib.PortGUID{1, 0x1005}, Into: into(0x200)}, resource.MovePorts{Tenant: "red", Ports: []ib.PortGUID{1}, Into: into(0x100)}, resource.MovePorts{Tenant: resource.Provider, Ports: []ib.PortGUID{2}, Into: into(0x50)},
		resource.OfferPorts{Tenant: "blue", Ports: []ib.PortGUID{1, 0x1005}}, resource.OfferPorts{Tenant: "red", Ports: []ib.PortGUID{1}}, resource.OfferPorts{Tenant: resource.Provider, Ports: []ib.PortGUID{2}}, resource.OfferPorts{Tenant: "none", Ports: []ib.PortGUID{1}}, resource.OfferPorts{Tenant: "red", Ports: []ib.PortGUID{9}}, resource.OfferPorts{Tenant: "blue"},
	)
	pool := func(tenant string, first, last ib.PortGUID) resource.AssignPool {
		return resource.AssignPool{Tenant: tenant, First: first, Last: last}
	}
	list = append(list,
		pool("red", 0x3000, 0x3FFF), pool("red", 0x3FFF, 0x3000), pool("red", 0, 0x3000), pool("green", 0x3000, 0x3FFF), pool(resource.Provider, 0x3000, 0x3FFF), pool("red", 0x1000, 0x1FFF), pool("blue", 0x1000, 0x1FFF), pool("red", 0x1800, 0x1900), pool("blue", 0xFFF, 0x1000), pool("blue", 0x5, 0x6),
		pool("blue", 0x1, 0x6), pool("red", 0x1, 0x1), pool("red", 0x8, 0x8), pool("red", 0x9, 0x9), pool("red", 0x0200_0000_0000_0100, 0x0200_0000_0000_0107), pool("blue", 0x7, 0x7), resource.ReleasePool{First: 0x1000}, resource.ReleasePool{First: 0x2000}, resource.ReleasePool{First: 0x1001},
	)
	token := func(change ...func(*resource.Token)) resource.PutToken {
		x := resource.Token{ID: "tok-new", Tenant: "red", Sum: strings.Repeat("a", 64)}
		for _, c := range change {
			c(&x)
		}
		return resource.PutToken{Token: x}
	}
	for _, change := range []func(*resource.Token){
		func(*resource.Token) {}, func(x *resource.Token) { x.Tenant = "blue" }, func(x *resource.Token) { x.Tenant = "green" }, func(x *resource.Token) { x.Tenant = "" }, func(x *resource.Token) { x.Tenant = resource.Provider }, func(x *resource.Token) { x.ID = "tok-red" }, func(x *resource.Token) { x.ID = "" },
		func(x *resource.Token) { x.ID = "a b" }, func(x *resource.Token) { x.Sum = "" }, func(x *resource.Token) { x.Sum = strings.Repeat("A", 64) }, func(x *resource.Token) { x.Sum = strings.Repeat("d", 64) }, func(x *resource.Token) { x.Note = strings.Repeat("n", resource.NoteMax) },
		func(x *resource.Token) { x.Note = strings.Repeat("n", resource.NoteMax+1) }, func(x *resource.Token) { x.Note = "a\x1b" }, func(x *resource.Token) { x.Keys = resource.KeyRange{First: 0x100, Last: 0x10F} }, func(x *resource.Token) { x.Keys = resource.KeyRange{First: 0x10F, Last: 0x100} },
		func(x *resource.Token) { x.Keys = resource.KeyRange{First: 0x100, Last: 0x200} }, func(x *resource.Token) { x.ReadOnly = true }, func(x *resource.Token) { x.Expires = time.Unix(1e9+1, 0) }, func(x *resource.Token) { x.Expires = time.Unix(1e9, 0) },
	} {
		list = append(list, token(change))
	}
	for _, id := range []string{"tok-red", "tok-blue", "tok-gone", ""} {
		list = append(list, resource.DeleteToken{ID: id})
	}
	for _, at := range []ib.NodeGUID{0x51, 0x52, 0} {
		list = append(list, resource.DrainSwitch{Drain: resource.Drain{Switch: at}}, resource.UndrainSwitch{Switch: at})
	}
	list = append(list, resource.AcknowledgeAlarm{Alarm: "0123456789abcdef", Title: "leaf", Until: time.Unix(1e9+60, 0).UTC()}, resource.AcknowledgeAlarm{Alarm: "0123456789abcdef"})
	for _, text := range []string{"default: limited\n", "default: limited\npartitions:\n- {name: training, pkey: 0x11}\n", "default: limited\npartitions:\n- {name: x, pkey: 0x100}\n", "default: limited\npartitions:\n- {name: x, pkey: 0x150}\n", "default: limited\npartitions:\n- {name: x, pkey: 0x11, members: {full: [0x1]}}\n",
		"default: limited\npartitions:\n- {name: x, pkey: 0x11, members: {full: [0x1006]}}\n", "default: limited\npartitions:\n- {name: x, pkey: 0x50}\n", "nonsense: 1\n"} {
		list = append(list, file(text))
	}
	return list
}

// TestWhoMayDoWhat: what comes of each change for each kind of caller, in a state that has
// something of each kind. testdata/decisions.txt has all of it: go test -update writes it, and the
// difference is to be read.
func TestWhoMayDoWhat(t *testing.T) {
	b := town(t)
	bound, reader, nobody, unknown := of("red"), of("red"), provider, of("green")
	bound.Keys, reader.ReadOnly, nobody.Name = resource.KeyRange{First: 0x101, Last: 0x10F}, true, ""
	callers := []struct {
		name string
		by   resource.Caller
	}{{"provider", provider}, {"red", of("red")}, {"blue", of("blue")}, {"bound", bound}}
	var out strings.Builder
	for _, c := range decisions() {
		data, err := json.Marshal(c)
		if err != nil {
			data = fmt.Appendf(nil, "%+v", c) // of a membership that cannot be
		}
		fmt.Fprintf(&out, "%s %.300s\n", c.Action(), data)
		b.refused(resource.Forbidden, reader, c)
		b.refused(resource.Forbidden, unknown, c)
		b.refused(resource.Invalid, nobody, c)
		who, order := map[string][]string{}, []string{}
		for _, x := range callers {
			d, err := b.plan(x.by, c)
			text := ""
			if err != nil {
				text = strings.NewReplacer(x.by.Name+" ", "CALLER ", x.by.Tenant, "TENANT").Replace(fmt.Sprintf("refused: %v", err))
				if r, is := err.(*resource.Refusal); is {
					text = fmt.Sprintf("%s, %s: %s", text[:7], r.Reason, text[9:])
				}
			} else {
				for _, e := range d.Edits {
					text += "\n    " + edited(e)
				}
				for _, words := range d.Words {
					text += "\n    " + words
				}
			}
			if who[text] == nil {
				order = append(order, text)
			}
			who[text] = append(who[text], x.name)
		}
		for _, text := range order {
			fmt.Fprintf(&out, "  %s: %s\n", strings.Join(who[text], ", "), text)
		}
	}
	path := filepath.Join("testdata", "decisions.txt")
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

// edited says which object an edit makes, changes or removes.
func edited(e resource.Edit) string {
	switch {
	case e.Before == nil:
		return "+ " + e.Key
	case e.After == nil:
		return "- " + e.Key
	}
	return "= " + e.Key
}
