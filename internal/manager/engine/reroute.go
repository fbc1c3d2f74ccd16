package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// rerouting leads packets around links between switches that went down, as soon as a look
// at their switches has shown it. Nothing but forwarding tables is written, and of these only
// what leads over such a link; what is behind it is looked at, and all else compared, after
// that.
type rerouting struct {
	// under tells that it is being written.
	under bool
	// done are the links that were regarded; since when they are down does not matter.
	done map[observed.Place]bool
}

// fallen lists the links between switches that are in the snapshot and went down, of those
// that have not been regarded.
func (e *Engine) fallen() (out []*observed.Port) {
	for at := range e.moved {
		p := e.fabric.At(at)
		if p != nil && !e.rerouting.done[at] && p.Node.Switch != nil && p.Num != 0 && p.Peer != nil && p.Peer.Node.Switch != nil && !p.IsTrained() {
			out = append(out, p)
		}
	}
	return out
}

// reroute starts to write forwarding tables that lead around links that went down, and reports
// whether there is anything to write. Where routes cannot be mended, the pass that follows the
// links computes them.
func (e *Engine) reroute() bool {
	if e.config.Hold || e.config.KeepRoutes || e.others || !e.settled || len(e.unfinished) > 0 {
		return false
	}
	down := e.fallen()
	if len(down) == 0 {
		return false
	}
	if e.rerouting.done == nil {
		e.rerouting.done = make(map[observed.Place]bool)
	}
	for _, p := range down {
		e.rerouting.done[p.Place()] = true
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
	e.compiled, e.rerouting.under = 0, true
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
	e.state = stateWatching
}
