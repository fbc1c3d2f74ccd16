package desired

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/routes"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// ErrRefused is the error of a routing that the judge refuses, where there is no earlier one.
var ErrRefused = errors.New("the routing is refused")

// accept has new routes judged before anything of them is written. Those that leave out
// pairs which cables connect, lead in a circle, or can deadlock though the engine ought not
// to, are refused: the last ones stay.
func (r *Result) accept(x, last *Routes, used []ib.SL) (*Routes, error) {
	refused, warnings, err := r.judge(x, used)
	if err != nil {
		return nil, err
	}
	if refused == nil {
		x.judged = r.judgedFor(used)
		x.verdict = warnings
		return x, nil
	}
	text := strings.Join(refused, "; ")
	kept := last.on(r.in.Fabric)
	if kept == nil {
		return nil, fmt.Errorf("%w: %s", ErrRefused, text)
	}
	kept.assigned, kept.manager, kept.managers, kept.request = x.assigned, x.manager, x.managers, x.request
	kept.warnings, kept.judgement, kept.standing = x.warnings, nil, nil
	kept.judged = r.judgedFor(used)
	kept.verdict = []string{fmt.Sprintf("the new routing is refused, and the last one stays: %s", text)}
	return kept, nil
}

// judge judges routes, with the virtual lanes that the settings give their levels. It says
// why they are refused, or what is to be known of them.
func (r *Result) judge(x *Routes, used []ib.SL) (refused, warnings []string, err error) {
	levels, err := r.levelsOf(x, used)
	if err != nil {
		return nil, nil, err
	}
	d := observed.NewDesired(x.fabric)
	x.enter(d)
	if _, err := EnterLinks(x.fabric, &r.Settings, d); err != nil {
		return nil, nil, err
	}
	if r.usesLanes(levels) { // what else of it hosts may not send is dropped before it counts
		if _, _, err := EnterLanes(x.fabric, &r.Settings, levels, nil, d); err != nil {
			return nil, nil, err
		}
	}
	ends := make([]routes.End, 0, len(x.assigned)+1)
	for _, a := range x.assigned {
		ends = append(ends, routes.End{Port: a.Port, LID: a.LID, LMC: a.LMC})
		if a.Port == x.manager && x.managers != ib.LIDReserved {
			ends = append(ends, routes.End{Port: a.Port, LID: x.managers})
		}
	}
	in := routes.WantedFor(x.fabric, d, ends)
	in.Parts, in.Parallel = r.in.Workers.Count, r.in.Workers.Run
	in.Levels = routes.PathLevels(levels.ServiceLevels(), used...)
	if in.Groups, err = r.groupsOf(x, d, levels.ServiceLevels()); err != nil {
		return nil, nil, err
	}
	in.GroupLevels = levelsOfGroups(levels.ServiceLevels(), used)
	if v := r.ask(x, in); v != nil {
		refused, warnings = r.weigh(x, v, levels != nil)
	}
	return refused, warnings, nil
}

// weigh says for which reasons routes are refused, and which are told only: a table that
// does not fit into its switch, packets whose level is dropped by the tables of others or
// by the policy, and credit loops of multicast groups or of an engine that may have them.
func (r *Result) weigh(x *Routes, v *routes.Result, lanes bool) (refused, warnings []string) {
	enter := func(refuse bool, reasons ...string) {
		if refuse {
			refused = append(refused, reasons...)
		} else if reasons != nil {
			warnings = append(warnings, strings.Join(reasons, "; "))
		}
	}
	for _, part := range v.Parts() {
		switch part.Kind {
		case routes.OfReach:
			enter(!x.cut, part.Lines...)
		case routes.OfDrops:
			tooMany := slices.ContainsFunc(v.Drops, func(d routes.Drop) bool { return d.VL != ib.VLManagement })
			enter(lanes && tooMany, part.Lines...)
		case routes.OfDeadlock:
			enter(!v.ByGroups() && !r.in.Routing.MayDeadlock(x.routed), part.Lines...)
		default:
			enter(true, part.Lines...)
		}
	}
	return refused, warnings
}

// groupsOf are the multicast groups with the ways that they get, which d then wants.
func (r *Result) groupsOf(x *Routes, d *observed.Desired, levels *observed.ServiceLevels) ([]routes.Group, error) {
	trees, err := r.trees(x)
	if err != nil || trees == nil {
		return nil, err
	}
	trees.Enter(x.fabric, d)
	return r.groupsIn(x.fabric, d, levels), nil
}

// judgedFor is what of policy and settings a judgement rests on.
func (r *Result) judgedFor(used []ib.SL) string {
	s := &r.Settings
	return fmt.Sprint(used, r.in.Policy.UsesLanes(), s.MaxOperationalVLs, s.Mapping(int(ib.VLManagement)).VLs, s.VLArbLow, s.VLArbHigh)
}

// on is x for a later snapshot of its fabric; nil where x is, and where it uses virtual lanes
// and the snapshot has a switch that it did not know.
func (x *Routes) on(f *observed.Fabric) *Routes {
	if x == nil {
		return nil
	}
	out := *x
	out.fabric, out.tables = f, &observed.Desired{Nodes: make([]observed.DesiredNode, len(f.Nodes))}
	routed, g := *x.routed, *x.routed.Graph
	out.routed, routed.Graph = &routed, &g
	g.Index = make([]int32, len(f.Nodes))
	for i, n := range f.Nodes {
		g.Index[i] = -1
		if n.Switch == nil {
			continue
		}
		old := x.fabric.Node(n.GUID())
		if old == nil || old.Switch == nil {
			if x.UsesLanes() {
				return nil
			}
			continue
		}
		g.Index[i] = x.routed.Graph.Index[old.Index]
		from, to := &x.tables.Nodes[old.Index], &out.tables.Nodes[i]
		to.LFT, to.RFT, to.DefaultPort = from.LFT, from.RFT, from.DefaultPort
	}
	return &out
}
