package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mastership"
)

// SetLease tells what right to write this manager has by the store that managers share, in
// the engine's time (Config.Election.Lease). Every Set compares it as it leaves. A term that begins
// has the engine read again what the last holder may have written, once nothing of that is
// under way.
func (e *Engine) SetLease(g mastership.Grant) {
	if !e.master.SetLease(g, e.config.Limits.Lifetime) {
		return
	}
	if e.bounds.others = true; !e.master.Wait.Stale || e.atRest() { // tables were read for good
		e.dropWork(onOthersWrote)
	}
}

// MayWrite reports whether this manager may write now: by the election, by the lease where a store
// is shared, and by what it knows of both.
func (e *Engine) MayWrite() bool {
	_, may := e.master.MayWrite(e.now)
	return may
}

// Lease is this manager's right to write.
func (e *Engine) Lease() *mastership.Right { return &e.master.Right }

// hears notes an answer that has come through the fabric. A subnet that was not heard for a
// while is read again.
func (e *Engine) hears(p *mad.SMP) {
	if (p.HopCount > 0 || p.Class == mad.ClassSubnLID) && e.master.Right.Heard(e.now) && e.isMaster() {
		e.dropWork(onOthersWrote)
	}
}

// lookAtLease asks the other managers when the store does not answer, and has writes fail
// after mastership.Patience.
func (e *Engine) lookAtLease(now time.Duration) {
	switch e.master.Right.Look(now, e.master) {
	case mastership.Halted:
		e.emit(event.Halted{Why: e.master.Right.Why(), Had: e.master.Right.Had(), Silent: e.master.Unsaid(now - mastership.AnswerTTL)})
		e.dropWork(onOthersWrote)
	case mastership.Resumed:
		e.emit(event.Resumed{})
	}
}
