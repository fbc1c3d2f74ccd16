package api

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
	PKey     string            `json:"pkey" doc:"number of the partition"`
	Name     string            `json:"name"`
	Owner    string            `json:"owner" doc:"the tenant whose it is"`
	SL       int               `json:"sl" minimum:"0" maximum:"15" doc:"service level"`
	MTU      int               `json:"mtu,omitempty" doc:"bytes; none for the default"`
	Rate     float64           `json:"rate,omitempty" doc:"Gb/s; none for the default"`
	IPoverIB bool              `json:"ip_over_ib" doc:"the broadcast group of IP over InfiniBand is made"`
	Members  int               `json:"members" doc:"members that the caller sees"`
	Waiting  int               `json:"waiting,omitempty" doc:"those of them that wait for the consent of an owner"`
	Changed  uint64            `json:"changed" doc:"the revision that last changed it or its members: its ETag; 0 for one of the policy file"`
	Labels   map[string]string `json:"labels,omitempty" doc:"for its owner and the provider; nothing is decided by them"`
	File     string            `json:"file,omitempty" doc:"the policy file that has it, and the line: it is changed there and nowhere else"`
	Service  string            `json:"service,omitempty" doc:"the service of the policy file that made it"`
}

// PartitionBody is what a write says of a partition.
type PartitionBody struct {
	Name     string            `json:"name" minLength:"1" maxLength:"40" doc:"letters, digits, '_', '.' or '-', the first a letter or digit"`
	Owner    string            `json:"owner,omitempty" maxLength:"40" doc:"the tenant whose it is; the caller's when there is none"`
	SL       int               `json:"sl,omitempty" minimum:"0" maximum:"15" doc:"service level"`
	MTU      int               `json:"mtu,omitempty" enum:"256,512,1024,2048,4096" doc:"bytes"`
	Rate     float64           `json:"rate,omitempty" minimum:"2.5" maximum:"1200" doc:"Gb/s"`
	IPoverIB bool              `json:"ip_over_ib,omitempty" doc:"make the broadcast group of IP over InfiniBand"`
	Labels   map[string]string `json:"labels,omitzero" required:"false" maxProperties:"32" doc:"all labels that it is to have, as kubectl spells them; those that it has when there is none"`
	Members  []Joined          `json:"members,omitempty" maxItems:"10000" doc:"all members that it is to have; those that it has when there is none"`
}

// NewPartitionBody is a PartitionBody that may choose the number.
type NewPartitionBody struct {
	PKey PKey `json:"pkey,omitempty" doc:"number; the lowest that is free when there is none"`
	PartitionBody
}

// PartitionPatch is a merge patch of a PartitionBody.
type PartitionPatch struct {
	Name     *string            `json:"name,omitempty" minLength:"1" maxLength:"40"`
	SL       *int               `json:"sl,omitempty" nullable:"true" minimum:"0" maximum:"15"`
	MTU      *int               `json:"mtu,omitempty" nullable:"true" enum:"256,512,1024,2048,4096" doc:"bytes; null for the default"`
	Rate     *float64           `json:"rate,omitempty" nullable:"true" minimum:"2.5" maximum:"1200" doc:"Gb/s; null for the default"`
	IPoverIB *bool              `json:"ip_over_ib,omitempty" nullable:"true"`
	Labels   map[string]*string `json:"labels,omitempty" nullable:"true" maxProperties:"64" doc:"labels to set; null for one to remove, or for all"`
	Members  []Joined           `json:"members,omitempty" nullable:"false" maxItems:"10000" doc:"all members that it is to have"`
}

// BodyOf is the body of a write that leaves a partition as it is; it says nothing of members.
func BodyOf(p *resource.Partition) PartitionBody {
	return PartitionBody{Name: p.Name, Owner: p.Owner, SL: int(p.SL), MTU: p.MTU.Bytes(), Rate: float64(p.Rate.Tenths()) / 10, IPoverIB: p.IPoIB, Labels: p.Labels.Map()}
}

