package form

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// Partition is a partition as a caller sees it.
type Partition struct {
	PKey     string  `json:"pkey" doc:"number of the partition"`
	Name     string  `json:"name"`
	Owner    string  `json:"owner" doc:"the tenant whose it is"`
	SL       int     `json:"sl" minimum:"0" maximum:"15" doc:"service level"`
	MTU      int     `json:"mtu,omitempty" doc:"octets; none for the default"`
	Rate     float64 `json:"rate,omitempty" doc:"Gb/s; none for the default"`
	IPoverIB bool    `json:"ip_over_ib" doc:"the broadcast group of IP over InfiniBand is made"`
	Members  int     `json:"members" doc:"members that the caller sees"`
	Waiting  int     `json:"waiting,omitempty" doc:"those of them that wait for the consent of an owner"`
	Changed  uint64  `json:"changed" doc:"the revision that last changed it or its members: its ETag; 0 for one of the policy file"`
	File     string  `json:"file,omitempty" doc:"the policy file that has it, and the line: it is changed there and nowhere else"`
	Service  string  `json:"service,omitempty" doc:"the service of the policy file that made it"`
}

// PartitionBody is what a write says of a partition.
type PartitionBody struct {
	Name     string   `json:"name" minLength:"1" maxLength:"40" doc:"letters, digits, '_', '.' or '-', the first a letter or digit"`
	Owner    string   `json:"owner,omitempty" maxLength:"40" doc:"the tenant whose it is; the caller's when there is none"`
	SL       int      `json:"sl,omitempty" minimum:"0" maximum:"15" doc:"service level"`
	MTU      int      `json:"mtu,omitempty" enum:"256,512,1024,2048,4096" doc:"octets"`
	Rate     float64  `json:"rate,omitempty" minimum:"2.5" maximum:"1200" doc:"Gb/s"`
	IPoverIB bool     `json:"ip_over_ib,omitempty" doc:"make the broadcast group of IP over InfiniBand"`
	Members  []Joined `json:"members,omitempty" maxItems:"10000" doc:"all members that it is to have; those that it has when there is none"`
}

// NewPartitionBody is a PartitionBody that may choose the number.
type NewPartitionBody struct {
	PKey PKey `json:"pkey,omitempty" doc:"number; the lowest that is free when there is none"`
	PartitionBody
}

// PartitionOf is a partition as a caller sees it.
func PartitionOf(s *resource.State, c resource.Caller, p *resource.Partition) Partition {
	out := Partition{PKey: p.PKey.String(), Name: p.Name, Owner: p.Owner, SL: int(p.SL), IPoverIB: p.IPoIB, Changed: s.NumberFor(c, s.TouchedFor(c, p.PKey))}
	out.MTU, out.Rate = p.MTU.Octets(), float64(p.Rate.Tenths())/10
	out.Members, out.Waiting = s.CountVisible(c, p.PKey)
	return out
}

// DeclaredOf is a partition of the policy file as a caller sees it, with the members that the manager
// has found for it; nil where the caller sees none with the number.
func DeclaredOf(s *resource.State, c resource.Caller, k ib.PKeyBase, resolved []observed.Partition) *Partition {
	p, file := s.DeclaredAs(c, k)
	if p == nil {
		return nil
	}
	out := &Partition{PKey: k.String(), Name: p.Name, Owner: p.Owner, SL: int(p.SL), IPoverIB: p.IPoIB, File: s.Source(), Service: file.Service}
	if file.Pos.Line > 0 {
		out.File = fmt.Sprintf("%s:%d", out.File, file.Pos.Line)
	}
	out.MTU, out.Rate = p.MTU.Octets(), float64(p.Rate.Tenths())/10
	out.Members = len(DeclaredMembers(s, c, k, resolved))
	return out
}

// DeclaredMembers are the members of a partition of the policy file, as the manager has found them, by
// GUID; none where the caller does not see it.
func DeclaredMembers(s *resource.State, c resource.Caller, k ib.PKeyBase, resolved []observed.Partition) []*resource.Member {
	at := slices.IndexFunc(resolved, func(p observed.Partition) bool { return p.Base == k })
	if p, _ := s.DeclaredAs(c, k); p == nil || at < 0 {
		return nil
	}
	p := &resolved[at]
	list := make([]*resource.Member, 0, len(p.Full)+len(p.Limited))
	add := func(ports []ib.PortGUID, m policy.Membership) {
		for _, g := range ports {
			list = append(list, &resource.Member{
				PKey: k, Port: g, Membership: m, Index0: slices.Contains(p.Index0, g), ByPartition: true, ByPort: true, Owner: resource.Provider, PortOwner: s.Owner(g),
			})
		}
	}
	add(p.Full, policy.Full)
	for _, g := range p.Limited {
		if i, both := slices.BinarySearch(p.Full, g); both {
			list[i].Membership = policy.Both
		} else {
			add([]ib.PortGUID{g}, policy.Limited)
		}
	}
	slices.SortFunc(list, func(a, b *resource.Member) int { return cmp.Compare(a.Port, b.Port) })
	return list
}
