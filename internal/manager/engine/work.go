package engine

import "fmt"

// Work says what an engine is in the middle of.
type Work struct {
	// Phase is one of the phases that PhaseBegun has, or "take away".
	Phase string
	// Ports is at how many ports of Of all that is to be written was written and
	// read back; both are 0 where nothing is being written.
	Ports, Of int
	// Stands tells that a policy has been carried out whole before.
	Stands bool
}

// UnderWay says what the engine is doing; false when it is at rest.
func (e *Engine) UnderWay() (w Work, some bool) {
	w.Stands = e.settled
	switch e.state {
	case stateWatching, stateStandby, stateRefused, stateHeld, stateChecking:
		return w, false
	case stateSweeping:
		w.Phase = PhaseDiscover
	case stateElecting:
		w.Phase = PhaseElect
	case stateReading:
		w.Phase = PhaseTables
	case statePausing:
		w.Phase = PhasePause
	case stateNarrowing:
		w.Phase = PhaseNarrow
	case stateKeying, stateApplying:
		if w.Phase = e.stage; e.run != nil {
			w.Ports, w.Of = e.run.Progress()
		}
	}
	return w, true
}

// Abandon ends what the engine writes, with packets under way: it is not to be
// driven any more. It tells how many writes were sent.
func (e *Engine) Abandon() (writes int) {
	if e.run == nil {
		return 0
	}
	e.run.Abort()
	return e.run.Writes()
}

// String says what is left half done when the engine goes no further.
func (w Work) String() string {
	stands := "nothing was written"
	if w.Stands {
		stands = "the fabric stands as the last verdict says"
	} else if w.Phase == PhaseTables {
		stands = "ports have their M_Keys, and nothing else was written"
	}
	switch {
	case w.Of > 0:
		return fmt.Sprintf("%s: %d of %d ports written; what is to be taken away goes first, so that nobody reaches more than before or than the policy gives, and what it gives is not all there: run again to finish",
			w.Phase, w.Ports, w.Of)
	case w.Phase == PhaseNarrow:
		return w.Phase + ": not all that the policy takes away is taken away, and nothing was given: run again to finish"
	}
	return w.Phase + ": the fabric was being read; " + stands + ": run again to finish"
}
