package routes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Result is the judgement of a routing.
type Result struct {
	Counts
	// Unreached are pairs whose packets do not arrive, Loops circles in which packets
	// go round, Drops packets that their level makes a port drop, and Unleveled paths for
	// which no level is known. Each lists at most MaxListed, by LID or by place.
	Unreached []Fault
	Loops     []Circle
	Drops     []Drop
	Unleveled []Unleveled
	// Deadlock is a credit loop, the shortest of those through its channels; nil when
	// there is none. It has steps of multicast groups only where there is none without.
	Deadlock []Wait
	// VLs are the virtual lanes that packets take between switches, in order.
	VLs []ib.VL
	// Dependencies is the number of pairs of channels one of which waits for the other.
	Dependencies uint64

	kept *kept
}

// Counts are numbers of a Result.
type Counts struct {
	// Pairs are the pairs that cables connect, Reached those of them whose packets
	// arrive, as far as their level lets them, Unreachable the others. Apart are pairs that
	// no cables connect through switches.
	Pairs, Reached, Unreachable, Apart uint64
	// Links is the number of links between switches that the packets of all pairs that are
	// reached pass, Longest that of the pair with most.
	Links   uint64
	Longest int
	// Faults, Loops, Drops and Unleveled are the lengths of the lists, with what is not
	// listed.
	Faults, Loops, Drops, Unleveled int
}

// Why says how the packets of a pair end.
type Why uint8

// The ends.
const (
	Delivered Why = iota
	NoEntry       // the switch has no exit for the LID
	NotRead       // the entry was not read
	NoCable       // nothing was found behind the exit
	LinkDown      // the link is not trained at both ends
	WrongPort     // the exit leads to an end port that does not have the LID
	Loop          // packets go round
)

// Fault is pairs whose packets end at one place.
type Fault struct {
	// From is one of the senders, To the port with the LID.
	From, To *observed.Port
	LID      ib.LID
	// At is the switch where the packets end, Exit what its table has for the LID.
	At   *observed.Node
	Exit ib.PortNum
	Why  Why
	// Pairs is the number of them.
	Pairs uint64
}

// Circle is exits of switches by which packets go round.
type Circle struct {
	Exits []*observed.Port
	// LID is the lowest for which they do, To the port that has it, nil for a multicast
	// LID; LIDs is the number of all of them.
	LID  ib.LID
	To   *observed.Port
	LIDs int
}

// Drop is packets that a port drops for their service level.
type Drop struct {
	// Out is the port that they would leave by, In the port by which they came in, 0 for
	// those that start there.
	Out *observed.Port
	In  ib.PortNum
	SL  ib.SL
	// VL is what the mapping has for them, VLs the number of lanes in operation.
	VL  ib.VL
	VLs int
	// LID is the lowest to which such packets go, 0 where it is not known.
	LID ib.LID
}

// Unleveled is a switch from which a path has a layer without a service level.
type Unleveled struct {
	From *observed.Node
	LID  ib.LID
}

// Channel is a link between switches, by the port that sends, and a virtual lane of it.
type Channel struct {
	Out *observed.Port
	VL  ib.VL
}

// Wait is a step of a credit loop: packets that hold a buffer behind one channel wait for
// the next, which is that of the next step.
type Wait struct {
	Channel
	For Channel
	// From and LID say whose packets do: an end port's, to the port To; To is nil for a
	// multicast LID.
	From *observed.Port
	LID  ib.LID
	To   *observed.Port
	SL   ib.SL
}

// Right reports whether every pair that cables connect is reached, nothing goes round, no
// packet is dropped for its level, and no credit loop exists.
func (r *Result) Right() bool { return r.Arrives() && r.Deadlock == nil }

// Arrives is Right but for credit loops.
func (r *Result) Arrives() bool {
	return r.Unreachable == 0 && r.Counts.Loops == 0 && r.Counts.Drops == 0 && r.Counts.Unleveled == 0
}

// ByGroups reports whether there is a credit loop that there were not without multicast
// groups.
func (r *Result) ByGroups() bool {
	return slices.ContainsFunc(r.Deadlock, func(w Wait) bool { return w.To == nil })
}

// MeanLinks is the mean number of links between switches that packets pass.
func (r *Result) MeanLinks() float64 {
	if r.Reached == 0 {
		return 0
	}
	return float64(r.Links) / float64(r.Reached)
}

