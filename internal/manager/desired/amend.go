package desired

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/mcast"
	"github.com/ibwarden/ibwarden/internal/manager/desired/partition"
	"github.com/ibwarden/ibwarden/internal/manager/desired/ports"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/group"
)

// maxAffected is how many end ports a policy may concern before it is as
// well to look at all of them.
const maxAffected = 256

// Next is what has changed since a Result: the policy, and what it may rest on.
// The fabric is the same, and reads as it did but for the tables named here.
type Next struct {
	Resolved
	// Stale are the ports whose P_Key tables read otherwise than they did.
	Stale map[*observed.Port]bool
	// Groups are the multicast groups, as in Input. Regroup tells that they, or
	// the multicast tables of switches, are not those of the Result.
	Groups  []*group.Group
	Regroup bool
}

// Amendment is what a Next comes to, until it is entered.
type Amendment struct {
	// Result is what holds once it is entered. Its tables are those of the Result
	// that was amended.
	Result *Result
	// Changed are the end ports whose keys the policies do not agree on, Ports
	// those whose tables were worked out.
	Changed []ib.PortGUID
	Ports   []*observed.Port
	// Regrouped tells that multicast tables were worked out too.
	Regrouped bool

	out   partition.Output
	trees *mcast.Tables
}

// Amend works out what another policy comes to where r stands. ok is false where
// that takes a look at the whole. Nothing has changed before Enter.
func (r *Result) Amend(next Next) (a *Amendment, ok bool) {
	p, q := next.Policy, r.in.Policy
	if !r.Ordinary() || p.UsesLanes() != q.UsesLanes() || !ports.Same(p, q) || r.Settings.EnforceBetweenSwitches ||
		p.AllowBoth != r.Resolution.AllowBoth || p.AllowRaw != q.AllowRaw || !r.sameAliases(p, next.Resolution) {
		return nil, false
	}
	a = &Amendment{Changed: r.Resolution.Differing(next.Resolution)}
	if a.Ports = facts.Affected(r.in.EndPorts, a.Changed, next.Stale); len(a.Ports) > maxAffected {
		return nil, false
	}
	known := make([]partition.PortFacts, len(a.Ports))
	for i, port := range a.Ports {
		known[i] = r.in.factsOf(port)
	}
	var err error
	a.out, err = partition.Compile(partition.Input{Ports: known, Resolution: next.Resolution})
	if err != nil || len(a.out.Warnings) > 0 {
		return nil, false
	}
	now := *r
	now.in.Resolved, now.in.Groups = next.Resolved, next.Groups
	now.resolved(next.Resolution)
	now.Warnings = append(now.Warnings, now.about...)
	now.Assigned.PKeys, now.Compiled, now.Fences = next.PKeys, len(a.Ports), nil
	if next.Regroup || slices.ContainsFunc(a.Changed, func(g ib.PortGUID) bool { return concerns(next.Groups, g) }) {
		if a.trees, err = now.trees(); err != nil {
			return nil, false
		}
	}
	a.Result, a.Regrouped = &now, a.trees != nil
	return a, true
}

// Enter makes the tables of the amended Result those of the amendment. That Result
// does not hold any more.
func (a *Amendment) Enter() *Result {
	r := a.Result
	if a.trees != nil {
		r.enterTrees(a.trees)
	}
	for _, x := range a.out.EndPorts {
		r.Tables.Port(r.port(x.NodeGUID, x.PortNum)).PKeys = x.Table
	}
	for _, x := range a.out.SwitchPorts {
		r.guard(x)
	}
	return r
}
