package engine

import (
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// Fence fences a switch port until Unfence. It returns false for a port that leads to the
// rest of the subnet, or to the manager itself, which cannot be fenced.
func (e *Engine) Fence(at observed.Place, reason string) bool {
	if !facts.CanFence(e.fabric.At(at), e.fabric.Self) {
		return false
	}
	if e.known.Fences[at] != reason {
		e.editFences(func(x *facts.FenceEdit) { x.Put(at, reason) })
		e.membersChanged()
	}
	return true
}

// Unfence admits the device behind a switch port to the subnet again.
func (e *Engine) Unfence(at observed.Place, reason string) {
	if _, fenced := e.known.Fences[at]; !fenced {
		return
	}
	e.editFences(func(x *facts.FenceEdit) { x.Lift(at, reason) })
	e.membersChanged()
}

// editFences changes fences and reports the changes.
func (e *Engine) editFences(change func(*facts.FenceEdit)) {
	x := facts.FenceEdit{Fabric: e.fabric, Cables: e.cabling.list, Set: e.known.Fences}
	change(&x)
	e.known.Fences = x.Set
	e.tellFences(x.Changes)
}

func (e *Engine) tellFences(changes []facts.FenceChange) {
	for _, c := range changes {
		if c.Lifted {
			e.emit(event.Unfenced{Fence: c.Fence})
		} else {
			e.emit(event.Fenced{Fence: c.Fence})
		}
	}
}

// membersChanged starts a new computation of the policy for the current members.
func (e *Engine) membersChanged() {
	e.proof.baseline = nil
	if e.resolver == nil {
		return // the sweep that is under way ends with it
	}
	e.resolver = e.newResolver()
	if e.agenda.policy == nil {
		e.agenda.policy = e.policy
	}
}

// newResolver is a resolver for the current members.
func (e *Engine) newResolver() *policy.Resolver {
	in := e.input(&e.snapshot)
	return e.names.Resolver(in.Identities())
}

// fences lists the present fences, in order.
func (e *Engine) fences() []facts.Fence { return e.known.Fences.List(e.fabric) }
