package engine

import (
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/event"
)

// Status returns the state of the election and the number of sweeps.
func (e *Engine) Status() event.Status {
	m := event.Status{State: smp.SMDiscovering, Rogues: len(e.rogues), Sweeps: e.sweeps}
	if e.managers != nil {
		m.State = e.managers.State()
	}
	for _, info := range e.rivals {
		if info.GUID != 0 {
			m.Others++
		}
	}
	return m
}
