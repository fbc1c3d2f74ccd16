package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/event"
)

// watching is the phase between light sweeps: the master of a subnet takes up what is on its agenda.
type watching struct{ base }

func (watching) state() state { return stateWatching }

// expire goes on with what is done beside passes, and starts a light sweep when it is due.
func (w watching) expire(e *Engine, now time.Duration) {
	e.watchGuards(now)
	e.askMutes(now)
	e.tickPeers(now)
	if e.phase == phase(w) && now >= e.round.next { // it was not deposed
		e.startCheck()
	}
}

func (watching) deadline(e *Engine, sooner func(time.Duration, bool)) {
	calm := e.watches() && e.agenda.sweep == ""
	soon := func(at time.Duration, some bool) { sooner(at, some && calm) }
	sooner(e.round.next, true)
	sooner(e.sweepDue())
	sooner(e.mutesDue())
	sooner(e.guardsDue())
	soon(e.hostsDue())
	if e.answered() {
		sooner(0, e.regroups() || e.rekeys() || e.mustReleaseKeys())
		soon(e.agenda.due())
	}
}

func (watching) resign(e *Engine) { e.step(onDeposed, standingBy{}) }

// advance starts the next task, if there is one. Revocations go first, then tasks that affect one
// port, then sweeps.
func (watching) advance(e *Engine, now time.Duration) bool {
	e.retry(now, "the last pass did not finish")
	if e.ownLID.robbed {
		return e.justify(now)
	}
	e.startLooks()
	switch {
	case e.agenda.policy != nil && e.narrowsFirst(now) && e.narrow(now):
	case e.mustReleaseKeys():
		e.release()
	case e.resweep(now):
	case e.regroups():
		e.regroup(now)
	case e.rekeys():
		e.cancelLooks()
		e.secure(now)
	case e.agenda.sweep != "" || !e.isMaster():
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

// retry has the subnet read again where that is due in any case, for a reason.
func (e *Engine) retry(now time.Duration, reason string) {
	if e.agenda.retryAt != 0 && now >= e.agenda.retryAt {
		e.agenda.wantSweep(reason)
	}
}

// resweep starts a sweep of the whole subnet that is due, and reports whether there is one.
func (e *Engine) resweep(now time.Duration) bool {
	if e.agenda.sweep == "" || now < e.agenda.sweepFrom {
		return false
	}
	e.emit(event.Resweeping{Reason: e.agenda.sweep})
	e.startSweep()
	return true
}

// sweepDue is when resweep is to be called.
func (e *Engine) sweepDue() (at time.Duration, some bool) {
	at, some = e.agenda.sweepsAt()
	return at, some && e.answered()
}

// answered reports whether no answer is awaited that comes before what is on the agenda.
func (e *Engine) answered() bool { return e.window.Idle() && !e.ownLID.robbed }

// watches reports whether this manager monitors a policy in force.
func (e *Engine) watches() bool {
	return e.state() == stateWatching && e.desired != nil && e.isMaster()
}
