package resource

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
)

// Rollback brings partitions and members, and for the provider the policy file, back
// to how they were at a revision. It is planned like any change: number ranges, quotas
// and consents are those of today. A member is brought back with the consent of those
// alone for whom the caller speaks, and who had given it then; a member for whom he
// speaks not at all is left out, which the words of the diff say. Tenants, tokens,
// pools and approvals stay as they are: rights are not rolled back, and owners of ports only
// with Owners. What is remembered of removals stays too.
type Rollback struct {
	To uint64 `json:"to"`
	// Owners gives ports back to whom they belonged to then, as MovePorts does: out of all
	// partitions of today. For the provider, and for everything.
	Owners bool `json:"owners,omitempty"`
	// Tenant bounds it to one tenant's partitions, and the members in them and those
	// with its ports in others'. Empty: everything, for the provider alone; a tenant's
	// caller gets his own part.
	Tenant string `json:"tenant,omitempty"`
	// Target is what NewRollback made: the caller of the service has no part in it.
	Target []Target `json:"target"`
}

// Target is one object as it was at a revision; nil where there was none.
type Target struct {
	Key    string
	Object Object
}

// NewRollback is a rollback to a revision, given the diffs of all later ones, the
// newest first.
func NewRollback(to uint64, tenant string, later []Diff) Rollback {
	r := Rollback{To: to, Tenant: tenant, Target: []Target{}}
	at := map[string]int{}
	for _, d := range later {
		for _, e := range slices.Backward(d.Edits) {
			switch kind, _, _ := strings.Cut(e.Key, "/"); Kind(kind) {
			case KindPartition, KindMember, KindFile, KindPort:
			default:
				continue
			}
			i, again := at[e.Key]
			if !again {
				i = len(r.Target)
				at[e.Key] = i
				r.Target = append(r.Target, Target{Key: e.Key})
			}
			r.Target[i].Object = e.Before
		}
	}
	slices.SortFunc(r.Target, func(a, b Target) int { return cmp.Compare(a.Key, b.Key) })
	return r
}

type encodedTarget struct {
	Key    string          `json:"key"`
	Before json.RawMessage `json:"before,omitempty"`
}

