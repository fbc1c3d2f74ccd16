package resource_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// The fabric of the test: ports 1 to knownPorts are cabled to the places of their
// numbers; GUIDs above are not there.
const (
	knownPorts = 12
	tableSize  = 4
)

// caller makes the calls of one run, from what the model knows: most of them could be
// accepted.
type caller struct {
	*rand.Rand
	*model
	tenantNames []string
	serial      int
	released    ib.PortGUID     // the last one
	diffs       []resource.Diff // the last ones, the newest last
}

func choose[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

func (c *caller) anyGUID() ib.PortGUID {
	if c.IntN(60) == 0 {
		return 0
	}
	if c.IntN(3) == 0 {
		return ib.PortGUID(0x30 + c.IntN(8))
	}
	return ib.PortGUID(1 + c.IntN(15))
}

// guidFor is mostly a port of a tenant.
func (c *caller) guidFor(tenant string) ib.PortGUID {
	for range 6 {
		if g := c.anyGUID(); c.owner(g) == tenant && g != 0 {
			return g
		}
	}
	return c.anyGUID()
}

// keyFor is mostly a number that a tenant may have.
func (c *caller) keyFor(tenant string) ib.PKeyBase {
	switch t := c.tenants[tenant]; {
	case c.IntN(15) == 0:
		return ib.PKeyBase(choose(c.Rand, 0, 0x7FFF, 0x7FFE, 0x22, 0x101, 0x205, 0x8001))
	case t.Keys.First != 0:
		return t.Keys.First + ib.PKeyBase(c.IntN(4))
	}
	return ib.PKeyBase(0x18 + c.IntN(4))
}

// partFor is mostly the number of a partition of which the tenant knows.
func (c *caller) partFor(tenant string) ib.PKeyBase {
	var list []ib.PKeyBase
	for _, p := range c.parts {
		if c.sees(tenant, resource.KeyRange{}, p.k) {
			list = append(list, p.k)
		}
	}
	if len(list) == 0 || c.IntN(12) == 0 {
		return c.keyFor(choose(c.Rand, c.tenantNames...))
	}
	return choose(c.Rand, list...)
}

func (c *caller) member(g ib.PortGUID) resource.Member {
	as := policy.Membership(1 + c.IntN(2))
	if c.IntN(40) == 0 {
		as = policy.Membership(choose(c.Rand, 0, 3, 4))
	}
	// What a body says of owners and consents is not to be looked at.
	return resource.Member{Port: g, Membership: as, Index0: c.IntN(5) == 0, ByPartition: true, ByPort: true, Owner: "provider", PortOwner: "provider"}
}

func (c *caller) members(tenant string) []resource.Member {
	list := []resource.Member{}
	for range c.IntN(3) {
		g := c.guidFor(tenant)
		if c.IntN(3) == 0 {
			g = c.anyGUID()
		}
		list = append(list, c.member(g))
	}
	return list
}

// by is who makes the next call.
func (c *caller) by(s *resource.State, at time.Time) resource.Caller {
	tenant := choose(c.Rand, c.tenantNames...)
	if c.IntN(3) == 0 {
		tenant = "provider"
	}
	by := resource.Caller{Name: fmt.Sprintf("CN=%s-%d", tenant, c.IntN(2)), Tenant: tenant, ReadOnly: c.IntN(80) == 0}
	if c.IntN(4) == 0 && len(c.tokens) > 0 {
		var ids []string
		for id := range c.tokens {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		if token, valid := s.CallerOf(sumOf(choose(c.Rand, ids...)), at); valid {
			by = token
		}
	}
	return by
}

func sumOf(id string) string { return fmt.Sprintf("%064x", id) }

func (c *caller) request(s *resource.State, at time.Time) resource.Request {
	c.serial++
	r := resource.Request{By: c.by(s, at), At: at, Seen: resource.Unseen, Proved: c.rev, ID: fmt.Sprint("id", c.serial), Fabric: fabric{}}
	if c.IntN(3) == 0 {
		r.Proved -= min(r.Proved, uint64(c.IntN(12)))
	}
	if c.IntN(3) == 0 {
		r.Seen = c.rev - min(c.rev, uint64(max(0, c.IntN(40)-15)))
	}
	if len(c.waiting) > 0 && c.IntN(8) == 0 {
		// Somebody who could be asked.
		ids := slices.Sorted(maps.Keys(c.waiting))
		if offers := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return c.waiting[id].from == "" }); len(offers) > 0 && c.IntN(2) == 0 {
			ids = offers
		}
		id := choose(c.Rand, ids...)
		for range 8 {
			if r.By.Tenant == c.waiting[id].tenant {
				break
			}
			r.By = c.by(s, at)
		}
		x := resource.Approve{ID: id}
		if c.waiting[id].from != "" || c.IntN(20) == 0 {
			x.Into = c.into(r.By.Tenant)
		}
		r.Change = x
		return r
	}
	n := c.IntN(100)
	if r.By.Tenant == "provider" && n < 45 || c.IntN(25) == 0 {
		r.Change = c.providers()
	} else {
		r.Change = c.change(r.By.Tenant, n)
	}
	return r
}

