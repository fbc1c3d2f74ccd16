package dataplane

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric/fate"
)

// Sighting is what Config.Trace is told.
type Sighting struct {
	At   time.Duration
	Fate fate.Fate
	Node ib.NodeGUID
	// Port is where it happened: the exit of what left or failed at an exit, the
	// port of arrival otherwise, 0 for the switch's own.
	Port   ib.PortNum
	VL     ib.VL
	Reason endpoint.Reason // of fate.Refused
	Origin bool            // of fate.Left: the node itself has sent it
	Octets []byte          // LRH to VCRC; valid until the hook returns, not to be written
}

// Counts is what became of data packets so far, by Fate. Left counts links
// crossed.
type Counts [fate.Count]uint64

// Counts is what became of data packets so far.
func (pl *Plane) Counts() Counts { return pl.fates }

// see tells of a packet.
func (pl *Plane) see(d *datum, what fate.Fate, at int32, num ib.PortNum, why endpoint.Reason) {
	pl.fates[what]++
	if pl.config.Trace != nil {
		pl.config.Trace(Sighting{
			At: pl.queue.Now, Fate: what, Node: pl.nodes[at].Source.GUID, Port: num, VL: d.vl, Reason: why,
			Origin: what == fate.Left && d.crossed == 1, Octets: d.octets,
		})
	}
}

// finish ends a packet at port num of node at: it is seen, counted, and its room
// given back.
func (pl *Plane) finish(d *datum, what fate.Fate, at int32, num ib.PortNum) {
	pl.see(d, what, at, num, endpoint.Taken)
	// What a switch itself sends has come in by no port: nothing that port 0 counts
	// as received.
	if p := pl.end(at).counters.Port(num); p != nil && (num != 0 || !what.IsRelayError()) {
		what.Drop(p)
	}
	pl.release(d)
	pl.packets.Put(d.index)
}
