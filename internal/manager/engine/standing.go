package engine

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/desired/mcast"
	"github.com/ibwarden/ibwarden/internal/manager/desired/partition"
	"github.com/ibwarden/ibwarden/internal/manager/desired/ports"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// standing is what is known of a subnet that was looked at as a whole, so that
// another policy, or another content of a table, needs a look only at the ports
// that it concerns. What comes of it is what looking at everything would come
// to. It holds as long as nothing changes but tables; whatever else is read
// otherwise than before ends it, and so does everything that is out of the
// ordinary: then the whole is looked at again.
type standing struct {
	// stale are the ports whose P_Key tables were read otherwise than when the
	// desired tables were worked out; amiss are the ports at which something may
	// have to be written. Nothing has to be written anywhere else.
	stale, amiss map[*observed.Port]bool
	prover       *isolation.Prover
	inactive     int
	// listed tells that the list of checks is that of the tables there are, led
	// that multicast tables were read otherwise: trees grow out of what switches
	// hold.
	listed, led bool
	passes      int
}

const (
	// maxPasses is how many passes may look at changes only before one looks at
	// the whole: what a Prover keeps grows with every set of keys that it meets.
	maxPasses = 1024
	// maxAffected is how many end ports a policy may concern before it is as
	// well to look at all of them.
	maxAffected = 256
)

// heed takes notice of what was read since it was last called, and reports
// whether that was all as before.
func (e *Engine) heed() (quiet bool) {
	changes, all := e.fabric.TakeChanges()
	more := all
	for _, c := range changes {
		all = all || !facts.TablesOnly(c.Attribute)
		more = more || c.Attribute != smp.AttrPKeyTable
	}
	if more {
		e.epoch++
	}
	s := e.standing
	switch {
	case s == nil:
	case all:
		e.standing = nil
	default:
		for _, c := range changes {
			s.amiss[c.Port] = true
			if c.Attribute == smp.AttrPKeyTable {
				s.stale[c.Port] = true
				s.prover.Changed(c.Port)
			} else {
				s.listed, s.led = false, s.led || c.Attribute == smp.AttrMulticastForwardingTable
			}
		}
	}
	return len(changes) == 0 && !all
}

// writes notes where a plan has something to write: whether it comes to that or
// not.
func (s *standing) writes(p *plan.Plan) {
	for _, stage := range p.Stages {
		for _, op := range stage.Ops {
			s.amiss[op.Port] = true
		}
	}
}

// stand keeps what the pass that has ended knows of the whole subnet: the links
// that are not Active, and the prover of it. quiet
// tells that everything reads as it did when the pass worked out what to write;
// else that is worked out once more, for the next pass to begin from.
func (e *Engine) stand(quiet bool, inactive int, p *isolation.Prover) {
	if e.standing != nil {
		e.standing.listed = true
		return
	}
	// What strangers may use is given to nobody; that is worked out as a whole.
	// Behind a port that is shut there is nothing to work out.
	strange := e.fabric.MeetsStranger(func(p *observed.Port) bool { return !e.isShut(p) })
	unseen := slices.ContainsFunc(e.unseen, func(u unseen) bool { return !e.isShut(e.port(u.behind)) })
	if !e.isMaster() || e.failures > 0 || unseen || strange {
		return
	}
	if !quiet {
		d, err := e.desire(e.policy)
		if err != nil || plan.Diff(e.fabric, d.tables).Len() > 0 {
			return
		}
		e.desired = d
	}
	if len(e.desired.withheld) > 0 || e.desired.odd {
		return
	}
	e.standing = &standing{
		stale: make(map[*observed.Port]bool), amiss: make(map[*observed.Port]bool),
		prover: p, inactive: inactive, listed: true,
	}
}

