package engine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/lid"
	"github.com/ibwarden/ibwarden/internal/manager/desired/mcast"
	"github.com/ibwarden/ibwarden/internal/manager/desired/partition"
	"github.com/ibwarden/ibwarden/internal/manager/desired/qos"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/settings"
)

// desired is what a policy comes to on the fabric at hand.
type desired struct {
	tables     *observed.Desired
	asked      settings.Settings
	allowed    []observed.Partition
	partitions []Partition
	// withheld are partitions that nobody may be given.
	withheld []ib.PKeyBase
	warnings []string
	assigned Assigned
	// ungrouped are members that packets of their groups do not reach.
	ungrouped []mcast.Fault

	// For a policy that follows: what this one was resolved to, the warnings
	// that are not about it, and whether any is about the tables of a port.
	resolution *policy.Resolution
	about      []string
	odd        bool
	// open counts the fenced ports that let strangers pass.
	open int
	// compiled is the number of end ports whose tables were worked out.
	compiled int
}

// desire works out every table and setting. It writes nothing, and an error
// means that nothing may be written.
func (e *Engine) desire(p *policy.Policy) (*desired, error) {
	d := &desired{tables: observed.NewDesired(e.fabric), asked: p.Asked()}
	if err := d.keys(e, p); err != nil {
		return nil, err
	}
	ofPolicy := len(d.resolution.Warnings)
	assigned, moves, err := lid.Assign(e.fabric, e.known.LIDs, e.config.LMC)
	if err != nil {
		return nil, err
	}
	for _, m := range moves {
		d.warnings = append(d.warnings, m.String())
	}
	lid.Enter(assigned, d.tables)
	if err := d.routes(e, assigned); err != nil {
		return nil, err
	}
	d.remember(e, assigned)
	if err := d.lanes(e, p); err != nil {
		return nil, err
	}
	d.settings(e, p)
	if err := d.groups(e); err != nil {
		return nil, err
	}
	d.about = d.warnings[ofPolicy:]
	return d, nil
}

// keys compiles the policy into P_Key tables and enforcement.
func (d *desired) keys(e *Engine, p *policy.Policy) error {
	var err error
	if d.assigned.PKeys, err = policy.Allocate(p, e.known.PKeys); err != nil {
		return err
	}
	resolution, err := e.resolver.Resolve(p, d.assigned.PKeys)
	if err != nil {
		return err
	}
	if err := e.names.Vet(p, resolution, e.site); err != nil {
		return err
	}
	resolution, withheld := e.withinBounds(resolution)
	d.resolved(resolution)
	d.warnings = append(d.warnings, withheld...)
	facts := e.facts()
	out, err := partition.Compile(partition.Input{Ports: facts, Resolution: resolution, Fence: e.cutsShort(p)})
	if err != nil {
		return err
	}
	d.compiled = len(facts)
	d.warnings, d.odd = append(d.warnings, out.Warnings...), len(out.Warnings)+len(out.Fenced) > 0
	d.cutShort(e, out.Fenced)
	d.incapable(e, out.NotEnforced)
	for _, x := range out.EndPorts {
		if port := e.port(Place{x.NodeGUID, x.PortNum}); port != nil && port.Reached {
			d.tables.Port(port).PKeys = x.Table
		}
	}
	for _, x := range out.SwitchPorts {
		d.guard(e.port(Place{x.SwitchGUID, x.PortNum}), x)
	}
	d.fenceOff(e)
	d.between(e)
	d.filterRaw(e, p)
	d.withheld, d.open = e.withheld(d, out.EndPorts), e.open()
	if doubtful := observed.Doubtful(e.fabric, d.tables, e.knowsBehind); len(doubtful) > 0 {
		d.withheld = append(d.withheld, doubtful...)
		d.warnings = append(d.warnings, fmt.Sprintf(
			"something that does not answer is behind a link that carries data: partitions that it may use are given to nobody (%s, for one)", doubtful[0]))
	}
	d.aliases(e, p, resolution)
	return nil
}

// resolved takes over what the policy says of partitions.
func (d *desired) resolved(r *policy.Resolution) {
	d.resolution, d.allowed, d.partitions, d.warnings = r, facts.Partitions(r), nil, nil
	for _, w := range r.Warnings {
		d.warnings = append(d.warnings, "policy: "+w.String())
	}
	for _, x := range r.Partitions {
		d.partitions = append(d.partitions, Partition{x.Name, x.Base, len(x.Full), len(x.Limited)})
	}
}

// guard wants what a switch port that faces an end port ought to hold.
func (d *desired) guard(q *observed.Port, x partition.SwitchPort) {
	want := d.tables.Port(q)
	want.PKeys = nil
	if x.HasTable {
		want.PKeys = x.Table
	}
	want.Elements |= observed.ElementEnforcement
	want.Info.PartitionEnforcementInbound, want.Info.PartitionEnforcementOutbound = d.directions(&x)
}

