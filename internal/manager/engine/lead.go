package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/mastership"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/manager/watch"
)

// timeIs enters the time. The wait of a start begins when the engine is first told.
func (e *Engine) timeIs(now time.Duration) {
	e.noteNap(now)
	e.now = now
	e.master.TimeIs(now, e.config.Pause)
}

// mustWait reports whether the wait for what an earlier manager sent is not over.
func (e *Engine) mustWait() bool { return e.master.MustWait(e.now, e.config.Pause) }

// succeed starts the wait when this manager takes over from another.
func (e *Engine) succeed(f mastership.Effects) {
	e.master.Succeeds(e.now, e.config.Limits.Lifetime, f)
	e.bounds.others = true
	e.hosts.succeeds, e.hosts.unasked, e.hosts.asked = true, true, watch.Asked{}
	e.agenda.sweepFrom = e.now
}

// abandonReading ends what a standby was reading: it began before the wait.
func (e *Engine) abandonReading() {
	if !e.master.Wait.Abandon {
		return
	}
	if e.master.Wait.Abandon = false; table[e.state()][onTakeover] != 0 {
		e.window.Forget()
		e.sweep.discovery = nil
		e.step(onTakeover, standingBy{})
	}
}

// lead goes on as the master of a discovered subnet. After the wait, PortInfo and
// SwitchInfo come first, then keys, and then the tables that they open.
func (e *Engine) lead(now time.Duration) {
	switch {
	case e.master.Right.Alone(len(e.fabric.Nodes)):
		e.pause()
	case e.master.Wait.Stale && e.mustWait() && e.master.Wait.AtStart && sweep.Untouched(e.fabric):
		e.master.Wait.Stale, e.master.Wait.Trial = false, true
		e.readRest()
	case e.master.Wait.Stale && e.announces():
		e.announce()
	case e.master.Wait.Stale && e.mustWait():
		e.pause()
	case e.master.Wait.Stale:
		e.refresh()
	case e.sweep.discovery == nil && e.config.Hold:
		e.rest(now, onHeld)
	case e.sweep.discovery == nil:
		e.startPass(now)
	case e.givesKeys():
		e.secure(now)
	default:
		e.readRest()
	}
}
