package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// refused is the phase of a manager without a policy in force that may not, or cannot, write: it waits
// for another policy, or to try again.
type refused struct{ base }

func (refused) state() state { return stateRefused }

func (refused) expire(e *Engine, now time.Duration) {
	e.askMutes(now)
	e.tickPeers(now)
}

func (refused) deadline(e *Engine, sooner func(time.Duration, bool)) {
	sooner(e.sweepDue())
	sooner(e.mutesDue())
}

func (refused) advance(e *Engine, now time.Duration) bool {
	e.retry(now, "the last pass did not finish")
	switch {
	case e.ownLID.robbed:
		return e.justify(now)
	case e.resweep(now):
	case e.agenda.policy != nil:
		e.emit(event.Resweeping{Reason: "a new policy"}) // nobody has watched the subnet since
		e.startSweep()
	default:
		return false
	}
	return true
}

// refuse ends a pass that wrote nothing. Where no policy stands it is tried again after a while.
func (e *Engine) refuse(now time.Duration, p *policy.Policy, err error) {
	e.emit(event.Refused{Err: err, Policy: p})
	if e.settled && e.isMaster() {
		e.rest(now, onPolicyRefused)
	} else {
		// With none in force, a new policy waits for the next try as the first one
		// does: else it would have the subnet swept again and again without a pause.
		e.policy, e.agenda.policy = e.wanted(), nil
		e.rest(now, onRefused)
	}
	if e.desired == nil {
		e.agenda.retryAt = now + e.config.Periods.Drift
		e.noteMutes(nil, true)
	}
}

// lockOut ends a pass of a manager that devices do not let in. Where other managers store
// keys too, those are read again before it is refused.
func (e *Engine) lockOut(now time.Duration, err error) {
	if e.keys.LockOut(err) {
		e.refuse(now, nil, err)
		return
	}
	e.emit(event.LockedOut{Err: err})
	e.policy, e.agenda.policy = e.wanted(), nil // a new one waits for the next try too
	e.rest(now, onLockedOut)
	e.agenda.retryAt = now + e.config.Periods.Drift
}
