package fabric

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
)

// DataSighting is what Config.Trace is told.
type DataSighting struct {
	At      time.Duration
	Outcome Outcome
	Node    ib.NodeGUID
	// Port is where it happened: the exit of what left or failed at an exit, the
	// port of arrival otherwise, 0 for the switch's own.
	Port   ib.PortNum
	VL     ib.VL
	Reason endpoint.Reason // of OutcomeRefused
	Origin bool            // of OutcomeLeft: the node itself has sent it
	Bytes  []byte          // LRH to VCRC; valid until the hook returns, not to be written
}

// DataCounts is the number of data packets so far, by Outcome. Left counts links crossed.
type DataCounts [Count]uint64

// Counts returns the number of data packets so far, by Outcome.
func (pl *Plane) Counts() DataCounts { return pl.outcomes }

// see tells of a packet.
func (pl *Plane) see(d *datum, what Outcome, at int32, num ib.PortNum, why endpoint.Reason) {
	pl.outcomes[what]++
	if pl.config.Trace != nil {
		pl.config.Trace(DataSighting{
			At: pl.queue.Now, Outcome: what, Node: pl.nodes[at].Source.GUID, Port: num, VL: d.vl, Reason: why,
			Origin: what == OutcomeLeft && d.crossed == 1, Bytes: d.bytes,
		})
	}
}

// finish ends a packet at port num of node at: it is seen, counted, and its room
// given back.
func (pl *Plane) finish(d *datum, what Outcome, at int32, num ib.PortNum) {
	pl.see(d, what, at, num, endpoint.Taken)
	// What a switch itself sends has come in by no port: nothing that port 0 counts
	// as received.
	if p := pl.end(at).counters.Port(num); p != nil && (num != 0 || !what.IsRelayError()) {
		what.Drop(p)
	}
	pl.release(d)
	pl.packets.Put(d.index)
}
