package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/lease"
)

func (e *Engine) openLease() {
	if e.config.Lease {
		e.right.Require(e.window, e.side)
	}
}

// SetLease tells what right to write this manager has by the store that managers share, in
// the engine's time (Config.Lease). Every Set compares it as it leaves. A term that begins
// has the engine read anew what the last holder may have written, once nothing of that is
// under way.
func (e *Engine) SetLease(g lease.Grant) {
	begins, since := e.right.Set(g)
	if !begins {
		return
	}
	e.quiet.Until = max(e.quiet.Until, since+e.config.Limits.Lifetime)
	if e.others = true; !e.quiet.Stale || e.atRest() { // tables were read for good
		e.dropWork(onOthersWrote)
	}
}

// MayWrite reports whether this manager is master, and has the right to write now.
func (e *Engine) MayWrite() bool { return e.isMaster() && e.right.May(e.now) }

// Lease is this manager's right to write.
func (e *Engine) Lease() *lease.Right { return &e.right }

// hears notes an answer that has come through the fabric. A subnet that was not heard for a
// while is read again.
func (e *Engine) hears(p *mad.SMP) {
	if (p.HopCount > 0 || p.Class == mad.ClassSubnLID) && e.right.Heard(e.now) && e.isMaster() {
		e.dropWork(onOthersWrote)
	}
}

// lookAtLease asks the other managers when the store does not answer, and has writes fail
// after lease.Patience.
func (e *Engine) lookAtLease(now time.Duration) {
	switch e.right.Look(now, e.peers) {
	case lease.Halted:
		e.emit(event.Halted{Why: e.right.Why(), Had: e.right.Had(), Silent: e.peers.Unsaid(now - lease.AnswerTTL)})
		e.dropWork(onOthersWrote)
	case lease.Resumed:
		e.emit(event.Resumed{})
	}
}
