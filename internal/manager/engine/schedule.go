package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/mastership"
)

// SetPeriods changes Sweep, Drift and Guard of Config.Periods.
func (e *Engine) SetPeriods(sweep, drift, guard time.Duration) {
	e.config.Periods.Sweep, e.config.Periods.Drift, e.config.Periods.Guard = sweep, drift, guard
	e.round.next = min(e.round.next, e.now+sweep)
	if p, is := e.phase.(*pausing); is {
		p.again = min(p.again, e.now+sweep)
	}
}

// soonest is the earliest of several times. It is kept, since it is asked for after every packet.
type soonest struct {
	at   time.Duration
	some bool
	// sooner enters another time, if there is one.
	sooner func(at time.Duration, some bool)
}

func newSoonest() *soonest {
	s := new(soonest)
	s.sooner = func(at time.Duration, some bool) {
		if some && (!s.some || at < s.at) {
			s.at, s.some = at, true
		}
	}
	return s
}

// Deadline is when to call Expire.
func (e *Engine) Deadline() (time.Duration, bool) {
	e.due.some = false
	sooner := e.due.sooner
	if e.master.Nap.On() {
		sooner(e.master.Nap.Due(e.now), true)
		sooner(e.master.Due(false, false))
		sooner(e.master.Right.At(e.now))
		return e.due.at, e.due.some
	}
	sooner(e.window.Deadline())
	sooner(e.beside.window.Deadline())
	sooner(e.master.Right.At(e.now))
	sooner(e.master.Due(e.state() == stateElecting, e.state() == stateReleasing))
	sooner(e.now+e.config.Election.MasterTimeout/mastership.Beats, e.heeds())
	e.phase.deadline(e, sooner)
	return e.due.at, e.due.some
}
