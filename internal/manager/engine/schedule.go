package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/mastership"
)

// SetPeriods changes Config.SweepInterval, DriftPeriod and GuardPeriod.
func (e *Engine) SetPeriods(sweep, drift, guard time.Duration) {
	e.config.SweepInterval, e.config.DriftPeriod, e.config.GuardPeriod = sweep, drift, guard
	e.round.next = min(e.round.next, e.now+sweep)
	if p, is := e.phase.(*pausing); is {
		p.again = min(p.again, e.now+sweep)
	}
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
	if at, some := e.master.Right.At(e.now); some {
		sooner(at)
	}
	if at, some := e.master.Due(e.state() == stateElecting, e.state() == stateReleasing); some {
		sooner(at)
	}
	if e.heeds() {
		sooner(e.now + e.config.MasterTimeout/mastership.Beats)
	}
	e.phase.deadline(e, sooner)
	return due, ok
}
