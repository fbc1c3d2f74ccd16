package resource

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// SetMembers adds members to a partition or changes them. A port that is not the
// caller's, or a partition that is not, makes a request, which waits for the other
// owner's consent (Member.Agreed). What both agreed to stays until they agree to
// more: the wider membership is Member.Asked until then. Less needs nobody's consent.
type SetMembers struct {
	PKey ib.PKeyBase `json:"pkey,omitempty"`
	// Members need Port, Membership, Index0 and Host alone; the rest is not looked at.
	Members []Member `json:"members,omitempty"`
	// All removes every other member.
	All bool `json:"all,omitempty"`
	// NoRequests refuses ports that are not the caller's, where a request that waits
	// would be taken for success.
	NoRequests bool `json:"no_requests,omitempty"`
}

func (SetMembers) Action() string { return "set members" }

func (c SetMembers) plan(d *draft) error {
	p, err := d.partition(c.PKey)
	if err != nil {
		return err
	}
	if c.All && !d.acts(p.Owner) {
		return refuse(Forbidden, "pkey", "partition %v is not %s's", c.PKey, d.By.Tenant)
	}
	if len(c.Members) > BulkMax {
		return refuse(Invalid, "members", "%d members: want at most %d in one change", len(c.Members), BulkMax)
	}
	keep := map[ib.PortGUID]bool{}
	for _, m := range c.Members {
		if keep[m.Port] {
			return refuse(Invalid, "members", "port %v is there twice", m.Port)
		}
		keep[m.Port] = true
	}
	was := d.numbers(p.Owner)
	if c.All {
		for _, m := range d.Members(c.PKey) {
			if !keep[m.Port] {
				if err := d.dropMember(m); err != nil {
					return err
				}
			}
		}
	}
	for _, m := range c.Members {
		byPartition, byPort := d.consents(p, m.Port)
		if c.NoRequests && !byPort {
			return refuse(Forbidden, "port", "%v is not %s's", m.Port, d.By.Tenant)
		}
		if err := d.setMember(p, m, byPartition, byPort); err != nil {
			return err
		}
	}
	return d.withinQuota(p.Owner, was)
}

// consents tells for which of the owners of a partition and of a port the caller
// speaks.
func (d *draft) consents(p *Partition, g ib.PortGUID) (byPartition, byPort bool) {
	owner := d.Owner(g)
	if d.By.IsProvider() && owner != p.Owner {
		// The provider speaks for itself alone where a tenant has a part.
		return p.Owner == Provider, owner == Provider
	}
	return d.acts(p.Owner), owner != "" && d.acts(owner)
}

// setMember enters one member, with the consent of those whom the caller speaks for.
func (d *draft) setMember(p *Partition, m Member, byPartition, byPort bool) error {
	if m.Port == 0 {
		return refuse(Invalid, "port", "no GUID")
	}
	if len(m.Host) > HostMax || strings.ContainsFunc(m.Host, isControl) {
		return refuse(Invalid, "host", "want at most %d bytes without control characters", HostMax)
	}
	if err := goodMembership(m.Membership); err != nil {
		return err
	}
	if m.Membership == policy.Both && !d.written.policy.AllowBoth {
		return refuse(Invalid, "membership", "both: the policy file does not allow it (allow_both)")
	}
	if !byPartition && !byPort {
		return refuse(Forbidden, "port", "%v: neither it nor partition %v is %s's", m.Port, p.PKey, d.By.Tenant)
	}
	n := Member{PKey: p.PKey, Port: m.Port, Membership: m.Membership, Index0: m.Index0, Host: m.Host, ByPartition: byPartition, ByPort: byPort, Owner: p.Owner, PortOwner: d.Owner(m.Port)}
	old := d.Member(p.PKey, m.Port)
	switch {
	case old == nil || old.Owner != n.Owner || old.PortOwner != n.PortOwner:
	case old.Agreed():
		n = old.with(m.Membership, m.Index0, byPartition, byPort)
	case old.Membership == n.Membership && old.Index0 == n.Index0:
		n.ByPartition, n.ByPort = n.ByPartition || old.ByPartition, n.ByPort || old.ByPort
	}
	if old != nil {
		if n.Host = cmp.Or(m.Host, old.Host); *old == n {
			return nil
		}
	}
	if old != nil && old.Agreed() && n.Membership < old.Membership {
		if err := d.unchanged(old.Key()); err != nil {
			return err
		}
		d.takes = true
	}
	d.put(&n)
	if byPort {
		if err := d.checkPort(&n, old); err != nil {
			return err
		}
	}
	again := ""
	if k := RemovedKey(p.PKey, m.Port); d.objects[k] != nil {
		again = "again "
		d.remove(k)
	}
	d.say(n.Key(), "%s %s%s", d.portName(&n), again, n.says(p))
	return nil
}

