package fabricsim

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/endpoint"
	"github.com/ibwarden/ibwarden/internal/fabricsim/fate"
)

// Fate is what becomes of a data packet at one place; see package fate.
type Fate = fate.Fate

// The fates: three ways on, then the ends.
const (
	FateLeft       = fate.Left
	FateTaken      = fate.Taken
	FateManagement = fate.Management
	FateRefused    = fate.Refused
	FateVCRC       = fate.VCRC
	FateMalformed  = fate.Malformed
	FateEntryState = fate.EntryState
	FateEntryLane  = fate.EntryLane
	FateEntryRaw   = fate.EntryRaw
	FateEntryPKey  = fate.EntryPKey
	FateNoRoute    = fate.NoRoute
	FateLoop       = fate.Loop
	FateExitState  = fate.ExitState
	FateExitRaw    = fate.ExitRaw
	FateExitPKey   = fate.ExitPKey
	FateExitLane   = fate.ExitLane
	FateTooLong    = fate.TooLong
	FateHopLimit   = fate.HopLimit
	FateHeadTooOld = fate.HeadTooOld
	FateTooOld     = fate.TooOld
	FateStalled    = fate.Stalled
	FateLaneClosed = fate.LaneClosed
	FateLinkDown   = fate.LinkDown
	FateLost       = fate.Lost
	FateBuffer     = fate.Buffer
	FateHops       = fate.Hops
)

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
type DataCounts [fate.Count]uint64

// DataCounts is what became of data packets so far.
func (f *Fabric) DataCounts() DataCounts { return f.fates }

// see tells of a packet.
func (f *Fabric) see(d *datum, what Fate, at int32, num ib.PortNum, why endpoint.Reason) {
	f.fates[what]++
	if f.config.DataTrace != nil {
		f.config.DataTrace(DataSighting{
			At: f.now, Fate: what, Node: f.nodes[at].source.GUID, Port: num, VL: d.vl, Reason: why, Octets: d.octets,
		})
	}
}

// end ends a packet at port num of node at: it is seen, counted, and its room
// given back.
func (f *Fabric) end(d *datum, what Fate, at int32, num ib.PortNum) {
	f.see(d, what, at, num, endpoint.Taken)
	if p := f.dataOf(at).counters.Port(num); p != nil {
		what.Drop(p)
	}
	f.release(d)
	f.data.put(d.index)
}
