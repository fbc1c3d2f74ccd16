package engine

import (
	"reflect"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// standby is what a manager that stands by knows of the subnet. It reads all of it once
// in every Config.Periods.Drift and writes nothing.
type standby struct {
	// ready is what the policy wants of the subnet as last read, if it held all of it but the
	// address of the master and P_Key tables; else nil. held is what ports held.
	ready *desired.Result
	held  *desired.Bound
	lid   ib.LID // the manager's own by then
	// serves reports whether subnet administration answers from ready until the first pass.
	serves bool
	// announced reports whether hosts were told of the new master before that pass.
	announced bool
	// deferred is the master that was last reported.
	deferred event.Deferred
	// unready is how often in a row the subnet was found otherwise than the policy wants it.
	unready int
	// registered reports whether what hosts registered with the master before is known here.
	registered bool
}

// standingBy is the phase between the times at which a standby reads the subnet, and before a new
// master reads it.
type standingBy struct{ base }

func (standingBy) state() state { return stateStandby }

func (standingBy) deadline(e *Engine, sooner func(time.Duration, bool)) { sooner(e.sweepDue()) }

func (standingBy) advance(e *Engine, now time.Duration) bool {
	e.retry(now, "a standby reads the subnet once in a while")
	switch {
	case e.ownLID.robbed:
		return e.justify(now)
	case e.agenda.policy != nil:
		e.policy, e.agenda.policy = e.agenda.policy, nil
		return false
	}
	return e.resweep(now)
}

// unreadyMost bounds the doubling of the time until a standby reads the subnet again.
const unreadyMost = 8

// standBy goes on as a standby: the tables are read too, if they were not.
func (e *Engine) standBy(now time.Duration, d event.Deferred) {
	e.master.StoodBy, e.master.Other = "", false
	if d != e.standby.deferred {
		e.standby.deferred = d
		e.emit(d)
	}
	if e.sweep.discovery != nil && e.master.State() == smp.SMStandby && !e.config.Hold {
		e.readRest()
		return
	}
	e.stoodBy(now)
}

// stoodBy works out, from a subnet that was read whole, what would have to be written to it.
func (e *Engine) stoodBy(now time.Duration) {
	e.rest(now, onStandby)
	if e.master.State() != smp.SMStandby || e.config.Hold {
		return
	}
	e.standby.ready = nil
	// A subnet that is being changed while it is read is read again sooner.
	e.agenda.retryAt = now + min(e.config.Periods.Sweep<<min(e.standby.unready, unreadyMost), e.config.Periods.Drift)
	e.standby.unready++
	of, err := e.resolve(e.wanted())
	if err != nil {
		return // told when it would be master
	}
	groups := e.multicast.groups
	e.multicast.groups = nil // those of the master are not known here: tables may be as they are
	r, err := e.desire(of, nil)
	e.multicast.groups = groups
	if err != nil {
		return
	}
	all, tables := plan.Diff(e.fabric, r.Tables).MovesWithMaster(r.Tables, e.fabric.Self, e.wanted().MasterLID())
	if !all {
		return
	}
	e.standby.ready, e.standby.held, e.standby.lid = r, desired.BoundOf(e.ends, "", false), e.fabric.Self.Info.LID
	if !tables {
		e.standby.unready, e.agenda.retryAt = 0, now+e.config.Periods.Drift
	}
}

// unchanged leaves in a subnet, which was read as standby, the partitions and members that have
// not changed since: ports held them, and the policy in force gives them still. It reports
// whether anything else of the policy that hosts are told has changed.
func (e *Engine) unchanged(s *observed.Subnet) bool {
	of, err := e.resolve(e.wanted())
	return err == nil && reflect.DeepEqual(e.standby.ready.Settings, e.wanted().Asked()) &&
		e.standby.held.Leave(s, e.standby.ready.Resolution, of.Resolution, e.fabric.Self.GUID)
}

// Serves reports whether subnet administration answers from what was read as standby.
func (e *Engine) Serves() bool { return e.standby.serves }

// Remember tells, after event.TakingOver, what the former master kept: what it assigned,
// and that what hosts registered with it is known to subnet administration, so that no
// host is asked to register again.
func (e *Engine) Remember(a desired.Assigned, registered bool) {
	a.Managed = a.Managed || e.known.Managed
	e.known, e.names.Known = a, a.Names
	e.standby.registered = registered
}
