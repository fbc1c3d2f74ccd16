package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/event"
)

// phase is what the engine is doing in a state. It owns what only that needs: step enters it, and drops
// it with all of that when the next one begins. What the manager knows across phases is in Engine.
//
// A phase embeds base, which does nothing by itself, or writing (apply.go) or surveying (sweep.go), and
// has methods for what it does otherwise.
type phase interface {
	// state is its state in the table of transitions.
	state() state
	// advance takes the next step when every request has ended; false means that there is none.
	advance(e *Engine, now time.Duration) bool
	// expire does what is due by now, whether or not requests are under way. deadline tells when
	// that is.
	expire(e *Engine, now time.Duration)
	deadline(e *Engine, sooner func(at time.Duration, some bool))
	// giveWay ends what is under way for a new policy, and notes what has to be done again; false
	// where it goes on.
	giveWay(e *Engine, now time.Duration) bool
	// resign ends all writing: another manager is master.
	resign(e *Engine)
	// running is what it writes, nil for nothing.
	running() *apply.Run
	// work is what it reports to people; false where that is nothing.
	work(e *Engine) (w apply.Work, some bool)
}

// base is a phase that does nothing by itself and goes on whatever comes, a change of the master too;
// meanwhile the election goes on (tickPeers).
type base struct{}

func (base) advance(*Engine, time.Duration) bool         { return false }
func (base) expire(e *Engine, now time.Duration)         { e.tickPeers(now) }
func (base) deadline(*Engine, func(time.Duration, bool)) {}
func (base) giveWay(*Engine, time.Duration) bool         { return false }
func (base) resign(*Engine)                              {}
func (base) running() *apply.Run                         { return nil }
func (base) work(*Engine) (w apply.Work, some bool)      { return w, false }

// unstarted is the phase of an engine that New makes.
type unstarted struct{ base }

func (unstarted) state() state { return stateNew }

// idle are the phases in which nothing is under way. They hold nothing.
var idle = [stateCount]phase{stateWatching: watching{}, stateStandby: standingBy{}, stateRefused: refused{}, stateHeld: held{}}

// state is what the engine is doing.
func (e *Engine) state() state { return e.phase.state() }

// atRest reports whether nothing is under way.
func (e *Engine) atRest() bool { return idle[e.state()] != nil }

// rest ends what is under way, for a reason.
func (e *Engine) rest(now time.Duration, why trigger) {
	if e.leadsTo(why) == stateWatching && !e.isMaster() {
		why = onDeposed // mastership went while the pass was under way
	}
	e.step(why, idle[e.leadsTo(why)])
	e.sweep.discovery = nil
	if e.round.next == 0 || e.state() != stateWatching {
		e.round.next = now + e.config.Periods.Sweep
	}
	e.agenda.sweepFrom = now + minSweepGap
	e.begin(event.PhaseWatch)
}

// giveWay interrupts what is under way for a new policy.
func (e *Engine) giveWay(now time.Duration) {
	if e.agenda.policy == nil || e.agenda.policy == e.agenda.wayFor || !e.settled || !e.isMaster() || e.config.Hold || !e.phase.giveWay(e, now) {
		return
	}
	e.agenda.wayFor = e.agenda.policy
	e.window.Forget()
	e.step(onGivesWay, watching{})
}

// UnderWay says what the engine is doing; false when it is at rest.
func (e *Engine) UnderWay() (w apply.Work, some bool) {
	w, some = e.phase.work(e)
	w.Stands = e.settled
	return w, some
}

// Abandon ends what the engine writes, and tells how many writes were sent; then it is over.
func (e *Engine) Abandon() (writes int) {
	run := e.phase.running()
	if run == nil {
		return 0
	}
	run.Abort()
	return run.Writes()
}

func (e *Engine) emit(ev event.Event) { e.observe(ev) }

func (e *Engine) begin(phase string) { e.emit(event.PhaseBegun{Phase: phase}) }
