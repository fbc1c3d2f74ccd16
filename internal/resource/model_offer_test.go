package resource_test

import (
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// offer is what a tenant may offer to another: its ports, of which nobody said anything since it was
// asked for.
func (a *attempt) offer(c resource.OfferPorts) {
	from := a.by.Tenant
	if !names.MatchString(c.Tenant) || c.Tenant == from || len(c.Ports) == 0 {
		a.no(resource.Invalid)
		return
	}
	for _, g := range c.Ports {
		switch {
		case g == 0:
			a.no(resource.Invalid)
		case a.owner(g) != from:
			a.no(resource.NotFound)
		case c.Tenant != "provider" && a.inFile(g):
			a.no(resource.Conflict)
		}
		a.later(a.portRev(g))
	}
	n := 0
	for _, w := range a.waiting {
		if w.from == from {
			n++
		}
	}
	if n >= 100 {
		a.no(resource.OverQuota)
	}
	a.takes = true
}

// offered enters an offer.
func (a *attempt) offered(c resource.OfferPorts, w waits, id string) {
	w.from, w.tenant, w.expires, w.seen, w.rev = a.by.Tenant, c.Tenant, a.req.At.Add(7*24*time.Hour), resource.Unseen, a.rev
	w.change = resource.MovePorts{Tenant: c.Tenant, Ports: c.Ports}
	a.waiting[id], a.made = w, true
}

// accept moves ports that were offered, as long as they are those of then.
func (a *attempt) accept(w waits, into []resource.Joined) {
	m := w.change.(resource.MovePorts)
	for _, j := range into {
		p := a.find(j.PKey)
		if p == nil || !a.fresh(j.PKey) {
			return
		}
		if p.owner != w.tenant {
			a.no(resource.Conflict)
			return
		}
	}
	for _, g := range m.Ports {
		if a.owner(g) != w.from || a.portRev(g) > w.rev {
			a.no(resource.Stale)
			return
		}
	}
	m.Into = into
	by, seen := a.by, a.req.Seen
	a.by, a.req.Seen = resource.Caller{Name: w.by, Tenant: "provider"}, resource.Unseen
	a.move(m)
	a.by, a.req.Seen = by, seen
}

// offers is an offer that most often could be made, also to a tenant that is not there.
func (c *caller) offers(tenant string) resource.Change {
	x := resource.OfferPorts{Tenant: choose(c.Rand, append([]string{"nobody", tenant}, c.tenantNames...)...)}
	for range 1 + c.IntN(2) {
		x.Ports = append(x.Ports, c.guidFor(tenant))
	}
	if c.IntN(8) == 0 {
		x.Ports = append(x.Ports, c.anyGUID())
	}
	if c.IntN(30) == 0 {
		x.Tenant = "-"
	}
	return x
}

// into are partitions into which a tenant may take what it is offered.
func (c *caller) into(tenant string) (list []resource.Joined) {
	for range c.IntN(3) {
		k := c.partFor(tenant)
		if c.IntN(6) == 0 {
			k = c.keyFor(choose(c.Rand, c.tenantNames...))
		}
		list = append(list, resource.Joined{PKey: k, Membership: choose(c.Rand, policy.Full, policy.Limited), Index0: c.IntN(4) == 0})
	}
	return list
}

// compareWaits compares which changes that wait, and offers, a tenant sees.
func (r *run) compareWaits(step int, by resource.Caller) {
	got, want := []string{}, []string{}
	for _, a := range r.state.Approvals() {
		if resource.SeesObject(by, a) {
			got = append(got, a.ID+" "+a.Tenant+" "+a.From)
		}
	}
	for id, w := range r.model.waiting {
		if waitSeen(by.Tenant, by.Keys, w) {
			want = append(want, id+" "+w.tenant+" "+w.from)
		}
	}
	if got, want = sorted(got), sorted(want); !slices.Equal(got, want) {
		r.Errorf("seed %d, step %d: %s sees %q waiting: the model says %q", r.seed, step, by.Tenant, got, want)
	}
}

// named are the tenants whom a change of a tenant's caller may be told of: whom he names, and who
// offers him ports or is offered some by him.
func (r *run) named(by resource.Caller, c resource.Change) (list []string) {
	id := ""
	switch c := c.(type) {
	case resource.OfferPorts:
		return []string{c.Tenant}
	case resource.Approve:
		id = c.ID
	case resource.Reject:
		id = c.ID
	}
	if w, is := r.model.waiting[id]; is && waitSeen(by.Tenant, by.Keys, w) {
		if offer, held := w.change.(resource.OfferPorts); held {
			return []string{offer.Tenant}
		}
		return []string{w.tenant, w.from}
	}
	return nil
}
