package fabric

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/internal/sim/egress"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/relay"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
)

// Event lets an event of one of this package's kinds happen.
func (pl *Plane) Event(e TimelineEvent) {
	switch e.Kind {
	case dataplaneKindArrive:
		pl.arrive(pl.packets.Get(e.Subject))
	case kindSend:
		if p := pl.sides[e.Subject]; p.sendAt == e.At {
			p.sendAt = dataplaneNoTimer
			pl.send(e.Subject)
		}
	case kindAge:
		if p := pl.sides[e.Subject]; p.ageAt == e.At {
			p.ageAt = dataplaneNoTimer
			pl.age(e.Subject)
		}
	case kindDevice:
		pl.deviceTimer(e)
	case kindPeriod:
		pl.periodEnds(e.Subject)
	}
}

// arrive looks at a packet that has crossed a link.
func (pl *Plane) arrive(d *datum) {
	at := &pl.ports[d.port]
	n := &pl.nodes[at.Node]
	p := pl.side(d.port)
	if d.epoch != p.epoch {
		d.held = false
		pl.finish(d, OutcomeLinkDown, at.Node, at.Num)
		return
	}
	if !pl.admit(d) {
		return
	}
	if n.plug != nil {
		pl.toPlug(d, at)
		return
	}
	if !d.sound && !packet.CheckVCRC(d.bytes) {
		port, marked := d.port, d.marked
		pl.finish(d, OutcomeVCRC, at.Node, at.Num)
		if !marked {
			pl.softError(port)
		}
		return
	}
	d.sound, d.raw = true, false
	v, h := d.read(), &d.headers
	if v == relay.Pass {
		p.counters.Received(uint64(h.LRH.PktLen()))
		v = relay.Enter(n.Agent, at.Num, h)
	}
	switch v {
	case relay.Pass:
	case relay.EntryPKey:
		pl.config.Carrier.Follows(at.Node, n.Agent.BadPKey(pl.queue.Now, at.Num, h.Offence()))
		if !pl.ends[at.Node].spoils {
			pl.finish(d, OutcomeEntryPKey, at.Node, at.Num)
			return
		}
		p.counters.PortRcvConstraintErrors++
		d.spoiled = true
	default:
		pl.finish(d, OfVerdict(v), at.Node, at.Num)
		return
	}
	if n.IsSwitch {
		pl.relay(d, at.Node, at.Num)
		return
	}
	pl.arriveAtEnd(d, at.Node, at.Num)
}

// read makes sure of the headers.
func (d *datum) read() relay.Verdict {
	if d.known {
		return relay.Pass
	}
	var v relay.Verdict
	d.headers, v = relay.Read(d.bytes)
	d.known = v == relay.Pass
	return v
}

// relay moves a packet by the tables of a switch. In is 0 for the switch's
// own packets.
func (pl *Plane) relay(d *datum, at int32, in ib.PortNum) {
	agent, h := pl.nodes[at].Agent, &d.headers
	if h.LRH.DLID().IsMulticast() {
		pl.relayMulticast(d, at, in)
		return
	}
	exit, v := relay.Exit(agent, in, h)
	switch {
	case v != relay.Pass:
		pl.finish(d, OfVerdict(v), at, in)
	case exit == 0 && d.spoiled:
		pl.finish(d, OutcomeEntryPKey, at, in)
	case exit == 0:
		pl.reachEnd(d, at, 0)
	default:
		pl.leave(d, at, in, exit)
	}
}

// relayMulticast makes the copies of a packet. They fill the room of the one
// that came in until the last of them has gone.
func (pl *Plane) relayMulticast(d *datum, at int32, in ib.PortNum) {
	exits, v := relay.Exits(pl.nodes[at].Agent, in, &d.headers)
	if v != relay.Pass {
		pl.finish(d, OfVerdict(v), at, in)
		return
	}
	var copies []*datum
	for exit := range exits.All() {
		if len(copies) == 0 {
			copies = append(copies, d)
			continue
		}
		c := pl.packets.take()
		if c == nil {
			pl.see(d, OutcomeBuffer, at, exit, endpoint.Taken)
			continue
		}
		index, bytes := c.index, append(c.bytes, d.bytes...)
		*c = *d
		c.index, c.bytes, c.known = index, bytes, false
		copies = append(copies, c)
	}
	if d.held && len(copies) > 1 {
		shared := pl.packets.share(len(copies))
		for _, c := range copies {
			c.hold = shared
		}
	}
	pl.sendCopies(copies, exits, at, in)
}

