package fabricsim

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/internal/egress"
	"github.com/ibwarden/ibwarden/internal/endpoint"
	"github.com/ibwarden/ibwarden/internal/fabricsim/fate"
	"github.com/ibwarden/ibwarden/internal/fabricsim/timeline"
	"github.com/ibwarden/ibwarden/internal/relay"
	"github.com/ibwarden/ibwarden/internal/sma"
)

// dataEvent lets happen what concerns data packets.
func (f *Fabric) dataEvent(e timeline.Event) {
	switch e.Kind {
	case kindDataArrive:
		f.arriveData(f.data.get(e.Subject))
	case kindSend:
		if p := f.ports[e.Subject].data; p.sendAt == e.At {
			p.sendAt = noTimer
			f.send(e.Subject)
		}
	case kindAge:
		if p := f.ports[e.Subject].data; p.ageAt == e.At {
			p.ageAt = noTimer
			f.age(e.Subject)
		}
	case kindDevice:
		f.deviceTimer(e)
	}
}

// arriveData looks at a packet that has crossed a link.
func (f *Fabric) arriveData(d *datum) {
	at := &f.ports[d.port]
	n := &f.nodes[at.node]
	p := f.dataAt(d.port)
	if d.epoch != p.epoch {
		d.held = false
		f.end(d, FateLinkDown, at.node, at.num)
		return
	}
	if !d.sound && !packet.CheckVCRC(d.octets) {
		f.end(d, FateVCRC, at.node, at.num)
		return
	}
	d.sound, d.raw = true, false
	h, v := relay.Read(d.octets)
	if v == relay.Pass {
		p.counters.Received(uint64(h.LRH.PktLen()))
		v = relay.Enter(n.agent, at.num, &h)
	}
	switch v {
	case relay.Pass:
	case relay.EntryPKey:
		f.follows(at.node, n.agent.BadPKey(f.now, at.num, h.Offence()))
		if !n.data.spoils {
			f.end(d, FateEntryPKey, at.node, at.num)
			return
		}
		p.counters.PortRcvConstraintErrors++
		d.spoiled = true
	default:
		f.end(d, fate.OfVerdict(v), at.node, at.num)
		return
	}
	if n.isSwitch {
		f.relayData(d, at.node, at.num, &h)
		return
	}
	f.arriveAtEnd(d, at.node, at.num, &h)
}

// relayData moves a packet by the tables of a switch. In is 0 for the switch's
// own packets.
func (f *Fabric) relayData(d *datum, at int32, in ib.PortNum, h *relay.Headers) {
	agent := f.nodes[at].agent
	if h.LRH.DLID().IsMulticast() {
		f.relayMulticast(d, at, in, h)
		return
	}
	exit, v := relay.Exit(agent, in, h)
	switch {
	case v != relay.Pass:
		f.end(d, fate.OfVerdict(v), at, in)
	case exit == 0 && d.spoiled:
		f.end(d, FateEntryPKey, at, in)
	case exit == 0:
		f.reachEnd(d, at, 0)
	default:
		f.leave(d, at, in, exit, h)
	}
}

// relayMulticast makes the copies of a packet. They fill the room of the one
// that came in until the last of them has gone.
func (f *Fabric) relayMulticast(d *datum, at int32, in ib.PortNum, h *relay.Headers) {
	exits, v := relay.Exits(f.nodes[at].agent, in, h)
	if v != relay.Pass {
		f.end(d, fate.OfVerdict(v), at, in)
		return
	}
	var copies []*datum
	for exit := range exits.All() {
		if len(copies) == 0 {
			copies = append(copies, d)
			continue
		}
		c := f.data.take()
		if c == nil {
			f.see(d, FateBuffer, at, exit, endpoint.Taken)
			continue
		}
		index, octets := c.index, append(c.octets, d.octets...)
		*c = *d
		c.index, c.octets = index, octets
		copies = append(copies, c)
	}
	if d.held && len(copies) > 1 {
		shared := f.data.share(len(copies))
		for _, c := range copies {
			c.hold = shared
		}
	}
	f.sendCopies(copies, exits, at, in)
}

