package server

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// open are the attributes and methods that any port may ask for in the profiles
// tenant and strict: what hosts need to find each other, and what is their own.
var open = map[mad.AttributeID][]mad.Method{
	mad.AttrClassPortInfo:   {mad.MethodGet},
	sa.AttrPathRecord:       {mad.MethodGet, mad.MethodGetTable},
	sa.AttrMultiPathRecord:  {mad.MethodGetMulti},
	sa.AttrMCMemberRecord:   {mad.MethodGet, mad.MethodGetTable, mad.MethodSet, mad.MethodDelete},
	sa.AttrServiceRecord:    {mad.MethodGet, mad.MethodGetTable, mad.MethodSet, mad.MethodDelete},
	sa.AttrInformInfo:       {mad.MethodSet},
	sa.AttrInformInfoRecord: {mad.MethodGet, mad.MethodGetTable},
	sa.AttrGUIDInfoRecord:   {mad.MethodGet, mad.MethodGetTable, mad.MethodSet, mad.MethodDelete},
	sa.AttrNodeRecord:       {mad.MethodGet, mad.MethodGetTable},
	sa.AttrPortInfoRecord:   {mad.MethodGet, mad.MethodGetTable},
}

// restricts reports whether a requester gets only what is open to any port.
func (s *Server) restricts(q *request) bool {
	return s.config.Profile >= protect.Tenant && !q.Trusted
}

// permits is OK when the requester may ask for that at all.
func (s *Server) permits(q *request) mad.Status {
	if !s.restricts(q) {
		return mad.StatusOK
	}
	for _, m := range open[q.id] {
		if m == q.method {
			return mad.StatusOK
		}
	}
	s.counts.Refused++
	return sa.StatusDenied
}

// trust is what a port is trusted with: by the SA_Key with what is kept from
// others about the ports that it sees; by the policy, or as the manager's own,
// with everything about every port.
func (s *Server) trust(p *Port, keyed bool) (trusted, all bool) {
	named := !p.Contested && (s.view.Trusted[p.GUID] || s.config.Profile >= protect.Tenant && p.Port == s.view.Fabric.Self)
	return keyed || named, named
}

// mayProxy reports whether a requester may register for a port that is not its own: if it
// is trusted and sees that port. The manager's own port is not trusted with it without
// the SA_Key: it shares a partition with every port, so that the key of a packet cannot
// prove that it sent the packet.
func (s *Server) mayProxy(q *request, p *Port) bool {
	return p != nil && q.Sees(p) && (q.keyed || s.view.Trusted[q.Port.GUID])
}

// SetClaims sets, by LID, the ports that hold a LID which is not theirs: the sender of
// a packet from such a LID is not known. It replaces the claims of
// the last call.
func (s *Server) SetClaims(claims map[ib.LID][]*observed.Port) { s.claims = claims }

// isAmbiguous reports whether a request may come from a port other than the one
// that its LID was assigned to: a port that claims the LID, and whose switch
// would let the P_Key of the request pass.
func (s *Server) isAmbiguous(from mad.Address) bool {
	if s.config.Profile == protect.None {
		return false
	}
	for _, by := range s.claims[from.LID] {
		guard := by.Peer
		held := guard != nil && guard.Enforces() && guard.PKeysKnown() && from.PKey != 0 &&
			!slices.ContainsFunc(guard.PKeys, func(k ib.PKey) bool { return k.Base() == from.PKey.Base() })
		if !held {
			return true
		}
	}
	return false
}
