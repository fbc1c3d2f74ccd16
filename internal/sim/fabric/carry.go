package fabric

import (
	"encoding/binary"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
)

// launch starts a packet on its way from a node. In is the port of a CA or
// router that it is to leave by, and 0 on a switch.
func (f *Fabric) launch(p *carried, at int32, in ib.PortNum) {
	p.node, p.port, p.crossed = at, in, 0
	if p.isDirected() && !StartsByLID(&p.mad) {
		f.follow(p, DirectedLocation{Origin: true})
		return
	}
	f.relay(p, true)
}

// arrive looks at a packet that has crossed a link.
func (f *Fabric) arrive(p *carried) {
	n := &f.nodes[p.node]
	switch {
	case n.Off:
		f.discard(p, DiscardOff)
	case f.behaviour[p.node].drops(f.queue.Now, p.port, &p.mad):
		f.discard(p, DiscardDrop)
	case n.plug != nil:
		f.toPlug(p)
	case p.dlid != ib.LIDPermissive:
		f.relay(p, false)
	case p.isDirected():
		f.follow(p, DirectedLocation{})
	default:
		f.take(p)
	}
}

// follow does with a directed-route packet what its route says. Of at, only
// origin and byLID are set.
func (f *Fabric) follow(p *carried, at DirectedLocation) {
	n := &f.nodes[p.node]
	at.IsSwitch, at.Ports, at.In = n.IsSwitch, n.Last, p.port
	d := Direct(&p.mad, at)
	switch d.Action {
	case Leave:
		if at.ByLID {
			p.dlid = ib.LIDPermissive
		}
		if n.IsSwitch && !StartsByLID(&p.mad) {
			// A switch sends it as one of its own. Linux's qib sends with the LID of its port, and
			// answers to the LID that it sees.
			p.slid, p.dlid = ib.LIDPermissive, ib.LIDPermissive
		}
		f.depart(p, d.Port)
	case Take:
		f.take(p)
	case TakeByManager:
		f.deliver(p)
	case RouteByLID:
		// The hop pointer has moved, so that a packet that comes back here in
		// relay, being for this very node, ends.
		end := n.EndPort(p.port)
		p.slid, p.dlid = n.Agent.Port(end).LID, d.LID
		p.port = end
		f.relay(p, true)
	default:
		f.discard(p, DiscardRoute)
	}
}

// relay moves a packet by its LID, from the node itself when origin is set.
func (f *Fabric) relay(p *carried, origin bool) {
	n := &f.nodes[p.node]
	switch {
	case (origin || !n.IsSwitch) && n.Agent.HasLID(p.port, p.dlid):
		f.reach(p)
	case !n.IsSwitch && !origin:
		f.discard(p, DiscardLID)
	case !n.IsSwitch:
		f.depart(p, p.port)
	case p.dlid != ib.LIDPermissive:
		f.forward(p, origin)
	case p.port == 0: // to the manager at port 0, from there
		f.reach(p)
	default: // an answer to the manager behind the port that it asked through
		f.depart(p, p.port)
	}
}

// forward moves a packet by the forwarding table of a switch.
func (f *Fabric) forward(p *carried, origin bool) {
	agent := f.nodes[p.node].Agent
	exit, ok := agent.UnicastExit(p.port, p.dlid)
	switch {
	case !ok:
		f.discard(p, DiscardTable)
	case exit == p.port && !origin:
		f.discard(p, DiscardLoop)
	case exit != 0:
		f.depart(p, exit)
	case agent.HasLID(0, p.dlid):
		f.reach(p)
	default:
		f.discard(p, DiscardLID)
	}
}

// reach ends the LID-routed part of a packet's way.
func (f *Fabric) reach(p *carried) {
	if p.isDirected() {
		f.follow(p, DirectedLocation{ByLID: true})
		return
	}
	f.take(p)
}

// depart sends a packet over the link at a port of its node.
func (f *Fabric) depart(p *carried, exit ib.PortNum) {
	at := &f.ports[f.nodes[p.node].First+int32(exit)]
	p.port = exit
	if !at.Up {
		f.discard(p, DiscardLink)
		return
	}
	if p.crossed == 0 {
		if f.config.Loss > 0 && f.random.Float64() < f.config.Loss {
			f.discard(p, DiscardLoss)
			return
		}
		if f.config.Drop != nil && f.config.Drop(f.queue.Now, &p.mad) {
			f.discard(p, DiscardDrop)
			return
		}
	}
	if p.crossed == MaxCrossings {
		f.discard(p, DiscardHops)
		return
	}
	delay := f.hop(p)
	if fault := f.data.LinkFault(f.nodes[p.node].First + int32(exit)); fault != nil {
		if fault.Loss > 0 && f.random.Float64() < fault.Loss || fault.Flips > 0 && f.random.Float64() < fault.Flips {
			f.discard(p, DiscardLoss)
			return
		}
		delay += fault.Delay
	}
	p.crossed++
	f.counts.Crossings++
	if f.config.Trace != nil {
		g := f.sighting(p, SeenLeaving, NotDiscarded)
		g.Exit, g.Entry = f.nodes[p.node].First+int32(exit), at.Peer
		f.config.Trace(g)
	}
	peer := &f.ports[at.Peer]
	p.node, p.port = peer.Node, peer.Num
	f.queue.Push(laneHop, f.queue.Now+delay, kindArrive, p.index)
}