// sendCopies sends a copy to each exit, as far as there are copies.
func (f *Fabric) sendCopies(copies []*datum, exits sma.PortSet, at int32, in ib.PortNum) {
	i := 0
	for exit := range exits.All() {
		if i == len(copies) {
			return
		}
		c := copies[i]
		i++
		h, _ := relay.Read(c.octets) // it could be read before
		switch {
		case exit == 0 && c.spoiled:
			f.end(c, FateEntryPKey, at, in)
		case exit == 0:
			f.reachEnd(c, at, 0)
		default:
			f.leave(c, at, in, exit, &h)
		}
	}
}

// leave queues a packet at an exit, if that lets it.
func (f *Fabric) leave(d *datum, at int32, in, exit ib.PortNum, h *relay.Headers) {
	n := &f.nodes[at]
	vl, v := relay.Leave(n.agent, in, exit, h)
	if v == relay.ExitPKey && f.dataOf(at).spoils {
		n.data.counters.Port(exit).PortXmitConstraintErrors++
		d.spoiled = true
		vl, v = n.agent.VL(in, exit, h.LRH.SL()), relay.Pass
	}
	if v != relay.Pass {
		f.end(d, fate.OfVerdict(v), at, exit)
		return
	}
	f.enqueue(d, n.first+int32(exit), vl)
}

// enqueue puts a packet into the queue of port i, by which it is to leave.
func (f *Fabric) enqueue(d *datum, i int32, vl ib.VL) {
	p := f.dataAt(i)
	at := &f.ports[i]
	if !at.up {
		f.end(d, FateExitState, at.node, at.num)
		return
	}
	ok, why := p.out.Enqueue(f.now, handle(d), vl, blocksOf(len(d.octets)), d.firstBit)
	if !ok {
		f.end(d, fate.OfReason(why), at.node, at.num)
		return
	}
	f.send(i)
}

// send lets port i begin to send if its wire is idle.
func (f *Fabric) send(i int32) {
	at := &f.ports[i]
	p := at.data
	n := &f.nodes[at.node]
	switch {
	case n.off:
		return
	case f.now < p.busy:
		f.sendAt(i, p.busy)
		return
	case at.num == 0:
		f.sendOwn(i)
		return
	case !at.up:
		return
	}
	hasDevice := n.data.device != nil && !n.isSwitch
	if hasDevice {
		f.fill(i)
		if !at.up { // what left on lane 15 may have had consequences
			return
		}
	}
	if h, vl, ok := p.out.Next(f.now); ok {
		f.transmit(i, f.data.get(int32(h)), vl)
		if p.out.Len() > 0 || hasDevice && n.data.device.Ready(at.num) {
			f.sendAt(i, p.busy)
		}
	}
	f.armAge(i)
}

// sendAt makes sure that port i looks for something to send no later than at.
func (f *Fabric) sendAt(i int32, at time.Duration) {
	p := f.ports[i].data
	if p.sendAt != noTimer && p.sendAt <= at {
		return
	}
	p.sendAt = at
	f.queue.Push(laneSend, at, kindSend, i)
}

// armAge makes sure of an event when something that waits at port i is too old.
func (f *Fabric) armAge(i int32) {
	p := f.ports[i].data
	if p.out.Len() == 0 {
		return
	}
	due, ok := p.out.Deadline()
	if !ok {
		return
	}
	if due = max(due, f.now); p.ageAt != noTimer && p.ageAt <= due {
		return
	}
	p.ageAt = due
	f.queue.Push(timeline.NoLane, due, kindAge, i)
}

