package resource

import "github.com/ibwarden/ibwarden/ib"

// Sight is how much of an end port a caller may know.
type Sight uint8

const (
	// SightNone: nothing. He is answered as if there were no such port.
	SightNone Sight = iota
	// SightMember: its GUID, its name, its LID, and its keys of the partitions of the
	// caller's tenant of which it is a member.
	SightMember
	// SightWhole: all of it.
	SightWhole
)

// SightOf is how much of an end port a caller may know. It decides for every answer
// about ports. The provider knows all of every port, and a tenant all of its own. Of
// another's port it knows SightMember while that is a member of one of its partitions:
// that both owners have agreed to. A request that waits for the other owner
// opens nothing, whoever asked. Who is bound to some partitions knows the ports
// of his own tenant alone, the provider's caller too.
func (s *State) SightOf(c Caller, g ib.PortGUID) Sight {
	switch {
	case c.Tenant == "": // and so is the owner of a port between two owners
		return SightNone
	case s.Owner(g) == c.Tenant, c.IsProvider() && c.Keys.First == 0:
		return SightWhole
	case c.Keys.First != 0:
		return SightNone
	}
	for k := range s.in[g] {
		if s.lends(c, k, g) {
			return SightMember
		}
	}
	return SightNone
}

// SeesKey reports whether a caller may know that a port holds the key of a partition. The
// default partition is everybody's.
func (s *State) SeesKey(c Caller, g ib.PortGUID, k ib.PKeyBase) bool {
	switch s.SightOf(c, g) {
	case SightWhole:
		return c.IsProvider() && c.Keys.First == 0 || k == ib.PKeyBaseDefault || s.Sees(c, k)
	case SightMember:
		return k == ib.PKeyBaseDefault || s.lends(c, k, g)
	}
	return false
}

// lends reports whether a port of another is a member of a partition of the caller's
// tenant and gets its key: both who own them agreed to that, and own them still.
func (s *State) lends(c Caller, k ib.PKeyBase, g ib.PortGUID) bool {
	p := s.partitions[k]
	if p == nil || p.Owner != c.Tenant {
		return false
	}
	_, gets := s.policyMember(s.members[k][g])
	return gets
}

// TakesPart reports whether a caller may know how a partition is kept apart from others:
// the provider, its owner, and who owns a member of it that both owners agreed to. Who was
// only asked knows what he was asked (Sees), and no more.
func (s *State) TakesPart(c Caller, k ib.PKeyBase) bool {
	if !s.Sees(c, k) || c.IsProvider() || s.partitions[k].Owner == c.Tenant {
		return s.Sees(c, k)
	}
	for _, m := range s.members[k] {
		if m.PortOwner == c.Tenant {
			if _, gets := s.policyMember(m); gets {
				return true
			}
		}
	}
	return false
}
