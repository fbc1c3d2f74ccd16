package shadow

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Kind says what a fact is about.
type Kind string

// The kinds of fact.
const (
	Exposure    Kind = "exposure"     // the tables of two end ports let them talk, and the policy does not
	Forgeable   Kind = "forgeable"    // the switch ports of two end ports would, if one forged its table
	Unguarded   Kind = "unguarded"    // no switch port holds an end port to its partitions
	EmptySwitch Kind = "empty-switch" // a switch has no routes, as after a restart
	MovedHost   Kind = "moved-host"   // a host is cabled elsewhere, and cannot work there yet
	AbsentName  Kind = "absent-name"  // a name in the policy is that of no port
	Unread      Kind = "unread"       // something was not read
)

// Port is a port as it was when a fact was seen last.
type Port struct {
	// GUID is 0 for an external port of a switch.
	GUID ib.PortGUID `json:"guid,omitzero"`
	Name string      `json:"name"`
	// Switch and Number are the switch port that it is cabled to, else the port itself.
	Switch ib.NodeGUID `json:"switch,omitzero"`
	Number ib.PortNum  `json:"number,omitzero"`
	// Partitions are those that the policy gives it, without the default partition;
	// PartitionsShown at most.
	Partitions []string `json:"partitions,omitempty"`
}

func (p *Port) place() observed.Place { return observed.Place{Node: p.Switch, Port: p.Number} }

// Fact is something that a reading shows.
type Fact struct {
	Kind Kind `json:"kind"`
	// A and B are the ports that it is about, as many as it is; of MovedHost B is where A was.
	A Port `json:"a,omitzero"`
	B Port `json:"b,omitzero"`
	// Text is what is to be said of it, in words.
	Text string `json:"text"`
}

// Span is a fact in time.
type Span struct {
	Fact
	// Began is the first round that showed it, After the round before that; zero where there
	// was none, so that it may be older.
	Began time.Time `json:"began"`
	After time.Time `json:"after,omitzero"`
	// Ended is the first round that showed that it was no more, Last the last that showed it,
	// Unseen the first that showed neither. Last is zero while the last round of all did.
	Ended  time.Time `json:"ended,omitzero"`
	Last   time.Time `json:"last,omitzero"`
	Unseen time.Time `json:"unseen,omitzero"`
}

// Round is a reading of the fabric.
type Round struct {
	// Complete reports whether all was read that should have been.
	Complete bool `json:"complete"`
	// Reads is how many requests were sent, Took how long it took.
	Reads int           `json:"reads"`
	Took  time.Duration `json:"took_ns"`
	// More reports whether there was more than ExposuresMax and SpansPerDay let it keep.
	More bool `json:"more,omitempty"`
}

// Gap is a time without a round.
type Gap struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	Why   string    `json:"why"`
}

// Writes is what ibwarden would write, as a manager with the policy.
type Writes struct {
	// Blocks counts attribute blocks, By those of each attribute.
	Blocks int               `json:"blocks"`
	By     []AttributeWrites `json:"by_attribute,omitempty"`
	// First are the first of them, each with the reason; those come first that keep tenants
	// apart.
	First []string `json:"first,omitempty"`
	// Refused is why it would write nothing; empty where it would.
	Refused string `json:"refused,omitempty"`
}

// AttributeWrites counts the blocks of an attribute.
type AttributeWrites struct {
	Attribute string `json:"attribute"`
	Blocks    int    `json:"blocks"`
}

// Record is what is kept of a round: one of its pointers is set. Of records of one span, which
// have Key and Began in common, the last counts.
type Record struct {
	At     time.Time `json:"at"`
	Round  *Round    `json:"round,omitempty"`
	Span   *Span     `json:"span,omitempty"`
	Gap    *Gap      `json:"gap,omitempty"`
	Writes *Writes   `json:"writes,omitempty"`
}

// Key is what tells facts apart.
func (f *Fact) Key() string {
	switch f.Kind {
	case AbsentName:
		return fmt.Sprint(f.Kind, " ", f.Text)
	case Unread:
		return fmt.Sprint(f.Kind, " ", f.A.Name)
	case Unguarded:
		return fmt.Sprint(f.Kind, f.A.place())
	case MovedHost:
		return fmt.Sprint(f.Kind, f.A.GUID, f.B.place())
	}
	return fmt.Sprint(f.Kind, f.A.GUID, f.B.GUID)
}
