package engine

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// baseline is the result of a full pass, so that after a change of the policy or of a
// table a pass only looks at the ports that the change affects. The
// result equals that of a full pass. A baseline is valid as long as nothing but tables
// changes; any other changed attribute, and anything
// out of the ordinary, ends it: then the next pass is a full one.
type baseline struct {
	// stale are the ports whose P_Key tables have changed since the
	// desired tables were computed; amiss are the ports at which something may
	// have to be written. Nothing has to be written anywhere else.
	stale, amiss map[*observed.Port]bool
	prover       *isolation.Prover
	inactive     int
	// listed says that the list of checks is up to date, led that multicast tables
	// have changed: trees start from what switches hold.
	listed, led bool
	passes      int
}

// maxPasses is how many incremental passes may follow a full one: what a Prover keeps
// grows with every set of keys that it sees.
const maxPasses = 1024

// noteChanges records the values that have changed since the last call, and reports whether none has.
func (e *Engine) noteChanges() (quiet bool) {
	changes, all := e.fabric.TakeChanges()
	more := all
	for _, c := range changes {
		all = all || !facts.TablesOnly(c.Attribute)
		more = more || c.Attribute != smp.AttrPKeyTable
	}
	if more {
		e.proof.epoch++
	}
	s := e.proof.baseline
	switch {
	case s == nil:
	case all:
		e.proof.baseline = nil
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

// writes marks the ports that a plan writes to, whether or not the writes happen.
func (s *baseline) writes(p *plan.Plan) {
	for _, stage := range p.Stages {
		for _, op := range stage.Ops {
			s.amiss[op.Port] = true
		}
	}
}

// setBaseline keeps what the pass that has ended knows of the whole subnet: the links
// that are not Active, and the prover of it. quiet
// says that everything reads as it did when the pass worked out what to write;
// else that is worked out once more, for the next pass to begin from.
func (e *Engine) setBaseline(quiet bool, inactive int, p *isolation.Prover) {
	if e.proof.baseline != nil {
		e.proof.baseline.listed = true
		return
	}
	// What strangers may use is given to nobody; that is worked out as a whole.
	// Behind a port that is shut there is nothing to work out.
	strange := e.fabric.HasStranger(func(p *observed.Port) bool { return !e.known.Fences.IsShut(p) })
	hidden := slices.ContainsFunc(e.unseen, func(u facts.UnseenPort) bool { return !e.known.Fences.IsShut(e.fabric.At(u.Behind)) })
	if !e.isMaster() || e.proof.failures > 0 || hidden || strange {
		return
	}
	if !quiet {
		of, err := e.resolve(e.policy)
		if err != nil {
			return
		}
		r, err := e.desire(of, nil)
		if err != nil || plan.Diff(e.fabric, r.Tables).Len() > 0 {
			return
		}
		e.desired = r
	}
	if !e.desired.Ordinary() {
		return
	}
	e.proof.baseline = &baseline{
		stale: make(map[*observed.Port]bool), amiss: make(map[*observed.Port]bool),
		prover: p, inactive: inactive, listed: true,
	}
}

// update computes the result of another policy incrementally, and the ports at which
// something may have to be written. ok is false, and nothing has changed, if that takes a
// full pass.
func (e *Engine) update(next desired.Resolved) (r *desired.Result, at []*observed.Port, ok bool) {
	s := e.proof.baseline
	if s == nil || e.isBound() || s.passes >= maxPasses {
		return nil, nil, false
	}
	a, ok := e.desired.Update(desired.Next{
		Resolved: next, Stale: s.stale, Groups: e.multicast.groups, Regroup: e.multicast.fresh || s.led,
	})
	if !ok {
		return nil, nil, false
	}
	if a.Regrouped {
		for _, n := range e.fabric.Switches() {
			s.amiss[&n.Ports[0]] = true
		}
	}
	r = a.Enter()
	e.regrant(a.Changed, r)
	s.passes, s.led = s.passes+1, false
	clear(s.stale)
	for _, port := range a.Ports {
		s.amiss[port] = true
		if port.Peer != nil {
			s.amiss[port.Peer] = true
		}
	}
	for port := range s.amiss {
		at = append(at, port)
	}
	return r, at, true
}

// regrant tells the prover what the policy gives to these ports from now on.
// With other partitions it begins again.
func (e *Engine) regrant(changed []ib.PortGUID, now *desired.Result) {
	same := slices.EqualFunc(e.desired.Resolution.Partitions, now.Resolution.Partitions, func(a, b observed.Partition) bool {
		return a.Base == b.Base && a.Name == b.Name
	})
	if !same {
		e.proof.baseline.prover = isolation.NewProver(e.fabric, now.Resolution.Partitions, now.Raw())
		return
	}
	for _, g := range changed {
		e.proof.baseline.prover.Allow(g, now.Resolution.KeysOf(g))
	}
}
