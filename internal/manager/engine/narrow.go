package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// narrowing lets a new policy interrupt what is under way. Devices can delay a sweep or
// an election; a revocation does not wait for them. It is written to the devices of the
// last snapshot, each verified just before. Only revocations are written: whatever has
// changed since, no port is given anything.
type narrowing struct {
	// wayFor is the policy for which something was interrupted, cut the one
	// whose narrowing was written.
	wayFor, cut *policy.Policy
	narrowUntil time.Duration
}

// narrowMost is how long the narrowing may take: devices that have not answered by then
// are left to the pass that follows.
const narrowMost = time.Second

// revisitRest is how long a changed link is left alone when following it was interrupted,
// so that it does not delay the interrupting policy again.
const revisitRest = 100 * time.Millisecond

// giveWay interrupts what is under way for a new policy.
func (e *Engine) giveWay(now time.Duration) {
	if e.newPolicy == nil || e.newPolicy == e.wayFor || !e.settled || !e.isMaster() || e.config.Hold {
		return
	}
	switch e.state {
	case stateSweeping:
		if e.revisiting {
			e.revisiting = false // the links that moved are followed later
			e.moved.Interrupted(now + revisitRest)
		} else {
			e.wantSweep("a new policy came while the subnet was read")
			e.sweepFrom = now
		}
		e.discovery = nil
	case stateReading:
		e.wantSweep("a new policy came while the subnet was read")
		e.sweepFrom, e.discovery = now, nil
	case stateElecting:
		e.wantElection("a new policy came meanwhile")
	case stateChecking:
		e.cursor, e.nextCheck = e.checkFrom, now
	case stateApplying:
		if e.multicast.alone || e.rerouting || !e.run.MayAbort() {
			return
		}
		e.run.Abort()
		e.run, e.repairing = nil, false // what was to be written is in standing.amiss
	default:
		return
	}
	e.wayFor = e.newPolicy
	e.window.Forget()
	e.step(onGivesWay)
}

// narrowsFirst reports whether the revocations of a new policy are to be written before
// anything else. Where another manager may have written since, all is read before.
func (e *Engine) narrowsFirst(now time.Duration) bool {
	return e.newPolicy != e.cut && e.settled && !e.others && e.state == stateWatching && e.isMaster() && !e.config.Hold &&
		(e.resweep != "" || e.reelect != "" || e.looksAtSwitch(now))
}

// narrow starts to write the revocations of a new policy. It reports whether there are
// any; a policy that does not fit is refused when all of it is computed.
func (e *Engine) narrow(now time.Duration) bool {
	e.cut = e.newPolicy
	p := e.narrowing.of(e)
	if p == nil || p.Len() == 0 {
		return false
	}
	e.cancelLooks()
	e.begin(event.PhaseNarrow)
	e.step(onRevoked)
	e.narrowUntil = now + narrowMost
	apply.Narrow(e.window, p, func(f apply.Failure) { e.emit(event.Failed{Failure: f}) })
	return true
}

// of computes the narrowing on the last snapshot that has tables.
func (*narrowing) of(e *Engine) *plan.Plan {
	if last := e.before; last.fabric != nil {
		now := snapshot{e.fabric, e.ends, e.resolver, e.unseen}
		e.fabric, e.ends, e.resolver, e.unseen = last.fabric, last.ends, last.resolver, last.unseen
		defer func() { e.fabric, e.ends, e.resolver, e.unseen = now.fabric, now.ends, now.resolver, now.unseen }()
	}
	of, err := e.resolve(e.newPolicy)
	if err != nil {
		return nil
	}
	want, err := e.desire(of, nil)
	if err != nil {
		return nil
	}
	return plan.Narrowing(e.fabric, want.Tables)
}

// narrowed ends what narrow began.
func (e *Engine) narrowed() { e.step(onDone) }

// narrowedEnough ends it for devices that have not answered.
func (e *Engine) narrowedEnough(now time.Duration) {
	if e.state == stateNarrowing && now >= e.narrowUntil {
		e.window.Forget()
		e.narrowed()
	}
}
