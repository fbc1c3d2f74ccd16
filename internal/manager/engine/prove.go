package engine

import (
	"errors"
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// applied judges what the devices showed.
func (a *applying) applied(e *Engine, now time.Duration) {
	if !e.isMaster() { // not any more
		e.rest(now, onDeposed)
		return
	}
	switch a.kind {
	case writeGroups:
		e.regrouped(a.run)
		return
	case writeDetour:
		e.rerouted(a.run)
		return
	}
	e.begin(event.PhaseProve)
	e.settled, e.known.Managed = true, true
	e.standby = standby{registered: e.standby.registered}
	partly := a.kind == writeRepair
	if !partly {
		e.proof.failures = e.keys.Unset
		e.proof.unfinished = make(map[unfinished]bool)
	}
	e.proof.failures += len(a.run.Failures())
	for _, f := range a.run.Failures() {
		e.emit(event.Failed{Failure: f})
		if errors.Is(f.Err, apply.ErrRecabled) {
			e.linkMovedAt(f.Port, f.Error(), now+e.config.Periods.Drift) // its switch tells sooner
		}
		e.proof.unfinished[unfinished{f.Port, f.Attribute}] = true
	}
	e.reportForgotten(a.run)
	e.noteMutes(a.run.Failures(), !partly)
	e.keys.ComeUp()
	same := e.noteChanges()
	if e.proof.baseline == nil {
		e.known.Learn(e.fabric)
		// It answered, and made no sense. Who is undeclared is asked again sooner.
		e.proof.strangers = e.fabric.HasStranger(func(p *observed.Port) bool { return !p.Silent && !facts.Undeclared(p) })
	}
	e.reregistered(a.run.Failures())
	e.lookAtLIDs()
	result, prover := e.conclude(a)
	e.emit(event.Completed{Result: result})
	if e.proof.baseline == nil || !e.proof.baseline.listed {
		e.listChecks()
	}
	e.rest(now, onDone)
	e.setBaseline(same, result.Inactive, prover)
	e.reconsider()
	e.rereadAliases()
	if e.proof.strangers && e.agenda.retryAt == 0 {
		e.agenda.retryAt = now + e.config.Periods.Drift
	}
}

// conclude judges the fabric as the devices showed it.
func (e *Engine) conclude(a *applying) (*event.Result, *isolation.Prover) {
	r := &event.Result{
		Policy: e.policy, Counts: e.counts, Partitions: e.desired.Resolution.Partitions,
		Writes: a.run.Writes(), Failures: e.proof.failures, Faults: len(e.faults), Compiled: a.compiled,
		Multicast: e.proveGroups(), Fences: e.fences(), Outdated: e.agenda.policy != nil,
	}
	var prover *isolation.Prover
	if s := e.proof.baseline; s != nil {
		prover, r.Inactive = s.prover, s.inactive
	} else {
		prover, r.Inactive = isolation.NewProver(e.fabric, e.desired.Resolution.Partitions, e.desired.Raw()), e.desired.Tables.Inactive(e.fabric)
	}
	r.Proof = prover.Proof()
	if e.config.Profile != protect.None {
		r.Proof.Rest(e.changeable())
	}
	r.Proof.Heed(isolation.Unnamed(e.fabric, e.master.Names))
	e.agenda.restate = false
	return r, prover
}

// proof is what the last pass left of what it judged, for the next one.
type proof struct {
	baseline *baseline // nil: the next pass looks at the whole
	epoch    uint64    // goes up when more than P_Key tables reads otherwise than before
	grounds  grounds
	// strangers reports whether something behind a link makes no sense.
	strangers  bool
	failures   int
	unfinished map[unfinished]bool
	// claims are the LIDs that ports have and ought not to have; claimed is their version.
	claims  []desired.LIDClaim
	claimed uint64
}

// unfinished is an attribute that the last pass could not write: that it is not
// as it should be is nobody else's doing.
type unfinished struct {
	port      *observed.Port
	attribute mad.AttributeID
}

// grounds are the places where a host could change what was proved, as long as
// the subnet reads as it did when they were worked out.
type grounds struct {
	known bool
	epoch uint64
	found []isolation.Finding
}

// changeable lists the places where a host could change what is proved.
func (e *Engine) changeable() []isolation.Finding {
	if g := &e.proof.grounds; !g.known || g.epoch != e.proof.epoch || e.proof.baseline == nil {
		*g = grounds{true, e.proof.epoch, isolation.Changeable(e.fabric, e.cabling.list.Declares())}
	}
	return e.proof.grounds.found
}
