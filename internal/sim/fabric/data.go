package fabric

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/pma"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
)

// carrier is the fabric as the data path knows it.
type carrier Fabric

// Follows carries out what an agent wants.
func (c *carrier) Follows(at int32, effects []sma.Effect) { (*Fabric)(c).follows(at, effects) }

// LaunchSMP carries on a packet that an end node has sent on virtual lane 15.
func (c *carrier) LaunchSMP(at int32, num ib.PortNum, sl ib.SL, pkey ib.PKey, slid, dlid ib.LID, m *[mad.Size]byte) {
	f := (*Fabric)(c)
	f.counts.Sent++
	p := f.newCarried()
	if p == nil {
		f.counts.Discarded[DiscardBuffer]++
		return
	}
	p.mad, p.node, p.port, p.sl, p.pkey, p.slid, p.dlid = *m, at, num, sl, pkey, slid, dlid
	if class := mad.Class(m[mad.OffsetClass]); class != mad.ClassSubnLID && class != mad.ClassSubnDirected {
		f.discard(p, DiscardClass)
		return
	}
	if f.nodes[at].plug != nil {
		f.launchFromPlug(p)
		return
	}
	f.launch(p, at, num)
}

// Device is the end node of a CA, router or switch: its queue pairs, whose
// packets the fabric carries. It is another after the node was off, and what was
// made on the earlier one is cut off from the fabric.
func (f *Fabric) Device(g ib.NodeGUID) (*endpoint.Device, error) {
	if err := f.plugged("device", g); err != nil {
		return nil, err
	}
	return f.data.Device(g)
}

// DataInFlight is the number of data packets under way or waiting at a port to
// leave. What end nodes have still to send is not counted.
func (f *Fabric) DataInFlight() int { return f.data.InFlight() }

// DataWaiting is the number of data packets that wait at a port to leave by it.
func (f *Fabric) DataWaiting(g ib.NodeGUID, num ib.PortNum) int { return f.data.Waiting(g, num) }

// DataCounts returns the number of data packets so far, by Outcome.
func (f *Fabric) DataCounts() DataCounts { return f.data.Counts() }

// Counters are the performance counters of a node's ports, nil when there is no
// such node.
func (f *Fabric) Counters(g ib.NodeGUID) *pma.Agent { return f.data.Counters(g) }

// Inject puts bytes on the wire at a port, as a host could whose adapter, or a
// switch that, obeys nobody: whatever stands in them, CRCs included, they go out unchanged. A
// packet of virtual lane 15 that holds a datagram for QP0 is carried on as such; all
// else that names a virtual lane waits its turn there if the port has it.
func (f *Fabric) Inject(g ib.NodeGUID, num ib.PortNum, bytes []byte) error {
	return f.data.Inject(g, num, bytes)
}

// SetLinkFault makes the link misbehave by which packets leave port num of a
// node, from now on; the zero LinkFault ends that.
func (f *Fabric) SetLinkFault(g ib.NodeGUID, num ib.PortNum, fault LinkFault) error {
	return f.data.SetLinkFault(g, num, fault)
}

// Withhold lets port num of a node give no credits back to its peer from now on,
// so that packets towards it wait once its buffers are full; off ends that and
// gives back what was withheld.
func (f *Fabric) Withhold(g ib.NodeGUID, num ib.PortNum, on bool) error {
	return f.data.Withhold(g, num, on)
}

// SetReckless lets port num of a node send without regard to its peer's room, as no
// port may. What does not fit there is lost as a buffer overrun.
func (f *Fabric) SetReckless(g ib.NodeGUID, num ib.PortNum, on bool) error {
	return f.data.SetReckless(g, num, on)
}

// SetSpoiling lets a switch or router send packets on that it refuses for their
// P_Key, with a VCRC that is wrong on purpose, instead of dropping them. Those
// meant for itself are dropped.
func (f *Fabric) SetSpoiling(g ib.NodeGUID, on bool) error { return f.data.SetSpoiling(g, on) }

// Flap takes the link at a port down; it trains again at the time that the
// fabric needs for that, and after has passed.
func (f *Fabric) Flap(g ib.NodeGUID, num ib.PortNum, after time.Duration) error {
	i, err := f.wiring.External(g, num)
	switch {
	case err != nil:
		return fmt.Errorf("flap: %w", err)
	case after < 0:
		return fmt.Errorf("flap: after %v: want no time below 0", after)
	case f.ports[i].Peer == NoPort:
		return fmt.Errorf("flap: port %d of node %v has no cable", num, g)
	}
	f.fail(i)
	f.At(f.queue.Now+after, func() { f.trainLater(i) })
	return nil
}

// Swap changes the cables of two ports for each other, each keeping its far end.
func (f *Fabric) Swap(a ib.NodeGUID, aPort ib.PortNum, b ib.NodeGUID, bPort ib.PortNum) error {
	type end struct {
		g   ib.NodeGUID
		num ib.PortNum
	}
	var far [2]end
	for k, near := range []end{{a, aPort}, {b, bPort}} {
		g, num, ok := f.Peer(near.g, near.num)
		if !ok {
			return fmt.Errorf("swap: port %d of node %v has no cable", near.num, near.g)
		}
		far[k] = end{g, num}
	}
	if far[0] == (end{b, bPort}) || a == b && aPort == bPort {
		return fmt.Errorf("swap: port %d of node %v and port %d of node %v are the ends of one cable", aPort, a, bPort, b)
	}
	for _, step := range []func() error{
		func() error { return f.Unlink(a, aPort) },
		func() error { return f.Unlink(b, bPort) },
		func() error { return f.Link(a, aPort, far[1].g, far[1].num) },
		func() error { return f.Link(b, bPort, far[0].g, far[0].num) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("swap: %w", err)
		}
	}
	return nil
}