// sendCopies sends a copy to each exit, as far as there are copies.
func (pl *Plane) sendCopies(copies []*datum, exits sma.PortSet, at int32, in ib.PortNum) {
	i := 0
	for exit := range exits.All() {
		if i == len(copies) {
			return
		}
		c := copies[i]
		i++
		c.read() // it could be read before
		switch {
		case exit == 0 && c.spoiled:
			pl.finish(c, OutcomeEntryPKey, at, in)
		case exit == 0:
			pl.reachEnd(c, at, 0)
		default:
			pl.leave(c, at, in, exit)
		}
	}
}

// leave queues a packet at an exit, if that lets it.
func (pl *Plane) leave(d *datum, at int32, in, exit ib.PortNum) {
	n, h := &pl.nodes[at], &d.headers
	vl, v := relay.Leave(n.Agent, in, exit, h)
	if v == relay.ExitPKey && pl.end(at).spoils {
		pl.ends[at].counters.Port(exit).PortXmitConstraintErrors++
		d.spoiled = true
		vl, v = n.Agent.VL(in, exit, h.LRH.SL()), relay.Pass
	}
	if v != relay.Pass {
		pl.finish(d, OfVerdict(v), at, exit)
		return
	}
	pl.enqueue(d, n.First+int32(exit), vl)
}

// enqueue puts a packet into the queue of port i, by which it is to leave.
func (pl *Plane) enqueue(d *datum, i int32, vl ib.VL) {
	p := pl.side(i)
	at := &pl.ports[i]
	if !at.Up {
		pl.finish(d, OutcomeExitState, at.Node, at.Num)
		return
	}
	if pl.queue.Now >= p.busy && pl.switches(at.Node) && p.out.Pass(pl.queue.Now, vl, blocksOf(len(d.bytes)), d.firstBit) {
		pl.transmit(i, d, vl)
		return
	}
	ok, why := p.out.Enqueue(pl.queue.Now, handle(d), vl, blocksOf(len(d.bytes)), d.firstBit)
	if !ok {
		pl.finish(d, OfReason(why), at.Node, at.Num)
		return
	}
	pl.send(i)
}

// switches reports whether a node is a switch that is on: nothing but what it
// relays leaves by its ports.
func (pl *Plane) switches(at int32) bool { return pl.nodes[at].IsSwitch && !pl.nodes[at].Off }

// send lets port i begin to send if its wire is idle.
func (pl *Plane) send(i int32) {
	at, p := &pl.ports[i], pl.sides[i]
	n := &pl.nodes[at.Node]
	switch {
	case n.Off:
		return
	case pl.queue.Now < p.busy:
		pl.sendAt(i, p.busy)
		return
	case at.Num == 0:
		pl.sendOwn(i)
		return
	case !at.Up:
		return
	}
	var device *endpoint.Device // that sends by this port
	if !n.IsSwitch {
		device = pl.end(at.Node).device
	}
	if device != nil {
		pl.fill(i, device)
		passed := p.passed
		p.passed = false
		switch {
		case !at.Up: // what left on virtual lane 15 may have had consequences
			return
		case passed:
			if device.Ready(at.Num) {
				pl.sendAt(i, p.busy)
			}
			return
		}
	}
	if h, vl, ok := p.out.Next(pl.queue.Now); ok {
		pl.transmit(i, pl.packets.Get(int32(h)), vl)
		if p.out.Len() > 0 || device != nil && device.Ready(at.Num) {
			pl.sendAt(i, p.busy)
		}
	}
	pl.armAge(i)
}

// sendAt makes sure that port i looks for something to send no later than at.
func (pl *Plane) sendAt(i int32, at time.Duration) {
	p := pl.sides[i]
	if p.sendAt != dataplaneNoTimer && p.sendAt <= at {
		return
	}
	p.sendAt = at
	pl.queue.Push(laneSend, at, kindSend, i)
}

// armAge makes sure of an event when something that waits at port i is too old.
func (pl *Plane) armAge(i int32) {
	p := pl.sides[i]
	if p.out.Len() == 0 {
		return
	}
	due, ok := p.out.Deadline()
	if !ok {
		return
	}
	if due = max(due, pl.queue.Now); p.ageAt != dataplaneNoTimer && p.ageAt <= due {
		return
	}
	p.ageAt = due
	pl.queue.Push(NoLane, due, kindAge, i)
}

