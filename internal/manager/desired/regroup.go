package desired

import (
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/routes"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// groupsIn are the multicast groups with the ways that tables give them.
func (r *Result) groupsIn(f *observed.Fabric, d *observed.Desired, levels *observed.ServiceLevels) []routes.Group {
	sls := make(map[ib.LID]routes.SLs, len(r.in.Groups))
	for _, g := range r.in.Groups {
		sls[g.MLID] |= routes.SL(levels.OfGroup(g.SL))
	}
	return routes.WantedGroups(f, d, func(l ib.LID) routes.SLs { return sls[l] })
}

// levelsOfGroups are the service levels of packets to groups on the levels of a policy.
func levelsOfGroups(s *observed.ServiceLevels, levels []ib.SL) (set routes.SLs) {
	for _, level := range levels {
		set |= routes.SL(s.OfGroup(level))
	}
	return set
}

// enterTrees wants multicast tables, and notes which groups they lead otherwise.
func (r *Result) enterTrees(t *MulticastTables) {
	before := make([]*observed.DesiredMulticast, len(r.Tables.Nodes))
	for i := range r.Tables.Nodes {
		before[i] = r.Tables.Nodes[i].Multicast
	}
	t.Enter(r.in.Fabric, r.Tables)
	r.Ungrouped = t.Faults
	if r.moved == nil {
		r.moved = make(map[ib.LID]bool)
	}
	for i, old := range before {
		if now := r.Tables.Nodes[i].Multicast; now != nil {
			enterMoved(r.moved, old, now)
		}
	}
}

// enterMoved adds the multicast LIDs that two tables of a switch lead otherwise.
func enterMoved(moved map[ib.LID]bool, old, now *observed.DesiredMulticast) {
	var was map[uint32]smp.MulticastForwardingTable
	if old != nil {
		was = old.Blocks
	}
	compare := func(modifier uint32) {
		a, b := was[modifier], now.Blocks[modifier]
		block, _, _ := smp.SplitMFTModifier(modifier)
		for i := range a.Masks {
			if a.Masks[i] != b.Masks[i] {
				moved[ib.LIDMulticastMin+ib.LID(int(block)*smp.MLIDsPerBlock+i)] = true
			}
		}
	}
	for modifier := range now.Blocks {
		compare(modifier)
	}
	for modifier := range was {
		compare(modifier)
	}
}

// JudgeGroups judges the multicast groups whose trees have changed since they were judged,
// beside the unicast routes: it says what is wrong, if that is something else than it said
// last. Nothing is refused for it.
func (r *Result) JudgeGroups() []string {
	x := r.Routes
	if x == nil || x.judgement == nil && x.standing == nil || x.fabric != r.in.Fabric || len(r.moved) == 0 {
		return nil
	}
	now, last := r.circlesNow(x), r.circles
	if r.circles = now; now == "" || now == last {
		return nil
	}
	return []string{now}
}

func (r *Result) circlesNow(x *Routes) string {
	all := func() []routes.Group { return r.groupsIn(r.in.Fabric, r.Tables, r.levels.ServiceLevels()) }
	var changed []routes.Group
	for _, g := range all() {
		if r.moved[g.MLID] {
			changed = append(changed, g)
		}
	}
	clear(r.moved)
	var v *routes.Result
	var ok bool
	if x.standing != nil {
		v, ok = x.standing.WithGroups(r.Tables, all())
	} else {
		v, ok = x.judgement.Regroup(changed, all)
	}
	if ok {
		return strings.Join(v.Reasons(), "; ")
	}
	// A level that no group had.
	_, warnings, _ := r.judge(x, r.in.Policy.Levels())
	return strings.Join(warnings, "; ")
}