func (c *caller) change(tenant string, n int) resource.Change {
	k := c.partFor(tenant)
	switch {
	case n < 12:
		owner := ""
		if c.IntN(6) == 0 {
			owner = choose(c.Rand, append([]string{"nobody"}, c.tenantNames...)...)
		}
		p := resource.PutPartition{Partition: resource.Partition{PKey: c.keyFor(tenant), Owner: owner, Name: choose(c.Rand, "p1", "p2", "p3", "p4", "f1", "default", "-"), SL: ib.SL(c.IntN(17)), IPoIB: c.IntN(2) == 0}, Create: c.IntN(3) == 0}
		if c.IntN(2) == 0 {
			p.Members = c.members(tenant)
		}
		return p
	case n < 16:
		return resource.DeletePartition{PKey: k}
	case n < 33:
		return resource.SetMembers{PKey: k, Members: c.members(tenant), All: c.IntN(5) == 0, NoRequests: c.IntN(8) == 0}
	case n < 40:
		return c.offers(tenant)
	case n < 44:
		return c.amend(tenant)
	case n < 52:
		return resource.SetMembers{PKey: k, Members: []resource.Member{c.member(c.guidFor(tenant))}}
	case n < 60:
		x := resource.RemoveMembers{PKey: k, DeleteEmptied: c.IntN(3) == 0}
		for _, m := range c.mems {
			if m.k == k && c.IntN(2) == 0 {
				x.Ports = append(x.Ports, m.port)
			}
		}
		return x
	case n < 76:
		return c.answer(tenant)
	case n < 81:
		t := resource.Token{ID: fmt.Sprint("t", c.IntN(60)), Tenant: tenant}
		if c.IntN(5) == 0 {
			t.Tenant = choose(c.Rand, c.tenantNames...)
		}
		if t.Sum = sumOf(t.ID); c.IntN(4) == 0 {
			t.Keys = resource.KeyRange{First: c.keyFor(tenant) & 0x7FFF, Last: 0x7FFF}
			if t.Keys.First == 0 {
				t.Keys = resource.KeyRange{}
			}
		}
		if c.IntN(3) == 0 {
			t.Expires = time.Unix(1e9, 0).Add(time.Duration(c.IntN(40)) * 24 * time.Hour)
		}
		return resource.PutToken{Token: t}
	case n < 83:
		ids := []string{"none"}
		for id, t := range c.tokens {
			if t.tenant == tenant || c.IntN(6) == 0 {
				ids = append(ids, id)
			}
		}
		slices.Sort(ids)
		return resource.DeleteToken{ID: choose(c.Rand, ids...), KeepMade: c.IntN(3) == 0}
	case n < 94:
		ids := []string{"none"}
		for id := range c.waiting {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		if c.IntN(4) == 0 {
			return resource.Reject{ID: choose(c.Rand, ids...)}
		}
		return resource.Approve{ID: choose(c.Rand, ids...)}
	case n < 96:
		x := resource.AcknowledgeAlarm{Alarm: choose(c.Rand, "0123456789abcdef", "fedcba9876543210", "short"), Title: "leaf-1", Note: "a fan"}
		if c.IntN(4) > 0 {
			x.Until = time.Unix(1e9, 0).Add(time.Duration(c.IntN(120)) * 24 * time.Hour)
		}
		return x
	}
	var later []resource.Diff
	back := c.IntN(len(c.diffs) + 1)
	for i := range back {
		later = append(later, c.diffs[len(c.diffs)-1-i])
	}
	whose := ""
	if c.IntN(2) == 0 {
		whose = choose(c.Rand, append([]string{tenant, tenant}, c.tenantNames...)...)
	}
	r := resource.NewRollback(c.rev-uint64(back), whose, later)
	r.Owners = whose == "" && c.IntN(2) == 0 || c.IntN(20) == 0
	return r
}

// answer consents to what waits for a tenant, or refuses it.
func (c *caller) answer(tenant string) resource.Change {
	list := c.waitsFor(tenant)
	if len(list) == 0 || c.IntN(10) == 0 {
		list = append(list, slot{c.partFor(tenant), c.anyGUID()})
	}
	at := choose(c.Rand, list...)
	if c.IntN(4) == 0 {
		return resource.Refuse{PKey: at.k, Port: at.g}
	}
	x := resource.Consent{PKey: at.k, Port: at.g, Membership: policy.Full}
	if m := c.mem(at.k, at.g); m != nil && c.IntN(8) > 0 {
		x.Membership, x.Index0 = m.ask.as, m.ask.index0
	}
	return x
}

func (c *caller) tenant(name string) resource.PutTenant {
	i := slices.Index(c.tenantNames, name)
	t := resource.Tenant{Name: name, ApproveRemovals: c.IntN(4) == 0, KnownPortsOnly: c.IntN(4) == 0}
	t.Quota = resource.Quota{Partitions: choose(c.Rand, 0, 0, 2, 3), Members: choose(c.Rand, 0, 0, 4, 8), KeysPerPort: choose(c.Rand, 0, 0, 1, 2), ChangesPerMinute: choose(c.Rand, 0, 0, 3, 8)}
	if i > 0 { // the first is the provider
		if c.IntN(4) == 0 {
			i = 1 + c.IntN(len(c.tenantNames)-1) // another's, which may have none now
		}
		t.Keys.First = ib.PKeyBase(0x100*i - 0xFF*(i%2))
		t.Keys.Last = t.Keys.First + 3
		if c.IntN(12) == 0 {
			t.Keys.Last += ib.PKeyBase(c.IntN(0x100))
		}
		if c.IntN(8) == 0 {
			t.Keys = resource.KeyRange{}
		}
	} else {
		t.ApproveRemovals = c.IntN(10) == 0
		t.Quota = resource.Quota{KeysPerPort: choose(c.Rand, 0, 3)}
	}
	return resource.PutTenant{Tenant: t}
}

// providers is a change that the provider alone may make.
func (c *caller) providers() resource.Change {
	name := choose(c.Rand, c.tenantNames...)
	if t, exists := c.tenants[name]; (!exists || t.Keys.First == 0) && c.IntN(2) == 0 {
		return c.tenant(name)
	}
	switch n := c.IntN(22); {
	case n < 3:
		return c.tenant(name)
	case n < 4:
		return resource.DeleteTenant{Name: name}
	case n < 7:
		m := resource.MovePorts{Tenant: name}
		for range 1 + c.IntN(2) {
			m.Ports = append(m.Ports, choose(c.Rand, c.anyGUID(), c.released))
		}
		for range c.IntN(3) {
			k := c.partFor(name)
			if c.IntN(6) == 0 {
				k = c.keyFor(choose(c.Rand, c.tenantNames...))
			}
			m.Into = append(m.Into, resource.Joined{PKey: k, Membership: choose(c.Rand, policy.Full, policy.Limited), Index0: c.IntN(4) == 0})
		}
		return m
	case n < 10:
		a := resource.AssignPorts{Tenant: choose(c.Rand, append([]string{name, name, name, name}, "nobody")...)}
		for range 1 + c.IntN(2) {
			p := resource.Port{GUID: c.guidFor("provider")}
			if c.IntN(2) == 0 {
				p.GUID = c.guidFor("")
			}
			if c.IntN(5) == 0 {
				p.GUID = c.released
			}
			if c.IntN(5) == 0 && p.GUID < 0x30 {
				p.Switch, p.SwitchPort = 0x99, ib.PortNum(p.GUID)
				if c.IntN(4) == 0 || p.GUID == 0 {
					p.SwitchPort = ib.PortNum(1 + c.IntN(15))
				}
			}
			a.Ports = append(a.Ports, p)
		}
		return a
	case n < 13:
		c.released = c.anyGUID()
		return resource.ReleasePorts{Ports: []ib.PortGUID{c.released}}
	case n < 15:
		first := ib.PortGUID(0x30 + 4*c.IntN(2))
		return resource.AssignPool{Tenant: name, First: first, Last: first + ib.PortGUID(choose(c.Rand, 3, 3, 3, 5))}
	case n < 16:
		return resource.ReleasePool{First: ib.PortGUID(0x30 + 4*c.IntN(2))}
	case n < 17:
		if c.IntN(2) == 0 {
			return resource.ReturnPorts{}
		}
		return resource.Trim{}
	case n < 18:
		return resource.DrainSwitch{Drain: resource.Drain{Switch: ib.NodeGUID(c.IntN(4)), Name: "spine"}}
	case n < 19:
		return resource.UndrainSwitch{Switch: ib.NodeGUID(c.IntN(4))}
	}
	f := fileSpec{dflt: choose(c.Rand, policy.Limited, policy.Full, policy.None, c.file.dflt, c.file.dflt), parts: []filePart{}}
	for _, p := range []string{"f1", "f2", "f3", "p4"} {
		if c.IntN(3) > 0 && (p != "p4" || c.IntN(8) == 0) {
			x := filePart{name: p, all: c.IntN(2) == 0}
			if c.IntN(2) == 0 {
				x.stated = ib.PKeyBase(0x21 + len(f.parts))
				if c.IntN(12) == 0 {
					x.stated = c.keyFor(name)&0x7FFE | 1
				}
			}
			for i, g := range []ib.PortGUID{c.guidFor("provider"), c.anyGUID()} {
				if g != 0 && c.IntN(2+4*i) == 0 && !slices.Contains(x.guids, g) {
					x.guids = append(x.guids, g)
				}
			}
			f.parts = append(f.parts, x)
		}
	}
	return resource.PutFile{File: resource.File{Name: "p.yaml", Text: f.text()}}
}

type fabric struct{}

func (fabric) TableSize(g ib.PortGUID) (int, bool) { return tableSize, g >= 1 && g <= knownPorts }

// amend is a change as UFM's calls make them.
func (c *caller) amend(tenant string) resource.Change {
	x := resource.AmendPartition{PKey: c.keyFor(tenant), All: c.IntN(5) == 0, Empty: c.IntN(2) == 0}
	if c.IntN(2) == 0 {
		x.Make = &resource.Partition{Name: choose(c.Rand, "p1", "p2", "f1"), Owner: "provider", PKey: 5}
	}
	if c.IntN(3) == 0 {
		x.Name = choose(c.Rand, "p3", "p4", "-")
	}
	if sl := ib.SL(c.IntN(17)); c.IntN(3) == 0 {
		x.SL = &sl
	}
	if c.IntN(2) == 0 {
		x.Set = c.members(tenant)
	}
	for _, m := range c.mems {
		if m.k == x.PKey && c.IntN(3) == 0 {
			x.Remove = append(x.Remove, m.port)
		}
	}
	return x
}
