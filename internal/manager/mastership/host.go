package mastership

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// Config is what Peers are told once.
type Config struct {
	// Limits and Seed are those of the manager's own requests.
	Limits transact.Limits
	Seed   [32]byte
	// Profile is protect.None where every manager counts, and any other where
	// only named ones do.
	Profile protect.Profile
	// Election is the manager's part in the election; its GUID and Named are set here.
	Election ElectionConfig
	// Newcomer reports whether this manager has never managed the subnet.
	Newcomer bool
	// Vouches tells managers that share the secret which policy is in force, and proves
	// it; nil where none is shared.
	Vouches Vouches
}

// Facts are what the manager knows of its subnet.
type Facts struct {
	// Fabric and Ends are the subnet as it was last read, and its end ports by GUID; nil before
	// that.
	Fabric *observed.Fabric
	Ends   []*observed.Port
	Cables *cables.List
	// Fences are the switch ports behind which nobody is let into the subnet.
	Fences facts.FenceSet
}

// fences lists the present fences, in order.
func (f *Facts) fences() []facts.Fence { return f.Fences.List(f.Fabric) }

// Want is what the manager is asked to do when it has nothing else under way.
type Want uint8

// The wants.
const (
	WantSweep    Want = iota // read the whole subnet again
	WantElection             // ask the managers again, on the present snapshot
	WantProof                // give the verdict again
	WantProbe                // ask devices again that did not answer
)

// Host is the manager whose peers these are: what it knows, and what follows for it.
type Host interface {
	Facts() *Facts
	// Rules are what this manager would make the tables of.
	Rules() Rules

	Emit(event.Event)
	// Want asks for something, with the reason for people.
	Want(w Want, why string)
	// Answer sends a packet that asks for no answer, unless more than the room for those that wait
	// to be sent, divided by share, is taken.
	Answer(p mad.SMP, dlid ib.LID, share int)
	// Ask sends a request of the manager's own window.
	Ask(transact.Request, func(transact.Reply))
	// Withholds reports whether a message to another manager has to wait.
	Withholds(Message) bool
	// Follow acts on a change of the manager's state, once what it sends was sent.
	Follow(Effects)
	// Shared reports whether another manager that counts is master too.
	Shared(bool)
	// Fence fences a switch port, Unfence admits what is behind it again.
	Fence(at observed.Place, reason string) bool
	Unfence(at observed.Place, reason string)
}
