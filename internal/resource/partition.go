package resource

import (
	"cmp"
	"fmt"
	"strings"

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
	Members []Member `json:"members,omitzero"`
	// KeepLabels leaves the labels as they are.
	KeepLabels bool `json:"keep_labels,omitempty"`
}

func (PutPartition) Action() string { return "put partition" }

func (c PutPartition) plan(d *draft) error {
	old := d.partitions[c.PKey]
	if c.Owner == "" && old != nil && d.acts(old.Owner) {
		c.Owner = old.Owner
	}
	c.Owner = cmp.Or(c.Owner, d.By.Tenant)
	if !d.acts(c.Owner) {
		return refuse(Forbidden, "owner", "%s acts for tenant %s", d.By.Name, d.By.Tenant)
	}
	t := d.tenants[c.Owner]
	if t == nil {
		return refuse(NotFound, "owner", "no tenant %q", c.Owner)
	}
	if c.PKey == 0 {
		free, err := d.freeKey(t)
		if err != nil {
			return err
		}
		c.PKey, old = free, nil
	}
	if c.KeepLabels && old != nil {
		c.Labels = old.Labels
	}
	if err := c.check(d, t, old); err != nil {
		return err
	}
	p := c.Partition
	d.put(&p)
	if old == nil {
		d.say(p.Key(), "partition %v %q is made for tenant %s", p.PKey, p.Name, p.Owner)
	} else if *old != p {
		d.say(p.Key(), "partition %v %q of tenant %s is changed: %s", p.PKey, p.Name, p.Owner, strings.Join(changed(*old, p), ", "))
	}
	if c.Members != nil {
		return SetMembers{PKey: p.PKey, Members: c.Members, All: true}.plan(d)
	}
	return nil
}

// changed says what is another in b than in a.
func changed(a, b Partition) (words []string) {
	if a.Name != b.Name {
		words = append(words, fmt.Sprintf("its name is %q", b.Name))
	}
	if a.SL != b.SL {
		words = append(words, fmt.Sprintf("its service level is %d", b.SL))
	}
	if a.MTU != b.MTU {
		words = append(words, fmt.Sprintf("its MTU is %v", cmp.Or(b.MTU, policy.DefaultMTU)))
	}
	if a.Rate != b.Rate {
		words = append(words, fmt.Sprintf("its rate is %v", cmp.Or(b.Rate, policy.DefaultRate)))
	}
	if a.IPoIB != b.IPoIB {
		words = append(words, map[bool]string{true: "it carries IP over InfiniBand", false: "it carries no IP over InfiniBand"}[b.IPoIB])
	}
	if a.Labels != b.Labels {
		words = append(words, "its labels are "+cmp.Or(string(b.Labels), "none"))
	}
	return words
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
	case !d.By.reaches(c.PKey):
		return refuse(Forbidden, "pkey", "%v: %s may only change the partitions %v", c.PKey, d.By.Name, d.By.Keys)
	case old != nil && (c.Create || old.Owner != c.Owner):
		return refuse(Exists, "pkey", "there is a partition %v", c.PKey)
	case !goodName.MatchString(c.Name):
		return refuse(Invalid, "name", "%q: want %s", c.Name, nameRule)
	case strings.EqualFold(c.Name, policy.DefaultName):
		return refuse(Invalid, "name", "%q is the name of the default partition", c.Name)
	case len(c.PolicyName()) > policy.NameMax:
		return refuse(Invalid, "name", "%q: want at most %d characters, for %s/NAME to fit into a policy", c.Name, policy.NameMax-1-len(c.Owner), c.Owner)
	case c.SL > policy.SLMax:
		return refuse(Invalid, "sl", "%v: want 0 to %d", c.SL, policy.SLMax)
	case !d.By.IsProvider() && (old == nil || old.SL != c.SL) && d.written.policy.GivesShare(c.SL):
		return refuse(Forbidden, "sl", "%v has a share of links: want the provider to set it, or another level", c.SL)
	case c.MTU != 0 && !c.MTU.IsValid():
		return refuse(Invalid, "mtu", "%v: want 256 to 4096", c.MTU)
	case c.Rate != 0 && !c.Rate.IsValid():
		return refuse(Invalid, "rate", "%v: want a rate of the InfiniBand architecture", c.Rate)
	}
	if err := c.Labels.Check(); err != nil {
		return refuse(Invalid, "labels", "%v", err)
	}
	if k, taken := d.names[c.PolicyName()]; taken && k != c.PKey {
		return refuse(Exists, "name", "%q is the name of partition %v", c.Name, k)
	}
	if d.written.names[c.PolicyName()] {
		return refuse(Exists, "name", "%q is taken", c.Name)
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
	other := d.rangeOf(k)
	switch {
	case t.Name != Provider && other != t:
		return refuse(Forbidden, "pkey", "%v: tenant %s may have %v", k, t.Name, t.Keys)
	case t.Name == Provider && other != nil:
		return refuse(Forbidden, "pkey", "%v is among the keys of tenant %s, %v", k, other.Name, other.Keys)
	}
	if name, claimed := d.Claimed(k); claimed {
		if d.By.IsProvider() {
			return refuse(Exists, "pkey", "%v is partition %q of %s: change it there", k, name, d.Source())
		}
		return refuse(Exists, "pkey", "%v is taken", k)
	}
	return d.givenUp(k, t.Name)
}

