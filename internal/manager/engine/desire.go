package engine

import (
	"slices"

	"github.com/ibwarden/ibwarden/internal/manager/bound"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/desired/ports"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// Desired is the input of desired.Compute, as far as a configuration has it: without the
// policy and what a manager learns while it runs.
func (c *Config) Desired(f *observed.Fabric) desired.Input {
	return desired.Input{
		Fabric: f, Known: c.Known, Cables: c.Cables,
		Profile: c.Profile, GIDPrefix: c.GIDPrefix, LMC: c.LMC, Routing: c.Routing, RoutingFile: c.RoutingFile, Workers: c.Workers,
		MKey: c.MKey, OwnKeys: c.Keys != nil, ProtectBits: c.protectBits(), Reregister: c.Reregister,
		Newcomer: !c.Known.Managed,
	}
}

// Reading says what has to be read of a fabric for desired.Predict.
func (c *Config) Reading(p *policy.Policy) sweep.Options {
	return sweep.Options{
		Keys: c.Keys.Shown(), MKey: c.MKey, Cables: c.Cables, Forwarding: true,
		QoS: p.UsesLanes() || c.Routing.UsesLanes(), Aliases: c.Known.KeepsAliases(p),
	}
}

// protectBits is the least protection level of ports with an M_Key. Named managers that
// do not share the secret have to read the subnet as standbys: that takes the keys at level 2.
func (c *Config) protectBits() uint8 {
	if c.Keys == nil {
		return ports.SharedKeyBits
	}
	bits := c.Profile.MKeyProtectBits()
	if len(c.Trusted) > 0 {
		bits = min(bits, ports.SharedKeyBits)
	}
	return bits
}

// guardOf is how ports with an M_Key are protected under a policy.
func (e *Engine) guardOf(p *policy.Policy) ports.Guard {
	return ports.GuardOf(p, e.config.protectBits())
}

// input is the present input of desired.Compute, without a policy.
func (e *Engine) input() desired.Input {
	in := e.config.Desired(e.fabric)
	in.EndPorts, in.Known, in.Unseen, in.Cables = e.ends, e.known, e.unseen, e.cabling.list
	in.Bounds = []*bound.Bound{e.inherited, e.shared}
	in.Registered = e.standby.registered
	in.Reregister = e.reregisters() && !in.Registered
	in.Newcomer = !e.known.Managed && !e.succeeds
	in.Groups, in.Routes = e.multicast.groups, e.routes
	return in
}

// resolve finds the members of a policy on the subnet as it was read.
func (e *Engine) resolve(p *policy.Policy) (desired.Resolved, error) {
	return desired.Resolve(p, e.resolver, &e.names, e.known.PKeys, e.site)
}

// desire computes every table and setting, and tells began of each step. It writes nothing,
// and an error means that nothing may be written.
func (e *Engine) desire(of desired.Resolved, began func(step string)) (*desired.Result, error) {
	in := e.input()
	in.Resolved, in.Stands, in.Began = of, e.settled && of.Policy == e.policy, began
	r, err := desired.Compute(in)
	if err != nil {
		return nil, err
	}
	e.routes = r.Routes
	if notes := r.Routes.Notes(); !slices.Equal(notes, e.noted) {
		if e.noted = notes; len(notes) > 0 {
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

// reregistered ends the requests to register again, once every host got one.
func (e *Engine) reregistered() {
	asked := e.reregisters()
	e.unasked = e.unasked && e.failures != 0
	if !asked {
		return
	}
	e.renewed = e.failures == 0
	for _, p := range e.ends {
		e.desired.Tables.Port(p).Reregister = false // not again when tables are compared
	}
}

// reportForgotten reports once which elements devices accept and do not keep.
func (e *Engine) reportForgotten() {
	if len(e.run.Forgets()) > 0 {
		e.baseline = nil // it is part of what is known of a port
	}
	for _, t := range facts.Tally(e.run.Forgets()) {
		e.emit(event.Forgotten{Elements: t.Elements, Ports: t.Ports, Example: t.Example.String()})
	}
}

// readsAliases reports whether a sweep reads the GUID tables.
func (e *Engine) readsAliases() bool {
	return e.config.ReadAliases || e.known.KeepsAliases(e.wanted())
}

// lacksAliases reports whether the next policy concerns GUID tables that were not read.
func (e *Engine) lacksAliases() bool { return e.readsAliases() && !e.aliasesRead }
