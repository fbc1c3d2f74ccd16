package engine

import (
	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
)

// reroute starts to write forwarding tables that lead around links between switches that went
// down, as soon as a look at the switches has shown it, and reports whether there is anything
// to write. Nothing else is written, and what is behind the links is looked at after that. Where routes cannot be repaired, the pass that follows the
// links computes them.
func (e *Engine) reroute() bool {
	if e.config.Hold || e.config.KeepRoutes || e.bounds.others || !e.settled || len(e.proof.unfinished) > 0 {
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
	e.routing.routes = e.desired.Routes
	sweep.Detour(e.fabric)
	p := plan.DiffForwarding(e.fabric, e.desired.Tables, at)
	if p.Len() == 0 {
		return false
	}
	e.write(writeDetour, p, 0)
	return true
}

// rerouted ends what reroute began. The links are followed next, by a pass that compares
// everything.
func (e *Engine) rerouted(run *apply.Run) {
	for _, f := range run.Failures() {
		e.emit(event.Failed{Failure: f})
		e.proof.unfinished[unfinished{f.Port, f.Attribute}] = true
	}
	e.emit(event.Rerouted{Writes: run.Writes(), Failures: len(run.Failures())})
	e.step(onDone, watching{})
}
