package ibsimd

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
)

// takePackets takes in what a client has sent.
func (s *Server) takePackets(c *client) {
	receive := s.packets.ReceiveOne
	if c.bulk {
		receive = s.packets.Receive
	}
	n, err := receive(s.out[c.slot])
	switch {
	case n == 0:
	case c == s.lone.client:
		s.lone.turns++
	default:
		s.lone = lone{client: c}
	}
	s.take(c, n, err)
}

// take takes in what was received.
func (s *Server) take(c *client, n int, err error) {
	if errors.Is(err, unix.ECONNREFUSED) {
		c.gone = true
	}
	c.expect(n)
	for i := range n {
		if d := s.packets.Datagram(i); len(d) == packetSize {
			s.fromClient(c, (*datagram)(d))
		} else {
			c.strays++
		}
	}
	s.more = s.more || n == packetsPerTurn
}

// fromClient sends a client's packet on its way.
func (s *Server) fromClient(c *client, p *datagram) {
	c.received++
	m := p.mad()
	if m.method().IsResponse() {
		s.fromPeer(c, p)
		return
	}
	tag := uint16(0)
	if m.wantsAnswer() {
		var ok bool
		if tag, ok = c.open(p, s.fabric.Now()+m.patience()); !ok {
			c.bounce(p)
			return
		}
	}
	m.setTag(tag)
	s.send(c, p)
}

// fromPeer takes the answer of a client to a request of another one, or of another
// interface of the fabric.
func (s *Server) fromPeer(c *client, p *datagram) {
	m := p.mad()
	switch r, _ := s.find(m); {
	case r != nil && r.state == atPeer && r.peer == c:
		r.state, r.due = underWay, s.fabric.Now()+AnswerTime
	case m.isSMP() && m.attribute() != uint16(smp.AttrSMInfo):
		c.strays++ // agents answer the rest, not programs
		return
	}
	if m.isDirected() && m[mad.OffsetStatus]&mad.DirectionBit != 0 && m[mad.OffsetHopPointer] == 0 && m[mad.OffsetHopCount] != 0 {
		m[mad.OffsetHopPointer] = m[mad.OffsetHopCount] + 1 // as at the end of the way that it goes back
	}
	s.send(c, p)
}

// send lets a packet go from where a client is attached.
func (s *Server) send(c *client, p *datagram) {
	m, dlid := p.mad(), p.dlid()
	if s.recorder != nil && m.isSMP() { // others are data packets, and seen as such
		s.recorder.record(s.fabric.Now(), m, s.source(c.place, m, dlid), dlid)
	}
	if m.isSMP() {
		c.place.attachment.Send((*[mad.Size]byte)(m), dlid)
	} else {
		s.general(c, p)
	}
}

// source is the LID that a packet from a place bears: the permissive one by
// directed route, and while the port has none.
func (s *Server) source(p *place, m *madBytes, dlid ib.LID) ib.LID {
	if m.isDirected() && dlid == ib.LIDPermissive {
		return ib.LIDPermissive
	}
	if lid := s.lid(p); lid != ib.LIDReserved {
		return lid
	}
	return ib.LIDPermissive
}

// lid is the base LID of a place.
func (s *Server) lid(p *place) ib.LID { return s.fabric.Agent(p.node.GUID).Port(p.port).LID }

// deliver hands out everything that has come in.
func (s *Server) deliver() {
	for _, p := range s.places {
		for p.attachment.Receive(&s.delivery) {
			m := (*madBytes)(&s.delivery.MAD)
			dlid := ib.LIDPermissive
			if s.delivery.SLID != ib.LIDPermissive {
				dlid = s.lid(p)
			}
			if m.method().IsResponse() {
				s.answered(p, m, s.delivery.SLID, dlid)
			} else {
				s.toManager(p, m, s.delivery.SLID, dlid)
			}
		}
		if p.gsi != nil {
			s.deliverGeneral(p)
		}
	}
}

// answered brings an answer to the client that asked.
func (s *Server) answered(at *place, m *madBytes, slid, dlid ib.LID) {
	r, c := s.find(m)
	if r == nil || r.state != underWay || c.place != at || !m.isDirected() && slid != r.packet.dlid() {
		return // too late, the requester has left, or the answer is not from the port that was asked
	}
	tag := m.tag()
	if s.fabric.Now() > r.due {
		s.giveUp(c, tag)
		return
	}
	if s.recorder != nil && m.isSMP() {
		s.recorder.record(s.fabric.Now(), m, slid, dlid)
	}
	if out := c.post(); out != nil {
		out.address(slid, dlid, m.queuePair(), m.queuePair())
		*out.mad() = *m
		out.measure()
		out.mad().setTag(r.packet.mad().tag())
	}
	c.close(tag)
}

