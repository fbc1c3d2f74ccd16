// Package event defines the events of a subnet manager: one type for each kind,
// with the facts as values and a String for people.
package event

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/manager/watch"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// Event is something that happened; String says it for people.
type Event interface{ String() string }

// PhaseBegun says what the engine is doing from now on.
type PhaseBegun struct{ Phase string }

// The phases of a pass. Phases of applying are named after their stages.
const (
	PhasePause    = "quarantine" // Config.Pause
	PhaseAnnounce = "announce"   // hosts are told of a new master
	PhaseDiscover = "discover"
	PhaseTables   = "read tables" // under the M_Keys that the ports were given
	PhaseElect    = "other managers"
	PhasePlan     = "plan"
	PhaseProve    = "prove"
	PhaseNarrow   = "take away" // what a new policy takes away, before a sweep
	PhaseWatch    = "watch"
)

// Found is the size of the subnet that a sweep found.
type Found struct{ Counts observed.Counts }

// SweepFault is a place that a sweep could not use.
type SweepFault struct{ Fault sweep.Fault }

// Warned is something odd that does not stop a pass.
type Warned struct{ Text string }

// Routed is what the routing engine saw of the subnet, where it says something, when that
// is not what it said before.
type Routed struct{ Notes []string }

// Refused says why a pass wrote nothing: the policy does not fit, or
// addresses or routes cannot be given. Policy is the one that is refused; nil when it
// is not the fault of a policy.
type Refused struct {
	Err    error
	Policy *policy.Policy
}

// Failed is a write that did not hold.
type Failed struct{ Failure apply.Failure }

// Forgotten lists elements that devices accept and do not keep.
type Forgotten struct {
	Elements observed.Element
	Ports    int    // how many ports forgot one of them
	Example  string // one of the ports
}

// Fenced reports whether nobody behind a switch port is let into the subnet from now
// on.
type Fenced struct{ Fence facts.Fence }

// Unfenced reports whether a switch port is fenced no more.
type Unfenced struct{ Fence facts.Fence }

// Learned reports whether a list of cables was learned, from which on the engine holds
// to it. Nothing has been written by then.
type Learned struct {
	List *cables.List
	// Left are ports behind which something is that was not learned, and why.
	Left []string
}

// Announced reports that the engine answers SMInfo from now on, so that IsSM is to be
// set. It comes before a request to any node but the manager's own: of two managers
// that start at the same time one sees the other, and no IsSM leads to a manager that
// does not answer.
type Announced struct{ Port ib.PortGUID }

// Deferred says that another manager is master and that nothing was written.
type Deferred struct {
	Master ib.PortGUID
	Reason string
}

// Asked says that a round of questions to the other managers has ended while this one is
// master. Alone says that none of those that count says that it is master too.
type Asked struct{ Alone bool }

// LockedOut says that devices do not accept the M_Keys known here, and that those which other
// managers have stored are to be read again; see engine.KeysRead.
type LockedOut struct{ Err error }

// Slept says that this manager, the master, did not run for a while, in which another may
// have taken over: it writes nothing until it has asked the others.
type Slept struct{ For time.Duration }

// Halted says that this manager, the master, has no right to write to the subnet by the
// store that managers share, and that its writes fail until it has.
type Halted struct {
	// Why says why the store does not give it; "" where it does not answer.
	Why string
	// Had reports whether it had it and nobody is known to have taken it: it would go on
	// if the others said that they stand by. Silent are the ports of those that do not.
	Had    bool
	Silent []ib.PortGUID
}

// Resumed says that it has it again.
type Resumed struct{}

// TakingOver says that this manager, which stood by, takes over the subnet.
type TakingOver struct {
	From   ib.PortGUID // the port of the master so far, 0 for none
	Reason string
}

// Guarding says that this manager has taken over from one that had another policy: until a
// person has the policy read again, it carries out its own only as far as the tables held
// that already.
type Guarding struct {
	Reason string // why it took over
}

// Unexpected reports whether a manager that is new to the subnet found a master there
// that does not count, and leaves the subnet alone.
type Unexpected struct {
	Port ib.PortGUID // of the master
	At   string      // the port and the switch port before it, for people
}

// RogueManager reports a subnet manager that does not count, or a port that sends control
// packets like one. It changes nothing.
type RogueManager struct {
	Port ib.PortGUID
	At   string // the port and the switch port before it, for people
	// Reason is why it does not count.
	Reason string
}

// Drifted is a table or setting with a foreign change, which is being corrected.
type Drifted struct{ Op plan.Op }

// Stopped says that violation counters of a port stood at their highest value when they were read, so
// that nobody knows how many packets more there were. They are set back to zero after this was told.
type Stopped struct {
	Port     *observed.Port
	Counters []observed.Violations
}

