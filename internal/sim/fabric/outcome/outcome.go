package outcome

import (
	"github.com/ibwarden/ibwarden/internal/sim/egress"
	"github.com/ibwarden/ibwarden/internal/sim/pma"
	"github.com/ibwarden/ibwarden/internal/sim/relay"
)

// Outcome is the outcome of a data packet at one hop.
type Outcome uint8

// The outcomes: three ways on, then the ends.
const (
	Left       Outcome = iota // the node, by the port, over its link
	Taken                     // by the end node or its performance agent
	Management                // to be carried on as a subnet-management packet
	Refused                   // by the end node; the end node says why
	VCRC                      // wrong VCRC on arrival
	Malformed                 // lengths or versions
	EntryState                // the port of arrival is neither Armed nor Active
	EntryLane                 // a virtual lane that the port of arrival does not have
	EntryRaw                  // raw filter of the port of arrival
	EntryPKey                 // P_Key not in the table of the port of arrival
	NoRoute                   // no exit in the forwarding table
	Loop                      // the exit is the port of arrival
	ExitState                 // the exit is not Active
	ExitRaw                   // raw filter of the exit
	ExitPKey                  // P_Key not in the table of the exit
	ExitLane                  // the service level has no virtual lane at the exit
	TooLong                   // payload above NeighborMTU of the exit
	HopLimit                  // a router may not pass it on
	HeadTooOld                // head-of-queue limit
	TooOld                    // switch lifetime limit
	Stalled                   // its virtual lane is stalled
	LaneClosed                // its virtual lane was put out of operation
	LinkDown                  // its link went down
	Lost                      // by chance: loss of the fabric or of a link
	Overrun                   // more than the port of arrival has room for
	Buffer                    // no buffer, or a full virtual lane
	Hops                      // limit of links crossed
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
func (t Outcome) IsDrop() bool { return t > Management }

// IsRelayError reports whether a switch that received the packet could not pass it on.
func (t Outcome) IsRelayError() bool { return t == NoRoute || t == HopLimit || t == Loop }

var verdicts = [...]Outcome{
	relay.Malformed: Malformed, relay.EntryState: EntryState, relay.EntryLane: EntryLane,
	relay.EntryRaw: EntryRaw, relay.EntryPKey: EntryPKey, relay.NoRoute: NoRoute, relay.Loop: Loop,
	relay.ExitState: ExitState, relay.ExitRaw: ExitRaw, relay.ExitPKey: ExitPKey,
	relay.ExitLane: ExitLane, relay.TooLong: TooLong, relay.HopLimit: HopLimit,
}

var ages = [...]Outcome{
	egress.HeadTooOld: HeadTooOld, egress.TooOld: TooOld, egress.Stalled: Stalled,
	egress.LaneClosed: LaneClosed, egress.LaneFull: Buffer,
}

// Drop moves the counters of the port where a packet was dropped.
func (t Outcome) Drop(p *pma.Port) {
	switch t {
	case VCRC:
		p.PortRcvErrors++
		p.LocalPhysicalErrors++
	case Malformed:
		p.PortRcvErrors++
		p.MalformedPacketErrors++
	case EntryLane:
		p.PortRcvErrors++
		p.MalformedPacketErrors++
	case Overrun:
		p.PortRcvErrors++
		p.BufferOverrunErrors++
	case EntryRaw, EntryPKey:
		p.PortRcvConstraintErrors++
	case ExitRaw, ExitPKey:
		p.PortXmitConstraintErrors++
	case NoRoute, HopLimit:
		p.PortRcvSwitchRelayErrors++
		p.DLIDMappingErrors++
	case Loop:
		p.PortRcvSwitchRelayErrors++
		p.LoopingErrors++
	case ExitLane, LaneClosed:
		p.PortXmitDiscards++
		p.VLMappingErrors++
	case ExitState, LinkDown:
		p.PortXmitDiscards++
		p.InactiveDiscards++
	case TooLong:
		p.PortXmitDiscards++
		p.NeighborMTUDiscards++
	case TooOld:
		p.PortXmitDiscards++
		p.SwLifetimeLimitDiscards++
	case HeadTooOld, Stalled:
		p.PortXmitDiscards++
		p.SwHOQLifetimeLimitDiscards++
	}
}

// OfVerdict returns the outcome of a verdict of package relay other than Pass.
func OfVerdict(v relay.Verdict) Outcome { return verdicts[v] }

// OfReason returns the outcome of a reason of package egress.
func OfReason(r egress.Reason) Outcome { return ages[r] }
