package resource

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// MovePorts moves ports to a tenant and into partitions of his, in one change: out of all
// other partitions, whoever has them now. The manager takes the old keys, reads back that they
// are gone, and then gives the new ones. A port that is bound to a place stays bound to it.
type MovePorts struct {
	Tenant string        `json:"tenant"`
	Ports  []ib.PortGUID `json:"ports,omitempty"`
	// Into are the partitions of the tenant in which the ports are from then on; none for
	// ports that the tenant puts into partitions later.
	Into []Joined `json:"into,omitempty"`
}

// Joined is a partition that ports are moved into, and as what.
type Joined struct {
	PKey       ib.PKeyBase       `json:"pkey"`
	Membership policy.Membership `json:"membership"`
	Index0     bool              `json:"index0,omitempty"`
}

func (MovePorts) Action() string { return "move ports" }

func (c MovePorts) plan(d *draft) error {
	if err := d.provider(); err != nil {
		return err
	}
	switch {
	case d.tenants[c.Tenant] == nil:
		return refuse(NotFound, "tenant", "no tenant %q", c.Tenant)
	case len(c.Ports) > BulkMax:
		return refuse(Invalid, "ports", "%d ports: want at most %d in one change", len(c.Ports), BulkMax)
	case len(c.Into) > IntoMax:
		return refuse(Invalid, "into", "%d partitions: want at most %d in one change", len(c.Into), IntoMax)
	}
	keep := map[ib.PKeyBase]bool{}
	for _, j := range c.Into {
		p, err := d.partition(j.PKey)
		switch {
		case err != nil:
			return err
		case p.Owner != c.Tenant:
			return refuse(Conflict, "into", "partition %v is tenant %s's: want one of tenant %s", j.PKey, p.Owner, c.Tenant)
		case keep[j.PKey]:
			return refuse(Invalid, "into", "partition %v is there twice", j.PKey)
		}
		keep[j.PKey] = true
	}
	was := d.numbers(c.Tenant)
	for _, g := range slices.Compact(slices.Sorted(slices.Values(c.Ports))) {
		if err := d.leave(g, c.Tenant, keep); err != nil {
			return err
		}
		port := Port{GUID: g}
		if old := d.ports[g]; old != nil {
			port.Switch, port.SwitchPort = old.Switch, old.SwitchPort
		}
		if err := d.assign(c.Tenant, port); err != nil {
			return err
		}
		for _, j := range c.Into {
			m := Member{Port: g, Membership: j.Membership, Index0: j.Index0}
			if err := d.setMember(d.partitions[j.PKey], m, true, true); err != nil {
				return err
			}
		}
	}
	return d.withinQuota(c.Tenant, was)
}

// leave takes a port, and the aliases that go with it, out of the partitions of its owner
// and of others, but for those that the owner keeps.
func (d *draft) leave(g ib.PortGUID, tenant string, keep map[ib.PKeyBase]bool) error {
	owner := d.Owner(g)
	if owner == "" {
		return nil // assign says what it waits for, and ends what was asked for it
	}
	for _, guid := range d.with(g) {
		for _, k := range d.In(guid) {
			if owner == tenant && guid == g && keep[k] {
				continue
			}
			if err := d.dropMember(d.Member(k, guid)); err != nil {
				return err
			}
		}
	}
	if owner == tenant || owner == Provider {
		return nil
	}
	old := d.ports[g]
	moved := Port{GUID: g, Owner: Provider}
	if old != nil {
		moved.Switch, moved.SwitchPort = old.Switch, old.SwitchPort
	}
	d.put(&moved) // from here assign takes it on, in the same change
	d.say(moved.Key(), "port %v is taken from tenant %s", g, owner)
	return nil
}