// toManager brings a request or a trap to the subnet manager at a place.
func (s *Server) toManager(at *place, m *madBytes, slid, dlid ib.LID) {
	r, asking := s.find(m)
	manager := at.manager()
	var out *datagram
	if manager != nil {
		out = manager.post()
	}
	if out == nil {
		if r != nil {
			s.fail(asking, m.tag())
		}
		return
	}
	if s.recorder != nil && m.isSMP() {
		s.recorder.record(s.fabric.Now(), m, slid, dlid)
	}
	out.address(slid, dlid, m.queuePair(), m.queuePair())
	*out.mad() = *m
	if m.isDirected() {
		out.mad()[mad.OffsetHopPointer] = 0 // as ibsim hands it on
	}
	if r != nil {
		r.state, r.peer, r.due = atPeer, manager, time.Since(s.origin)+PeerTime
	}
}

// find finds the request that a datagram in the fabric is, or answers, and the
// client that asked.
func (s *Server) find(m *madBytes) (*request, *client) {
	slot, index := int(m.tag()>>indexBits)-1, int(m.tag()&(maxRequests-1))
	if slot < 0 || slot >= maxClients || s.clients[slot] == nil || index >= len(s.clients[slot].requests) {
		return nil, nil
	}
	c := s.clients[slot]
	r := &c.requests[index]
	if r.state == unused || !m.concerns(r.packet.mad()) {
		return nil, nil
	}
	return r, c
}

// fail is for a request that is known to be lost: in real time nobody knows.
func (s *Server) fail(c *client, tag uint16) {
	if s.config.RealTime {
		r := &c.requests[tag&(maxRequests-1)]
		r.state, r.due = underWay, s.fabric.Now()+AnswerTime
		return
	}
	s.giveUp(c, tag)
}

// giveUp gives a request back without an answer.
func (s *Server) giveUp(c *client, tag uint16) {
	c.bounce(&c.requests[tag&(maxRequests-1)].packet)
	c.close(tag)
}

// expire gives up the requests whose time is over.
func (s *Server) expire() {
	fabric, clock := s.fabric.Now(), time.Since(s.origin)
	for _, c := range s.clients {
		if c == nil || c.waiting == 0 {
			continue
		}
		for i := range c.requests {
			r := &c.requests[i]
			if r.state == underWay && fabric > r.due || r.state == atPeer && clock > r.due {
				s.giveUp(c, tagOf(c.slot, uint16(i)))
			}
		}
	}
}

// sighted is told by the fabric of every packet.
func (s *Server) sighted(g fabric.Sighting) {
	switch g.What {
	case fabric.SeenLeaving:
		s.counters.Crossed(g.Exit, g.Entry)
	case fabric.SeenDiscarded:
		s.counters.Discarded(g.Node, g.Port, g.Reason)
		m := (*madBytes)(g.MAD)
		if r, c := s.find(m); r != nil && r.state == underWay && !s.config.RealTime {
			s.giveUp(c, m.tag())
		}
	}
	if next := s.config.Fabric.Trace; next != nil {
		next(g)
	}
}

// sightedData takes down the data packets of end nodes, and gives up requests that
// ended as such on the way.
func (s *Server) sightedData(g fabric.DataSighting) {
	if g.Outcome.IsDrop() && !s.config.RealTime {
		if m := generalIn(g.Bytes); m != nil {
			if r, c := s.find(m); r != nil && r.state == underWay {
				s.giveUp(c, m.tag())
			}
		}
	}
	if s.recorder != nil {
		s.recorder.Data(g)
	}
	if next := s.config.Fabric.DataTrace; next != nil {
		next(g)
	}
}

// generalIn is the general management datagram in a data packet, nil when it is
// none.
func generalIn(bytes []byte) *madBytes {
	v, err := packet.Parse(bytes)
	if err != nil || v.DETH == nil || v.BTH.DestQP() != ib.QP1 || len(v.Payload) != mad.Size {
		return nil
	}
	return (*madBytes)(v.Payload)
}

// flush sends a client what waits for it.
func (s *Server) flush(c *client) {
	if c.outbox.count > 0 && !c.gone && (!c.full || s.polled[pollClients+c.slot].Revents&unix.POLLOUT != 0) {
		sent, err := c.outbox.empty(s.sender, s.out[c.slot])
		c.sent += uint64(sent)
		c.full, c.gone = c.outbox.count > 0, err != nil
	}
	if c.gone {
		s.forget(c)
	}
}
