package engine

import (
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mastership"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
)

// tried ends the wait of a start when no table holds what a manager gives: nobody has managed the
// subnet, and what was read of it stands, if all of it was. Where ports get keys, tables are read again under them.
func (e *Engine) tried(now time.Duration, d *sweep.Discovery) {
	e.master.Wait.Trial, e.master.Wait.AtStart = false, false
	switch {
	case !sweep.PowerUpKeys(e.fabric):
		e.pause()
	case e.agenda.links.OutOfDate(e.fabric) || len(d.Faults()) > 0: // what did not answer may, under keys
		e.master.Wait.Until = now
		e.startSweep()
	default:
		if e.master.Wait.Until = now; e.givesKeys() {
			d.ForgetTables()
			e.faults, e.sweep.discovery = slices.Clone(d.Faults()), d
		}
		e.lead(now)
	}
}

// cutOffAgain is when a manager that has just begun, and waits for the right to write, reads a subnet
// again of which it could not read all. Another one may have given M_Keys meanwhile, and is not seen:
// a third one leaves it the subnet unless it proves that it shares the secret (mastership.ProofGrace).
const cutOffAgain = 500 * time.Millisecond

// pausing is the phase in which a manager waits until nothing that an earlier one sent is under way.
type pausing struct {
	base
	again time.Duration // when one without the right to write reads the subnet again
}

// newPausing pauses from now on. whole reports whether all of the subnet was read, or is managed already.
func newPausing(now time.Duration, whole bool) *pausing {
	if whole {
		return &pausing{again: now + mastership.Patience}
	}
	return &pausing{again: now + cutOffAgain}
}

// ends is when it is over: at the end of the wait, or where this manager has no right to write, when the
// subnet is to be read again.
func (p *pausing) ends(right bool, wait time.Duration) time.Duration {
	if right {
		return wait
	}
	return p.again
}

func (e *Engine) pause() {
	p := newPausing(e.now, e.settled || len(e.faults) == 0)
	e.step(onMustWait, p)
	e.round.next = p.again
	e.begin(event.PhasePause)
}

func (*pausing) state() state { return statePausing }

func (p *pausing) deadline(e *Engine, sooner func(time.Duration, bool)) {
	sooner(p.ends(e.master.Right.Stands(), e.master.Wait.Until), true)
}

func (p *pausing) expire(e *Engine, now time.Duration) {
	e.tickPeers(now)
	if e.phase == phase(p) && now >= p.ends(e.master.Right.Stands(), e.master.Wait.Until) { // it was not deposed
		e.paused()
	}
}

func (*pausing) resign(e *Engine) {
	e.step(onDeposed, standingBy{})
	e.sweep.discovery = nil
}

func (*pausing) work(*Engine) (apply.Work, bool) { return apply.Work{Phase: event.PhasePause}, true }

// paused goes on after the wait.
func (e *Engine) paused() {
	if e.sweep.discovery == nil || e.mustWait() {
		e.startSweep()
		return
	}
	e.refresh()
}

// refreshing is the phase in which PortInfo and SwitchInfo are read again after the wait.
type refreshing struct{ base }

// refresh reads PortInfo and SwitchInfo again.
func (e *Engine) refresh() {
	e.master.Wait.Stale = false
	e.step(onWaitOver, refreshing{})
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

func (refreshing) state() state { return stateRefreshing }

func (refreshing) work(*Engine) (apply.Work, bool) { return apply.Work{Phase: event.PhaseTables}, true }

// advance goes on when they were read.
func (refreshing) advance(e *Engine, now time.Duration) bool {
	if e.isMaster() {
		e.lead(now)
	} else {
		e.rest(now, onDeposed)
	}
	return true
}
