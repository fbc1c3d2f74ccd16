package sm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/subnet"
)

// bound is what ports held when another manager was, or had just been, master
// beside this one: the most that they get until a person says otherwise. A policy
// here may be older than the one that stands there.
type bound struct {
	held map[ib.PortGUID][]ib.PKey
	why  string // why there is one, for people
}

// withheldShown is how many memberships that are not given are named.
const withheldShown = 5

// heldNow is what the guards of the subnet hold as it was read.
func (e *Engine) heldNow(why string) *bound {
	b := &bound{held: make(map[ib.PortGUID][]ib.PKey, len(e.ends)), why: why}
	for _, p := range e.ends {
		if keys := heldBy(p); p.Node.Contested || e.sharesGUID(p) {
			b.held[p.GUID] = nil // of two that claim to be one, neither
		} else {
			b.held[p.GUID] = keys
		}
	}
	for i := range e.unseen {
		u := &e.unseen[i]
		b.held[u.identity.PortGUID] = u.keys
	}
	return b
}

// heldBy is what an end port may use: by the table of the switch port before it,
// where that enforces one, and else by its own. A guard may hold a full key before
// a limited member; then the port's own table tells.
func heldBy(p *subnet.Port) (out []ib.PKey) {
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
func (b *bound) allows(g ib.PortGUID, base ib.PKeyBase, full bool) bool {
	keys := b.held[g]
	return slices.Contains(keys, base.Full()) || !full && slices.Contains(keys, base.Limited())
}

// inherit notes what the subnet holds when this manager takes it over from one
// that was master until now.
func (e *Engine) inherit() {
	if e.stoodBy != "" && !e.config.AcceptPolicy {
		e.inherited = e.heldNow(e.stoodBy)
		e.standing = nil
	}
	e.stoodBy = ""
}

// share notes whether another manager that counts is master beside this one.
// Guarding goes on, but nobody is given anything that he did not have: what the
// other does may be newer.
func (e *Engine) share(shared bool) {
	if shared == (e.shared != nil) {
		return
	}
	if shared {
		e.shared = e.heldNow("another manager is master too")
		e.emit(Warned{"another manager that counts is master too: until one of them hands over, this one gives nobody anything new"})
	} else {
		e.shared = nil
		e.emit(Warned{"no other manager is master any more"})
	}
	e.membersChanged()
}

// accept lifts what an earlier manager's tables allow: a person has read the
// policy again.
func (e *Engine) accept() {
	if e.inherited != nil {
		e.inherited, e.standing = nil, nil
	}
}

// isBound reports whether the policy may not give all that it says.
func (e *Engine) isBound() bool { return e.shared != nil || e.inherited != nil }

// withinBounds leaves out of a resolution who would get more than the tables
// held, and says so. The manager's own port gets what it needs.
func (e *Engine) withinBounds(r *policy.Resolution) (*policy.Resolution, []string) {
	var warnings []string
	for _, b := range []*bound{e.inherited, e.shared} {
		if b == nil {
			continue
		}
		var named []string
		n := 0
		cut := *r
		cut.Partitions = slices.Clone(r.Partitions)
		for i := range cut.Partitions {
			x := &cut.Partitions[i]
			keep := func(list []ib.PortGUID, full bool) []ib.PortGUID {
				return slices.DeleteFunc(slices.Clone(list), func(g ib.PortGUID) bool {
					if g == e.fabric.Self.GUID || b.allows(g, x.Base, full) {
						return false
					}
					if n++; n <= withheldShown {
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
		r = &cut
		if n > 0 {
			warnings = append(warnings, withheldText(b, n, named, b == e.inherited))
		}
	}
	return r, warnings
}

func withheldText(b *bound, n int, named []string, byHand bool) string {
	text := fmt.Sprintf("%s: %d memberships are not given that the tables did not hold then (%s", b.why, n, strings.Join(named, ", "))
	if n > len(named) {
		text += ", and more"
	}
	text += ")"
	if byHand {
		text += "; they are once the policy is read again (SIGHUP), or with --accept-policy"
	}
	return text
}
