package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
)

// writing is what the phases that write a plan have in common: Applying, Keying, Releasing and
// Announcing. In: the plan. Out: the writes, and how far they are.
type writing struct {
	base
	run    *apply.Run // nil when nothing is being written yet
	stage  string     // that was last told
	silent bool       // stages are not told
	least  map[string]uint64
}

// newWriting is about to write a plan.
func (e *Engine) newWriting(p *plan.Plan) writing {
	return writing{run: apply.Start(e.window, p, e.config.Limits.Window), least: p.Least()}
}

// goOn writes on when no request is under way. stage is one that has begun, "" for none.
func (w *writing) goOn() (stage string, ended bool) {
	if w.run.Advance() {
		return "", true
	}
	if s := w.run.Stage(); s != w.stage && !w.silent {
		w.stage = s
		return s, false
	}
	return "", false
}

// ended writes on, tells of the stage that has begun, and reports whether all is written.
func (w *writing) ended(e *Engine) bool {
	stage, ended := w.goOn()
	if stage != "" {
		e.begin(stage)
		e.least += w.least[stage]
		delete(w.least, stage)
	}
	return ended
}

func (w *writing) running() *apply.Run { return w.run }

func (w *writing) resign(*Engine) {
	if w.run != nil { // none while a LID moves
		w.run.Stop()
	}
}

func (w *writing) work(*Engine) (work apply.Work, some bool) {
	if work.Phase = w.stage; w.run != nil {
		work.Ports, work.Of = w.run.Progress()
	}
	return work, true
}

// applying is the phase in which tables of the policy are written.
type applying struct {
	writing
	kind writeKind
	// compiled is how many P_Key tables were computed for the plan.
	compiled int
}

// writeKind is what a plan is for.
type writeKind uint8

const (
	writePass   writeKind = iota // all that differs
	writeRepair                  // foreign values, where the engine has looked
	writeGroups                  // multicast tables alone
	writeDetour                  // forwarding tables around links that went down
)

// write starts to write a plan.
func (e *Engine) write(kind writeKind, p *plan.Plan, compiled int) {
	e.cancelLooks()
	a := &applying{e.newWriting(p), kind, compiled}
	a.silent = kind == writeGroups
	a.run.Withhold(e.desired.Withheld)
	e.step(onPlanned, a)
	e.agenda.compare = false
	e.keys.Leaving(p, e.desired.Tables)
	for _, stopped := range event.AllStopped(p) {
		e.emit(stopped)
	}
	if e.proof.baseline != nil {
		e.proof.baseline.writes(p)
	}
}

func (*applying) state() state { return stateApplying }

func (a *applying) advance(e *Engine, now time.Duration) bool {
	if !e.mayProve() {
		return false
	}
	if a.ended(e) {
		a.applied(e, now)
	}
	return true
}

// mayProve reports whether what was written may be judged: not while another manager may have written
// what would be proved.
func (e *Engine) mayProve() bool { return !e.isMaster() || e.MayWrite() }

// giveWay leaves the rest to the pass of the new policy, which finds what was to be written.
func (a *applying) giveWay(*Engine, time.Duration) bool {
	if a.kind == writeGroups || a.kind == writeDetour || !a.run.MayAbort() {
		return false
	}
	a.run.Abort()
	return true
}
