package resource

import (
	"cmp"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// AmendPartition changes what it names of a partition and leaves the rest as it is. It
// is for callers who cannot say what they have seen: what such a caller reads before it
// asks may have changed by the time it is done, so it is decided here. Everything in it
// is done, or nothing.
type AmendPartition struct {
	PKey ib.PKeyBase `json:"pkey,omitempty"`
	// Make is the partition where there is none; the change is then refused as
	// NotFound if it is nil. Of its fields, PKey and Owner are not used: it gets the
	// number above and belongs to the tenant of the caller.
	Make *Partition `json:"make,omitempty"`

	// Name, IPoIB, SL, MTU and Rate are the new values of a partition that is there;
	// empty or nil for none.
	Name  string   `json:"name,omitempty"`
	IPoIB *bool    `json:"ip_over_ib,omitempty"`
	SL    *ib.SL   `json:"sl,omitempty"`
	MTU   *ib.MTU  `json:"mtu,omitempty"`
	Rate  *ib.Rate `json:"rate,omitempty"`

	// Set adds members, or changes them. A member who would have to wait for the
	// consent of somebody else is refused.
	Set []Member `json:"set,omitempty"`
	// All removes every member that is not in Set.
	All bool `json:"all,omitempty"`
	// Remove takes ports out. One that is not in the partition is passed over.
	Remove []ib.PortGUID `json:"remove,omitempty"`
	// RemoveHosts takes out the ports that were added with these names as Member.Host.
	RemoveHosts []string `json:"remove_hosts,omitempty"`
	// Empty deletes the partition if it is left without members by what was removed.
	Empty bool `json:"empty,omitempty"`
}

func (AmendPartition) Action() string { return "amend partition" }

func (c AmendPartition) plan(d *draft) error {
	if err := badKey(c.PKey); err != nil {
		return err
	}
	if !d.By.reaches(c.PKey) {
		return refuse(Forbidden, "pkey", "%v: %s is bound to %v", c.PKey, d.By.Name, d.By.Keys)
	}
	if t := d.tenants[d.By.Tenant]; t.Name != Provider && !t.Keys.Has(c.PKey) {
		return refuse(Forbidden, "pkey", "%v: tenant %s may have %v", c.PKey, t.Name, t.Keys)
	}
	if err := c.amend(d); err != nil {
		return err
	}
	if len(c.Set) > 0 || c.All {
		if err := (SetMembers{PKey: c.PKey, Members: c.Set, All: c.All}).plan(d); err != nil {
			return err
		}
	}
	for _, m := range c.Set {
		if got := d.Member(c.PKey, m.Port); got == nil || !got.Agreed() || got.Membership != m.Membership || got.Index0 != m.Index0 {
			return refuse(Forbidden, "port", "%v is not a port of tenant %s", m.Port, d.partitions[c.PKey].Owner)
		}
	}
	ports := slices.Clone(c.Remove)
	if len(c.RemoveHosts) > 0 {
		hosts := make(map[string]bool, len(c.RemoveHosts))
		for _, h := range c.RemoveHosts {
			hosts[h] = h != ""
		}
		for _, m := range d.Members(c.PKey) {
			if hosts[m.Host] {
				ports = append(ports, m.Port)
			}
		}
	}
	if len(ports) == 0 {
		return nil
	}
	before := len(d.members[c.PKey])
	if err := (RemoveMembers{PKey: c.PKey, Ports: ports}).plan(d); err != nil {
		return err
	}
	if c.Empty && before > 0 && len(d.members[c.PKey]) == 0 {
		return DeletePartition{PKey: c.PKey}.plan(d)
	}
	return nil
}

// amend makes the partition, or changes what is said of it.
func (c AmendPartition) amend(d *draft) error {
	if d.partitions[c.PKey] == nil && c.Make != nil {
		p := *c.Make
		p.PKey, p.Owner = c.PKey, d.By.Tenant
		return PutPartition{Partition: p, Create: true}.plan(d)
	}
	old, err := d.ownedPartition(c.PKey)
	if err != nil {
		return err
	}
	p := *old
	if c.Name != "" {
		p.Name = c.Name
	}
	if c.IPoIB != nil {
		p.IPoIB = *c.IPoIB
	}
	if c.SL != nil {
		p.SL = *c.SL
	}
	if c.MTU != nil {
		p.MTU = *c.MTU
	}
	if c.Rate != nil {
		p.Rate = *c.Rate
	}
	if p == *old {
		return nil
	}
	return PutPartition{Partition: p}.plan(d)
}

// Declared are the partitions of the policy file, or of the base, by number. The caller
// changes nothing in them.
func (s *State) Declared() map[ib.PKeyBase]*policy.Partition {
	list := s.written.policy.Partitions
	out := make(map[ib.PKeyBase]*policy.Partition, len(list))
	for i := range list {
		p := &list[i]
		k := p.PKey
		if k == 0 { // of the base: those of a file have numbers
			k = s.Allocated[p.Name]
		}
		if k != 0 {
			out[k] = p
		}
	}
	return out
}

// SeesDeclared reports whether a caller may see the partitions of the policy file with a number: they
// are the provider's, and no port of a tenant is in one. It decides for every answer about them.
func (s *State) SeesDeclared(c Caller, k ib.PKeyBase) bool { return c.IsProvider() && c.reaches(k) }

// Source is the name of the policy file, or of the base: where what it declares is changed.
func (s *State) Source() string { return cmp.Or(s.written.policy.Source, "the policy file") }

// Default is the membership that a port has in the default partition if the policy says
// nothing of it.
func (s *State) Default() policy.Membership {
	return cmp.Or(s.written.policy.Default, policy.Limited)
}
