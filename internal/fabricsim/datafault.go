package fabricsim

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/egress"
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
func (f *Fabric) SetLinkFault(g ib.NodeGUID, num ib.PortNum, fault LinkFault) error {
	i, err := f.external(g, num)
	if err != nil {
		return fmt.Errorf("link fault: %w", err)
	}
	bad := func(p float64) bool { return p < 0 || p > 1 || p != p }
	if bad(fault.Loss) || bad(fault.Flips) || fault.Delay < 0 {
		return fmt.Errorf("link fault: loss %v, flips %v, delay %v: want probabilities, and no delay below 0", fault.Loss, fault.Flips, fault.Delay)
	}
	fault.active = fault != LinkFault{}
	f.dataAt(i).fault = fault
	return nil
}

// flip changes bits of a packet on the wire, by chance.
func (f *Fabric) flip(p *portData, d *datum) {
	if len(d.octets) == 0 || p.fault.Flips == 0 {
		return
	}
	for range MaxFlips {
		if f.random.Float64() >= p.fault.Flips {
			return
		}
		bit := f.random.IntN(8 * len(d.octets))
		d.octets[bit/8] ^= 1 << (bit % 8)
		d.sound = false
	}
}

// Withhold lets port num of a node give no credits back to its peer from now on,
// so that packets towards it wait once its buffers are full; off ends that and
// gives back what was withheld.
func (f *Fabric) Withhold(g ib.NodeGUID, num ib.PortNum, on bool) error {
	i, err := f.external(g, num)
	if err != nil {
		return fmt.Errorf("withhold credits: %w", err)
	}
	p := f.dataAt(i)
	p.withholds = on
	if on || !f.ports[i].up {
		return nil
	}
	owed := p.owed
	p.owed = [egress.DataLanes]uint16{}
	for vl, blocks := range owed {
		if blocks > 0 {
			f.credit(f.ports[i].peer, ib.VL(vl), blocks)
		}
	}
	return nil
}

// SetSpoiling lets a switch or router send packets on that it refuses for their
// P_Key, with a VCRC that is wrong on purpose, instead of dropping them. Those
// meant for itself are dropped.
func (f *Fabric) SetSpoiling(g ib.NodeGUID, on bool) error {
	i, ok := f.byGUID[g]
	if !ok {
		return fmt.Errorf("spoiling: node %v: no such node in this fabric", g)
	}
	f.dataOf(i).spoils = on
	return nil
}

// Flap takes the link at a port down; it trains anew at the time that the
// fabric needs for that, and after has passed.
func (f *Fabric) Flap(g ib.NodeGUID, num ib.PortNum, after time.Duration) error {
	i, err := f.external(g, num)
	switch {
	case err != nil:
		return fmt.Errorf("flap: %w", err)
	case after < 0:
		return fmt.Errorf("flap: after %v: want no time below 0", after)
	case f.ports[i].peer == none:
		return fmt.Errorf("flap: port %d of node %v has no cable", num, g)
	}
	f.lose(i)
	f.At(f.now+after, func() { f.trainLater(i) })
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
