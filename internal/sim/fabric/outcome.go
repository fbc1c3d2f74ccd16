// outcome*.go: lists every outcome of a data packet at one hop of
// a simulated fabric.
//
//	OfVerdict, OfReason   results of package relay and package egress as an Outcome
//	Drop                  the performance counters that an Outcome moves

package fabric

import (
	"github.com/ibwarden/ibwarden/internal/sim/egress"
	"github.com/ibwarden/ibwarden/internal/sim/pma"
	"github.com/ibwarden/ibwarden/internal/sim/relay"
)

// Outcome is the outcome of a data packet at one hop.
type Outcome uint8

// The outcomes: three ways on, then the ends.
const (
	OutcomeLeft       Outcome = iota // the node, by the port, over its link
	OutcomeTaken                     // by the end node or its performance agent
	OutcomeManagement                // to be carried on as a subnet-management packet
	OutcomeRefused                   // by the end node; the end node says why
	OutcomeVCRC                      // wrong VCRC on arrival
	OutcomeMalformed                 // lengths or versions
	OutcomeEntryState                // the port of arrival is neither Armed nor Active
	OutcomeEntryLane                 // a virtual lane that the port of arrival does not have
	OutcomeEntryRaw                  // raw filter of the port of arrival
	OutcomeEntryPKey                 // P_Key not in the table of the port of arrival
	OutcomeNoRoute                   // no exit in the forwarding table
	OutcomeLoop                      // the exit is the port of arrival
	OutcomeExitState                 // the exit is not Active
	OutcomeExitRaw                   // raw filter of the exit
	OutcomeExitPKey                  // P_Key not in the table of the exit
	OutcomeExitLane                  // the service level has no virtual lane at the exit
	OutcomeTooLong                   // payload above NeighborMTU of the exit
	OutcomeHopLimit                  // a router may not pass it on
	OutcomeHeadTooOld                // head-of-queue limit
	OutcomeTooOld                    // switch lifetime limit
	OutcomeStalled                   // its virtual lane is stalled
	OutcomeLaneClosed                // its virtual lane was put out of operation
	OutcomeLinkDown                  // its link went down
	OutcomeLost                      // by chance: loss of the fabric or of a link
	Overrun                          // more than the port of arrival has room for
	OutcomeBuffer                    // no buffer, or a full virtual lane
	OutcomeHops                      // limit of links crossed
	// Count is how many there are.
	Count
)

var names = [Count]string{
	"left", "taken", "management", "refused by the end node", "VCRC", "malformed", "entry not armed or active",
	"VL not in use at the entry", "raw filter at the entry", "P_Key at the entry", "no forwarding entry",
	"forwarded to where it came from", "exit not active", "raw filter at the exit", "P_Key at the exit",
	"no VL at the exit", "longer than the neighbour's MTU", "hop limit", "head-of-queue limit",
	"switch lifetime limit", "VL stalled", "VL not in operation", "link down", "lost", "buffer overrun", "no buffer", "too many hops",
}

// String says it in a few words.
func (t Outcome) String() string {
	if t >= Count {
		return "unknown outcome"
	}
	return names[t]
}

// IsDrop reports whether the packet ends here without having got anywhere.
func (t Outcome) IsDrop() bool { return t > OutcomeManagement }

// IsRelayError reports whether a switch that received the packet could not pass it on.
func (t Outcome) IsRelayError() bool {
	return t == OutcomeNoRoute || t == OutcomeHopLimit || t == OutcomeLoop
}

var verdicts = [...]Outcome{
	relay.Malformed: OutcomeMalformed, relay.EntryState: OutcomeEntryState, relay.EntryLane: OutcomeEntryLane,
	relay.EntryRaw: OutcomeEntryRaw, relay.EntryPKey: OutcomeEntryPKey, relay.NoRoute: OutcomeNoRoute, relay.Loop: OutcomeLoop,
	relay.ExitState: OutcomeExitState, relay.ExitRaw: OutcomeExitRaw, relay.ExitPKey: OutcomeExitPKey,
	relay.ExitLane: OutcomeExitLane, relay.TooLong: OutcomeTooLong, relay.HopLimit: OutcomeHopLimit,
}

var ages = [...]Outcome{
	egress.HeadTooOld: OutcomeHeadTooOld, egress.TooOld: OutcomeTooOld, egress.Stalled: OutcomeStalled,
	egress.LaneClosed: OutcomeLaneClosed, egress.LaneFull: OutcomeBuffer,
}

// Drop moves the counters of the port where a packet was dropped.
func (t Outcome) Drop(p *pma.Port) {
	switch t {
	case OutcomeVCRC:
		p.PortRcvErrors++
		p.LocalPhysicalErrors++
	case OutcomeMalformed:
		p.PortRcvErrors++
		p.MalformedPacketErrors++
	case OutcomeEntryLane:
		p.PortRcvErrors++
		p.MalformedPacketErrors++
	case Overrun:
		p.PortRcvErrors++
		p.BufferOverrunErrors++
	case OutcomeEntryRaw, OutcomeEntryPKey:
		p.PortRcvConstraintErrors++
	case OutcomeExitRaw, OutcomeExitPKey:
		p.PortXmitConstraintErrors++
	case OutcomeNoRoute, OutcomeHopLimit:
		p.PortRcvSwitchRelayErrors++
		p.DLIDMappingErrors++
	case OutcomeLoop:
		p.PortRcvSwitchRelayErrors++
		p.LoopingErrors++
	case OutcomeExitLane, OutcomeLaneClosed:
		p.PortXmitDiscards++
		p.VLMappingErrors++
	case OutcomeExitState, OutcomeLinkDown:
		p.PortXmitDiscards++
		p.InactiveDiscards++
	case OutcomeTooLong:
		p.PortXmitDiscards++
		p.NeighborMTUDiscards++
	case OutcomeTooOld:
		p.PortXmitDiscards++
		p.SwLifetimeLimitDiscards++
	case OutcomeHeadTooOld, OutcomeStalled:
		p.PortXmitDiscards++
		p.SwHOQLifetimeLimitDiscards++
	}
}

// OfVerdict returns the outcome of a verdict of package relay other than Pass.
func OfVerdict(v relay.Verdict) Outcome { return verdicts[v] }

// OfReason returns the outcome of a reason of package egress.
func OfReason(r egress.Reason) Outcome { return ages[r] }