// identities are those of all end ports, unseen ones included. Who claims to
// be somebody else too is left out, as is who is behind a fenced port, and gets
// what a port that nobody knows gets.
func (e *Engine) identities() []policy.EndPort {
	out := make([]policy.EndPort, 0, len(e.ends)+len(e.unseen))
	for _, p := range e.ends {
		if !p.Node.Contested && (p.Peer == nil || !e.isExpelled(placeOf(p.Peer))) {
			out = append(out, e.identity(p))
		}
	}
	for i := range e.unseen {
		out = append(out, e.unseen[i].identity)
	}
	return out
}

// factsOf are those of an end port.
func (e *Engine) factsOf(p *observed.Port) partition.PortFacts {
	x := facts.OfEnd(p)
	x.Manager = p == e.fabric.Self
	return x
}

// facts are those of all end ports, unseen ones included.
func (e *Engine) facts() []partition.PortFacts {
	out := make([]partition.PortFacts, 0, len(e.ends)+len(e.unseen))
	for _, p := range e.ends {
		out = append(out, e.factsOf(p))
	}
	for i := range e.unseen {
		out = append(out, e.unseenFacts(&e.unseen[i]))
	}
	return out
}

// routed is what routing came to for the addresses of a fabric. As long as
// neither changes, it need not be worked out again.
type routed struct {
	fabric   *observed.Fabric
	assigned []lid.Assignment
	tables   *observed.Desired
	warnings []string
}

// routes wants forwarding tables. A policy has no say in them: while fabric and
// addresses are those of the last time, so are the tables.
func (d *desired) routes(e *Engine, assigned []lid.Assignment) error {
	if e.routed.fabric != e.fabric || !slices.Equal(e.routed.assigned, assigned) {
		r := desired{tables: observed.NewDesired(e.fabric)}
		if err := r.computeRoutes(e, assigned); err != nil {
			return err
		}
		e.routed = routed{e.fabric, assigned, r.tables, r.warnings}
	}
	for i := range e.routed.tables.Nodes {
		from, to := &e.routed.tables.Nodes[i], &d.tables.Nodes[i]
		to.LFT, to.RFT, to.DefaultPort = from.LFT, from.RFT, from.DefaultPort
	}
	d.warnings = append(d.warnings, e.routed.warnings...)
	return nil
}

func (d *desired) computeRoutes(e *Engine, assigned []lid.Assignment) error {
	to := make([]routing.Destination, len(assigned))
	for i, a := range assigned {
		to[i] = routing.Destination{Port: a.Port, LID: a.LID, LMC: a.LMC}
	}
	tables, err := routing.Compute(e.fabric, to, e.config.Routing)
	if err != nil {
		return err
	}
	if len(tables.Islands) > 1 {
		d.warnings = append(d.warnings, fmt.Sprintf("the subnet is split: %d groups of switches cannot reach each other", len(tables.Islands)))
	}
	for _, p := range tables.Detached {
		d.warnings = append(d.warnings, p.String()+" has no trained link: nothing reaches it")
	}
	if err := tables.Enter(e.fabric, d.tables); err != nil {
		d.warnings = append(d.warnings, err.Error())
	}
	return nil
}

// remember keeps the LIDs of ports that are absent now: a node that comes back
// finds its address.
func (d *desired) remember(e *Engine, assigned []lid.Assignment) {
	d.assigned.LIDs = maps.Clone(e.known.LIDs)
	if d.assigned.LIDs == nil {
		d.assigned.LIDs = make(map[ib.PortGUID]ib.LID, len(assigned))
	}
	for _, a := range slices.Backward(assigned) { // of two ports with one GUID the first counts
		d.assigned.LIDs[a.Port.GUID] = a.LID
	}
}

// lanes wants the settings of links and, where the policy uses more than one
// service level, the tables that map levels to lanes.
func (d *desired) lanes(e *Engine, p *policy.Policy) error {
	faults, err := qos.Links(e.fabric, &d.asked, d.tables)
	if err != nil {
		return err
	}
	if p.UsesLanes() {
		more, err := qos.Lanes(e.fabric, &d.asked, d.tables)
		if err != nil {
			return err
		}
		faults = append(faults, more...)
	}
	for _, f := range faults {
		d.warnings = append(d.warnings, f.String())
	}
	return nil
}

// reregistered ends the asking for registrations, once every host was asked.
func (e *Engine) reregistered() {
	if !e.config.Reregister || e.renewed {
		return
	}
	e.renewed = e.failures == 0
	for _, p := range e.ends {
		e.desired.tables.Port(p).Reregister = false // not again when tables are compared
	}
}

// mkeyProtectBits hides the key from whoever does not know it and lets
// everybody read the rest.
const mkeyProtectBits = 1

// reportForgotten says once which elements devices accept and do not keep.
func (e *Engine) reportForgotten() {
	if len(e.run.Forgets()) > 0 {
		e.standing = nil // it is part of what is known of a port
	}
	for _, t := range facts.Tally(e.run.Forgets()) {
		e.emit(Forgotten{t.Elements, t.Ports, t.Example.String()})
	}
}