// amend works out what another policy comes to where a policy stands, and the
// ports at which something may have to be written. ok is false, and nothing has
// changed, when that takes a look at the whole.
func (e *Engine) amend(p *policy.Policy) (d *desired, at []*observed.Port, ok bool) {
	s := e.standing
	if s == nil || e.isBound() || s.passes >= maxPasses || p.UsesLanes() != e.policy.UsesLanes() || !ports.Same(p, e.policy) || e.desired.asked.EnforceBetweenSwitches || p.AllowBoth != e.desired.resolution.AllowBoth || p.AllowRaw != e.policy.AllowRaw {
		return nil, nil, false
	}
	numbers, err := policy.Allocate(p, e.known.PKeys)
	if err != nil {
		return nil, nil, false
	}
	resolution, err := e.resolver.Resolve(p, numbers)
	if err != nil || e.names.Vet(p, resolution, e.site) != nil || !e.desired.sameAliases(e, p, resolution) {
		return nil, nil, false
	}
	changed := e.desired.resolution.Differing(resolution)
	ports := facts.Affected(e.ends, changed, s.stale)
	if len(ports) > maxAffected {
		return nil, nil, false
	}
	known := make([]partition.PortFacts, len(ports))
	for i, port := range ports {
		known[i] = e.factsOf(port)
	}
	out, err := partition.Compile(partition.Input{Ports: known, Resolution: resolution})
	if err != nil || len(out.Warnings) > 0 {
		return nil, nil, false
	}
	now := *e.desired
	now.resolved(resolution)
	now.warnings = append(now.warnings, now.about...)
	now.assigned.PKeys, now.compiled = numbers, len(ports)
	trees, err := e.regrow(&now, changed)
	if err != nil {
		return nil, nil, false
	}
	// From here on nothing can fail: the tables are those of e.desired.
	if trees != nil {
		trees.Enter(e.fabric, now.tables)
		now.ungrouped = trees.Faults
		for _, n := range e.fabric.Switches() {
			s.amiss[&n.Ports[0]] = true
		}
	}
	now.amend(e, out)
	e.regrant(changed, &now)
	s.passes, s.led = s.passes+1, false
	clear(s.stale)
	for _, port := range ports {
		s.amiss[port] = true
		if port.Peer != nil {
			s.amiss[port.Peer] = true
		}
	}
	for port := range s.amiss {
		at = append(at, port)
	}
	return &now, at, true
}

// regrow works out multicast tables when anything has changed that they are made
// of, and gives nil when they stay.
func (e *Engine) regrow(now *desired, changed []ib.PortGUID) (*mcast.Tables, error) {
	if !e.multicast.fresh && !e.standing.led && !slices.ContainsFunc(changed, e.multicast.concerns) {
		return nil, nil
	}
	return e.groupTables(now)
}

// amend enters other tables for the ports that out is about.
func (d *desired) amend(e *Engine, out partition.Output) {
	for _, x := range out.EndPorts {
		d.tables.Port(e.port(Place{x.NodeGUID, x.PortNum})).PKeys = x.Table
	}
	for _, x := range out.SwitchPorts {
		d.guard(e.port(Place{x.SwitchGUID, x.PortNum}), x)
	}
}

// regrant tells the prover what the policy gives to these ports from now on.
// With other partitions it begins anew.
func (e *Engine) regrant(changed []ib.PortGUID, now *desired) {
	same := slices.EqualFunc(e.desired.allowed, now.allowed, func(a, b observed.Partition) bool {
		return a.Base == b.Base && a.Name == b.Name
	})
	if !same {
		e.standing.prover = isolation.NewProver(e.fabric, now.allowed, e.config.raw(e.policy))
		return
	}
	for _, g := range changed {
		e.standing.prover.Allow(g, now.resolution.KeysOf(g))
	}
}

// conclude judges the fabric as the devices showed it.
func (e *Engine) conclude() (*Result, *isolation.Prover) {
	r := &Result{
		Counts: e.counts, Partitions: e.desired.partitions,
		Writes: e.run.Writes(), Failures: e.failures, Faults: len(e.faults), Compiled: e.compiled,
		Multicast: e.proveGroups(), Fences: e.fences(),
	}
	var prover *isolation.Prover
	if s := e.standing; s != nil {
		prover, r.Inactive = s.prover, s.inactive
	} else {
		prover, r.Inactive = isolation.NewProver(e.fabric, e.desired.allowed, e.config.raw(e.policy)), e.desired.tables.Inactive(e.fabric)
	}
	r.Proof = prover.Proof()
	if e.config.Profile != protect.None {
		r.Proof.Rest(e.changeable())
	}
	return r, prover
}
