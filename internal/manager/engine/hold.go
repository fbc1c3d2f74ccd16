package engine

import (
	"errors"
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// held is the phase of an engine with Config.Hold that waits for Carry: it starts nothing by itself.
type held struct{ base }

func (held) state() state { return stateHeld }

func (held) resign(e *Engine) { e.step(onDeposed, standingBy{}) }

// Carried is the result of the last Carry or Reread.
type Carried struct {
	// Failures are writes that did not hold; after the first nothing more was
	// written.
	Failures []apply.Failure
	Writes   int
	// Changed are the blocks that Reread found otherwise than they were.
	Changed []error
	// Deposed reports whether the engine ceased to be master meanwhile.
	Deposed bool
}

// ErrNotHeld means that an engine is not at rest as the master of its subnet.
var ErrNotHeld = errors.New("not the master of the subnet, or not at rest")

// Held reports whether an engine with Config.Hold has read the subnet, is master of it,
// and waits for Carry.
func (e *Engine) Held() bool { return e.state() == stateHeld }

// Carry starts to write what the fabric lacks of d, in the order of package plan, and
// stops at the first write that fails. The engine is held again when all requests have
// ended; Carried returns the outcome.
func (e *Engine) Carry(d *observed.Desired) error {
	if !e.Held() {
		return ErrNotHeld
	}
	e.carried = Carried{}
	c := &carrying{writing: e.newWriting(plan.Diff(e.fabric, d))}
	c.run.Strict()
	e.step(onCarry, c)
	e.goOn(0)
	return nil
}

// Reread reads the blocks that a plan writes once more and compares them with
// the snapshot, which stays as it is.
func (e *Engine) Reread(p *plan.Plan) error {
	if !e.Held() {
		return ErrNotHeld
	}
	e.carried = Carried{}
	apply.Reread(e.window, p, func(err error) { e.carried.Changed = append(e.carried.Changed, err) })
	return nil
}

// Carried tells how the last Carry or Reread ended. It counts when the engine
// is settled and has nothing under way.
func (e *Engine) Carried() Carried { return e.carried }

// Idle reports whether every request has been answered or given up.
func (e *Engine) Idle() bool { return e.window.Idle() }

// carrying is the phase in which what Carry was given is written. until is when nothing of it can still
// be in flight, 0 before all is written.
type carrying struct {
	writing
	until time.Duration
}

func (*carrying) state() state { return stateApplying }

func (c *carrying) advance(e *Engine, now time.Duration) bool {
	if !e.mayProve() {
		return false
	}
	return !c.ended(e) || c.carriedOut(e, now)
}

func (c *carrying) deadline(e *Engine, sooner func(time.Duration, bool)) {
	sooner(c.until, c.until > 0 && e.window.Idle())
}

// carriedOut ends what Carry began, once nothing that was sent can still be in flight:
// the next writer does not know of it. False means later.
func (c *carrying) carriedOut(e *Engine, now time.Duration) bool {
	var waits bool
	if c.until, waits = e.window.Settled(now); waits {
		return false
	}
	e.carried.Failures, e.carried.Writes = c.run.Failures(), c.run.Writes()
	e.carried.Deposed = !e.isMaster()
	e.reportForgotten(c.run)
	e.known.Learn(e.fabric)
	if e.carried.Deposed {
		e.rest(now, onDeposed)
	} else {
		e.rest(now, onHeld)
	}
	return true
}
