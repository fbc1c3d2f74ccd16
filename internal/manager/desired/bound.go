// Bounds keep a policy from giving ports more access than they held at a given
// time: when another manager is, or just was, master of the subnet, its tables may be
// newer than this manager's policy.
//
// In: the end ports of a snapshot (BoundOf, Add), and a resolved policy (Within).
// Out: the part of it within the bounds, and a description of the rest.

package desired

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// Bound is the most that ports get, by what they held.
type Bound struct {
	// Why says for people why there is one.
	Why string
	// UntilRead reports whether it ends when a person has the policy read again.
	UntilRead bool
	// Other reports whether the master at that time had another policy. What this policy gives and
	// tables do not show is not given then: nobody is trusted by subnet administration, raw
	// packets are filtered, and P_Keys are checked in both directions.
	Other bool
	// Older is the same where the policy is older than the tables may be.
	Older bool

	held map[ib.PortGUID][]ib.PKey
}

// shownMemberships is how many memberships that are not given are named.
const shownMemberships = 5

// BoundOf is what end ports, ordered by GUID, hold as they were read. Of two that claim
// to be one, neither holds anything.
func BoundOf(ends []*observed.Port, why string, untilRead bool) *Bound {
	b := &Bound{Why: why, UntilRead: untilRead, held: make(map[ib.PortGUID][]ib.PKey, len(ends))}
	for i, p := range ends {
		twin := i > 0 && ends[i-1].GUID == p.GUID || i+1 < len(ends) && ends[i+1].GUID == p.GUID
		if !twin && !p.Node.Contested {
			b.held[p.GUID] = heldBy(p)
		}
	}
	return b
}

// Add enters a port that is not among those of the snapshot.
func (b *Bound) Add(g ib.PortGUID, keys []ib.PKey) { b.held[g] = keys }

// heldBy is what an end port may use: by the table of the switch port before it,
// where that enforces one, and else by its own. A guard may hold a full key before
// a limited member; then the port's own table tells.
func heldBy(p *observed.Port) (out []ib.PKey) {
	q := p.Peer
	if q == nil || q.IsEnd() || !q.Enforces() || !q.PKeysKnown() {
		return p.PKeys
	}
	for _, k := range q.PKeys {
		if k.IsFull() && slices.Contains(p.PKeys, k.Base().Limited()) && !slices.Contains(p.PKeys, k) {
			k = k.Base().Limited()
		}
		out = append(out, k)
	}
	return out
}

// allows reports whether a port may be a member by what it held.
func (b *Bound) allows(g ib.PortGUID, base ib.PKeyBase, full bool) bool {
	keys := b.held[g]
	return slices.Contains(keys, base.Full()) || !full && slices.Contains(keys, base.Limited())
}

// Within leaves out of a resolution, which stays as it is, who would get more than
// he held; not the manager's own port, self, where hosts ask it: in the default partition, and
// without one in each partition of which another port is left. text says who that is, and is
// empty when it is nobody.
func (b *Bound) Within(r *policy.Resolution, self ib.PortGUID) (out *policy.Resolution, text string) {
	var named []string
	n := 0
	cut := *r
	cut.Partitions = slices.Clone(r.Partitions)
	for i := range cut.Partitions {
		x := &cut.Partitions[i]
		asked := x.Base == ib.PKeyBaseDefault || r.NoDefault && b.leavesAny(x, self)
		keep := func(list []ib.PortGUID, full bool) []ib.PortGUID {
			return slices.DeleteFunc(slices.Clone(list), func(g ib.PortGUID) bool {
				if g == self && asked || b.allows(g, x.Base, full) {
					return false
				}
				if n++; n <= shownMemberships {
					named = append(named, fmt.Sprintf("port %s of partition %q", g, x.Name))
				}
				return true
			})
		}
		x.Full, x.Limited = keep(x.Full, true), keep(x.Limited, false)
		x.Index0 = slices.DeleteFunc(slices.Clone(x.Index0), func(g ib.PortGUID) bool {
			_, full := slices.BinarySearch(x.Full, g)
			_, limited := slices.BinarySearch(x.Limited, g)
			return !full && !limited
		})
	}
	if b.Other || b.Older {
		cut.Trusted = nil
		return &cut, b.text(n, named)
	}
	if n == 0 {
		return r, ""
	}
	return &cut, b.text(n, named)
}

// leavesAny reports whether a port other than self stays a member of a partition.
func (b *Bound) leavesAny(x *observed.Partition, self ib.PortGUID) bool {
	stays := func(list []ib.PortGUID, full bool) bool {
		return slices.ContainsFunc(list, func(g ib.PortGUID) bool { return g != self && b.allows(g, x.Base, full) })
	}
	return stays(x.Full, true) || stays(x.Limited, false)
}

// Tight is a policy as far as Other or Older leaves it, besides its partitions.
func (b *Bound) Tight(p *policy.Policy) *policy.Policy {
	if !b.Other && !b.Older || p == nil {
		return p
	}
	tight := *p
	asked := p.Asked()
	asked.EnforceInbound, asked.EnforceOutbound = true, true
	tight.AllowRaw, tight.Settings = false, &asked
	return &tight
}

// RolledBackBound says that the bound of a store which was rolled back begins; for no reason, that it
// ends.
func RolledBackBound(why string) string {
	if why == "" {
		return "the store counts again: ports are given what its policy says"
	}
	return why + ": no port is given anything new until it is put right (ibwarden history accept-restored)"
}

func (b *Bound) text(n int, named []string) string {
	text := b.Why
	if b.Other {
		text += "; the manager before had another policy: nobody is trusted, and raw packets are filtered"
	}
	if b.Older {
		text += "; the policy here is older than the tables may be: nobody is trusted, and raw packets are filtered"
	}
	if n > 0 {
		text += fmt.Sprintf(": %d memberships are not given that the tables did not hold then (%s", n, strings.Join(named, ", "))
		if n > len(named) {
			text += ", and more"
		}
		text += ")"
	}
	switch {
	case b.Other:
		text += "; this ends once the policy is read again (SIGHUP)"
	case b.UntilRead:
		text += "; they are once the policy is read again (SIGHUP), or with --accept-policy"
	}
	return text
}
