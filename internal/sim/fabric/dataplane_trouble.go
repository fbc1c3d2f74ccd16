package fabric

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
)

// FlowControlPeriod is how long receivers may leave their peers without word of their
// room: 65536 symbols of 4 ns, at any rate. Overruns count by such periods.
const FlowControlPeriod = 65536 * 4 * time.Nanosecond

// recklessBlocks is the room, in blocks, that a port believes in which asks for no
// credits: more than its wire carries before they come back.
const recklessBlocks = 1<<16 - 1

// room is how much a port believes that its peer has for each virtual lane, in blocks.
func (p *portData) room() uint16 {
	if p.reckless {
		return recklessBlocks
	}
	return InputBlocks
}

// SetReckless lets port num of a node send without regard to its peer's room, as no
// port may. What does not fit there is lost as a buffer overrun.
func (pl *Plane) SetReckless(g ib.NodeGUID, num ib.PortNum, on bool) error {
	i, err := pl.wiring.External(g, num)
	if err != nil {
		return fmt.Errorf("reckless: %w", err)
	}
	p := pl.side(i)
	p.reckless = on
	pl.Configure(i)
	if p.out.Len() > 0 {
		pl.sendAt(i, max(pl.queue.Now, p.busy))
	}
	return nil
}

// admit makes sure that a packet that has come in fits. If it does not, that is its
// end.
func (pl *Plane) admit(d *datum) bool {
	if !d.held {
		return true
	}
	i := d.port
	p, at := pl.sides[i], &pl.ports[i]
	if int(p.filled[d.vl])+int(d.blocks) <= InputBlocks {
		p.filled[d.vl] += d.blocks
		return true
	}
	// Credits count what was sent, not what found room.
	d.held = false
	pl.credit(at.Peer, d.vl, d.blocks)
	p.overran = true
	pl.finish(d, Overrun, at.Node, at.Num)
	if !p.timing {
		p.timing = true
		pl.queue.Push(NoLane, (pl.queue.Now/FlowControlPeriod+1)*FlowControlPeriod, kindPeriod, i)
	}
	return false
}

// periodEnds tells the agent of port i whether it was overrun in the period that has
// ended, and looks at the next one if so.
func (pl *Plane) periodEnds(i int32) {
	at, p := &pl.ports[i], pl.sides[i]
	n := &pl.nodes[at.Node]
	overran := p.overran
	p.overran, p.timing = false, overran && !n.Off
	if p.timing {
		pl.queue.Push(NoLane, pl.queue.Now+FlowControlPeriod, kindPeriod, i)
	}
	if n.Off {
		return
	}
	before := n.Agent.Exceeded(at.Num)
	effects := n.Agent.FlowControlPeriod(pl.queue.Now, at.Num, overran)
	p.counters.ExcessiveBufferOverrunErrors += n.Agent.Exceeded(at.Num).BufferOverrun - before.BufferOverrun
	pl.config.Carrier.Follows(at.Node, effects)
}

// softError tells the agent of port i that a data packet has come in spoiled by the
// link. Management packets are lost there and count nothing: with a threshold of 0 the
// traps of two noisy ports would beget one another for ever.
func (pl *Plane) softError(i int32) {
	at := &pl.ports[i]
	n := &pl.nodes[at.Node]
	if n.Off {
		return
	}
	before := n.Agent.Exceeded(at.Num)
	effects := n.Agent.PhyError(pl.queue.Now, at.Num)
	pl.end(at.Node).counters.Port(at.Num).LocalLinkIntegrityErrors += n.Agent.Exceeded(at.Num).LinkIntegrity - before.LinkIntegrity
	pl.config.Carrier.Follows(at.Node, effects)
}
