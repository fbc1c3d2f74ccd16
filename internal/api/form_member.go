package api

import (
	"net/http"
	"strconv"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// Member is a port in a partition as a caller sees it.
type Member struct {
	Port       string `json:"port" doc:"GUID of the port"`
	Membership string `json:"membership" enum:"limited,full,both"`
	Index0     bool   `json:"index0,omitempty" doc:"the key is at index 0 of the port's table"`
	Owner      string `json:"owner,omitempty" doc:"the tenant whose port it is"`
	State      string `json:"state" enum:"member,waiting" doc:"waiting: an owner has not agreed yet, and the port has no key"`
	Asked      string `json:"asked,omitempty" enum:"limited,full,both" doc:"the wider membership that one of the owners asks for"`
	Waits      string `json:"waits_for,omitempty" doc:"the tenant whose consent it waits for"`
}

// Joined is a member as a write names it.
type Joined struct {
	Port GUID `json:"port"`
	MembershipBody
}

// MembershipBody is what a write says of a member.
type MembershipBody struct {
	Membership Membership `json:"membership"`
	Index0     bool       `json:"index0,omitempty" doc:"put the key at index 0 of the port's table"`
}

// MembersBody is a list of members.
type MembersBody struct {
	Members []Joined `json:"members" maxItems:"10000"`
}

// Members reads a list of members.
func Members(list []Joined) ([]resource.Member, error) {
	out := make([]resource.Member, 0, len(list))
	for i, j := range list {
		g, err := j.Port.Port()
		if err != nil {
			return nil, listen.FieldProblem(http.StatusUnprocessableEntity, "invalid", "body.members["+strconv.Itoa(i)+"].port", err.Error())
		}
		out = append(out, resource.Member{Port: g, Membership: j.Membership.Value(), Index0: j.Index0})
	}
	return out, nil
}

// MemberOf is a member as a caller sees it.
func MemberOf(s *resource.State, c resource.Caller, m *resource.Member) Member {
	out := Member{Port: m.Port.String(), Membership: m.Membership.String(), Index0: m.Index0, Owner: s.Owner(m.Port), State: "member"}
	p := s.Partition(m.PKey)
	if !m.Agreed() {
		out.State, out.Waits = "waiting", out.Owner
		if !m.ByPartition && p != nil {
			out.Waits = p.Owner
		}
	}
	if m.Asked.Membership != 0 {
		out.Asked, out.Waits = m.Asked.Membership.String(), m.Owner
		if m.Asked.ByPartition {
			out.Waits = m.PortOwner
		}
	}
	// Whose a port is that another tenant asked for is for its owner and the provider.
	if !c.IsProvider() && out.Owner != c.Tenant {
		out.Owner = ""
		// Nor whether anybody owns it: a port between two owners waits for another too.
		if (!m.Agreed() || m.Asked.Membership != 0) && out.Waits != c.Tenant {
			out.Waits = "another"
		}
	}
	return out
}
