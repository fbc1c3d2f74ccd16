package fabric

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/sim/egress"
)

// LinkFault is how one direction of a link misbehaves.
type LinkFault struct {
	// Loss is the probability, 0 to 1, that a packet is lost.
	Loss float64
	// Flips is the probability, 0 to 1, that a bit of a data packet is another
	// when it arrives, and that another bit is then another too, and so on up
	// to MaxFlips. A subnet-management packet is lost instead.
	Flips float64
	// Delay is added to the time that a packet takes.
	Delay time.Duration

	active bool
}

// MaxFlips is how many bits of a packet a LinkFault changes at most.
const MaxFlips = 8

// SetLinkFault makes the link misbehave by which packets leave port num of a
// node, from now on; the zero LinkFault ends that.
func (pl *Plane) SetLinkFault(g ib.NodeGUID, num ib.PortNum, fault LinkFault) error {
	i, err := pl.wiring.External(g, num)
	if err != nil {
		return fmt.Errorf("link fault: %w", err)
	}
	bad := func(p float64) bool { return p < 0 || p > 1 || p != p }
	if bad(fault.Loss) || bad(fault.Flips) || fault.Delay < 0 {
		return fmt.Errorf("link fault: loss %v, flips %v, delay %v: want probabilities, and no delay below 0", fault.Loss, fault.Flips, fault.Delay)
	}
	fault.active = fault != LinkFault{}
	pl.side(i).fault = fault
	return nil
}

// flip changes bits of a packet on the wire, by chance.
func (pl *Plane) flip(p *portData, d *datum) {
	if len(d.bytes) == 0 || p.fault.Flips == 0 {
		return
	}
	for range MaxFlips {
		if pl.random.Float64() >= p.fault.Flips {
			return
		}
		bit := pl.random.IntN(8 * len(d.bytes))
		d.bytes[bit/8] ^= 1 << (bit % 8)
		d.sound, d.known = false, false
	}
}

// Withhold lets port num of a node give no credits back to its peer from now on,
// so that packets towards it wait once its buffers are full; off ends that and
// gives back what was withheld.
func (pl *Plane) Withhold(g ib.NodeGUID, num ib.PortNum, on bool) error {
	i, err := pl.wiring.External(g, num)
	if err != nil {
		return fmt.Errorf("withhold credits: %w", err)
	}
	p := pl.side(i)
	p.withholds = on
	if on || !pl.ports[i].Up {
		return nil
	}
	owed := p.owed
	p.owed = [egress.DataLanes]uint16{}
	for vl, blocks := range owed {
		if blocks > 0 {
			p.filled[vl] -= blocks
			pl.credit(pl.ports[i].Peer, ib.VL(vl), blocks)
		}
	}
	return nil
}

// SetSpoiling lets a switch or router send packets on that it refuses for their
// P_Key, with a VCRC that is wrong on purpose, instead of dropping them. Those
// meant for itself are dropped.
func (pl *Plane) SetSpoiling(g ib.NodeGUID, on bool) error {
	i, ok := pl.wiring.Index(g)
	if !ok {
		return fmt.Errorf("spoiling: node %v: no such node in this fabric", g)
	}
	pl.end(i).spoils = on
	return nil
}

// LinkFault is how the link misbehaves by which packets leave port i, nil for
// not at all.
func (pl *Plane) LinkFault(i int32) *LinkFault {
	if p := pl.sides[i]; p != nil && p.fault.active {
		return &p.fault
	}
	return nil
}
