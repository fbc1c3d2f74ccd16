package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mastership"
)

// SetPeriods changes Config.SweepInterval, DriftPeriod and GuardPeriod.
func (e *Engine) SetPeriods(sweep, drift, guard time.Duration) {
	e.config.SweepInterval, e.config.DriftPeriod, e.config.GuardPeriod = sweep, drift, guard
	e.round.next = min(e.round.next, e.now+sweep)
}

// Deadline is when to call Expire.
func (e *Engine) Deadline() (time.Duration, bool) {
	if e.master.Nap.On() {
		due := e.master.Nap.Due(e.now)
		if at, some := e.master.Due(false, false); some {
			due = min(due, at)
		}
		if at, some := e.master.Right.At(e.now); some {
			due = min(due, at)
		}
		return due, true
	}
	due, ok := e.window.Deadline()
	sooner := func(at time.Duration) {
		if !ok || at < due {
			due, ok = at, true
		}
	}
	if at, some := e.beside.window.Deadline(); some {
		sooner(at)
	}
	if e.state == stateWatching || e.state == stateApplying && e.config.Hold && e.window.Idle() {
		sooner(e.round.next)
	}
	if e.state == statePausing {
		sooner(e.pauseEnds())
	}
	if at, some := e.master.Right.At(e.now); some {
		sooner(at)
	}
	// One that is held starts nothing by itself, and else the answer that is awaited comes first.
	if e.atRest() && !e.Held() && e.window.Idle() && !e.ownLID.robbed {
		if at, some := e.agenda.sweepsAt(); some {
			sooner(at)
		}
		if e.regroups() || e.rekeys() || e.mustReleaseKeys() {
			sooner(0)
		}
		if at, some := e.agenda.due(); some && e.watches() && e.agenda.sweep == "" {
			sooner(at)
		}
	}
	if at, some := e.master.Due(e.state == stateElecting, e.state == stateReleasing); some {
		sooner(at)
	}
	if e.state == stateKeying && e.window.Idle() && !e.awaitsKeeping() {
		sooner(0)
	}
	if at, some := e.beside.mutes.Next(); some && e.asksMutes() {
		sooner(at)
	}
	if at, some := e.hostsDue(); some && e.watches() && e.agenda.sweep == "" {
		sooner(at)
	}
	if e.guarding() {
		sooner(e.beside.guards.At())
	}
	if e.state == stateNarrowing {
		sooner(e.narrowing.until)
	}
	if e.heeds() {
		sooner(e.now + e.config.MasterTimeout/mastership.Beats)
	}
	return due, ok
}

// startNext starts the next task of an idle engine, if there is one. Revocations go
// first, then tasks that affect one port, then sweeps.
func (e *Engine) startNext(now time.Duration) bool {
	if e.agenda.retryAt != 0 && now >= e.agenda.retryAt {
		reason := "the last pass did not finish"
		if e.state == stateStandby {
			reason = "a standby reads the subnet once in a while"
		}
		e.agenda.wantSweep(reason)
	}
	if e.ownLID.robbed {
		return e.justify(now)
	}
	e.startLooks()
	switch {
	case e.agenda.policy != nil && e.state == stateStandby:
		e.policy, e.agenda.policy = e.agenda.policy, nil
		return false
	case e.agenda.policy != nil && e.narrowsFirst(now) && e.narrow(now):
	case e.mustReleaseKeys():
		e.release()
	case e.agenda.sweep != "" && now >= e.agenda.sweepFrom:
		e.emit(event.Resweeping{Reason: e.agenda.sweep})
		e.startSweep()
	case e.agenda.policy != nil && e.state == stateRefused:
		e.emit(event.Resweeping{Reason: "a new policy"}) // nobody has watched the subnet since
		e.startSweep()
	case e.regroups():
		e.regroup(now)
	case e.rekeys():
		e.cancelLooks()
		e.secure(now)
	case e.agenda.sweep != "" || e.state != stateWatching || !e.isMaster():
		return false // what else is due waits for the sweep
	case e.agenda.election != "":
		e.cancelLooks()
		e.startElection(now)
	case e.agenda.policy != nil && e.looksAtSwitch(now):
		return false // what it finds has to be known first
	case e.agenda.policy != nil && e.fabric.Self == nil:
		e.agenda.wantSweep("the manager's own port did not answer when a policy came")
		return false
	case e.agenda.policy != nil:
		e.cutMoved() // else apply asks who is there before a link becomes Active
		e.startPass(now)
	case e.agenda.replan && now >= e.agenda.sweepFrom:
		e.membersChanged()
	case e.agenda.restate && now >= e.agenda.sweepFrom:
		e.agenda.restate, e.agenda.policy = false, e.policy // nothing changes, and it is proved again
	case e.desired != nil && !e.agenda.links.OutOfDate(e.fabric) && e.askHosts(now):
	default:
		return e.desired != nil && (e.agenda.links.Len() > 0 || len(e.agenda.repairs) > 0 || e.agenda.compare) && !e.looksAtSwitch(now) &&
			(e.reroute() || e.revisit(now) || e.agenda.compare && e.compare() || e.putRight())
	}
	return true
}

// watches reports whether this manager monitors a policy in force.
func (e *Engine) watches() bool {
	return e.state == stateWatching && e.desired != nil && e.isMaster()
}
