package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/event"
)

// AwaitConfirmation has the engine wait for Confirm after event.Slept.
func (e *Engine) AwaitConfirmation() { e.master.Nap.Confirms, e.master.Stored = true, true }

// Confirm tells, after event.Slept, that the policy is known to be the one in force. changed
// says that it was not, and that SetPolicy has been called since: what was under way is
// begun again.
func (e *Engine) Confirm(changed bool) { e.master.Nap.Confirm(changed) }

// noteNap notes a nap, before the time is entered.
func (e *Engine) noteNap(now time.Duration) {
	if gap := now - e.now; e.master.Wait.Began && gap > e.config.Election.MasterTimeout && !e.master.Nap.On() && e.heeds() {
		e.master.Nap.Begin(now, e.master.AskAgain())
		e.emit(event.Slept{For: gap})
	}
}

// heeds reports whether this manager is master beside partners that would take over within
// Config.Election.MasterTimeout.
func (e *Engine) heeds() bool {
	return e.fabric != nil && !e.config.Hold && e.isMaster() && (e.master.Nap.Confirms || e.master.HasPartners())
}

// naps lets time pass while the nap is in doubt, and reports whether it still is.
func (e *Engine) naps(now time.Duration) bool {
	if !e.master.Nap.On() {
		return false
	}
	lasts, ask := e.master.Nap.Lasts(now, e.isMaster())
	if ask {
		e.master.Ask()
	}
	if !lasts && (e.master.Nap.Changed() || !e.isMaster()) {
		e.dropWork(onOthersWrote)
	}
	return lasts
}

// dropWork ends what was under way, with packets that may be sent again, for a reason.
func (e *Engine) dropWork(why trigger) {
	e.cancelLooks()
	e.window.Forget()
	if run := e.phase.running(); run != nil {
		run.Abort()
	}
	e.proof.baseline = nil
	e.sweep.discovery = nil
	e.bounds.others = true
	e.sweep.forget()
	e.agenda.wayFor = e.agenda.policy
	if e.isMaster() {
		e.step(why, watching{})
	} else {
		e.step(onLostMeanwhile, standingBy{})
	}
	e.agenda.wantSweepAt(e.now, "another manager may have written while this one did not run")
}
