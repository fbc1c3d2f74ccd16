package desired

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// Assigned is what has to stay the same from run to run, and what an earlier
// run learned.
type Assigned struct {
	LIDs  map[ib.PortGUID]ib.LID
	PKeys map[string]ib.PKeyBase
	// Forgets are the elements that ports accept and do not keep, so that a new
	// run does not ask for them. What guards is never among them: it is asked
	// for again each time.
	Forgets map[observed.Place]observed.Element
	// Fenced are the ports that the policy does not fit and that get the
	// default partition only: they are no reason to refuse another policy.
	Fenced map[ib.PortGUID]bool
	// Fences are the switch ports behind which nobody is let into the subnet,
	// with the reason of each, in words.
	Fences facts.FenceSet
	// Aliases reports whether the tables of GUIDs are the manager's to keep: a
	// policy has given aliases.
	Aliases bool
	// Names are the names of policies, as Selector.String spells them, that have
	// found a port: a policy may name them again while they are switched off.
	Names map[string]bool
	// Managed reports whether a manager with this knowledge was master of the subnet.
	Managed bool
}

// Learn takes from a fabric what its devices do not keep, for the next run.
func (a *Assigned) Learn(f *observed.Fabric) {
	a.Forgets = make(map[observed.Place]observed.Element)
	for _, n := range f.Nodes {
		for i := range n.Ports {
			if elements := facts.Lasting(&n.Ports[i]); elements != 0 {
				a.Forgets[n.Ports[i].Place()] = elements
			}
		}
	}
}

// Recall notes at the ports of a fabric, the first that was read, what they do not
// keep.
func (a *Assigned) Recall(f *observed.Fabric) {
	for at, elements := range a.Forgets {
		if n := f.Node(at.Node); n != nil && int(at.Port) < len(n.Ports) && n.Ports[at.Port].IsUp() {
			n.Ports[at.Port].Forgets = elements
		}
	}
}

// KeepsAliases reports whether the tables of GUIDs are the manager's to keep:
// the policy speaks of aliases, or an earlier one did, whose aliases have to go.
func (a *Assigned) KeepsAliases(p *policy.Policy) bool { return p.Aliases != nil || a.Aliases }
