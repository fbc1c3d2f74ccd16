package resource

import (
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
)

// AssignPorts gives ports to a tenant. Only ports that nobody else has can be given,
// and of which the release by the last owner was proved. What was asked for a port
// under its last owner ends. A port is bound to the place that is given with it, or to
// none.
type AssignPorts struct {
	Tenant string `json:"tenant"`
	Ports  []Port `json:"ports,omitempty"` // GUID, Switch and SwitchPort
}

func (AssignPorts) Action() string { return "assign ports" }

func (c AssignPorts) plan(d *draft) error {
	if err := d.provider(); err != nil {
		return err
	}
	if d.tenants[c.Tenant] == nil {
		return refuse(NotFound, "tenant", "no tenant %q", c.Tenant)
	}
	if len(c.Ports) > BulkMax {
		return refuse(Invalid, "ports", "%d ports: want at most %d in one change", len(c.Ports), BulkMax)
	}
	seen := map[ib.PortGUID]bool{}
	for _, p := range c.Ports {
		if seen[p.GUID] {
			return refuse(Invalid, "ports", "port %v is there twice", p.GUID)
		}
		seen[p.GUID] = true
		if err := d.assign(c.Tenant, p); err != nil {
			return err
		}
	}
	return nil
}

// assign gives one port.
func (d *draft) assign(tenant string, p Port) error {
	old, owner := d.ports[p.GUID], d.Owner(p.GUID)
	n := Port{GUID: p.GUID, Owner: tenant, Switch: p.Switch, SwitchPort: p.SwitchPort}
	switch {
	case p.GUID == 0:
		return refuse(Invalid, "ports", "no GUID")
	case (p.Switch == 0) != (p.SwitchPort == 0):
		return refuse(Invalid, "ports", "%v: a place is a switch and the number of its port, from 1", p.GUID)
	case owner != tenant && owner != Provider && owner != "":
		return refuse(Conflict, "ports", "%v is tenant %s's: release it first", p.GUID, owner)
	case owner == "" && old == nil:
		return refuse(Conflict, "ports", "%v is in a pool between two owners", p.GUID)
	case owner == "" && d.Proved < max(old.Released, d.revisions[old.Key()]):
		return refuse(Conflict, "ports", "%v: its release in revision %d has not been proved on the fabric yet", p.GUID, old.Released)
	}
	if at, taken := d.places[n.place()]; taken && p.Switch != 0 && at != p.GUID {
		return refuse(Exists, "ports", "%v: port %d of switch %v is the place of port %v", p.GUID, p.SwitchPort, p.Switch, at)
	}
	if owner != tenant {
		for _, g := range d.with(p.GUID) {
			if name, named := d.written.named[g]; named && tenant != Provider {
				return refuse(Conflict, "ports", "%v stands in %s of the policy file: take it out of there first", g, name)
			}
		}
		if err := d.endConsents(p.GUID, owner); err != nil {
			return err
		}
	}
	if old != nil && *old == n {
		return nil
	}
	d.put(&n)
	d.say(n.Key(), "port %v is tenant %s's", p.GUID, tenant)
	return nil
}

// endConsents ends what was asked for a port that gets another owner, and for the
// aliases that go with it. What was agreed to has to be ended before.
func (d *draft) endConsents(g ib.PortGUID, owner string) error {
	for _, guid := range d.with(g) {
		for _, k := range d.In(guid) {
			m := d.Member(k, guid)
			if m.Agreed() && owner != "" {
				return refuse(Conflict, "ports", "%v is in partition %v: release it first", guid, k)
			}
			if err := d.dropMember(m); err != nil {
				return err
			}
		}
	}
	return nil
}

// with are a port and those of its aliases that have no owner but the port's.
func (d *draft) with(g ib.PortGUID) []ib.PortGUID {
	list := []ib.PortGUID{g}
	for _, alias := range d.written.aliasesOf[g] {
		if d.ports[alias] == nil && d.pool(alias) == nil {
			list = append(list, alias)
		}
	}
	return list
}

// ReleasePorts takes ports from their owners, and out of all partitions.
type ReleasePorts struct {
	Ports []ib.PortGUID `json:"ports,omitempty"`
}

func (ReleasePorts) Action() string { return "release ports" }

func (c ReleasePorts) plan(d *draft) error {
	if err := d.provider(); err != nil {
		return err
	}
	if len(c.Ports) > BulkMax {
		return refuse(Invalid, "ports", "%d ports: want at most %d in one change", len(c.Ports), BulkMax)
	}
	for _, g := range slices.Compact(slices.Sorted(slices.Values(c.Ports))) {
		owner := d.Owner(g)
		switch name, named := d.written.named[g]; {
		case g == 0:
			return refuse(Invalid, "ports", "no GUID")
		case owner == "":
			continue
		case owner == Provider && named:
			return refuse(Conflict, "ports", "%v stands in %s of the policy file: take it out of there first", g, name)
		}
		for _, guid := range d.with(g) {
			for _, k := range d.In(guid) {
				if err := d.dropMember(d.Member(k, guid)); err != nil {
					return err
				}
			}
		}
		d.put(&Port{GUID: g, Released: d.last + 1})
		d.say(PortKey(g), "port %v is taken from tenant %s", g, owner)
	}
	return nil
}

// ReturnPorts gives ports and pools that were released back to the provider, and with that to
// the policy file, as soon as the release has been proved on the fabric: until then a port
// has no key of the file, since it may still have those of its last owner. What was asked
// for it meanwhile ends, as with any change of the owner. A port in the
// pool of a tenant, which was released by itself, stays the provider's. It returns at most
// TrimMax of them.
type ReturnPorts struct{}

