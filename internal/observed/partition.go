package observed

import (
	"bytes"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed/group"
)

// Partition is a partition of a policy, with its number and its members on one fabric.
// Everything after the policy file uses it: the desired tables, the journal, the result
// of a pass, the judges and subnet administration. Full members talk to all members,
// limited members to full ones; a port in both lists is full. Its lists must not be
// changed.
//
// Its JSON form is that of the journal of apply.
type Partition struct {
	Name string      `json:"name"`
	Base ib.PKeyBase `json:"pkey"`
	// Full and Limited are sorted where a policy was resolved.
	Full    []ib.PortGUID `json:"full"`
	Limited []ib.PortGUID `json:"limited"`
	// Index0 are those of the members that get this partition's key at index 0.
	Index0 []ib.PortGUID `json:"index0,omitempty"`
	// Order is the place of the partition in a policy in which ports get no key by
	// default, from 0; else 0.
	Order int `json:"order,omitempty"`
	// SL is the service level of the partition's paths, Multicast are the groups that
	// the policy creates in it, without members and multicast LIDs. Isolation does
	// not depend on either.
	SL        ib.SL         `json:"sl,omitempty"`
	Multicast []group.Group `json:"multicast,omitempty"`
	// ByService are the service levels of paths to services, in place of SL. RateLimit is
	// the most that paths are said to carry, 0 for no limit.
	ByService []ServiceRange `json:"service_ids,omitempty"`
	RateLimit ib.Rate        `json:"rate_limit,omitempty"`
}

// ServiceRange gives the paths to services a service level.
type ServiceRange struct {
	// First and Last are the service IDs, both included.
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	SL    ib.SL  `json:"sl"`
}

// LevelTo is the service level of paths to a service.
func (p *Partition) LevelTo(id uint64) ib.SL {
	for _, r := range p.ByService {
		if r.First <= id && id <= r.Last {
			return r.SL
		}
	}
	return p.SL
}

// Levels are all service levels of the partition's paths and of the groups that the policy
// creates in it, as a set: bit n for level n.
func (p *Partition) Levels() (set uint16) {
	set = 1 << p.SL
	for _, r := range p.ByService {
		set |= 1 << r.SL
	}
	for _, g := range p.Multicast {
		set |= 1 << g.SL
	}
	return set
}

// MulticastOf are the multicast groups of partitions, by MGID.
func MulticastOf(partitions []Partition) (out []group.Group) {
	for i := range partitions {
		out = append(out, partitions[i].Multicast...)
	}
	slices.SortFunc(out, func(a, b group.Group) int { return bytes.Compare(a.MGID[:], b.MGID[:]) })
	return out
}
