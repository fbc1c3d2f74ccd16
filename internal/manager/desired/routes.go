package desired

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/routes"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Routes is the result of routing for the addresses of a fabric. While neither changes,
// it need not be computed again.
type Routes struct {
	fabric   *observed.Fabric
	assigned []LIDAssignment
	// manager is the manager's port, and managers the LID that it has as master; 0 for
	// its own.
	manager  *observed.Port
	managers ib.LID
	// request is the engine, what the routes could use of virtual lanes, and the switches
	// that carry no packets from one switch to another.
	request routing.Request
	routed  *routing.Tables
	// tables are the forwarding tables; its nodes have no ports.
	tables *observed.Desired
	// order is that of the switches to which multicast trees keep.
	order    []ib.NodeGUID
	warnings []string
	// cut reports whether a switch does not hold its table.
	cut bool
	// judged is what they were judged for, and verdict what is to be known of them.
	judged  string
	verdict []string
	// standing is what the judge keeps to judge later routes by what differs; nil for nothing.
	standing *routes.Standing
	// judgement is the judge's of them; nil of routes that stay though new ones were refused.
	judgement *routes.Result
}

// routes wants forwarding tables. While fabric and addresses are those of the last time, so are
// the tables, whoever joined or left a partition.
func (r *Result) routes(assigned []LIDAssignment) error {
	x := r.in.Routes
	m := r.Settings.MasterSMLID
	used := r.in.Policy.Levels()
	request := routing.Request{
		Engine: r.in.Routing, Room: RoutingRoom(r.in.Fabric, &r.Settings, used), Drained: r.drained(), File: r.in.RoutingFile,
		Tenants: r.tenants(), Workers: r.in.Workers,
	}
	if x == nil || x.fabric != r.in.Fabric || x.manager != r.in.Fabric.Self || x.managers != m || !x.request.Equal(&request) || !slices.Equal(x.assigned, assigned) {
		r.in.begin(StepRouting)
		var err error
		if x = r.again(assigned, request, used); x == nil {
			if x, err = computeRoutes(r.in.Fabric, r.in.Routes, assigned, m, request); err != nil {
				return err
			}
		}
	}
	if x.judged != r.judgedFor(used) {
		r.in.begin(StepJudge)
		r.judgedNow = true
		var err error
		if x, err = r.accept(x, r.in.Routes, used); err != nil {
			return err
		}
	}
	x.enter(r.Tables)
	var err error
	if r.levels, err = r.levelsOf(x, used); err != nil {
		return err
	}
	r.Warnings = append(append(r.Warnings, x.warnings...), x.verdict...)
	r.Routes = x
	return nil
}

// tenants are the ports that send to each other; nil where all count as doing so.
func (r *Result) tenants() []graph.Tenant {
	if !r.Settings.BalanceTenants {
		return nil
	}
	out := make([]graph.Tenant, 0, len(r.Resolution.Partitions))
	for i := range r.Resolution.Partitions {
		p := &r.Resolution.Partitions[i]
		out = append(out, graph.Tenant{Full: p.Full, Limited: p.Limited})
	}
	return out
}

// enter has d want the forwarding tables.
func (x *Routes) enter(d *observed.Desired) {
	for i := range x.tables.Nodes {
		from, to := &x.tables.Nodes[i], &d.Nodes[i]
		to.LFT, to.RFT, to.DefaultPort = from.LFT, from.RFT, from.DefaultPort
	}
}

// drained are the switches that the policy has drained.
func (r *Result) drained() (out []*observed.Node) {
	for _, d := range r.in.Policy.Drained {
		n := facts.SwitchAt(r.in.Fabric, d.At)
		switch {
		case n == nil:
			r.warn("drain: no switch %s", d.At.SwitchName())
		case !slices.Contains(out, n):
			out = append(out, n)
		}
	}
	return out
}

// idle are the ports between switches that carry nothing.
func (x *Routes) idle() map[*observed.Port]bool {
	if x == nil {
		return nil
	}
	return x.routed.Idle
}

// GroupOrder is the order of the switches that multicast trees keep to.
func (x *Routes) GroupOrder() []ib.NodeGUID {
	if x == nil {
		return nil
	}
	return x.order
}

// UsesLanes reports whether the routes need more than one virtual lane.
func (x *Routes) UsesLanes() bool { return x != nil && x.routed.Lanes != nil }

// Notes are what the routing engine said of the subnet.
func (x *Routes) Notes() []string { return x.routed.Notes }

// computeRoutes asks the engine; last is what was routed last, or nil.
func computeRoutes(f *observed.Fabric, last *Routes, assigned []LIDAssignment, managers ib.LID, request routing.Request) (*Routes, error) {
	asked := request
	if last != nil {
		asked.Last = last.routed
	}
	tables, err := asked.Compute(f, destinations(assigned))
	if err != nil {
		return nil, err
	}
	x := &Routes{fabric: f, assigned: assigned, manager: f.Self, managers: managers, request: request, routed: tables, order: tables.GroupOrder(), tables: withoutPorts(f)}
	x.fill()
	return x, nil
}

func destinations(assigned []LIDAssignment) []graph.Destination {
	to := make([]graph.Destination, len(assigned))
	for i, a := range assigned {
		to[i] = graph.Destination{Port: a.Port, LID: a.LID, LMC: a.LMC}
	}
	return to
}

// withoutPorts is for tables of switches alone.
func withoutPorts(f *observed.Fabric) *observed.Desired {
	return &observed.Desired{Nodes: make([]observed.DesiredNode, len(f.Nodes))}
}

// fill makes the tables of switches from what was routed.
func (x *Routes) fill() {
	f, tables := x.fabric, x.routed
	if i := slices.IndexFunc(x.assigned, func(a LIDAssignment) bool { return a.Port == f.Self }); i >= 0 && x.managers != ib.LIDReserved {
		tables.Lead(x.managers, x.assigned[i].LID)
	}
	x.warnings = append(x.warnings, tables.Warnings...)
	if len(tables.Islands) > 1 {
		x.warnings = append(x.warnings, fmt.Sprintf("the subnet is split: %d groups of switches cannot reach each other", len(tables.Islands)))
	}
	for _, p := range tables.Detached {
		x.warnings = append(x.warnings, p.String()+" has no trained link: nothing reaches it")
	}
	if err := tables.Enter(f, x.tables); err != nil {
		x.warnings, x.cut = append(x.warnings, err.Error()), true
	}
}

// remember keeps the LIDs of ports that are absent now: a node that comes back
// finds its address.
func (r *Result) remember(assigned []LIDAssignment) {
	r.Assigned.LIDs = maps.Clone(r.in.Known.LIDs)
	if r.Assigned.LIDs == nil {
		r.Assigned.LIDs = make(map[ib.PortGUID]ib.LID, len(assigned))
	}
	for _, a := range slices.Backward(assigned) { // of two ports with one GUID the first counts
		r.Assigned.LIDs[a.Port.GUID] = a.LID
	}
}

// Drains reports whether the policy keeps packets away from switches.
func (x *Routes) Drains() bool { return x != nil && len(x.request.Drained) > 0 }