// AllStopped are the counters that a plan sets back, port by port.
func AllStopped(p *plan.Plan) (out []Stopped) {
	for _, s := range p.Stages {
		for _, op := range s.Ops {
			if op.Kind == plan.Counters {
				out = append(out, Stopped{op.Port, observed.Stopped(&op.Port.Info)})
			}
		}
	}
	return out
}

// Resweeping says what made the engine sweep the subnet again: the whole of it,
// or what is behind so many links.
type Resweeping struct {
	Reason string
	Links  int // 0 for the whole subnet
}

// Changed is something that a look at one port found and that the policy has to
// be worked out again for.
type Changed struct{ What string }

// Flooded names who sends more traps than are looked at, or whose link goes up
// and down more often than is followed. It is told once until that has ended.
type Flooded struct {
	Sender string
	Link   bool
}

// Tried names who asked a device for something with a wrong M_Key.
type Tried struct{ By, At, Method, Attribute string }

// Disbelieved names who sent a trap in the name of another port.
type Disbelieved struct {
	Sender string
	Number smp.TrapNumber
	Issuer ib.LID
}

// Trapped is a trap that a device sent.
type Trapped struct {
	Number smp.TrapNumber
	Issuer ib.LID
	// Notice is all that the device said.
	Notice smp.Notice
	// Sender is where the packet came from, the permissive LID for a directed
	// route: a host may name any LID as the issuer.
	Sender ib.LID
	// Report is the same with names.
	Report *watch.Report
}

// Regrouped reports whether the multicast forwarding tables follow the groups that
// the engine was told of last.
type Regrouped struct {
	Groups, Writes, Failures int
	// Proof says to whom the tables lead packets now.
	Proof *isolation.Multicast
}

// Rerouted reports whether forwarding tables lead around links that went down: so many blocks were
// written.
type Rerouted struct {
	Writes, Failures int
}

// Completed ends a pass.
type Completed struct{ Result *Result }

// Result is the result of a pass.
type Result struct {
	// Policy is the one that the pass was for.
	Policy *policy.Policy
	Counts observed.Counts
	// Partitions are those of the policy, as they were resolved for the pass.
	Partitions []observed.Partition
	Proof      *isolation.Proof
	// Multicast says to whom multicast tables lead packets; nil when they are
	// left alone and were not read.
	Multicast *isolation.Multicast
	// Writes is the number of writes, read-backs not counted.
	Writes int
	// Failures counts the writes that did not hold, Faults the places that
	// could not be used.
	Failures, Faults int
	// Compiled is the number of end ports whose tables were worked out: all of
	// them, or those that a new policy concerns; none where tables were put
	// right.
	Compiled int
	// Inactive counts links that should be Active and are not.
	Inactive int
	// Outdated reports whether a newer policy has arrived, which the pass was not for.
	Outdated bool
	// Fences are the switch ports behind which nobody is let into the subnet,
	// by node GUID and port number.
	Fences []facts.Fence
}

// Reached reports whether the subnet is as the policy wants it.
func (r *Result) Reached() bool { return r.Failures == 0 && r.Inactive == 0 }

func (e PhaseBegun) String() string { return e.Phase }

func (e Found) String() string {
	c := e.Counts
	return fmt.Sprintf("found %d switches, %d CAs, %d routers, %d links", c.Switches, c.CAs, c.Routers, c.Links)
}

func (e SweepFault) String() string { return e.Fault.Error() }
func (e Warned) String() string     { return e.Text }
func (e Routed) String() string     { return strings.Join(e.Notes, "; ") }
func (e Refused) String() string    { return "refused, nothing was written: " + e.Err.Error() }
func (e Failed) String() string     { return e.Failure.Error() }

func (e Forgotten) String() string {
	return fmt.Sprintf("%d ports accept %s and forget it (for example %s); it is not asked for again",
		e.Ports, strings.Join(e.Elements.Names(), ", "), e.Example)
}

func (e Announced) String() string { return fmt.Sprintf("a subnet manager is at port %s", e.Port) }

func (e LockedOut) String() string {
	return fmt.Sprintf("%v: the M_Keys that other managers stored are read again", e.Err)
}

func (e Slept) String() string {
	return fmt.Sprintf("this manager did not run for %v: it writes nothing until the other managers have been asked", e.For.Round(time.Millisecond))
}

// silentMax is how many managers an event names.
const silentMax = 4