func (ReturnPorts) Action() string { return "return ports" }

func (ReturnPorts) plan(d *draft) error {
	if err := d.provider(); err != nil {
		return err
	}
	for _, o := range d.returnable(d.Proved) {
		switch o := o.(type) {
		case *Port:
			if err := d.endConsents(o.GUID, ""); err != nil {
				return err
			}
			if d.remove(o.Key()); d.Owner(o.GUID) != Provider {
				d.put(&Port{GUID: o.GUID, Owner: Provider})
			}
			d.say(o.Key(), "port %v is the provider's again: the policy file counts for it", o.GUID)
		case *Pool:
			if err := d.endPool(o, true); err != nil {
				return err
			}
			d.remove(o.Key())
			d.say(o.Key(), "the GUIDs %v-%v are the provider's again: the policy file counts for them", o.First, o.Last)
		}
	}
	return nil
}

// Returnable reports whether ReturnPorts would return something, with this as the last
// revision that was proved.
func (s *State) Returnable(proved uint64) bool { return len(s.returnable(proved)) > 0 }

// returnable are the ports and pools between two owners of which the release was proved, in order.
func (s *State) returnable(proved uint64) (list []Object) {
	for _, p := range s.pools {
		if p.Owner == "" && len(list) < TrimMax && max(p.Released, s.revisions[p.Key()]) <= proved {
			list = append(list, p)
		}
	}
	for _, g := range slices.Sorted(maps.Keys(s.portsOf[""])) {
		if p := s.ports[g]; len(list) < TrimMax && max(p.Released, s.revisions[p.Key()]) <= proved {
			list = append(list, p)
		}
	}
	return list
}

// AssignPool gives a range of GUIDs to a tenant. GUIDs in it that the provider spoke
// of one by one stay with their owners.
type AssignPool struct {
	Tenant string      `json:"tenant"`
	First  ib.PortGUID `json:"first"`
	Last   ib.PortGUID `json:"last"`
}

func (AssignPool) Action() string { return "assign pool" }

func (c AssignPool) plan(d *draft) error {
	if err := d.provider(); err != nil {
		return err
	}
	switch {
	case d.tenants[c.Tenant] == nil:
		return refuse(NotFound, "tenant", "no tenant %q", c.Tenant)
	case c.First == 0 || c.Last < c.First:
		return refuse(Invalid, "first", "%v-%v: want a first and a last GUID", c.First, c.Last)
	case len(d.pools) >= PoolsMax:
		return refuse(OverQuota, "", "there are %d pools: want at most %d", len(d.pools), PoolsMax)
	}
	for _, p := range d.pools {
		switch {
		case p.Last < c.First || c.Last < p.First:
			continue
		case p.Owner != "":
			return refuse(Exists, "first", "%v-%v: tenant %s has %v-%v", c.First, c.Last, p.Owner, p.First, p.Last)
		case d.Proved < max(p.Released, d.revisions[p.Key()]):
			return refuse(Conflict, "first", "%v-%v: its release in revision %d has not been proved on the fabric yet", p.First, p.Last, p.Released)
		case p.First < c.First || c.Last < p.Last:
			return refuse(Conflict, "first", "%v-%v was released as a whole: want all of it", p.First, p.Last)
		}
		d.remove(p.Key())
	}
	pool := &Pool{First: c.First, Last: c.Last, Owner: c.Tenant}
	if err := d.endPool(pool, false); err != nil {
		return err
	}
	if c.Tenant != Provider {
		d.put(pool)
	}
	d.say(pool.Key(), "the GUIDs %v-%v are tenant %s's", c.First, c.Last, c.Tenant)
	return nil
}

// endPool ends the consents for ports whose owner the pool changes.
func (d *draft) endPool(p *Pool, agreedToo bool) error {
	for _, g := range slices.Sorted(maps.Keys(d.written.named)) {
		if p.Has(g) && d.ports[g] == nil && !agreedToo && p.Owner != Provider {
			return refuse(Conflict, "first", "%v stands in %s of the policy file: take it out of there first", g, d.written.named[g])
		}
	}
	var guids []ib.PortGUID
	for g := range d.in {
		// An alias of a port in the pool has the owner of that port.
		port := d.written.port(g)
		if (p.Has(g) || p.Has(port) && d.ports[port] == nil && d.pool(g) == nil) && d.ports[g] == nil {
			guids = append(guids, g)
		}
	}
	slices.Sort(guids)
	for _, g := range guids {
		for _, k := range d.In(g) {
			m := d.Member(k, g)
			if m.Agreed() && !agreedToo && m.PortOwner != p.Owner {
				return refuse(Conflict, "first", "%v is in partition %v: take it out of there first", g, k)
			}
			if m.PortOwner == p.Owner && !agreedToo {
				continue
			}
			if err := d.dropMember(m); err != nil {
				return err
			}
		}
	}
	return nil
}

// ReleasePool takes a pool from its owner, and its GUIDs out of all partitions.
type ReleasePool struct {
	First ib.PortGUID `json:"first"`
}

func (ReleasePool) Action() string { return "release pool" }

func (c ReleasePool) plan(d *draft) error {
	if err := d.provider(); err != nil {
		return err
	}
	p := d.pool(c.First)
	if p == nil || p.First != c.First {
		return refuse(NotFound, "first", "no pool begins at %v", c.First)
	}
	if p.Owner == "" {
		return nil
	}
	if err := d.endPool(p, true); err != nil {
		return err
	}
	d.put(&Pool{First: p.First, Last: p.Last, Released: d.last + 1})
	d.say(p.Key(), "the GUIDs %v-%v are taken from tenant %s", p.First, p.Last, p.Owner)
	return nil
}
