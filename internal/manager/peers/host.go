package peers

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/election"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/fence"
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
	Election election.Config
	// Newcomer tells that this manager has never managed the subnet.
	Newcomer bool
	// Vouches tells managers that share the secret which policy is in force, and proves
	// it; nil where none is shared.
	Vouches Vouches
}

// Host is the manager whose peers these are.
type Host interface {
	// Fabric and Ends are the subnet as it was last read, and its end ports by
	// GUID; nil before that.
	Fabric() *observed.Fabric
	Ends() []*observed.Port
	Cables() *cables.List
	// Rules are what this manager would make the tables of.
	Rules() Rules
	// Holder is the end port to which the manager has assigned a LID, and which
	// reports to have it; nil for none.
	Holder(ib.LID) *observed.Port

	Emit(event.Event)
	// Begin reports a phase.
	Begin(phase string)
	// WantSweep and WantElection ask for a sweep of the whole subnet, and for
	// another election on the present snapshot.
	WantSweep(reason string)
	WantElection(reason string)

	// Probe looks whether devices answer that did not.
	Probe()
	// Answer sends a packet that asks for no answer, and Waiting is how many of those
	// wait to be sent, and how many may.
	Answer(p mad.SMP, dlid ib.LID)
	Waiting() (n, most int)
	// Ask sends a request of the manager's own window.
	Ask(transact.Request, func(transact.Reply))
	// Withholds reports whether a message to another manager has to wait.
	Withholds(election.Message) bool
	// Follow acts on a change of the manager's state, once what it sends was sent.
	Follow(election.Effects)
	// Shared tells whether another manager that counts is master too.
	Shared(bool)

	// Restate tells that managers that nobody named came or went, which the verdict says.
	Restate()

	// Fence fences a switch port, Unfence admits what is behind it again, and
	// Fences lists the present fences.
	Fence(at observed.Place, reason string) bool
	Unfence(at observed.Place, reason string)
	Fences() []fence.Fence
}