// with is an agreed member of which one of the owners, or both, want it otherwise.
func (m Member) with(as policy.Membership, index0, byPartition, byPort bool) Member {
	ask := Ask{as, index0, byPartition}
	// An owner who asks again takes back what he asked for before.
	if m.Asked.ByPartition == byPartition || byPartition && byPort {
		m.Asked = Ask{}
	}
	other := m.Asked != Ask{} && m.Asked.Membership == as && m.Asked.Index0 == index0
	wider := as > m.Membership || index0 && !m.Index0 && !byPort
	switch {
	case as == m.Membership && index0 == m.Index0:
	case byPartition && byPort, other, !wider:
		m.Membership, m.Index0, m.Asked = as, index0, Ask{}
	default:
		m.Asked = ask
	}
	return m
}

// says tells what a member is, for the words of a diff.
func (m *Member) says(p *Partition) string {
	where := fmt.Sprintf("member of %v %q", p.PKey, p.Name)
	switch {
	case m.Agreed() && m.Asked == Ask{}:
		return fmt.Sprintf("is a %v %s", m.Membership, where)
	case m.Agreed():
		return fmt.Sprintf("is a %v %s, and waits for the consent of %s to be a %v one", m.Membership, where, m.missing(m.Asked.ByPartition), m.Asked.Membership)
	}
	return fmt.Sprintf("waits for the consent of %s to be a %v %s", m.missing(m.ByPartition), m.Membership, where)
}

// missing is whose consent is still wanted. It does not say who that is: whose a port
// is, is not for everybody.
func (m *Member) missing(byPartition bool) string {
	if byPartition {
		return "the owner of the port"
	}
	return "the owner of the partition"
}

// portName is a port in words, with its owner if the caller is to know that.
func (d *draft) portName(m *Member) string {
	if owner := m.PortOwner; owner != "" && (d.By.IsProvider() || owner == d.By.Tenant) {
		return fmt.Sprintf("port %v of tenant %s", m.Port, owner)
	}
	return fmt.Sprintf("port %v", m.Port)
}

// wantsIndex0 reports whether the owner of the port has agreed that, or asked for,
// the key stands at index 0 of its table.
func (m *Member) wantsIndex0() bool {
	return m.ByPort && m.Index0 || m.Asked.Index0 && !m.Asked.ByPartition
}