func (e Halted) String() string {
	text := "ALARM: this manager is master and may not write to the fabric: "
	if e.Why == "" {
		text += "the store that managers share has not given it the right to"
	} else {
		text += e.Why
	}
	if !e.Had || len(e.Silent) == 0 {
		return text
	}
	names := make([]string, 0, silentMax)
	for _, g := range e.Silent[:min(len(e.Silent), silentMax)] {
		names = append(names, g.String())
	}
	text += ", and the manager at port " + strings.Join(names, ", ")
	if more := len(e.Silent) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + " does not say that it stands by: bring the store back, or that manager; if it is gone for good, restart this one"
}

func (Resumed) String() string { return "this manager may write to the fabric again" }

func (e Asked) String() string {
	if e.Alone {
		return "no other manager is master"
	}
	return "another manager is master too"
}

func (e Deferred) String() string {
	return fmt.Sprintf("standing by, nothing was written: %s (manager at port %s)", e.Reason, e.Master)
}

func (e TakingOver) String() string { return "takes over: " + e.Reason }

func (e Guarding) String() string {
	return "ALARM: took over from a manager that had another policy: " + e.Reason +
		"; until the policy is read again (SIGHUP) no port is given what the tables did not hold"
}

func (e Stopped) String() string {
	names := make([]string, len(e.Counters))
	for i, c := range e.Counters {
		names[i] = string(c)
	}
	return fmt.Sprintf("%s: %s had stopped at %d and is set back to 0: packets that it did not count are lost", e.Port, strings.Join(names, ", "), smp.ViolationsMax)
}

func (e Unexpected) String() string {
	return fmt.Sprintf("%v: %s; nothing was written. To become master over it: --take-over. To take part in an election with it: --trusted-sm %s",
		ErrIncumbent, e.At, e.Port)
}

func (e RogueManager) String() string {
	return fmt.Sprintf("ALARM: a subnet manager that does not count: %s: %s", e.At, e.Reason)
}

func (e Fenced) String() string   { return e.Fence.Name + " is fenced: " + e.Fence.Reason }
func (e Unfenced) String() string { return e.Fence.Name + " is no longer fenced: " + e.Fence.Reason }

func (e Learned) String() string {
	s := fmt.Sprintf("learned %d cables between %d devices, which it enforces from now on", e.List.Cables(), len(e.List.Devices()))
	for i, left := range e.Left {
		if i == leftMax {
			return s + fmt.Sprintf("; and %d more", len(e.Left)-i)
		}
		s += "; not " + left
	}
	return s
}

// leftMax is how many of the ports that were left out String names.
const leftMax = 8

func (e Drifted) String() string {
	return fmt.Sprintf("%s: %s (modifier 0x%08x) was overwritten; correcting it",
		e.Op.Port, smp.AttributeName(e.Op.Attribute), e.Op.Modifier)
}

func (e Resweeping) String() string {
	if e.Links > 0 {
		return fmt.Sprintf("looking again behind %d links: %s", e.Links, e.Reason)
	}
	return "sweeping again: " + e.Reason
}

func (e Changed) String() string { return e.What }

func (e Flooded) String() string {
	if e.Link {
		return e.Sender + ": the link goes up and down too often; it is left down for a while"
	}
	return e.Sender + " sends more traps than are processed: the others are dropped"
}

func (e Tried) String() string {
	return fmt.Sprintf("%s tried %s of %s at %s without the key", e.By, e.Method, e.Attribute, e.At)
}

func (e Disbelieved) String() string {
	return fmt.Sprintf("%s sent trap %d in the name of LID %s: not believed", e.Sender, e.Number, e.Issuer)
}

func (e Trapped) String() string { return e.Report.String() }

func (e Regrouped) String() string {
	return fmt.Sprintf("%d multicast groups: %d writes, %s", e.Groups, e.Writes, e.Proof.Verdict)
}

func (e Rerouted) String() string {
	return fmt.Sprintf("led around links that went down: %d writes, %d failed", e.Writes, e.Failures)
}

func (e Completed) String() string {
	return fmt.Sprintf("done: %s", e.Result.Proof.Verdict)
}

// Released reports whether ports hold no M_Key any more: the manager that the subnet is
// handed over to does not know them.
type Released struct {
	To              ib.PortGUID
	Ports, Failures int
}

func (e Released) String() string {
	return fmt.Sprintf("M_Keys: %d ports have given up theirs, %d have not, since the subnet goes to the manager at port %s, which does not share the secret",
		e.Ports-e.Failures, e.Failures, e.To)
}

// ErrIncumbent says that a manager that is new to a subnet found a master there
// that it was not told of.
var ErrIncumbent = errors.New("another manager is master of this subnet, which ibwarden has not managed before")

// PolicyGiven reports whether the manager was given a policy. It is in force, and proved,
// with the next Completed whose Result is not Outdated; if it does not fit, Refused
// follows instead.
type PolicyGiven struct{}

func (PolicyGiven) String() string { return "a policy was given" }
