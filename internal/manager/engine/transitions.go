package engine

import (
	"fmt"

	"github.com/ibwarden/ibwarden/internal/manager/event"
)

// state is what the engine is doing.
type state uint8

const (
	stateNew        state = iota // not started
	stateSweeping                // reading the subnet, or what is behind links that changed
	stateElecting                // asking other managers
	stateKeying                  // writing M_Keys
	stateReading                 // reading the tables, with those M_Keys
	stateApplying                // writing tables
	stateWatching                // idle between light sweeps
	stateChecking                // a light sweep
	stateStandby                 // idle: another manager is master
	stateRefused                 // idle: nothing can be written, and no policy is in force
	stateHeld                    // idle: Config.Hold, waiting to be told what to write
	stateAnnouncing              // telling hosts of a new master (announce.go)
	statePausing                 // waiting until what an earlier manager sent has arrived or is lost
	stateRefreshing              // reading PortInfo and SwitchInfo once more, after that
	stateReleasing               // clearing M_Keys for a handover (release.go)
	stateNarrowing               // writing revocations before a sweep or an election (narrow.go)

	stateCount
)

// trigger is what takes the engine from one state to another.
type trigger uint8

const (
	onSubnetUnread trigger = iota
	onLinksChanged
	onMasterUnknown
	onKeysDue
	onTablesUnread
	onMustWait
	onWaitOver
	onNewMaster
	onPlanned
	onCarry
	onHandover
	onRevoked
	onCheckDue
	onDone
	onGivesWay
	onContested
	onRobbed
	onPolicyRefused
	onOthersWrote
	onLostMeanwhile
	onInternal
	onTakeover
	onDeposed
	onStandby
	onRefused
	onLockedOut
	onUnexpectedMaster
	onHeld

	triggerCount
)

// states and triggers are their names, as the table of doc.go and events have them.
var (
	states = [stateCount]string{
		"New", "Sweeping", "Electing", "Keying", "Reading", "Applying", "Watching", "Checking",
		"Standby", "Refused", "Held", "Announcing", "Pausing", "Refreshing", "Releasing", "Narrowing",
	}
	triggers = [triggerCount]string{
		"SubnetUnread", "LinksChanged", "MasterUnknown", "KeysDue", "TablesUnread", "MustWait", "WaitOver",
		"NewMaster", "Planned", "Carry", "Handover", "Revoked", "CheckDue", "Done", "GivesWay", "Contested",
		"Robbed", "PolicyRefused", "OthersWrote", "LostMeanwhile", "Internal", "Takeover", "Deposed", "Standby", "Refused",
		"LockedOut", "UnexpectedMaster", "Held",
	}
)

func (s state) String() string   { return states[s] }
func (t trigger) String() string { return triggers[t] }

// transition is one row of the table: from any of these states, by this trigger, to that state.
// by names the functions that call step for it, those of phases with their type, does says what they do.
type transition struct {
	from []state
	on   trigger
	to   state
	by   []string
	does string
}

// working are the states of an engine that sweeps by itself, anything those of one that was started.
var (
	working = []state{
		stateSweeping, stateElecting, stateKeying, stateReading, stateApplying, stateWatching, stateChecking, stateStandby,
		stateRefused, stateAnnouncing, statePausing, stateRefreshing, stateReleasing, stateNarrowing,
	}
	anything = append([]state{stateHeld}, working...)
)

