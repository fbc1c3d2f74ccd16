package fabricsim

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/egress"
	"github.com/ibwarden/ibwarden/internal/endpoint"
	"github.com/ibwarden/ibwarden/internal/pma"
	"github.com/ibwarden/ibwarden/internal/relay"
)

// Fate is what becomes of a data packet at one place.
type Fate uint8

// The fates: three ways on, then the ends.
const (
	FateLeft       Fate = iota // the node, by the port, over its link
	FateTaken                  // by the end node or its performance agent
	FateManagement             // to be carried on as a subnet-management packet
	FateRefused                // by the end node; see DataSighting.Reason
	FateVCRC                   // wrong VCRC on arrival
	FateMalformed              // lengths or versions
	FateEntryState             // the port of arrival is neither Armed nor Active
	FateEntryLane              // a lane that the port of arrival does not have
	FateEntryRaw               // raw filter of the port of arrival
	FateEntryPKey              // P_Key not in the table of the port of arrival
	FateNoRoute                // no exit in the forwarding table
	FateLoop                   // the exit is the port of arrival
	FateExitState              // the exit is not Active
	FateExitRaw                // raw filter of the exit
	FateExitPKey               // P_Key not in the table of the exit
	FateExitLane               // the service level has no lane at the exit
	FateTooLong                // payload above NeighborMTU of the exit
	FateHopLimit               // a router may not pass it on
	FateHeadTooOld             // head-of-queue limit
	FateTooOld                 // switch lifetime limit
	FateStalled                // its lane is stalled
	FateLaneClosed             // its lane was put out of operation
	FateLinkDown               // its link went down
	FateLost                   // by chance: Config.Loss or LinkFault.Loss
	FateBuffer                 // MaxDataPackets, or a full lane
	FateHops                   // MaxCrossings
	fateCount
)

var fateNames = [fateCount]string{
	"left", "taken", "management", "refused by the end node", "VCRC", "malformed", "entry not armed or active",
	"lane not in use at the entry", "raw filter at the entry", "P_Key at the entry", "no forwarding entry",
	"forwarded to where it came from", "exit not active", "raw filter at the exit", "P_Key at the exit",
	"no lane at the exit", "longer than the neighbour's MTU", "hop limit", "head-of-queue limit",
	"switch lifetime limit", "lane stalled", "lane not in operation", "link down", "lost", "no buffer", "too many hops",
}

// String says it in a few words.
func (t Fate) String() string {
	if t >= fateCount {
		return "unknown fate"
	}
	return fateNames[t]
}

// IsDrop reports whether the packet ends here without having got anywhere.
func (t Fate) IsDrop() bool { return t > FateManagement }

// fates are the verdicts of package relay.
var fates = [...]Fate{
	relay.Malformed: FateMalformed, relay.EntryState: FateEntryState, relay.EntryLane: FateEntryLane,
	relay.EntryRaw: FateEntryRaw, relay.EntryPKey: FateEntryPKey, relay.NoRoute: FateNoRoute, relay.Loop: FateLoop,
	relay.ExitState: FateExitState, relay.ExitRaw: FateExitRaw, relay.ExitPKey: FateExitPKey,
	relay.ExitLane: FateExitLane, relay.TooLong: FateTooLong, relay.HopLimit: FateHopLimit,
}

// ages are the reasons of package egress.
var ages = [...]Fate{
	egress.HeadTooOld: FateHeadTooOld, egress.TooOld: FateTooOld, egress.Stalled: FateStalled,
	egress.LaneClosed: FateLaneClosed, egress.LaneFull: FateBuffer,
}

// DataSighting is what Config.DataTrace is told.
type DataSighting struct {
	At   time.Duration
	Fate Fate
	Node ib.NodeGUID
	// Port is where it happened: the exit of what left or failed at an exit, the
	// port of arrival otherwise, 0 for the switch's own.
	Port   ib.PortNum
	VL     ib.VL
	Reason endpoint.Reason // of FateRefused
	Octets []byte          // LRH to VCRC; valid until the hook returns, not to be written
}

// DataCounts is what became of data packets so far, by Fate. Left counts links
// crossed.
type DataCounts [fateCount]uint64

// DataCounts is what became of data packets so far.
func (f *Fabric) DataCounts() DataCounts { return f.fates }

// see tells of a packet.
func (f *Fabric) see(d *datum, fate Fate, at int32, num ib.PortNum, why endpoint.Reason) {
	f.fates[fate]++
	if f.config.DataTrace != nil {
		f.config.DataTrace(DataSighting{
			At: f.now, Fate: fate, Node: f.nodes[at].source.GUID, Port: num, VL: d.vl, Reason: why, Octets: d.octets,
		})
	}
}

// end ends a packet at port num of node at: it is seen, counted, and its room
// given back.
func (f *Fabric) end(d *datum, fate Fate, at int32, num ib.PortNum) {
	f.see(d, fate, at, num, endpoint.Taken)
	if p := f.dataOf(at).counters.Port(num); p != nil {
		countDrop(p, fate)
	}
	f.release(d)
	f.data.put(d)
}

// countDrop moves the counters of the port where a packet was dropped.
func countDrop(p *pma.Port, fate Fate) {
	switch fate {
	case FateVCRC:
		p.PortRcvErrors++
		p.LocalPhysicalErrors++
	case FateMalformed:
		p.PortRcvErrors++
		p.MalformedPacketErrors++
	case FateEntryLane:
		p.PortRcvErrors++
		p.MalformedPacketErrors++
	case FateEntryRaw, FateEntryPKey:
		p.PortRcvConstraintErrors++
	case FateExitRaw, FateExitPKey:
		p.PortXmitConstraintErrors++
	case FateNoRoute, FateHopLimit:
		p.PortRcvSwitchRelayErrors++
		p.DLIDMappingErrors++
	case FateLoop:
		p.PortRcvSwitchRelayErrors++
		p.LoopingErrors++
	case FateExitLane, FateLaneClosed:
		p.PortXmitDiscards++
		p.VLMappingErrors++
	case FateExitState, FateLinkDown:
		p.PortXmitDiscards++
		p.InactiveDiscards++
	case FateTooLong:
		p.PortXmitDiscards++
		p.NeighborMTUDiscards++
	case FateTooOld:
		p.PortXmitDiscards++
		p.SwLifetimeLimitDiscards++
	case FateHeadTooOld, FateStalled:
		p.PortXmitDiscards++
		p.SwHOQLifetimeLimitDiscards++
	}
}

// seenPort is what the consumer of an end node was last told of its port.
type seenPort struct {
	active bool
	lid    ib.LID
	lmc    ib.LMC
	smLID  ib.LID
	smSL   ib.SL
	prefix uint64
	guids  []uint64 // up to the last that is set
}

func lookAt(info *smp.PortInfo, guids []uint64) seenPort {
	return seenPort{
		active: info.PortState == smp.PortActive, lid: info.LID, lmc: info.LMC,
		smLID: info.MasterSMLID, smSL: info.MasterSMSL, prefix: info.GIDPrefix, guids: guids,
	}
}
