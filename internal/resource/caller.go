package resource

import (
	"fmt"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/ib"
)

// Caller is who asks, as the server authenticated him.
type Caller struct {
	// Name tells one caller from another: the ID of a token, "uid 0", or that of a person
	// (PersonName). What is no token has a blank in it.
	Name string
	// Tenant is whom he acts for.
	Tenant string
	// ReadOnly callers change nothing.
	ReadOnly bool
	// Keys, unless none, are the numbers of the partitions that he is bound to: he
	// sees and changes no other, and nothing but partitions and members.
	Keys KeyRange
	// Expires is when his token ends; zero for never. Tokens that he makes end then
	// at the latest.
	Expires time.Time
}

// IsProvider reports whether the caller acts for the provider.
func (c Caller) IsProvider() bool { return c.Tenant == Provider }

// PersonName is the name of somebody whom another service logged in: what that service calls
// him, and behind it who he is, the subject that this issuer gave him.
func PersonName(shown, subject, issuer string) string {
	return fmt.Sprintf("%s (%s at %s)", shown, subject, issuer)
}

// identity is what of the name of a caller stays as it is: a person may choose what he is
// called, and call himself otherwise next time.
func identity(name string) string {
	if at := strings.LastIndex(name, " ("); isPerson(name) {
		return name[at:]
	}
	return name
}

// isPerson reports whether a name is one of PersonName: no other ends with a parenthesis.
func isPerson(name string) bool { return strings.HasSuffix(name, ")") && strings.Contains(name, " (") }

// reaches reports whether the caller is not bound to other partitions.
func (c Caller) reaches(k ib.PKeyBase) bool { return c.Keys.First == 0 || c.Keys.Has(k) }

// CallerOf is who has the token with the SHA-256 of a secret, in hex; false where
// there is none, or none any more.
func (s *State) CallerOf(sum string, at time.Time) (Caller, bool) {
	t := s.tokens[sum]
	if t == nil || s.tenants[t.Tenant] == nil || t.expired(at) {
		return Caller{}, false
	}
	return Caller{Name: t.ID, Tenant: t.Tenant, ReadOnly: t.ReadOnly, Keys: t.Keys, Expires: t.Expires}, true
}

func (t *Token) expired(at time.Time) bool { return !t.Expires.IsZero() && !at.Before(t.Expires) }

// maker is who answers for a caller: himself, or who made his token.
func (s *State) maker(c Caller) string {
	if t, is := s.objects[key(KindToken, c.Name)].(*Token); is && t.Tenant == c.Tenant {
		return t.Maker
	}
	return c.Name
}

// Sees reports whether a caller may see a partition: its owner may, who owns a
// port in it or is asked for one, and the provider; none of a partition that he is
// not bound to.
func (s *State) Sees(c Caller, k ib.PKeyBase) bool {
	p := s.partitions[k]
	if p == nil || !c.reaches(k) {
		return false
	}
	return c.IsProvider() || p.Owner == c.Tenant || c.Tenant != "" && s.shared[k][c.Tenant] > 0
}

// SeesMember reports whether a caller may see a member: the owner of the partition
// may, that of the port, and the provider.
func (s *State) SeesMember(c Caller, m *Member) bool {
	return s.Sees(c, m.PKey) && (c.IsProvider() || s.partitions[m.PKey].Owner == c.Tenant || m.PortOwner == c.Tenant)
}

// Visible are the partitions that a caller may see, by number.
func (s *State) Visible(c Caller) []*Partition {
	list := s.Partitions("")
	out := list[:0]
	for _, p := range list {
		if s.Sees(c, p.PKey) {
			out = append(out, p)
		}
	}
	return out
}

// CountVisible counts the members of a partition that a caller may see, and those of
// them that wait for the consent of an owner.
func (s *State) CountVisible(c Caller, k ib.PKeyBase) (members, waiting int) {
	if !s.Sees(c, k) {
		return 0, 0
	}
	all := c.IsProvider() || s.partitions[k].Owner == c.Tenant
	for _, m := range s.members[k] {
		if all || m.PortOwner == c.Tenant {
			if members++; !m.Agreed() {
				waiting++
			}
		}
	}
	return members, waiting
}

// TouchedFor is the last revision that changed what a caller may see of a partition;
// 0 if he sees nothing of it. It is what an ETag for him should say, and what
// Request.Seen is held against.
func (s *State) TouchedFor(c Caller, k ib.PKeyBase) uint64 {
	p := s.partitions[k]
	switch {
	case !s.Sees(c, k):
		return 0
	case c.IsProvider() || p.Owner == c.Tenant:
		return s.touched[k]
	}
	last := s.revisions[p.Key()]
	for g, m := range s.members[k] {
		if m.PortOwner == c.Tenant {
			last = max(last, s.revisions[MemberKey(k, g)])
		}
	}
	for g := range s.removed[k] {
		if g != 0 && s.Owner(g) == c.Tenant {
			last = max(last, s.revisions[RemovedKey(k, g)])
		}
	}
	return last
}

// SeesObject reports whether a caller may see an object as it is, or was: what he
// may see of a diff.
func SeesObject(c Caller, o Object) bool {
	bound := c.Keys.First != 0
	all := c.IsProvider()
	switch o := o.(type) {
	case *Tenant:
		return !bound && (all || o.Name == c.Tenant)
	case *Token:
		return !bound && (all || o.Tenant == c.Tenant)
	case *Port:
		return !bound && (all || o.Owner == c.Tenant)
	case *Pool:
		return !bound && (all || o.Owner == c.Tenant)
	case *Approval:
		return !bound && (all || o.Tenant == c.Tenant || o.From != "" && o.From == c.Tenant)
	case *Acknowledgement:
		return !bound && (all || o.Tenant == c.Tenant)
	case *Partition:
		return c.reaches(o.PKey) && (all || o.Owner == c.Tenant)
	case *Removed:
		return c.reaches(o.PKey) && (all || o.Owner == c.Tenant)
	case *Member:
		return c.reaches(o.PKey) && (all || o.Owner == c.Tenant || o.PortOwner == c.Tenant)
	}
	return !bound && all
}
