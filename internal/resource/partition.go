package resource

import (
	"cmp"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// PutPartition makes a partition, or changes what is said of it. It keeps its owner
// and, unless Members is not nil, its members.
type PutPartition struct {
	Partition
	// Create refuses a partition that is there already.
	Create bool `json:"create,omitempty"`
	// Members are all that it is to have, where not nil.
	Members []Member `json:"members,omitempty"`
}

// Action implements Change.
func (PutPartition) Action() string { return "put partition" }

func (c PutPartition) plan(d *draft) error {
	c.Owner = cmp.Or(c.Owner, d.By.Tenant)
	if !d.acts(c.Owner) {
		return refuse(Forbidden, "owner", "%s acts for tenant %s", d.By.Name, d.By.Tenant)
	}
	t := d.tenants[c.Owner]
	if t == nil {
		return refuse(NotFound, "owner", "no tenant %q", c.Owner)
	}
	old := d.partitions[c.PKey]
	if c.PKey == 0 {
		free, err := d.freeKey(t)
		if err != nil {
			return err
		}
		c.PKey = free
	}
	if err := c.check(d, t, old); err != nil {
		return err
	}
	p := c.Partition
	d.put(&p)
	if old == nil {
		d.say("partition %v %q is made for tenant %s", p.PKey, p.Name, p.Owner)
	} else if *old != p {
		d.say("partition %v is changed: name %q, SL %v, MTU %v, rate %v, IPoIB %v", p.PKey, p.Name, p.SL, p.MTU, p.Rate, p.IPoIB)
	}
	if c.Members != nil {
		return SetMembers{PKey: p.PKey, Members: c.Members, All: true}.plan(d)
	}
	return nil
}

// check holds the partition against its tenant and against the others.
func (c PutPartition) check(d *draft, t *Tenant, old *Partition) error {
	if err := badKey(c.PKey); err != nil {
		return err
	}
	if old == nil || !d.acts(old.Owner) {
		if err := d.mayTake(c.PKey, t); err != nil {
			return err
		}
	}
	switch {
	case old != nil && (c.Create || old.Owner != c.Owner):
		return refuse(Exists, "pkey", "there is a partition %v", c.PKey)
	case !goodName.MatchString(c.Name):
		return refuse(Invalid, "name", "%q: want %s", c.Name, nameRule)
	case c.SL > policy.SLMax:
		return refuse(Invalid, "sl", "%v: want 0 to %d", c.SL, policy.SLMax)
	case c.MTU != 0 && !c.MTU.IsValid():
		return refuse(Invalid, "mtu", "%v: want 256 to 4096", c.MTU)
	case c.Rate != 0 && !c.Rate.IsValid():
		return refuse(Invalid, "rate", "%v: want a rate of the InfiniBand architecture", c.Rate)
	}
	for _, x := range d.State.Partitions(c.Owner) {
		if x.PKey != c.PKey && x.Name == c.Name {
			return refuse(Exists, "name", "%q is the name of partition %v", c.Name, x.PKey)
		}
	}
	for _, x := range d.written().Partitions {
		if x.Name == c.PolicyName() {
			return refuse(Exists, "name", "%q is a partition of the policy file", c.Name)
		}
	}
	if old != nil {
		return d.fresh(c.PKey)
	}
	if most := t.Quota.Partitions; most > 0 && len(d.owned[t.Name]) >= most {
		return refuse(OverQuota, "", "tenant %s has %d partitions: want at most %d", t.Name, len(d.owned[t.Name]), most)
	}
	return nil
}

// mayTake refuses a number that a tenant may not have. Whose it is else is told to
// the provider alone.
func (d *draft) mayTake(k ib.PKeyBase, t *Tenant) error {
	if t.Name != Provider {
		if !t.Keys.Has(k) {
			return refuse(Forbidden, "pkey", "%v: tenant %s may have %v", k, t.Name, t.Keys)
		}
	} else {
		for _, x := range d.Tenants() {
			if x.Keys.Has(k) {
				return refuse(Forbidden, "pkey", "%v is among the keys of tenant %s, %v", k, x.Name, x.Keys)
			}
		}
	}
	if name, claimed := d.Claimed(k); claimed {
		return refuse(Exists, "pkey", "%v is partition %q of the policy file", k, name)
	}
	return nil
}

// freeKey is the lowest number that a tenant may take.
func (d *draft) freeKey(t *Tenant) (ib.PKeyBase, error) {
	first, last := ib.PKeyBase(1), ib.PKeyBaseDefault-1
	if t.Name != Provider {
		if t.Keys.First == 0 {
			return 0, refuse(OverQuota, "pkey", "tenant %s has no keys", t.Name)
		}
		first, last = t.Keys.First, t.Keys.Last
	}
	for k := first; k <= last; k++ {
		if d.partitions[k] == nil && d.mayTake(k, t) == nil {
			return k, nil
		}
	}
	return 0, refuse(OverQuota, "pkey", "tenant %s has used all its keys", t.Name)
}

// DeletePartition removes a partition with its members.
type DeletePartition struct {
	PKey ib.PKeyBase `json:"pkey"`
}

// Action implements Change.
func (DeletePartition) Action() string { return "delete partition" }

func (c DeletePartition) plan(d *draft) error {
	p, err := d.ownedPartition(c.PKey)
	if err != nil {
		return err
	}
	for _, m := range d.Members(c.PKey) {
		d.dropMember(m)
	}
	d.remove(p.Key())
	d.say("partition %v %q of tenant %s is deleted", p.PKey, p.Name, p.Owner)
	return nil
}

// SetMembers adds members to a partition or changes them.
type SetMembers struct {
	PKey ib.PKeyBase `json:"pkey"`
	// Members need Port, Membership, Index0 and Host alone.
	Members []Member `json:"members"`
	// All removes every other member.
	All bool `json:"all,omitempty"`
}

// Action implements Change.
func (SetMembers) Action() string { return "set members" }

func (c SetMembers) plan(d *draft) error {
	p, err := d.partition(c.PKey)
	if err != nil {
		return err
	}
	if c.All && !d.acts(p.Owner) {
		return refuse(Forbidden, "pkey", "partition %v is not %s's", c.PKey, d.By.Tenant)
	}
	keep := map[ib.PortGUID]bool{}
	for _, m := range c.Members {
		if keep[m.Port] {
			return refuse(Invalid, "members", "port %v is there twice", m.Port)
		}
		keep[m.Port] = true
		if err := d.setMember(p, m); err != nil {
			return err
		}
	}
	if c.All {
		for _, m := range d.Members(c.PKey) {
			if !keep[m.Port] {
				d.dropMember(m)
			}
		}
	}
	return d.withinQuota(p, c.Members)
}

// setMember enters one member, with the consent of those whom the caller acts for.
func (d *draft) setMember(p *Partition, m Member) error {
	if m.Port == 0 {
		return refuse(Invalid, "port", "no GUID")
	}
	if err := goodMembership(m.Membership); err != nil {
		return err
	}
	if m.Membership == policy.Both && !d.written().AllowBoth {
		return refuse(Invalid, "membership", "both: the policy file does not allow it (allow_both)")
	}
	owner := d.Owner(m.Port)
	old := d.Member(p.PKey, m.Port)
	byPartition, byPort := d.acts(p.Owner), owner != "" && d.acts(owner)
	if d.By.IsProvider() && owner != p.Owner {
		// The provider speaks for itself alone where a tenant has a part.
		byPartition, byPort = p.Owner == Provider, owner == Provider
	}
	if !byPartition && !byPort {
		return refuse(Forbidden, "port", "%v: neither it nor partition %v is %s's", m.Port, p.PKey, d.By.Tenant)
	}
	if owner == "" {
		return refuse(Conflict, "port", "%v is between two owners", m.Port)
	}
	n := Member{PKey: p.PKey, Port: m.Port, Membership: m.Membership, Index0: m.Index0, Host: m.Host, ByPartition: byPartition, ByPort: byPort}
	if old != nil {
		n.Host = cmp.Or(n.Host, old.Host)
		if same := old.Membership == n.Membership && old.Index0 == n.Index0; same {
			n.ByPartition, n.ByPort = n.ByPartition || old.ByPartition, n.ByPort || old.ByPort
		}
		if *old == n {
			return nil
		}
	}
	d.put(&n)
	what := "is a " + n.Membership.String() + " member of"
	if !n.Agreed() {
		wanted := owner
		if !n.ByPartition {
			wanted = p.Owner
		}
		what = "waits for the consent of tenant " + wanted + " to be a " + n.Membership.String() + " member of"
	}
	if r, _ := d.objects[key(KindRemoved, memberID(p.PKey, m.Port))].(*Removed); r != nil {
		removed := d.revisions[r.Key()]
		if d.Seen != Unseen && d.Seen < removed {
			return refuse(Stale, "port", "%v was removed from %v in revision %d by %s: read the partition again", m.Port, p.PKey, removed, r.By)
		}
		d.remove(r.Key())
		what = "again " + what
	}
	d.say("port %v %s %v %q", m.Port, what, p.PKey, p.Name)
	return nil
}

// withinQuota holds a partition and the ports of members against the quotas.
func (d *draft) withinQuota(p *Partition, members []Member) error {
	t := d.tenants[p.Owner]
	if most := t.Quota.Members; most > 0 && d.counts[t.Name] > most {
		return refuse(OverQuota, "members", "tenant %s would have %d members: want at most %d", t.Name, d.counts[t.Name], most)
	}
	for _, m := range members {
		o := d.tenants[d.Owner(m.Port)]
		if o != nil && o.Quota.KeysPerPort > 0 && len(d.in[m.Port]) > o.Quota.KeysPerPort {
			return refuse(OverQuota, "port", "%v would be in %d partitions: want at most %d", m.Port, len(d.in[m.Port]), o.Quota.KeysPerPort)
		}
	}
	return nil
}

// RemoveMembers takes ports out of a partition. A port that is not in it is passed
// over.
type RemoveMembers struct {
	PKey  ib.PKeyBase   `json:"pkey"`
	Ports []ib.PortGUID `json:"ports"`
}

// Action implements Change.
func (RemoveMembers) Action() string { return "remove members" }

func (c RemoveMembers) plan(d *draft) error {
	p, err := d.partition(c.PKey)
	if err != nil {
		return err
	}
	for _, g := range c.Ports {
		m := d.Member(c.PKey, g)
		if m == nil || !d.SeesMember(d.By, m) {
			continue
		}
		if !d.acts(p.Owner) && !d.acts(d.Owner(g)) {
			return refuse(Forbidden, "port", "%v: neither it nor partition %v is %s's", g, c.PKey, d.By.Tenant)
		}
		d.dropMember(m)
	}
	return nil
}

// dropMember removes a member and remembers it.
func (d *draft) dropMember(m *Member) {
	d.remove(m.Key())
	d.put(&Removed{PKey: m.PKey, Port: m.Port, By: d.By.Name, At: d.At})
	d.say("port %v is no longer a member of %v", m.Port, m.PKey)
}

// AssignPorts gives ports to a tenant. Only ports that nobody else has can be given,
// and of which the release by the last owner was proved.
type AssignPorts struct {
	Tenant string `json:"tenant"`
	Ports  []Port `json:"ports"` // GUID, Switch and SwitchPort
}

// Action implements Change.
func (AssignPorts) Action() string { return "assign ports" }

func (c AssignPorts) plan(d *draft) error {
	if err := d.provider(); err != nil {
		return err
	}
	if d.tenants[c.Tenant] == nil {
		return refuse(NotFound, "tenant", "no tenant %q", c.Tenant)
	}
	for _, p := range c.Ports {
		old := d.ports[p.GUID]
		owner := d.Owner(p.GUID)
		switch {
		case p.GUID == 0:
			return refuse(Invalid, "ports", "no GUID")
		case owner == Provider && c.Tenant != Provider && len(d.in[p.GUID]) > 0:
			return refuse(Conflict, "ports", "%v is in partition %v: release it first", p.GUID, d.In(p.GUID)[0])
		case owner != c.Tenant && owner != Provider && owner != "":
			return refuse(Conflict, "ports", "%v is tenant %s's: release it first", p.GUID, owner)
		case owner == "" && d.Proved < old.Released:
			return refuse(Conflict, "ports", "%v: its release in revision %d has not been proved on the fabric yet", p.GUID, old.Released)
		}
		d.put(&Port{GUID: p.GUID, Owner: c.Tenant, Switch: p.Switch, SwitchPort: p.SwitchPort})
		d.say("port %v is tenant %s's", p.GUID, c.Tenant)
	}
	return nil
}

// ReleasePorts takes ports from their owners, and out of all partitions.
type ReleasePorts struct {
	Ports []ib.PortGUID `json:"ports"`
}

// Action implements Change.
func (ReleasePorts) Action() string { return "release ports" }

func (c ReleasePorts) plan(d *draft) error {
	if err := d.provider(); err != nil {
		return err
	}
	for _, g := range slices.Compact(slices.Sorted(slices.Values(c.Ports))) {
		owner := d.Owner(g)
		if owner == "" {
			continue
		}
		for _, k := range d.In(g) {
			d.dropMember(d.Member(k, g))
		}
		d.put(&Port{GUID: g, Released: d.last + 1})
		d.say("port %v is taken from tenant %s", g, owner)
	}
	return nil
}
