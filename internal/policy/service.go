package policy

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
)

// Service is what some ports offer to several tenants without joining them: a
// partition for each tenant, in which the ports that offer it are full members
// and the tenant's are limited ones. No two tenants are in one of them.
type Service struct {
	Name string
	// From is where numbers for its partitions are looked for, from the lowest
	// up; 0: from 0x0001.
	From ib.PKeyBase
	SL   ib.SL
	// RateLimit is as in Partition.
	RateLimit ib.Rate
	// OfferedBy selects the ports that offer the service.
	OfferedBy []Selector
	// At are the places of OfferedBy in the file; nil when they are not known.
	At []Pos
	// MayBeAbsent is as in Policy, for OfferedBy.
	MayBeAbsent bool
	// To are the tenants, each once.
	To []Tenant
	// Multicast is an IPoIB broadcast group that each of the partitions gets,
	// or nothing.
	Multicast []MulticastGroup
	Pos       Pos
}

// Tenant is one to whom a service is offered: a partition, or else a group.
type Tenant struct {
	Name string
	// PKey is the number of the partition that the service has for this tenant;
	// 0 leaves it to Allocate.
	PKey ib.PKeyBase
	Pos  Pos
}

// ServiceSeparator stands between service and tenant in the name of a
// partition that a service has for a tenant.
const ServiceSeparator = "/"

// PartitionName is the name of the partition that the service has for a tenant.
func (s *Service) PartitionName(tenant string) string { return s.Name + ServiceSeparator + tenant }

// AddService adds a service, and a partition for each of its tenants, to a
// policy whose partitions and groups are there. The error names a tenant that is
// neither, or that is itself a service's partition.
func (p *Policy) AddService(s Service) error {
	var parts []Partition
	for _, t := range s.To {
		members, err := p.tenantMembers(t)
		if err != nil {
			return err
		}
		for _, o := range s.OfferedBy {
			// Of one selector the last entry would decide; there may be one only.
			members = deleteSelector(members, o)
			members = append(members, Member{Selector: o, Membership: Full, Pos: s.Pos})
		}
		parts = append(parts, Partition{
			Name: s.PartitionName(t.Name), PKey: t.PKey, From: s.From, SL: s.SL, RateLimit: s.RateLimit, Multicast: s.Multicast,
			Members: members, Service: s.Name, Tenant: t.Name, Pos: t.Pos,
		})
	}
	p.Services = append(p.Services, s)
	p.Partitions = append(p.Partitions, parts...)
	return nil
}

// tenantMembers are the members of a tenant, limited.
func (p *Policy) tenantMembers(t Tenant) ([]Member, error) {
	for i := range p.Partitions {
		part := &p.Partitions[i]
		if part.Name != t.Name {
			continue
		}
		if part.Service != "" {
			return nil, fmt.Errorf("%q is the partition of a service", t.Name)
		}
		var out []Member
		for _, m := range part.Members {
			out = append(out, Member{Selector: m.Selector, Membership: Limited, Pos: t.Pos})
		}
		return out, nil
	}
	for i := range p.Groups {
		if p.Groups[i].Name == t.Name {
			return []Member{{Selector: Selector{Kind: SelectGroup, Text: t.Name}, Membership: Limited, Pos: t.Pos}}, nil
		}
	}
	return nil, fmt.Errorf("no partition or group %q", t.Name)
}

func deleteSelector(members []Member, s Selector) []Member {
	out := members[:0]
	for _, m := range members {
		if m.Selector != s {
			out = append(out, m)
		}
	}
	return out
}

// warnServices warns of services that nobody offers. Tenants without members are
// warned of where they stand themselves.
func (p *Policy) warnServices(x *lookup) error {
	for i := range p.Services {
		s := &p.Services[i]
		for n, o := range s.OfferedBy {
			found, err := x.find(o)
			if err != nil {
				return fmt.Errorf("service %q: %w", s.Name, err)
			}
			x.note(o, found, placeIn(s.At, n, s.Pos), s.MayBeAbsent, "service %q", s.Name)
		}
	}
	return nil
}