// Kind is what is not right.
type Kind uint8

// The kinds.
const (
	OfReach Kind = iota // pairs that are not reached
	OfLoops
	OfDrops
	OfLevels // paths without a service level
	OfDeadlock
)

// Reason says in words what is not right: a line, and of a credit loop one more for each
// step.
type Reason struct {
	Kind  Kind
	Lines []string
}

// Parts are the reasons why a routing is not right, one of each kind; nil where everything is
// right.
func (r *Result) Parts() (out []Reason) {
	enter := func(k Kind, format string, args ...any) {
		out = append(out, Reason{k, []string{fmt.Sprintf(format, args...)}})
	}
	if r.Unreachable > 0 {
		enter(OfReach, "%d of %d pairs are not reached, first %s", r.Unreachable, r.Pairs, r.Unreached[0])
	}
	if len(r.Loops) > 0 {
		enter(OfLoops, "packets go round in %d circles, first %s", r.Counts.Loops, r.Loops[0])
	}
	if len(r.Drops) > 0 {
		enter(OfDrops, "packets are dropped for their service level at %d places, first %s", r.Counts.Drops, r.Drops[0])
	}
	if len(r.Unleveled) > 0 {
		enter(OfLevels, "paths from %d switches have no service level, first from %s to LID %d",
			r.Counts.Unleveled, r.Unleveled[0].From.Name(), r.Unleveled[0].LID)
	}
	if r.Deadlock != nil {
		enter(OfDeadlock, "a credit loop of %d links can stop all traffic over them", len(r.Deadlock))
		last := &out[len(out)-1]
		for _, w := range r.Deadlock {
			last.Lines = append(last.Lines, w.String())
		}
	}
	return out
}

// Reasons are the lines of all Parts.
func (r *Result) Reasons() (out []string) {
	for _, p := range r.Parts() {
		out = append(out, p.Lines...)
	}
	return out
}

func (f Fault) String() string {
	return fmt.Sprintf("%s to LID %d of %s: at %s %s", f.From, f.LID, f.To, f.At.Name(), f.why())
}

func (f *Fault) why() string {
	switch f.Why {
	case NoEntry:
		return "the table has no exit"
	case NotRead:
		return "the entry of the table was not read"
	case NoCable:
		return fmt.Sprintf("nothing is behind port %d", f.Exit)
	case LinkDown:
		return fmt.Sprintf("the link of port %d is not trained", f.Exit)
	case Loop:
		return "packets go round"
	case Delivered:
		return "they arrive"
	}
	if f.Exit == 0 {
		return "the table leads to the switch itself"
	}
	return fmt.Sprintf("port %d leads to %s", f.Exit, f.At.Ports[f.Exit].Peer)
}

// String names the exits, and the LID.
func (c Circle) String() string {
	names := make([]string, 0, len(c.Exits)+1)
	for i, p := range c.Exits {
		if i == maxNamed {
			names = append(names, fmt.Sprintf("%d more", len(c.Exits)-maxNamed))
			break
		}
		names = append(names, p.String())
	}
	names = append(names, c.Exits[0].String())
	return fmt.Sprintf("%s for LID %d%s", strings.Join(names, " -> "), c.LID, ofPort(c.To))
}

// maxNamed bounds the exits of a circle that are named.
const maxNamed = 16

func ofPort(p *observed.Port) string {
	if p == nil {
		return ""
	}
	return " of " + p.String()
}

func (d Drop) String() string {
	from := "starts there"
	if d.In != 0 {
		from = fmt.Sprintf("came in by port %d", d.In)
	}
	return fmt.Sprintf("%s: SL %d of what %s is mapped to VL %d, and VLs 0 to %d are in operation", d.Out, d.SL, from, d.VL, d.VLs-1)
}

// String is the step in words.
func (w Wait) String() string {
	to := fmt.Sprintf("multicast LID 0x%04x", uint16(w.LID))
	if w.To != nil {
		to = fmt.Sprintf("%s (LID %d)", w.To, w.LID)
	}
	return fmt.Sprintf("%s VL %d waits for %s VL %d: packets from %s to %s", w.Out, w.VL, w.For.Out, w.For.VL, w.From, to)
}
