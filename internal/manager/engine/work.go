package engine

import (
	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/event"
)

// UnderWay says what the engine is doing; false when it is at rest.
func (e *Engine) UnderWay() (w apply.Work, some bool) {
	w.Stands = e.settled
	switch e.state {
	case stateWatching, stateStandby, stateRefused, stateHeld, stateChecking:
		return w, false
	case stateSweeping:
		w.Phase = event.PhaseDiscover
	case stateElecting:
		w.Phase = event.PhaseElect
	case stateAnnouncing:
		w.Phase = event.PhaseAnnounce
		w.Ports, w.Of = e.writing.run.Progress()
	case stateRefreshing:
		w.Phase = event.PhaseTables
	case stateReading:
		w.Phase, w.Keyed = event.PhaseTables, e.givesKeys()
	case statePausing:
		w.Phase = event.PhasePause
	case stateNarrowing:
		w.Phase, w.Narrows = event.PhaseNarrow, true
	case stateKeying, stateApplying:
		if w.Phase = e.writing.stage; e.writing.run != nil {
			w.Ports, w.Of = e.writing.run.Progress()
		}
	}
	return w, true
}

// Abandon ends what the engine writes, and tells how many writes were sent; then it is over.
func (e *Engine) Abandon() (writes int) {
	if e.writing.run == nil {
		return 0
	}
	e.writing.run.Abort()
	return e.writing.run.Writes()
}

func (e *Engine) emit(ev event.Event) { e.observe(ev) }

func (e *Engine) begin(phase string) { e.emit(event.PhaseBegun{Phase: phase}) }
