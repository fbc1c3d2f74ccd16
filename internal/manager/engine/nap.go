package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/event"
)

const (
	// napBeats is how often in Config.MasterTimeout a master with partners wants to be called:
	// one that is not called for all that time did not run.
	napBeats = 4
	// napRounds is the time between two rounds of questions while a master that did not run
	// for a while sends nothing else.
	napRounds = 500 * time.Millisecond
	// napMost bounds that time: a store, or a manager, that does not answer ends no mastership.
	napMost = 10 * time.Second
)

// nap is the doubt of a master that did not run for longer than its partners wait for it:
// one of them may have taken over, and carried out a newer policy. Until all have been
// asked and none is master, and whoever keeps the policy has confirmed it, the engine talks
// to managers only: what it had begun to write is not sent again.
type nap struct {
	confirms bool // AwaitConfirmation
	on       bool
	asked    bool // a round that was begun after the nap has ended, and no other manager was master
	unsure   bool // Confirm is awaited
	changed  bool // another manager was master meanwhile, or the policy became another
	rounds   int  // that have to end until one counts: one may have been under way
	next     time.Duration
	until    time.Duration
}

// AwaitConfirmation has the engine wait for Confirm after event.Slept.
func (e *Engine) AwaitConfirmation() { e.nap.confirms, e.peers.Stored = true, true }

// Confirm tells, after event.Slept, that the policy is known to be the one in force. changed
// says that it was not, and that SetPolicy has been called since: what was under way is
// begun anew.
func (e *Engine) Confirm(changed bool) {
	if e.nap.on {
		e.nap.unsure, e.nap.changed = false, e.nap.changed || changed
	}
}

// noteNap notes a nap, before the time is entered.
func (e *Engine) noteNap(now time.Duration) {
	gap := now - e.now
	if !e.quiet.began || gap <= e.config.MasterTimeout || e.nap.on || !e.heeds() {
		return
	}
	e.nap.on, e.nap.asked, e.nap.changed, e.nap.unsure = true, false, false, e.nap.confirms
	e.nap.rounds, e.nap.next, e.nap.until = e.peers.AskAnew(), now+napRounds, now+napMost
	e.emit(event.Slept{For: gap})
}

// heeds reports whether this manager is master beside partners that would take over within
// Config.MasterTimeout.
func (e *Engine) heeds() bool {
	return e.fabric != nil && !e.config.Hold && e.isMaster() && (e.nap.confirms || e.peers.HasPartners())
}

// toldOfMasters takes the end of a round.
func (n *nap) toldOfMasters(alone bool) {
	if n.on {
		n.rounds--
		n.asked = alone && n.rounds <= 0
		n.changed = n.changed || !alone
	}
}

// toldOfPolicy notes that a policy came. Whoever keeps it may have found before Confirm
// that another manager had it, and confirms what it found.
func (n *nap) toldOfPolicy() { n.changed = n.changed || n.on }

// over reports whether all is known that has to be.
func (n *nap) over() bool { return n.asked && !n.unsure }

// naps lets time pass while the nap is in doubt, and reports whether it still is.
func (e *Engine) naps(now time.Duration) bool {
	n := &e.nap
	if !n.on {
		return false
	}
	if e.isMaster() && now < n.until && !n.over() {
		if now >= n.next {
			n.next = now + napRounds
			e.peers.Ask()
		}
		return true
	}
	n.on = false
	if n.changed || !e.isMaster() {
		e.dropWork()
	}
	return false
}

// dropWork ends what was under way, with packets that may be sent again.
func (e *Engine) dropWork() {
	e.cancelLooks()
	e.window.Forget()
	if e.run != nil {
		e.run.Abort()
	}
	e.run, e.discovery, e.revisiting, e.repairing, e.baseline, e.moving = nil, nil, false, false, nil, false
	e.others = true
	e.before, e.wayFor = snapshot{}, e.newPolicy
	if e.state = stateWatching; !e.isMaster() {
		e.state = stateStandby
	}
	e.wantSweep("another manager may have written while this one did not run")
	e.sweepFrom = e.now
}
