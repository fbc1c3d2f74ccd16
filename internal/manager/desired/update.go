package desired

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/partition"
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
	// Groups are the multicast groups, as in Input. Regroup says that they, or
	// the multicast tables of switches, are not those of the Result.
	Groups  []*group.Group
	Regroup bool
}

// Update is the result for a Next, until it is entered.
type Update struct {
	// Result is what holds once it is entered. Its tables are those of the Result
	// that was updated.
	Result *Result
	// Changed are the end ports whose keys the policies do not agree on, Ports
	// those whose tables were worked out.
	Changed []ib.PortGUID
	Ports   []*observed.Port
	// Regrouped reports whether multicast tables were worked out too.
	Regrouped bool

	out   partition.Output
	trees *MulticastTables
}

// Update computes the result of another policy from r. ok is false if that takes a full
// computation. Nothing has changed before Enter.
func (r *Result) Update(next Next) (u *Update, ok bool) {
	p, q := next.Policy, r.in.Policy
	if !r.Ordinary() || p.UsesLanes() != q.UsesLanes() || !SamePortSettings(p, q) || r.Settings.EnforceBetweenSwitches ||
		p.AllowBoth != r.Resolution.AllowBoth || p.AllowRaw != q.AllowRaw || !r.sameAliases(p, next.Resolution) {
		return nil, false
	}
	if r.levels != nil && !slices.Equal(p.Levels(), q.Levels()) || r.Settings.EnforceLevels || r.levels.Divides() {
		return nil, false // the tables of virtual lanes hang on who is in which partition
	}
	u = &Update{Changed: r.Resolution.Differing(next.Resolution)}
	if u.Ports = facts.Affected(r.in.EndPorts, u.Changed, next.Stale); len(u.Ports) > maxAffected {
		return nil, false
	}
	known := make([]partition.PortFacts, len(u.Ports))
	for i, port := range u.Ports {
		known[i] = r.in.factsOf(port)
	}
	var err error
	u.out, err = partition.Compile(partition.Input{Ports: known, Resolution: next.Resolution})
	if err != nil || len(u.out.Warnings) > 0 {
		return nil, false
	}
	now := *r
	now.in.Resolved, now.in.Groups = next.Resolved, next.Groups
	now.resolved(next.Resolution)
	now.Warnings = append(now.Warnings, now.about...)
	now.Assigned.PKeys, now.Compiled, now.Fences = next.PKeys, len(u.Ports), nil
	if next.Regroup || slices.ContainsFunc(u.Changed, func(g ib.PortGUID) bool { return concerns(next.Groups, g) }) {
		if u.trees, err = now.trees(now.Routes); err != nil {
			return nil, false
		}
	}
	u.Result, u.Regrouped = &now, u.trees != nil
	return u, true
}

// Enter makes the tables of the updated Result those of the update. That Result
// does not hold any more.
func (u *Update) Enter() *Result {
	r := u.Result
	if u.trees != nil {
		r.enterTrees(u.trees)
	}
	for _, x := range u.out.EndPorts {
		r.Tables.Port(r.port(x.NodeGUID, x.PortNum)).PKeys = x.Table
	}
	for _, x := range u.out.SwitchPorts {
		r.guard(x)
	}
	return r
}
