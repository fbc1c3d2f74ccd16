package engine

import (
	"maps"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed/group"
)

// grouping holds the multicast groups that were set.
type grouping struct {
	// groups is nil until it was told anything: then tables stay as they are.
	groups []*group.Group
	// fresh reports whether no pass has regarded them yet.
	fresh bool
	// prover keeps what the tables were judged by, and finds out itself what has changed.
	prover isolation.MulticastProver
}

// SetGroups sets the multicast groups, with their members; the engine keeps the slice.
// From then on switches forward packets to these members only; until the first call their
// tables stay as they are. It takes effect at the next call that passes the time, when
// the engine is at rest, and writes only to the switches whose tables change.
func (e *Engine) SetGroups(groups []group.Group) {
	e.multicast.fresh = true
	e.multicast.groups = make([]*group.Group, len(groups))
	for i := range groups {
		e.multicast.groups[i] = &groups[i]
	}
}

// Leads reports whether the forwarding table of any switch may forward a multicast LID,
// as far as it was read.
func (e *Engine) Leads(mlid ib.LID) bool { return e.fabric == nil || e.fabric.Leads(mlid) }

// UnknownMLIDs are the multicast LIDs without a group that the forwarding table of a
// switch forwards, or may forward since it was not read, in order.
func (e *Engine) UnknownMLIDs() []ib.LID {
	led := e.fabric.Led()
	for _, g := range e.multicast.groups {
		delete(led, g.MLID)
	}
	return slices.Sorted(maps.Keys(led))
}

// tellUngrouped warns of members that are not reached and were not in old, and of changed
// trees that are not right.
func (e *Engine) tellUngrouped(old []desired.MulticastFault) {
	for _, text := range append(desired.MulticastWarnings(e.desired.Ungrouped, old), e.desired.JudgeGroups()...) {
		e.emit(event.Warned{Text: text})
	}
}

// regroups reports whether the groups have changed and no task is due that handles them
// too.
func (e *Engine) regroups() bool {
	return e.multicast.fresh && e.desired != nil && e.agenda.policy == nil
}

// regroup starts to write the changes of the groups. Other due tasks stay due: hosts that
// join and leave without end delay nothing.
func (e *Engine) regroup(now time.Duration) {
	e.multicast.fresh = false
	old := e.desired.Ungrouped
	if err := e.desired.Lead(e.multicast.groups); err != nil {
		e.refuse(now, nil, err)
		return
	}
	e.tellUngrouped(old)
	e.write(writeGroups, plan.DiffMulticast(e.fabric, e.desired.Tables), 0)
}

// proveGroups judges the multicast tables as they were read back; nil when the engine
// does not manage them.
func (e *Engine) proveGroups() *isolation.Multicast {
	if e.multicast.groups == nil {
		return nil
	}
	return e.multicast.prover.Prove(e.fabric, e.desired.Resolution.Partitions, facts.Judged(e.multicast.groups))
}

// regrouped ends what regroup began.
func (e *Engine) regrouped(run *apply.Run) {
	for _, f := range run.Failures() {
		e.emit(event.Failed{Failure: f})
		e.proof.unfinished[unfinished{f.Port, f.Attribute}] = true
	}
	e.reportForgotten(run)
	e.known.Learn(e.fabric)
	e.emit(event.Regrouped{Groups: len(e.multicast.groups), Writes: run.Writes(), Failures: len(run.Failures()), Proof: e.proveGroups()})
	if run.Writes() > 0 {
		e.listChecks()
	}
	e.step(onDone, watching{})
}