// MarshalJSON writes key and object.
func (t Target) MarshalJSON() ([]byte, error) {
	y := encodedTarget{Key: t.Key}
	if t.Object != nil {
		data, err := json.Marshal(t.Object)
		if err != nil {
			return nil, err
		}
		y.Before = data
	}
	return json.Marshal(y)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (t *Target) UnmarshalJSON(data []byte) (err error) {
	var y encodedTarget
	if err := UnmarshalStored(data, &y); err != nil {
		return err
	}
	*t = Target{Key: y.Key}
	if len(y.Before) > 0 && string(y.Before) != "null" {
		t.Object, err = Decode(y.Key, y.Before)
	}
	return err
}

func (Rollback) Action() string { return "roll back" }

func (c Rollback) plan(d *draft) error {
	if !d.By.IsProvider() {
		c.Tenant = cmp.Or(c.Tenant, d.By.Tenant)
	}
	switch {
	case c.Tenant != "" && !d.acts(c.Tenant):
		return refuse(Forbidden, "tenant", "%s acts for tenant %s", d.By.Name, d.By.Tenant)
	case c.Tenant != "" && d.tenants[c.Tenant] == nil:
		return refuse(NotFound, "tenant", "no tenant %q", c.Tenant)
	case c.Tenant != "" && c.Owners:
		return refuse(Invalid, "owners", "want a rollback of everything, by the provider, and not of tenant %s alone", c.Tenant)
	case c.To == Unseen: // of a tenant that knows fewer
		return refuse(NotFound, "to", "there is no such revision: the last is %d", d.LastFor(d.By))
	case c.To > d.last:
		return refuse(NotFound, "to", "no revision %d: the last is %d", c.To, d.last)
	}
	owners := slices.Sorted(maps.Keys(d.tenants))
	was := map[string]numbers{}
	for _, name := range owners {
		was[name] = d.numbers(name)
	}
	for _, step := range []func(*draft) error{c.owners, c.drop, c.file, c.partitions, c.members} {
		if err := step(d); err != nil {
			return err
		}
	}
	for _, name := range owners {
		if err := d.withinQuota(name, was[name]); err != nil {
			return err
		}
	}
	return nil
}

// concerns reports whether an object is in the part that is rolled back.
func (c Rollback) concerns(o Object) bool {
	if c.Tenant == "" {
		return true
	}
	switch o := o.(type) {
	case *Partition:
		return o.Owner == c.Tenant
	case *Member:
		return o.Owner == c.Tenant || o.PortOwner == c.Tenant
	}
	return false
}

// owners gives ports back, if that is asked for, and says which stay where they are.
func (c Rollback) owners(d *draft) error {
	for _, t := range c.Target {
		then, was := t.Object.(*Port)
		now, is := d.objects[t.Key].(*Port)
		if c.Tenant != "" || !was && !is {
			continue
		}
		back := Port{Owner: Provider}
		if was {
			back = *then
		} else if back.GUID = now.GUID; d.pool(now.GUID) != nil {
			back.Owner = d.pool(now.GUID).Owner
		}
		owner := d.Owner(back.GUID)
		switch {
		case owner == back.Owner:
		case owner == "" || back.Owner == "":
			d.say(t.Key, "port %v stays %s: it is, or was, between two owners", back.GUID, ownedBy(owner))
		case d.tenants[back.Owner] == nil:
			d.say(t.Key, "port %v stays %s: there is no tenant %s any more", back.GUID, ownedBy(owner), back.Owner)
		case !c.Owners:
			d.say(t.Key, "port %v stays %s: owners are brought back only if that is asked for", back.GUID, ownedBy(owner))
		default:
			if err := d.leave(back.GUID, back.Owner, nil); err != nil {
				return err
			}
			if err := d.assign(back.Owner, back); err != nil {
				return err
			}
		}
	}
	return nil
}

func ownedBy(tenant string) string {
	if tenant == "" {
		return "nobody's"
	}
	return "tenant " + tenant + "'s"
}

// drop removes the members and partitions that were not there.
func (c Rollback) drop(d *draft) error {
	for _, t := range c.Target {
		m, is := d.objects[t.Key].(*Member)
		if !is || !c.concerns(m) || !d.SeesMember(d.By, m) {
			continue
		}
		then, _ := t.Object.(*Member)
		// What was only asked for then has to be asked for again.
		if then == nil || m.Agreed() && !then.Agreed() {
			if err := d.back(m.PKey); err != nil {
				return err
			}
			if err := d.dropMember(m); err != nil {
				return err
			}
		}
	}
	for _, t := range c.Target {
		p, is := d.objects[t.Key].(*Partition)
		if !is || !c.concerns(p) {
			continue
		}
		if then, _ := t.Object.(*Partition); then == nil || then.Owner != p.Owner {
			if err := d.back(p.PKey); err != nil {
				return err
			}
			if err := d.dropPartition(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// back checks that the caller has seen a partition that is rolled back.
func (d *draft) back(k ib.PKeyBase) error {
	if d.partitions[k] == nil {
		return nil
	}
	return d.fresh(k)
}

// file brings the policy file back.
func (c Rollback) file(d *draft) error {
	for _, t := range c.Target {
		if kind, _, _ := strings.Cut(t.Key, "/"); Kind(kind) != KindFile || c.Tenant != "" {
			continue
		}
		if f, is := t.Object.(*File); is {
			if err := (PutFile{*f}).plan(d); err != nil {
				return err
			}
		} else if err := d.replaceFile(nil, "the policy file is taken back"); err != nil {
			return err
		}
	}
	return nil
}

// partitions brings partitions back as they were.
func (c Rollback) partitions(d *draft) error {
	// Two may have changed names: each gives up its name before one gets it.
	for _, t := range c.Target {
		then, is := t.Object.(*Partition)
		if now := d.objects[t.Key]; is && c.concerns(then) && now != nil && now.(*Partition).Name != then.Name {
			if err := d.back(then.PKey); err != nil {
				return err
			}
			n := *now.(*Partition)
			n.Name = "~" + n.PKey.String()
			d.put(&n)
		}
	}
	for _, t := range c.Target {
		then, is := t.Object.(*Partition)
		if !is || !c.concerns(then) {
			continue
		}
		if now := d.partitions[then.PKey]; now != nil && *now == *then {
			continue
		}
		if err := (PutPartition{Partition: *then}).plan(d); err != nil {
			return err
		}
	}
	return nil
}

// members brings members back, as far as the caller can.
func (c Rollback) members(d *draft) error {
	for _, t := range c.Target {
		then, is := t.Object.(*Member)
		if !is || !c.concerns(then) {
			continue
		}
		p := d.partitions[then.PKey]
		if p == nil || !d.Sees(d.By, then.PKey) {
			d.say(t.Key, "port %v is not brought back into %v: there is no such partition", then.Port, then.PKey)
			continue
		}
		if now := d.Member(then.PKey, then.Port); now != nil && now.Agreed() == then.Agreed() && now.Membership == then.Membership && now.Index0 == then.Index0 {
			continue
		}
		byPartition, byPort := d.consents(p, then.Port)
		// Nobody consents to more by a rollback than he did then.
		byPartition = byPartition && then.ByPartition && then.Owner == p.Owner
		byPort = byPort && then.ByPort && then.PortOwner == d.Owner(then.Port)
		if !byPartition && !byPort {
			d.say(t.Key, "port %v is not brought back into %v %q: that takes the consent of others", then.Port, p.PKey, p.Name)
			continue
		}
		if err := d.back(then.PKey); err != nil {
			return err
		}
		if err := d.setMember(p, *then, byPartition, byPort); err != nil {
			return err
		}
	}
	return nil
}