// Change is the change that a body asks for, of the partition with a number.
func (b *PartitionBody) Change(k ib.PKeyBase) (change resource.PutPartition, err error) {
	p := &change.Partition
	*p = resource.Partition{PKey: k, Name: b.Name, Owner: b.Owner, SL: ib.SL(b.SL), IPoIB: b.IPoverIB}
	if p.MTU, err = MTU(b.MTU); err != nil {
		return change, err
	}
	if p.Rate, err = Rate(b.Rate); err != nil {
		return change, err
	}
	if p.Labels, change.KeepLabels, err = Labels(b.Labels); err == nil && b.Members != nil {
		change.Members, err = Members(b.Members)
	}
	return change, err
}

// PartitionOf is a partition as a caller sees it.
func PartitionOf(s *resource.State, c resource.Caller, p *resource.Partition) Partition {
	out := Partition{PKey: p.PKey.String(), Name: p.Name, Owner: p.Owner, SL: int(p.SL), IPoverIB: p.IPoIB, Changed: s.NumberFor(c, s.TouchedFor(c, p.PKey))}
	out.MTU, out.Rate, out.Labels = p.MTU.Bytes(), float64(p.Rate.Tenths())/10, p.LabelsFor(c).Map()
	out.Members, out.Waiting = s.CountVisible(c, p.PKey)
	return out
}

// DeclaredOf is a partition of the policy file as a caller sees it, with the members that the manager
// has found for it; nil where the caller sees none with the number.
func DeclaredOf(s *resource.State, c resource.Caller, k ib.PKeyBase, resolved []observed.Partition) *Partition {
	p, file := DeclaredAs(s, c, k)
	if p == nil {
		return nil
	}
	out := &Partition{PKey: k.String(), Name: p.Name, Owner: p.Owner, SL: int(p.SL), IPoverIB: p.IPoIB, File: s.Source(), Service: file.Service}
	if file.Pos.Line > 0 {
		out.File = fmt.Sprintf("%s:%d", out.File, file.Pos.Line)
	}
	out.MTU, out.Rate = p.MTU.Bytes(), float64(p.Rate.Tenths())/10
	out.Members = len(DeclaredMembers(s, c, k, resolved))
	return out
}

// DeclaredMembers are the members of a partition of the policy file, as the manager has found them, by
// GUID; none where the caller does not see it.
func DeclaredMembers(s *resource.State, c resource.Caller, k ib.PKeyBase, resolved []observed.Partition) []*resource.Member {
	at := slices.IndexFunc(resolved, func(p observed.Partition) bool { return p.Base == k })
	if p, _ := DeclaredAs(s, c, k); p == nil || at < 0 {
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

// DeclaredTo are the partitions of the policy file, or of the base, that a caller may see, by number:
// each as a partition of the provider, which nobody changes.
func DeclaredTo(s *resource.State, c resource.Caller) []*resource.Partition {
	list := []*resource.Partition{}
	for k, p := range s.Declared() {
		if s.SeesDeclared(c, k) && s.Partition(k) == nil {
			list = append(list, declared(p, k))
		}
	}
	slices.SortFunc(list, func(a, b *resource.Partition) int { return cmp.Compare(a.PKey, b.PKey) })
	return list
}

// DeclaredAs is one of DeclaredTo, with what the file says; nil where there is none.
func DeclaredAs(s *resource.State, c resource.Caller, k ib.PKeyBase) (*resource.Partition, *policy.Partition) {
	if p := s.Declared()[k]; p != nil && s.SeesDeclared(c, k) && s.Partition(k) == nil {
		return declared(p, k), p
	}
	return nil, nil
}

func declared(p *policy.Partition, k ib.PKeyBase) *resource.Partition {
	out := &resource.Partition{PKey: k, Name: p.Name, Owner: resource.Provider, SL: p.SL}
	if out.IPoIB = len(p.Multicast) > 0; out.IPoIB {
		out.MTU, out.Rate = p.Multicast[0].MTU, p.Multicast[0].Rate
	}
	return out
}
