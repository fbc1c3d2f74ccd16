package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
)

// reroute starts to write forwarding tables that lead around links between switches that went
// down, as soon as a look at the switches has shown it, and reports whether there is anything
// to write. Nothing else is written, and what is behind the links is looked at after that. Where routes cannot be mended, the pass that follows the
// links computes them.
func (e *Engine) reroute() bool {
	if e.config.Hold || e.config.KeepRoutes || e.others || !e.settled || len(e.unfinished) > 0 {
		return false
	}
	if !e.agenda.links.Fallen(e.fabric) {
		return false
	}
	e.begin(event.PhasePlan)
	at, ok := e.desired.Reroute()
	if !ok {
		return false
	}
	e.routes = e.desired.Routes
	sweep.Detour(e.fabric)
	p := plan.DiffForwarding(e.fabric, e.desired.Tables, at)
	if p.Len() == 0 {
		return false
	}
	e.compiled, e.rerouting = 0, true
	e.write(p)
	return true
}

// rerouted ends what reroute began. The links are followed next, by a pass that compares
// everything.
func (e *Engine) rerouted(now time.Duration) {
	for _, f := range e.run.Failures() {
		e.emit(event.Failed{Failure: f})
		e.unfinished[unfinished{f.Port, f.Attribute}] = true
	}
	e.emit(event.Rerouted{Writes: e.run.Writes(), Failures: len(e.run.Failures())})
	e.run = nil
	e.step(onDone)
}
