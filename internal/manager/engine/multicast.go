package engine

import (
	"maps"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/desired/mcast"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed/group"
)

// grouping is what the engine was told of multicast groups.
type grouping struct {
	// groups is nil until it was told anything: then tables stay as they are.
	groups []*group.Group
	// fresh tells that no pass has regarded them yet, alone that what is being
	// written is their tables and nothing else.
	fresh, alone bool
}

// SetGroups says which multicast groups there are, with their members; the
// engine keeps the slice. Switches lead packets to these members from then on,
// and to nobody else; until the first call their tables stay as they are. It
// takes effect at the next call that tells the time, when the engine is at rest,
// with writes to the switches only that have something to change.
func (e *Engine) SetGroups(groups []group.Group) {
	e.multicast.fresh = true
	e.multicast.groups = make([]*group.Group, len(groups))
	for i := range groups {
		e.multicast.groups[i] = &groups[i]
	}
}

// Leads reports whether packets for a multicast LID may be led anywhere by the
// forwarding table of a switch, as far as it was read.
func (e *Engine) Leads(mlid ib.LID) bool { return e.fabric == nil || e.fabric.Leads(mlid) }

// UnknownMLIDs are the multicast LIDs of no group that the forwarding table of a
// switch leads somewhere, or may lead somewhere since it was not read, in order.
func (e *Engine) UnknownMLIDs() []ib.LID {
	led := e.fabric.Led()
	for _, g := range e.multicast.groups {
		delete(led, g.MLID)
	}
	return slices.Sorted(maps.Keys(led))
}

// tellUngrouped warns of members that are not reached and were not among old.
func (e *Engine) tellUngrouped(old []mcast.Fault) {
	for _, text := range mcast.Warnings(e.desired.Ungrouped, old) {
		e.emit(event.Warned{Text: text})
	}
}

// regroups reports whether the groups have changed and nothing else is to be
// done that regards them too.
func (e *Engine) regroups() bool {
	return e.multicast.fresh && e.state == stateWatching && e.desired != nil && e.newPolicy == nil
}

// regroup starts to write what the groups change. What was due before is due
// still: hosts that join and leave without end keep nothing from happening.
func (e *Engine) regroup(now time.Duration) {
	e.multicast.fresh = false
	old := e.desired.Ungrouped
	if err := e.desired.Lead(e.multicast.groups); err != nil {
		e.refuse(now, nil, err)
		return
	}
	e.tellUngrouped(old)
	e.multicast.alone = true
	e.write(plan.DiffMulticast(e.fabric, e.desired.Tables))
}

// proveGroups judges the multicast tables as they were read back; nil when they
// are none of the engine's business.
func (e *Engine) proveGroups() *isolation.Multicast {
	if e.multicast.groups == nil {
		return nil
	}
	return isolation.ProveMulticast(e.fabric, e.desired.Resolution.Partitions, facts.Judged(e.multicast.groups))
}

// regrouped ends what regroup began.
func (e *Engine) regrouped() {
	for _, f := range e.run.Failures() {
		e.emit(event.Failed{Failure: f})
		e.unfinished[unfinished{f.Port, f.Attribute}] = true
	}
	e.reportForgotten()
	e.known.Learn(e.fabric)
	e.emit(event.Regrouped{Groups: len(e.multicast.groups), Writes: e.run.Writes(), Failures: len(e.run.Failures()), Proof: e.proveGroups()})
	if e.run.Writes() > 0 {
		e.listChecks()
	}
	e.run = nil
	e.state = stateWatching
}
