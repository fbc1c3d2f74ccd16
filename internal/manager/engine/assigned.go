package engine

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Assigned is what has to stay the same from run to run, and what an earlier
// run learned.
type Assigned struct {
	LIDs  map[ib.PortGUID]ib.LID
	PKeys map[string]ib.PKeyBase
	// Forgets are the elements that ports accept and do not keep, so that a new
	// run does not ask for them. What guards is never among them: it is asked
	// for anew each time.
	Forgets map[Place]observed.Element
	// Fenced are the ports that the policy does not fit and that get the
	// default partition only: they are no reason to refuse another policy.
	Fenced map[ib.PortGUID]bool
	// Fences are the switch ports behind which nobody is let into the subnet,
	// with the reason of each, in words.
	Fences map[Place]string
	// Aliases tells that the tables of GUIDs are the manager's to keep: a
	// policy has given aliases.
	Aliases bool
	// Names are the names of policies, as Selector.String spells them, that have
	// found a port: a policy may name them again while they are switched off.
	Names map[string]bool
	// Managed tells that a manager with this knowledge was master of the subnet.
	Managed bool
}

// Place is a port of a device.
type Place struct {
	Node ib.NodeGUID
	Port ib.PortNum
}

// learn keeps for the next run what the devices do not keep.
func (e *Engine) learn() {
	e.known.Forgets = make(map[Place]observed.Element)
	for _, n := range e.fabric.Nodes {
		for i := range n.Ports {
			if elements := facts.Lasting(&n.Ports[i]); elements != 0 {
				e.known.Forgets[Place{n.GUID(), ib.PortNum(i)}] = elements
			}
		}
	}
}