// take gives a packet at the end of its way to the manager if it is an answer,
// else to the agent, once that has the time.
func (f *Fabric) take(p *carried) {
	if mad.Method(p.mad[mad.OffsetMethod]).IsResponse() {
		f.deliver(p)
		return
	}
	delay, room := f.think(p)
	if !room {
		f.discard(p, DiscardBuffer)
		return
	}
	if fault := f.behaviour[p.node].fault; fault != nil {
		delay += fault.Late
	}
	f.queue.Push(laneServe, f.queue.Now+delay, kindServe, p.index)
}

// serve lets the agent act on a packet.
func (f *Fabric) serve(p *carried) {
	at := p.node
	n := &f.nodes[at]
	if f.queues() {
		f.processors[at].waiting--
	}
	switch {
	case n.Off:
		f.discard(p, DiscardOff)
		return
	case f.behaviour[at].mute():
		f.discard(p, DiscardMute)
		return
	}
	f.trace(p, SeenByAgent, NotDiscarded)
	f.receive(&p.mad)
	if f.smp.UnmarshalBinary(p.mad[:]) != nil {
		f.discard(p, DiscardClass)
		return
	}
	set := f.smp.Method == mad.MethodSet
	result := n.Agent.Handle(f.queue.Now, sma.Ingress{Port: p.port, SLID: p.slid}, &f.smp)
	effects := result.Effects
	if moved, ok := f.retrains(at, effects); ok && result.Verdict == sma.Answered {
		f.follows(at, effects)
		effects = nil
		n.Agent.ShowLink(moved, &f.smp)
	}
	switch result.Verdict {
	case sma.Answered:
		f.answer(p)
	case sma.ForManager:
		f.deliver(p)
	case sma.Absorbed:
		f.pool.Put(p.index)
	case sma.BadMKey:
		f.discard(p, DiscardMKey)
	default:
		f.discard(p, DiscardAgent)
	}
	f.follows(at, effects)
	if set {
		f.data.AfterSet(at)
	}
}

// receive counts a packet that an agent acts on.
func (f *Fabric) receive(m *[mad.Size]byte) {
	kind := Received{mad.Method(m[mad.OffsetMethod]), mad.AttributeID(binary.BigEndian.Uint16(m[mad.OffsetAttributeID:]))}
	if _, known := f.received[kind]; known || len(f.received) < MaxKinds {
		f.received[kind]++
	}
}

// answer turns a request into the answer that the agent made of it and sends
// it back where the request came from.
func (f *Fabric) answer(p *carried) {
	if f.smp.Encode(&p.mad) != nil {
		f.discard(p, DiscardAgent)
		return
	}
	n := &f.nodes[p.node]
	if fault := f.behaviour[p.node].fault; fault != nil && fault.Alter != nil {
		fault.Alter(f.queue.Now, &p.mad)
	}
	from := p.dlid
	if from == ib.LIDPermissive {
		from = n.Agent.Port(n.EndPort(p.port)).LID
	}
	p.slid, p.dlid = orPermissive(from), p.slid
	in := p.port
	if p.isDirected() {
		if !StartsByLID(&p.mad) {
			p.slid, p.dlid = ib.LIDPermissive, ib.LIDPermissive
		}
		in = n.EndPort(in)
	} else if p.dlid != ib.LIDPermissive {
		in = n.EndPort(in)
	}
	p.sl, p.pkey = f.levelTo(p.node, in, p.dlid, p.sl), ib.PKeyDefaultFull
	f.launch(p, p.node, in)
}

// orPermissive is the source of a packet from a port that may have no LID yet.
func orPermissive(lid ib.LID) ib.LID {
	if lid == ib.LIDReserved {
		return ib.LIDPermissive
	}
	return lid
}

// deliver puts a packet into the inbox of the manager at its port.
func (f *Fabric) deliver(p *carried) {
	n := &f.nodes[p.node]
	a := f.attached[n.First+int32(n.EndPort(p.port))]
	switch {
	case a == nil && f.data.DeliverSMP(p.node, n.EndPort(p.port), p.sl, p.pkey, p.slid, p.dlid, &p.mad):
		f.counts.Delivered++
		f.trace(p, SeenByManager, NotDiscarded)
		f.pool.Put(p.index)
	case a == nil:
		f.discard(p, DiscardNobody)
	case a.inbox.count >= MaxInbox:
		f.discard(p, DiscardBuffer)
	default:
		a.hand(p)
	}
}

func (f *Fabric) discard(p *carried, why Reason) {
	f.counts.Discarded[why]++
	f.trace(p, SeenDiscarded, why)
	f.pool.Put(p.index)
}

func (f *Fabric) trace(p *carried, what Seen, why Reason) {
	if f.config.Trace != nil {
		f.config.Trace(f.sighting(p, what, why))
	}
}

func (f *Fabric) sighting(p *carried, what Seen, why Reason) Sighting {
	return Sighting{
		At: f.queue.Now, What: what, Node: f.nodes[p.node].Source.GUID, Port: p.port,
		SLID: p.slid, DLID: p.dlid, SL: p.sl, PKey: p.pkey, Reason: why, MAD: &p.mad,
	}
}