// checkPort holds a member that the owner of the port wants against what the port
// can have. The caller speaks for that owner.
func (d *draft) checkPort(m, old *Member) error {
	size, known := KeysPerPortMax+1, false
	port := d.written.port(m.Port)
	if d.Fabric != nil {
		if n, is := d.Fabric.TableSize(port); is {
			size, known = n, true
		}
	}
	owner := d.tenants[m.PortOwner]
	if owner == nil {
		return refuse(NotFound, "port", "%v: no tenant %q", m.Port, m.PortOwner)
	}
	if owner.KnownPortsOnly && !known {
		return refuse(NotFound, "port", "%v is no port of the fabric, and tenant %s wants no others", m.Port, owner.Name)
	}
	keys, wanted := 0, 0
	for _, g := range d.written.guids(port) {
		for _, k := range d.In(g) {
			x := d.members[k][g]
			if x.wantsIndex0() && m.wantsIndex0() && (k != m.PKey || g != m.Port) {
				return refuse(Conflict, "index0", "%v has the key of partition %v at index 0 already", m.Port, k)
			}
			if !x.ByPort {
				continue
			}
			if keys++; x.Membership == policy.Both || x.Asked.Membership == policy.Both {
				keys++
			}
			if g == m.Port {
				wanted++
			}
		}
	}
	entered := old == nil || !old.ByPort
	if most := owner.Quota.KeysPerPort; entered && most > 0 && wanted > most {
		return refuse(OverQuota, "port", "%v would be in %d partitions: want at most %d", m.Port, wanted, most)
	}
	grown := entered || m.Membership > old.Membership || m.Asked.Membership > old.Membership
	if most := size - 1; grown && keys > most {
		return refuse(OverQuota, "port", "%v would have %d keys: its table has room for %d and that of the default partition", m.Port, keys, most)
	}
	return nil
}

// numbers are what the quota and the limits of a tenant are about.
type numbers struct{ members, asked, askedBy int }

func (d *draft) numbers(owner string) numbers {
	return numbers{d.counts[owner], d.asked[owner], d.asked[d.By.Tenant]}
}

// withinQuota refuses what brings the owner of a partition, or the caller, beyond a
// quota or limit. Who is beyond it already may take away.
func (d *draft) withinQuota(owner string, was numbers) error {
	now, most := d.numbers(owner), 0
	if t := d.tenants[owner]; t != nil {
		most = t.Quota.Members
	}
	if most == 0 && owner != Provider {
		most = TenantMembersMax
	}
	if most > 0 && now.members > most && now.members > was.members {
		return refuse(OverQuota, "members", "tenant %s would have %d members: want at most %d", owner, now.members, most)
	}
	for _, x := range []struct {
		tenant   string
		was, now int
	}{{owner, was.asked, now.asked}, {d.By.Tenant, was.askedBy, now.askedBy}} {
		if x.tenant != Provider && x.now > RequestsMax && x.now > x.was {
			return refuse(OverQuota, "members", "tenant %s would have %d requests that wait for others: want at most %d", x.tenant, x.now, RequestsMax)
		}
	}
	return nil
}

// RemoveMembers takes ports out of a partition. A port that is not in it, or that the
// caller does not see in it, is passed over.
type RemoveMembers struct {
	PKey  ib.PKeyBase   `json:"pkey,omitempty"`
	Ports []ib.PortGUID `json:"ports,omitempty"`
	// DeleteEmptied deletes the partition with its last member, if the caller may.
	DeleteEmptied bool `json:"delete_emptied,omitempty"`
}

func (RemoveMembers) Action() string { return "remove members" }

func (c RemoveMembers) plan(d *draft) error {
	p, err := d.partition(c.PKey)
	if err != nil {
		return err
	}
	if len(c.Ports) > BulkMax {
		return refuse(Invalid, "ports", "%d ports: want at most %d in one change", len(c.Ports), BulkMax)
	}
	dropped := false
	for _, g := range c.Ports {
		m := d.Member(c.PKey, g)
		if m == nil || !d.SeesMember(d.By, m) {
			continue
		}
		if err := d.dropMember(m); err != nil {
			return err
		}
		dropped = true
	}
	if dropped && c.DeleteEmptied && d.acts(p.Owner) && len(d.members[c.PKey]) == 0 {
		return d.dropPartition(p)
	}
	return nil
}

