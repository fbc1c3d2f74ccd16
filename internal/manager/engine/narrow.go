package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// narrowing is the phase in which what a new policy takes away is written before anything else.
// Devices can delay a sweep or an election; a revocation does not wait for them. It is written to
// the devices of the last snapshot, each verified just before. Only revocations are written: whatever
// has changed since, no port is given anything.
//
// In: the snapshot and the tables that the policy wants of it. Out: the writes, and what failed.
type narrowing struct {
	base
	window *transact.Window
	until  time.Duration // devices that have not answered by then are left to the pass that follows
}

// startNarrowing sends the revocations; nil where there are none.
func startNarrowing(w *transact.Window, now time.Duration, f *observed.Fabric, want *observed.Desired, failed func(apply.Failure)) *narrowing {
	p := plan.Narrowing(f, want)
	if p.Len() == 0 {
		return nil
	}
	apply.Narrow(w, p, failed)
	return &narrowing{window: w, until: now + narrowMost}
}

// late gives up the devices that have not answered in time, and reports whether it is that late.
func (n *narrowing) late(now time.Duration) bool {
	if now < n.until {
		return false
	}
	n.window.Forget()
	return true
}

// narrowMost is how long it may take.
const narrowMost = time.Second

// narrowsFirst reports whether the revocations of a new policy are to be written before
// anything else. Where another manager may have written since, all is read before.
func (e *Engine) narrowsFirst(now time.Duration) bool {
	return e.agenda.policy != e.agenda.narrowed && e.settled && !e.bounds.others && e.isMaster() && !e.config.Hold &&
		(e.agenda.sweep != "" || e.agenda.election != "" || e.looksAtSwitch(now))
}

// narrow starts to write the revocations of a new policy. It reports whether there are
// any; a policy that does not fit is refused when all of it is computed.
func (e *Engine) narrow(now time.Duration) bool {
	p := e.agenda.policy
	e.agenda.narrowed = p
	last := &e.snapshot // that has tables
	if e.sweep.before.fabric != nil {
		last = &e.sweep.before
	}
	of, err := e.resolveIn(last, p)
	if err != nil {
		return false
	}
	want, err := e.desireIn(last, of, nil)
	if err != nil {
		return false
	}
	n := startNarrowing(e.window, now, last.fabric, want.Tables, func(f apply.Failure) { e.emit(event.Failed{Failure: f}) })
	if n == nil {
		return false
	}
	e.cancelLooks()
	e.begin(event.PhaseNarrow)
	e.step(onRevoked, n)
	return true
}

func (*narrowing) state() state { return stateNarrowing }

func (*narrowing) advance(e *Engine, _ time.Duration) bool {
	e.step(onDone, watching{})
	return true
}

func (n *narrowing) expire(e *Engine, now time.Duration) {
	if !n.late(now) {
		e.tickPeers(now)
		return
	}
	n.advance(e, now)
	e.phase.expire(e, now)
}

func (n *narrowing) deadline(_ *Engine, sooner func(time.Duration, bool)) { sooner(n.until, true) }

func (*narrowing) work(*Engine) (apply.Work, bool) {
	return apply.Work{Phase: event.PhaseNarrow, Narrows: true}, true
}
