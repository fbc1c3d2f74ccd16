package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/event"
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

// pauseEnds is when paused is to be called: at the end of the wait, or where this manager has
// no right to write, when the subnet is to be read again.
func (e *Engine) pauseEnds() time.Duration {
	if e.master.Right.Stands() {
		return e.master.Wait.Until
	}
	return e.round.next
}

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
		e.sweep.end()
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

// tried ends the wait of a start when no table holds what a manager gives, and begins
// again either way: keys come before tables.
func (e *Engine) tried(now time.Duration) {
	e.master.Wait.Trial, e.master.Wait.AtStart = false, false
	if sweep.PowerUpKeys(e.fabric) {
		e.master.Wait.Until = now
		e.startSweep()
		return
	}
	e.pause()
}

// cutOffAgain is when a manager that has just begun, and waits for the right to write, reads a subnet
// again of which it could not read all. Another one may have given M_Keys meanwhile, and is not seen:
// a third one leaves it the subnet unless it proves that it shares the secret (peers.ProofGrace).
const cutOffAgain = 500 * time.Millisecond

func (e *Engine) pause() {
	e.step(onMustWait, other{is: statePausing})
	e.round.next = e.now + mastership.Patience
	if !e.settled && len(e.faults) > 0 {
		e.round.next = e.now + cutOffAgain
	}
	e.begin(event.PhasePause)
}

// paused goes on after the wait.
func (e *Engine) paused() {
	if e.sweep.discovery == nil || e.mustWait() {
		e.startSweep()
		return
	}
	e.refresh()
}

// refresh reads PortInfo and SwitchInfo again.
func (e *Engine) refresh() {
	e.master.Wait.Stale = false
	e.step(onWaitOver, other{is: stateRefreshing})
	e.begin(event.PhaseTables)
	for _, n := range e.fabric.Nodes {
		if n.Switch != nil {
			e.reread(&n.Ports[0], smp.AttrSwitchInfo, 0, nil)
		}
		for i := range n.Ports {
			p := &n.Ports[i]
			if !p.Reached || i == 0 && n.Switch == nil {
				continue
			}
			before := seen{p.Info, p.InfoRead}
			e.reread(p, smp.AttrPortInfo, p.PortInfoBlock(), func() { e.judge(p, before) })
		}
	}
}

// refreshed goes on when they were read.
func (e *Engine) refreshed(now time.Duration) {
	if !e.isMaster() {
		e.rest(now, onDeposed)
		return
	}
	e.lead(now)
}