// dropMember removes a member and remembers it.
func (d *draft) dropMember(m *Member) error {
	if err := d.unchanged(m.Key()); err != nil {
		return err
	}
	d.remove(m.Key())
	what := "is no longer asked for as a member of"
	if m.Agreed() {
		d.takes = true
		what = "is no longer a member of"
	}
	name := ""
	if p := d.partitions[m.PKey]; p != nil {
		name = fmt.Sprintf(" %q", p.Name)
	}
	d.remember(&Removed{PKey: m.PKey, Port: m.Port, Owner: m.Owner, By: d.By.Name, At: d.At})
	d.say(m.Key(), "%s %s %v%s", d.portName(m), what, m.PKey, name)
	return nil
}

// remember keeps a removal, and forgets the oldest when there are too many.
func (d *draft) remember(r *Removed) {
	if n := len(d.removedOf[r.Owner]); n >= RemovedMax {
		list := slices.SortedFunc(maps.Values(d.removedOf[r.Owner]), func(a, b *Removed) int {
			return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.PKey, b.PKey), cmp.Compare(a.Port, b.Port))
		})
		for _, old := range list[:n/4] {
			if d.revisions[old.Key()] <= d.Proved || n >= 2*RemovedMax {
				d.remove(old.Key())
			}
		}
	}
	d.put(r)
}

// Consent agrees to a request of the other owner just as it is.
type Consent struct {
	PKey ib.PKeyBase `json:"pkey,omitempty"`
	Port ib.PortGUID `json:"port"`
	// Membership and Index0 are what is agreed to: what the caller has seen asked.
	Membership policy.Membership `json:"membership,omitempty"`
	Index0     bool              `json:"index0,omitempty"`
}

func (Consent) Action() string { return "consent" }

func (c Consent) plan(d *draft) error {
	p, m, err := d.request(c.PKey, c.Port)
	if err != nil {
		return err
	}
	as, index0 := m.Membership, m.Index0
	if m.Agreed() {
		as, index0 = m.Asked.Membership, m.Asked.Index0
	}
	if as != c.Membership || index0 != c.Index0 {
		return refuse(Stale, "membership", "port %v is asked to be a %v member, index 0 %v: look at the request again", c.Port, as, index0)
	}
	was := d.numbers(p.Owner)
	byPartition, byPort := d.consents(p, c.Port)
	if err := d.setMember(p, Member{Port: c.Port, Membership: as, Index0: index0}, byPartition, byPort); err != nil {
		return err
	}
	return d.withinQuota(p.Owner, was)
}

// Refuse declines a request of the other owner. What both had agreed to before stays.
type Refuse struct {
	PKey ib.PKeyBase `json:"pkey,omitempty"`
	Port ib.PortGUID `json:"port"`
}

func (Refuse) Action() string { return "refuse" }

func (c Refuse) plan(d *draft) error {
	_, m, err := d.request(c.PKey, c.Port)
	if err != nil {
		return err
	}
	if !m.Agreed() {
		return d.dropMember(m)
	}
	n := *m
	n.Asked = Ask{}
	d.put(&n)
	d.say(n.Key(), "%s stays a %v member of %v", d.portName(m), m.Membership, m.PKey)
	return nil
}

// request is a member that waits for the consent of one for whom the caller speaks.
func (d *draft) request(k ib.PKeyBase, g ib.PortGUID) (*Partition, *Member, error) {
	p, err := d.partition(k)
	if err != nil {
		return nil, nil, err
	}
	m := d.Member(k, g)
	if m == nil || !d.SeesMember(d.By, m) {
		return nil, nil, refuse(NotFound, "port", "%v waits for no consent in %v", g, k)
	}
	byPartition, byPort := d.consents(p, g)
	switch waits, _ := m.waitsFor(); {
	case waits == m.Owner && byPartition && m.Owner == p.Owner,
		waits == m.PortOwner && byPort && m.PortOwner == d.Owner(g): // byPort: somebody owns it
		return p, m, nil
	}
	return nil, nil, refuse(NotFound, "port", "%v waits for no consent in %v", g, k)
}