// transitions is the whole of what the engine may do. Only step assigns Engine.phase.
var transitions = []transition{
	{[]state{stateNew, stateSweeping, stateElecting, stateReading, stateWatching, stateStandby, stateRefused, statePausing}, onSubnetUnread, stateSweeping,
		[]string{"startSweep"}, "reads the whole subnet"},
	{[]state{stateSweeping, stateWatching}, onLinksChanged, stateSweeping,
		[]string{"revisit"}, "reads what is behind links that changed"},
	{[]state{stateSweeping, stateWatching}, onMasterUnknown, stateElecting,
		[]string{"startElection"}, "asks the other managers for SMInfo"},
	{[]state{stateSweeping, stateElecting, stateReading, stateRefreshing, stateWatching}, onKeysDue, stateKeying,
		[]string{"secure"}, "writes the M_Keys that ports are to have"},
	{[]state{stateSweeping, stateElecting, stateKeying, stateRefreshing}, onTablesUnread, stateReading,
		[]string{"readRest"}, "reads the tables with these keys"},
	{[]state{stateSweeping, stateElecting, stateAnnouncing, stateReading, stateRefreshing}, onMustWait, statePausing,
		[]string{"pause"}, "waits until nothing that an earlier manager sent is under way"},
	{[]state{stateSweeping, stateElecting, stateAnnouncing, statePausing}, onWaitOver, stateRefreshing,
		[]string{"refresh"}, "reads PortInfo and SwitchInfo again"},
	{[]state{stateSweeping, stateElecting}, onNewMaster, stateAnnouncing,
		[]string{"announce"}, "writes MasterSMLID, or moves the LID of the master, before the wait is over"},
	{[]state{stateSweeping, stateElecting, stateReading, stateWatching}, onPlanned, stateApplying,
		[]string{"write"}, "writes a plan: of a pass, of a repair, of groups or of routes around links"},
	{[]state{stateHeld}, onCarry, stateApplying,
		[]string{"Carry"}, "writes what the caller wants"},
	{[]state{stateWatching}, onHandover, stateReleasing,
		[]string{"release"}, "clears the M_Keys for a manager that does not share the secret"},
	{[]state{stateWatching}, onRevoked, stateNarrowing,
		[]string{"narrow"}, "writes what a new policy takes away, by the last snapshot"},
	{[]state{stateWatching}, onCheckDue, stateChecking,
		[]string{"startCheck"}, "asks switches for changes and reads back a share of the tables"},
	{[]state{stateApplying, stateKeying, stateChecking, stateReleasing, stateNarrowing}, onDone, stateWatching,
		[]string{"applying.applied", "checking.advance", "keying.secured", "narrowing.advance", "regrouped", "releasing.advance", "rerouted"}, "ends what was under way"},
	{[]state{stateSweeping, stateElecting, stateReading, stateApplying, stateChecking}, onGivesWay, stateWatching,
		[]string{"giveWay"}, "interrupts what is under way for a new policy"},
	{[]state{stateSweeping}, onContested, stateWatching,
		[]string{"revisited"}, "drops what was read behind links: a device of it is elsewhere in the snapshot"},
	{[]state{stateSweeping}, onRobbed, stateWatching,
		[]string{"swept"}, "writes nothing: the port of this manager has lost the LID of the master"},
	{[]state{stateSweeping, stateElecting, stateReading, stateWatching}, onPolicyRefused, stateWatching,
		[]string{"refuse"}, "goes on with the policy in force"},
	{[]state{stateSweeping, stateElecting, stateKeying, stateReading, stateWatching, stateRefused}, onRefused, stateRefused,
		[]string{"refuse"}, "waits for another policy, or to try again: no policy is in force"},
	{[]state{stateSweeping, stateElecting, stateKeying}, onLockedOut, stateRefused,
		[]string{"lockOut"}, "waits for the keys that other managers stored: devices do not accept this one's"},
	{[]state{stateElecting}, onUnexpectedMaster, stateRefused,
		[]string{"electedNamed"}, "leaves the subnet to a master that does not count"},
	{[]state{stateElecting, stateReading, stateApplying}, onHeld, stateHeld,
		[]string{"carrying.carriedOut", "lead"}, "waits for Carry (Config.Hold)"},
	{[]state{stateElecting, stateReading}, onStandby, stateStandby,
		[]string{"stoodBy"}, "stands by for the master"},
	{[]state{stateSweeping, stateElecting, stateReading, stateRefreshing, stateChecking}, onTakeover, stateStandby,
		[]string{"abandonReading"}, "drops what was read as standby, to read it after the wait"},
	{[]state{stateWatching, stateHeld, statePausing, stateApplying, stateKeying, stateChecking, stateReleasing, stateAnnouncing, stateRefreshing}, onDeposed, stateStandby,
		[]string{"announcing.advance", "applying.applied", "carrying.carriedOut", "held.resign", "keying.secured", "pausing.resign", "refreshing.advance", "rest", "watching.resign"}, "ends what was under way: another manager is master"},
	{working, onOthersWrote, stateWatching,
		[]string{"SetLease", "hears", "lookAtLease", "naps"}, "drops what was under way, and has the subnet read again: another manager may have written"},
	{working, onLostMeanwhile, stateStandby,
		[]string{"dropWork"}, "does the same as a standby: this manager is not master any more"},
	{anything, onInternal, stateWatching,
		[]string{"recover"}, "does the same as master, after a step that this table does not have"},
}

// table is transitions by state and trigger: 1 plus the state that follows, 0 for what cannot
// happen.
var table = func() (t [stateCount][triggerCount]state) {
	for _, row := range transitions {
		for _, from := range row.from {
			t[from][row.on] = row.to + 1
		}
	}
	return t
}()

// step takes the engine to the phase that follows from what happened. What the table does not
// have is refused: the phase stays, a warning says so, and the engine drops what is under way and
// reads the subnet again, so that nothing is written on wrong grounds. A test ends there (OnStep).
func (e *Engine) step(on trigger, next phase) {
	from := e.state()
	to := table[from][on]
	allowed := to != 0 && next.state() == to-1
	if e.config.OnStep != nil {
		e.config.OnStep(from.String(), on.String(), allowed)
	}
	if !allowed {
		e.broken = true
		e.emit(event.Warned{Text: fmt.Sprintf("internal error: %s cannot happen while %s; what was under way is dropped, and the subnet is read again", on, from)})
		return
	}
	e.phase = next
}

// leadsTo is the state that follows from a trigger in the present state.
func (e *Engine) leadsTo(on trigger) state {
	if to := table[e.state()][on]; to != 0 {
		return to - 1
	}
	return e.state()
}

// recover begins again after a step that was refused.
func (e *Engine) recover() {
	if e.broken {
		e.broken = false
		e.dropWork(onInternal)
	}
}