// age drops what waits at port i and is too old.
func (f *Fabric) age(i int32) {
	at := &f.ports[i]
	at.data.out.Expire(f.now, func(h egress.Handle, why egress.Reason) {
		f.end(f.data.get(int32(h)), fate.OfReason(why), at.node, at.num)
	})
	f.armAge(i)
	f.sendAt(i, f.now) // another may be at the head now
}

// transmit puts a packet on the wire of port i.
func (f *Fabric) transmit(i int32, d *datum, vl ib.VL) {
	at := &f.ports[i]
	p := at.data
	f.release(d)
	if !d.raw {
		relay.Shift(d.octets, vl)
	}
	if d.spoiled {
		relay.Spoil(d.octets)
		d.spoiled, d.sound = false, false
	}
	// The epoch is that of the end that keeps the room.
	d.vl, d.blocks, d.epoch, d.port = vl, blocksOf(len(d.octets)), f.dataAt(at.peer).epoch, at.peer
	d.held = vl < egress.DataLanes
	wire := p.perOctet * time.Duration(len(d.octets)) / 1000
	p.busy = f.now + wire
	if f.lostOnWire(i, d) {
		return
	}
	d.crossed++
	f.see(d, FateLeft, at.node, at.num, endpoint.Taken)
	p.counters.Sent(uint64(len(d.octets)-packet.VCRCSize) / 4)
	delay := f.config.HopDelay
	if p.fault.active {
		delay += p.fault.Delay
		f.flip(p, d)
	}
	d.firstBit = f.now + delay
	f.queue.Push(laneData, f.now+delay+wire, kindDataArrive, d.index)
}

// lostOnWire decides by chance whether a packet that leaves by port i gets lost.
// The room that the peer keeps for it is free again at once: the credits of a
// real link count what was sent, not what arrived.
func (f *Fabric) lostOnWire(i int32, d *datum) bool {
	at := &f.ports[i]
	what := FateLeft
	switch {
	case d.crossed == 0 && f.config.Loss > 0 && f.random.Float64() < f.config.Loss:
		what = FateLost
	case at.data.fault.active && at.data.fault.Loss > 0 && f.random.Float64() < at.data.fault.Loss:
		what = FateLost
	case d.crossed == MaxCrossings:
		what = FateHops
	}
	if what == FateLeft {
		return false
	}
	if d.held {
		at.data.out.Credit(d.vl, d.blocks)
		d.held = false
	}
	f.end(d, what, at.node, at.num)
	return true
}

// release gives back the room that a packet fills where it came in, once the
// last copy of it has gone.
func (f *Fabric) release(d *datum) {
	if !d.held {
		return
	}
	d.held = false
	if d.hold != none {
		f.data.holds[d.hold]--
		last := f.data.holds[d.hold] == 0
		if last {
			f.data.spare = append(f.data.spare, d.hold)
		}
		d.hold = none
		if !last {
			return
		}
	}
	p := f.ports[d.port].data
	if p == nil || p.epoch != d.epoch {
		return // the link went down since, and begins with all its room
	}
	if p.withholds {
		p.owed[d.vl] += d.blocks
		return
	}
	f.credit(f.ports[d.port].peer, d.vl, d.blocks)
}

// credit tells the sending port i that its peer has room again.
func (f *Fabric) credit(i int32, vl ib.VL, blocks uint16) {
	p := f.ports[i].data
	p.out.Credit(vl, blocks)
	if p.out.Len() > 0 {
		f.sendAt(i, max(f.now, p.busy))
	}
}

// linkLost forgets what is on its way over a link, or waits for it, at port i.
func (f *Fabric) linkLost(i int32) {
	at := &f.ports[i]
	p := at.data
	if p == nil {
		return
	}
	p.epoch++
	p.busy, p.owed = f.now, [egress.DataLanes]uint16{}
	p.counters.LinkDownedCounter++
	p.out.Reset(func(h egress.Handle) { f.end(f.data.get(int32(h)), FateLinkDown, at.node, at.num) })
}
