package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/event"
)

// other is a phase that has no type of its own yet: what it does is in the functions of Engine.
type other struct {
	base
	is state
}

func (o other) state() state { return o.is }

func (o other) advance(e *Engine, now time.Duration) bool {
	switch o.is {
	case stateSweeping:
		if e.sweep.discovery.Advance() {
			e.swept(now)
		}
	case stateElecting:
		if e.master.Awaits() {
			return false
		}
		e.elected(now)
	case statePausing:
		return false
	case stateRefreshing:
		e.refreshed(now)
	case stateNarrowing:
		e.narrowed()
	case stateChecking:
		e.checked(now)
	}
	return true
}

func (o other) expire(e *Engine, now time.Duration) {
	switch o.is {
	case stateNarrowing:
		if e.narrowing.expire(now) {
			e.narrowed()
			e.phase.expire(e, now)
			return
		}
	case stateChecking:
		e.watchGuards(now)
	}
	e.tickPeers(now)
	if o.is == statePausing && e.state() == statePausing && now >= e.pauseEnds() {
		e.paused()
	}
}

func (o other) deadline(e *Engine, sooner func(time.Duration)) {
	switch o.is {
	case statePausing:
		sooner(e.pauseEnds())
	case stateChecking:
		e.guardsDue(sooner)
	case stateNarrowing:
		sooner(e.narrowing.until)
	}
}

func (o other) giveWay(e *Engine, now time.Duration) bool {
	switch o.is {
	case stateSweeping:
		if e.sweep.links {
			e.sweep.links = false // the links that moved are followed later
			e.agenda.links.Interrupted(now + revisitRest)
		} else {
			e.agenda.wantSweepAt(now, "a new policy came while the subnet was read")
		}
		e.sweep.discovery = nil
	case stateElecting:
		e.agenda.wantElection("a new policy came meanwhile")
	case stateChecking:
		e.round.cursor, e.round.next = e.round.from, now
	default:
		return false
	}
	return true
}

func (o other) resign(e *Engine) {
	switch o.is {
	case statePausing:
		e.step(onDeposed, standingBy{})
		e.sweep.discovery = nil
	case stateSweeping:
		e.sweep.discovery.WriteNothing()
	}
}

func (o other) work(e *Engine) (w apply.Work, some bool) {
	switch o.is {
	case stateChecking:
		return w, false
	case stateSweeping:
		w.Phase = event.PhaseDiscover
	case stateElecting:
		w.Phase = event.PhaseElect
	case stateRefreshing:
		w.Phase = event.PhaseTables
	case statePausing:
		w.Phase = event.PhasePause
	case stateNarrowing:
		w.Phase, w.Narrows = event.PhaseNarrow, true
	}
	return w, true
}
