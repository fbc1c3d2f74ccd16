package desired

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/routes"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// again are the last routes for a later snapshot of the subnet: only what leads over
// something that is missing goes another way, until it is back. They are judged as others
// are. nil where the engine has to be asked.
func (r *Result) again(assigned []LIDAssignment, request routing.Request, used []ib.SL) *Routes {
	last := r.in.Routes
	if last == nil || last.cut || !last.request.Like(&request) || last.managers != r.Settings.MasterSMLID {
		return nil
	}
	tables, ok := last.routed.Again(r.in.Fabric, destinations(assigned), request.Drained...)
	if !ok {
		return nil
	}
	x := &Routes{
		fabric: r.in.Fabric, assigned: assigned, manager: r.in.Fabric.Self, managers: last.managers, request: request,
		routed: tables, order: tables.GroupOrder(), tables: withoutPorts(r.in.Fabric),
	}
	x.fill()
	r.in.begin(StepJudge)
	refused, warnings, err := r.judge(x, used)
	if err != nil || refused != nil || x.cut {
		return nil
	}
	x.judged, x.verdict, r.judgedNow = r.judgedFor(used), warnings, true
	return x
}

// ask has the judge say what is to be said of routes: of those that differ in little from
// ones that were right, by what differs. nil: they are right.
func (r *Result) ask(x *Routes, in *routes.Input) *routes.Result {
	if last := r.in.Routes; last != nil && last.standing != nil && last.standing.Again(in) {
		x.standing = last.standing
		return nil
	}
	v, standing := routes.JudgeAndKeep(in)
	if x.standing = standing; standing == nil {
		x.judgement = v
	}
	if v.Right() {
		return nil
	}
	return v
}

// Reroute leads packets around links that went down since the result was computed, of the same
// snapshot, and enters the tables into it: those of the switches that it returns. ok is false
// where that takes a full computation; then nothing has changed.
func (r *Result) Reroute() (changed []*observed.Node, ok bool) {
	last := r.Routes
	if last == nil || last.fabric != r.in.Fabric {
		return nil, false
	}
	x := *last
	if x.routed, ok = last.routed.Around(last.request.Drained...); !ok || last.cut || last.standing == nil {
		return nil, false
	}
	x.tables, x.warnings = withoutPorts(x.fabric), nil
	if x.fill(); x.cut {
		return nil, false
	}
	d := withoutPorts(x.fabric)
	x.enter(d)
	x.order = x.routed.GroupOrder()
	groups, err := r.groupsOf(&x, d, r.levels.ServiceLevels())
	if err != nil || !last.standing.Around(routes.WantedTables(x.fabric, d, x.routed.Top), groups) {
		return nil, false
	}
	for i := range x.tables.Nodes {
		from, to := &x.tables.Nodes[i], &r.Tables.Nodes[i]
		if !sameTable(from, to) {
			to.LFT, to.RFT, to.DefaultPort = from.LFT, from.RFT, from.DefaultPort
			changed = append(changed, r.in.Fabric.Nodes[i])
		}
	}
	r.Routes = &x
	return changed, true
}

// sameTable compares forwarding tables: those that share their memory without a look at it.
func sameTable(a, b *observed.DesiredNode) bool {
	if len(a.LFT) != len(b.LFT) || a.DefaultPort != b.DefaultPort || !slices.Equal(a.RFT, b.RFT) {
		return false
	}
	return len(a.LFT) == 0 || &a.LFT[0] == &b.LFT[0] || slices.Equal(a.LFT, b.LFT)
}
