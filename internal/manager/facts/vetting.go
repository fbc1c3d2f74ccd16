// Vetting: the names in a policy are checked against the fabric when an
// administrator sets the policy.
//
// A name that no device has stops a new policy: it is misspelt, or
// the policy has to say that it may be absent. It never stops a policy in force:
// hosts are switched off, and the subnet goes on without them. Some names count as
// present without being visible: a name that has found a port before, one in the list
// of cables, a port of a switch without a cable, and a fenced device.

package facts

import (
	"errors"
	"maps"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/partition"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// PolicyNames is what is known of the names of policies.
type PolicyNames struct {
	// Known are those that have found a port in an earlier run, as Selector.String
	// spells them.
	Known map[string]bool

	met map[policy.Selector]struct{} // in this run
	// vetted is the policy whose names were found good last, inForce the one that
	// was accepted last, lookedFor the one for whose names the subnet was read again.
	vetted, inForce, lookedFor *policy.Policy
}

// Resolver is a resolver among some ports; whom its policies name, and find, is
// remembered.
func (n *PolicyNames) Resolver(ports []policy.EndPort) *policy.Resolver {
	if n.met == nil {
		n.met = make(map[policy.Selector]struct{})
	}
	r := policy.NewResolver(ports)
	r.Remember(n.met)
	return r
}

// Vet judges the names of a policy by what it was resolved to. The error is a
// *policy.AbsentError.
func (n *PolicyNames) Vet(p *policy.Policy, r *policy.Resolution, site func() *policy.Site) error {
	if p == n.vetted || p == n.inForce {
		return nil
	}
	var there *policy.Site
	refused := &policy.AbsentError{Source: p.Source}
	nowhere := make(map[policy.Selector]bool)
	hints := make(map[policy.Selector]string)
	for _, a := range r.Absent {
		if _, met := n.met[a.Selector]; met || n.Known[a.Selector.String()] {
			continue
		}
		if there == nil {
			there = site()
		}
		if is, hint := there.Explain(p, a.Selector); !is {
			nowhere[a.Selector], hints[a.Selector] = true, hint
		}
	}
	refused.All = p.AbsentWarns && p.NamesOnly(nowhere)
	for _, a := range r.Absent {
		if nowhere[a.Selector] && (a.Stops || refused.All) {
			refused.Names = append(refused.Names, policy.Fault{Pos: a.Pos, Found: a.Where + ": no end port for " + a.Selector.String() + hints[a.Selector]})
		}
	}
	if len(refused.Names) > 0 {
		return refused
	}
	n.vetted = p
	return nil
}

// VetAmong resolves a policy and judges its names. What else is wrong with it is for
// the pass to find, but for one thing: a first policy that claims index 0 of a port twice. A
// manager that found that only when it has the tables would have taken the subnet from
// another, and given ports its M_Keys.
func (n *PolicyNames) VetAmong(r *policy.Resolver, p *policy.Policy, known map[string]ib.PKeyBase, site func() *policy.Site) error {
	if p == n.vetted || p == n.inForce {
		return nil
	}
	keys, err := policy.Allocate(p, known)
	if err != nil {
		return nil
	}
	resolution, err := r.Resolve(p, keys)
	if err != nil {
		return nil
	}
	if !n.HasPolicy() {
		if err := partition.VetIndex0(resolution); err != nil {
			return err
		}
	}
	return n.Vet(p, resolution, site)
}

// Accept reports whether a policy is in force.
func (n *PolicyNames) Accept(p *policy.Policy) { n.inForce = p }

// HasPolicy reports whether one is in force.
func (n *PolicyNames) HasPolicy() bool { return n.inForce != nil }

// LooksAgain reports whether the subnet is to be read again for a policy that was
// refused, before it is: hosts may have come since the last time. That is so once.
func (n *PolicyNames) LooksAgain(p *policy.Policy, refused error) bool {
	var absent *policy.AbsentError
	if !errors.As(refused, &absent) || n.lookedFor == p {
		return false
	}
	n.lookedFor = p
	return true
}

// All are the names that have ever found a port, in this run or an earlier one. Of
// too many those of earlier runs are forgotten.
func (n *PolicyNames) All() map[string]bool {
	if len(n.met) == 0 {
		return n.Known
	}
	out := maps.Clone(n.Known)
	if out == nil || len(out) > policy.MembersMax {
		out = make(map[string]bool, len(n.met))
	}
	for s := range n.met {
		out[s.String()] = true
	}
	return out
}