// age drops what waits at port i and is too old.
func (pl *Plane) age(i int32) {
	at := &pl.ports[i]
	pl.sides[i].out.Expire(pl.queue.Now, func(h egress.Handle, why egress.Reason) {
		pl.finish(pl.packets.Get(int32(h)), OfReason(why), at.Node, at.Num)
	})
	pl.armAge(i)
	pl.sendAt(i, pl.queue.Now) // another may be at the head now
}

// transmit puts a packet on the wire of port i.
func (pl *Plane) transmit(i int32, d *datum, vl ib.VL) {
	at, p := &pl.ports[i], pl.sides[i]
	pl.release(d)
	if !d.raw {
		relay.Shift(d.bytes, vl)
	}
	if d.spoiled {
		relay.Spoil(d.bytes)
		d.spoiled, d.sound, d.marked = false, false, true
	}
	// The epoch is that of the end that keeps the room.
	d.vl, d.blocks, d.epoch, d.port = vl, blocksOf(len(d.bytes)), pl.side(at.Peer).epoch, at.Peer
	d.held = vl < egress.DataLanes
	wire := p.perByte * time.Duration(len(d.bytes)) / 1000
	p.busy = pl.queue.Now + wire
	if pl.lostOnWire(i, d) {
		return
	}
	d.crossed++
	pl.see(d, OutcomeLeft, at.Node, at.Num, endpoint.Taken)
	p.counters.Sent(uint64(len(d.bytes)-packet.VCRCSize) / 4)
	delay := pl.config.HopDelay
	if p.fault.active {
		delay += p.fault.Delay
		pl.flip(p, d)
	}
	d.firstBit = pl.queue.Now + delay
	pl.queue.Push(laneData, pl.queue.Now+delay+wire, dataplaneKindArrive, d.index)
}

// lostOnWire decides by chance whether a packet that leaves by port i gets lost.
// The room that the peer keeps for it is free again at once: the credits of a
// real link count what was sent, not what arrived.
func (pl *Plane) lostOnWire(i int32, d *datum) bool {
	at, p := &pl.ports[i], pl.sides[i]
	what := OutcomeLeft
	switch {
	case d.crossed == 0 && pl.config.Loss > 0 && pl.random.Float64() < pl.config.Loss:
		what = OutcomeLost
	case p.fault.active && p.fault.Loss > 0 && pl.random.Float64() < p.fault.Loss:
		what = OutcomeLost
	case d.crossed == MaxCrossings:
		what = OutcomeHops
	}
	if what == OutcomeLeft {
		return false
	}
	if d.held {
		p.out.Credit(d.vl, d.blocks)
		d.held = false
	}
	pl.finish(d, what, at.Node, at.Num)
	return true
}

// release gives back the room that a packet fills where it came in, once the
// last copy of it has gone.
func (pl *Plane) release(d *datum) {
	if !d.held {
		return
	}
	d.held = false
	if d.hold != none {
		pl.packets.holds[d.hold]--
		last := pl.packets.holds[d.hold] == 0
		if last {
			pl.packets.spare = append(pl.packets.spare, d.hold)
		}
		d.hold = none
		if !last {
			return
		}
	}
	p := pl.sides[d.port]
	if p == nil || p.epoch != d.epoch {
		return // the link went down since, and begins with all its room
	}
	if p.withholds {
		p.owed[d.vl] += d.blocks
		return
	}
	p.filled[d.vl] -= d.blocks
	pl.credit(pl.ports[d.port].Peer, d.vl, d.blocks)
}

// credit tells the sending port i that its peer has room again.
func (pl *Plane) credit(i int32, vl ib.VL, blocks uint16) {
	p := pl.sides[i]
	p.out.Credit(vl, blocks)
	if p.out.Len() > 0 {
		pl.sendAt(i, max(pl.queue.Now, p.busy))
	}
}

// LinkFailed counts at port i that its link goes down though nobody told it to: a
// link that a manager takes down is no failure.
func (pl *Plane) LinkFailed(i int32) {
	at := &pl.ports[i]
	pl.end(at.Node).counters.Port(at.Num).LinkDownedCounter++
}

// LinkLost forgets what is on its way over a link, or waits for it, at port i.
func (pl *Plane) LinkLost(i int32) {
	at, p := &pl.ports[i], pl.sides[i]
	if p == nil {
		return // no data packet came this way
	}
	p.epoch++
	p.busy, p.owed, p.filled, p.overran = pl.queue.Now, [egress.DataLanes]uint16{}, [egress.DataLanes]uint16{}, false
	p.out.Reset(func(h egress.Handle) { pl.finish(pl.packets.Get(int32(h)), OutcomeLinkDown, at.Node, at.Num) })
}