// givenUp refuses a number that was another's, until it has been proved that his
// ports have lost its key.
func (d *draft) givenUp(k ib.PKeyBase, owner string) error {
	for _, r := range d.removed[k] {
		if revision := d.revisions[r.Key()]; r.Owner != owner && revision > d.Proved {
			return refuse(Conflict, "pkey", "%v was given up by its last owner, which has not been proved on the fabric yet", k)
		}
	}
	return nil
}

// freeKey is the lowest number that a tenant may take, and the caller for it.
func (d *draft) freeKey(t *Tenant) (ib.PKeyBase, error) {
	first, last := ib.PKeyBase(1), ib.PKeyBaseDefault-1
	if t.Name != Provider {
		if t.Keys.First == 0 {
			return 0, refuse(OverQuota, "pkey", "tenant %s has no keys", t.Name)
		}
		first, last = t.Keys.First, t.Keys.Last
	}
	if bound := d.By.Keys; bound.First != 0 {
		first, last = max(first, bound.First), min(last, bound.Last)
	}
	allocated := d.allocated()
	for k := first; k <= last; k++ {
		if other := d.rangeOf(k); other != nil && t.Name == Provider {
			k = other.Keys.Last
			continue
		}
		if d.partitions[k] == nil && d.written.claims[k] == "" && allocated[k] == "" && d.givenUp(k, t.Name) == nil {
			return k, nil
		}
	}
	return 0, refuse(OverQuota, "pkey", "tenant %s has used all its keys", t.Name)
}

// DeletePartition removes a partition with its members.
type DeletePartition struct {
	PKey ib.PKeyBase `json:"pkey,omitempty"`
}

func (DeletePartition) Action() string { return "delete partition" }

func (c DeletePartition) plan(d *draft) error {
	p, err := d.ownedPartition(c.PKey)
	if err != nil {
		return err
	}
	return d.dropPartition(p)
}

// dropPartition removes a partition with its members.
func (d *draft) dropPartition(p *Partition) error {
	if err := d.unchanged(p.Key()); err != nil {
		return err
	}
	for _, m := range d.Members(p.PKey) {
		if err := d.dropMember(m); err != nil {
			return err
		}
	}
	d.remove(p.Key())
	d.takes = true
	d.say(p.Key(), "partition %v %q of tenant %s is deleted", p.PKey, p.Name, p.Owner)
	return nil
}
