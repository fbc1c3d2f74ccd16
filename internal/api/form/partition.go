package form

import "github.com/ibwarden/ibwarden/internal/resource"

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
	Changed  uint64  `json:"changed" doc:"the revision that last changed it or its members: its ETag"`
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
