package engine

import (
	"slices"

	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// routes are those of the tables that are wanted.
type routes struct {
	routes *desired.Routes
	noted  []string // their notes, as last told
}

// guardOf is how ports with an M_Key are protected under a policy.
func (e *Engine) guardOf(p *policy.Policy) desired.MKeyGuard {
	return desired.MKeyGuardOf(p, e.config.ProtectBits())
}

// input is the present input of desired.Compute for a snapshot, without a policy.
func (e *Engine) input(s *snapshot) desired.Input {
	in := e.config.Desired(s.fabric)
	in.EndPorts, in.Known, in.Unseen, in.Cables = s.ends, e.known, s.unseen, e.cabling.list
	in.Bounds = []*desired.Bound{e.bounds.inherited, e.bounds.shared, e.bounds.back}
	in.Registered = e.standby.registered
	in.Reregister, in.Asked = e.reregisters() && !in.Registered, e.hosts.asked.Has
	in.Newcomer = !e.known.Managed && !e.hosts.succeeds
	in.Groups, in.Routes = e.multicast.groups, e.routing.routes
	return in
}

// resolve finds the members of a policy on the subnet as it was last read.
func (e *Engine) resolve(p *policy.Policy) (desired.Resolved, error) {
	return e.resolveIn(&e.snapshot, p)
}

// resolveIn finds the members of a policy on a snapshot.
func (e *Engine) resolveIn(s *snapshot, p *policy.Policy) (desired.Resolved, error) {
	return desired.Resolve(p, s.resolver, &e.names, e.known.PKeys, e.siteOf(s))
}

// desire computes every table and setting, and tells began of each step. It writes nothing,
// and an error means that nothing may be written.
func (e *Engine) desire(of desired.Resolved, began func(step string)) (*desired.Result, error) {
	return e.desireIn(&e.snapshot, of, began)
}

// desireIn is desire for a snapshot.
func (e *Engine) desireIn(s *snapshot, of desired.Resolved, began func(step string)) (*desired.Result, error) {
	in := e.input(s)
	in.Resolved, in.Stands, in.Began = of, e.settled && of.Policy == e.policy, began
	r, err := desired.Compute(in)
	if err != nil {
		return nil, err
	}
	e.routing.routes = r.Routes
	if notes := r.Routes.Notes(); !slices.Equal(notes, e.routing.noted) {
		if e.routing.noted = notes; len(notes) > 0 {
			e.emit(event.Routed{Notes: notes})
		}
	}
	e.known.Fences = r.Assigned.Fences
	e.tellFences(r.Fences)
	return r, nil
}

// Predict computes what a policy would want of the held subnet.
func (e *Engine) Predict(p *policy.Policy) (*desired.Result, error) {
	of, err := e.resolve(p)
	if err != nil {
		return nil, err
	}
	r, err := e.desire(of, nil)
	if err != nil {
		return nil, err
	}
	r.Assigned.Names = e.names.All()
	if e.config.KeepRoutes {
		return r, r.KeepRoutes()
	}
	return r, nil
}

// reportForgotten reports once which elements devices accept and do not keep.
func (e *Engine) reportForgotten(run *apply.Run) {
	if len(run.Forgets()) > 0 {
		e.proof.baseline = nil // it is part of what is known of a port
	}
	for _, t := range facts.Tally(run.Forgets()) {
		e.emit(event.Forgotten{Elements: t.Elements, Ports: t.Ports, Example: t.Example.String()})
	}
}

// readsAliases reports whether a sweep reads the GUID tables.
func (e *Engine) readsAliases() bool {
	return e.config.ReadAliases || e.known.KeepsAliases(e.wanted())
}

// lacksAliases reports whether the next policy concerns GUID tables that were not read.
func (e *Engine) lacksAliases() bool { return e.readsAliases() && !e.sweep.aliases }
