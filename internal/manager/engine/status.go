package engine

import (
	"github.com/ibwarden/ibwarden/internal/manager/event"
)

// Status returns the state of the election and the number of sweeps.
func (e *Engine) Status() event.Status {
	m := event.Status{State: e.peers.State(), Rogues: e.peers.Rogues(), Sweeps: e.sweeps}
	for _, info := range e.peers.Rivals() {
		if info.GUID != 0 {
			m.Others++
		}
	}
	return m
}
