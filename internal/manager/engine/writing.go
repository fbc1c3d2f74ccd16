package engine

import (
	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
)

// writing is the phase in which a plan is written: Applying, Keying, Releasing and Announcing.
type writing struct {
	run   *apply.Run // nil when nothing is being written
	kind  writeKind
	stage string // that was last told
	// compiled is how many P_Key tables were computed for the plan.
	compiled int
}

// writeKind is what a plan is for, where the tables of the policy are written.
type writeKind uint8

const (
	writePass   writeKind = iota // all that differs
	writeRepair                  // foreign values, where the engine has looked
	writeGroups                  // multicast tables alone
	writeDetour                  // forwarding tables around links that went down
)

// yields reports whether a new policy may interrupt it.
func (w *writing) yields() bool {
	return w.kind != writeGroups && w.kind != writeDetour && w.run.MayAbort()
}

// write starts to write a plan.
func (e *Engine) write(kind writeKind, p *plan.Plan, compiled int) {
	e.cancelLooks()
	e.step(onPlanned, other{is: stateApplying})
	e.agenda.compare = false
	e.keys.Leaving(p, e.desired.Tables)
	for _, stopped := range event.AllStopped(p) {
		e.emit(stopped)
	}
	e.writing = writing{kind: kind, compiled: compiled, run: apply.Start(e.window, p, e.config.Limits.Window)}
	e.writing.run.Withhold(e.desired.Withheld)
	if e.proof.baseline != nil {
		e.proof.baseline.writes(p)
	}
}

// enterStage reports the stage that the current run has reached.
func (e *Engine) enterStage() {
	if s := e.writing.run.Stage(); s != e.writing.stage && e.writing.kind != writeGroups {
		e.writing.stage = s
		e.begin(s)
	}
}
