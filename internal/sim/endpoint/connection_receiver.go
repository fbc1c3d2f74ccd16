package endpoint

import "github.com/ibwarden/ibwarden/ib/packet"

// receiver is the half of an end that answers.
type receiver struct {
	expect  uint32 // PSN
	msn     uint32
	nakked  bool // it was said that expect is wanted
	answers ConnectionQueue[answer]
	message
}

// message is a SEND or RDMA WRITE that is not all there.
type message struct {
	open   bool
	write  bool
	held   bool // into was taken from target
	target ConnectionOwner
	into   ConnectionRoom // of a SEND
	bytes  int            // in it so far
	rest   []byte         // of an RDMA WRITE: memory still to be written
}

// answer is an answer that waits to be sent.
type answer struct {
	psn      uint32
	msn      uint32
	syndrome packet.Syndrome
	peer     packet.DETH // of the request, in RD
	read     bool
	data     []byte // of a READ
	part     int    // of it, to be sent next
}

// ackPlain acknowledges without telling about credits.
var ackPlain = packet.MakeSyndrome(packet.SyndromeACK, 0x1F)

// HasAnswer reports whether an answer waits to be sent.
func (e *ConnectionEnd) HasAnswer() bool { return e.answers.Len() > 0 }

// answer queues an answer to the packet v.
func (e *ConnectionEnd) answer(v *packet.View, a answer) {
	a.msn, a.psn = e.msn, a.psn&connectionMax24
	if v.DETH != nil {
		a.peer = *v.DETH
	}
	if last := e.answers.Len() - 1; !a.read && a.syndrome == ackPlain && last >= 0 {
		if l := e.answers.At(last); !l.read && l.syndrome == ackPlain && l.peer == a.peer {
			*l = a // which acknowledges what the other did
			return
		}
	}
	e.answers.Push(a)
}

func (e *ConnectionEnd) acknowledge(v *packet.View, psn uint32) {
	e.answer(v, answer{psn: psn, syndrome: ackPlain})
}

// refuse answers that the packet which was expected cannot be taken. What is
// behind it is ignored until it comes again.
func (e *ConnectionEnd) refuse(v *packet.View, kind packet.SyndromeKind, value uint8) {
	e.nakked = true
	e.answer(v, answer{psn: e.expect, syndrome: packet.MakeSyndrome(kind, value)})
}

// nextAnswer is the packet of the oldest answer.
func (e *ConnectionEnd) nextAnswer() Outgoing {
	a := e.answers.At(0)
	o := Outgoing{PSN: a.psn, Peer: a.peer, Syndrome: a.syndrome, MSN: a.msn}
	op, last := packet.Acknowledge, true
	if a.read {
		from := a.part * e.MTU
		to := min(from+e.MTU, len(a.data))
		o.Payload = a.data[from:to]
		o.PSN = (a.psn + uint32(a.part)) & connectionMax24
		last = to == len(a.data)
		switch {
		case last && a.part == 0:
			op = packet.ReadResponseOnly
		case a.part == 0:
			op = packet.ReadResponseFirst
		case last:
			op = packet.ReadResponseLast
		default:
			op = packet.ReadResponseMiddle
		}
		a.part++
	}
	o.OpCode = packet.MakeOpCode(e.Transport, op)
	if last {
		e.answers.Pop()
	}
	return o
}

// Requested takes a packet of the peer's sender that is for o. A nil o stands for
// a queue pair that does not want it, which in RD is answered.
func (e *ConnectionEnd) Requested(v *packet.View, o ConnectionOwner) ConnectionOutcome {
	if e.Transport == packet.UC {
		return e.unreliable(v, o)
	}
	if e.answers.Len() >= MaxAnswers {
		return Full // the peer sends it again
	}
	psn, op := v.BTH.PSN(), v.BTH.OpCode().Operation()
	ahead := distance(psn, e.expect)
	switch {
	case ahead < 0:
		return e.repeated(v, op)
	case op == packet.Resync:
		e.abandon()
		e.expect, e.nakked = (psn+1)&connectionMax24, false
		e.acknowledge(v, psn)
		return ConnectionTaken
	case ahead > 0:
		if !e.nakked {
			e.refuse(v, packet.SyndromeNAK, packet.NAKSequence)
		}
		return Sequence
	case o == nil:
		e.refuse(v, packet.SyndromeNAK, packet.NAKInvalidRDRequest)
		return Refused
	case op == packet.ReadRequest:
		return e.read(v)
	}
	switch r := e.store(v, o); r {
	case ConnectionTaken:
	case NoRoom:
		e.refuse(v, packet.SyndromeRNRNAK, e.MinRNRTimer)
		return r
	default:
		return e.reject(v, r)
	}
	e.expect, e.nakked = (psn+1)&connectionMax24, false
	if v.BTH.AckReq() {
		e.acknowledge(v, psn)
	}
	return ConnectionTaken
}

// repeated answers a request that was done before.
func (e *ConnectionEnd) repeated(v *packet.View, op packet.Operation) ConnectionOutcome {
	if op != packet.ReadRequest {
		e.acknowledge(v, e.expect-1)
		return Duplicate
	}
	data, ok := e.readable(v)
	psn := v.BTH.PSN()
	if !ok || distance(psn, e.expect)+packetsOf(len(data), e.MTU) > 0 {
		return Duplicate // not what was asked for then
	}
	e.DropAnswers() // the peer has gone back and asks for those again too
	e.answer(v, answer{psn: psn, syndrome: ackPlain, read: true, data: data})
	return ConnectionTaken
}

// readable is what a READ asks for.
func (e *ConnectionEnd) readable(v *packet.View) ([]byte, bool) {
	if v.RETH.DMALen() > MaxRead {
		return nil, false
	}
	return e.memory.Window(v.RETH.RKey(), v.RETH.VA(), v.RETH.DMALen(), false)
}

// read answers a READ.
func (e *ConnectionEnd) read(v *packet.View) ConnectionOutcome {
	if e.open {
		return e.reject(v, OpCode)
	}
	data, ok := e.readable(v)
	if !ok {
		return e.reject(v, ConnectionAccess)
	}
	psn := e.expect
	e.msn = (e.msn + 1) & connectionMax24
	e.expect, e.nakked = (psn+uint32(packetsOf(len(data), e.MTU)))&connectionMax24, false
	e.answer(v, answer{psn: psn, syndrome: ackPlain, read: true, data: data})
	return ConnectionTaken
}

// reject answers a request that is wrong in itself. In RC that is the end of the
// connection, in RD of the message.
func (e *ConnectionEnd) reject(v *packet.View, why ConnectionOutcome) ConnectionOutcome {
	code := packet.NAKInvalidRequest
	if why == ConnectionAccess {
		code = packet.NAKRemoteAccess
	}
	if why == Length && e.held {
		e.target.Received(e.into, ConnectionArrival{TooLong: true, Packet: v})
		e.message = message{}
	}
	e.abandon()
	e.failure.Broken = e.failure.Broken || e.Transport == packet.RC
	e.refuse(v, packet.SyndromeNAK, code)
	return why
}

// abandon forgets the message that is half there; its room is for the next.
func (e *ConnectionEnd) abandon() {
	if e.held {
		e.target.ReturnRoom(e.into)
	}
	e.message = message{}
}

// unreliable takes a packet of UC. The sender never hears what was missing; the
// next message is waited for.
func (e *ConnectionEnd) unreliable(v *packet.View, o ConnectionOwner) ConnectionOutcome {
	psn := v.BTH.PSN()
	inOrder := psn == e.expect
	e.expect = (psn + 1) & connectionMax24
	starts := partOf(v.BTH.OpCode().Operation()).starts
	if !inOrder || starts {
		e.abandon()
	}
	if !starts && !e.open {
		return Sequence
	}
	r := e.store(v, o)
	if r != ConnectionTaken {
		e.abandon()
	}
	return r
}

// part is the place of a packet in its message.
type part struct{ write, starts, ends, imm bool }

func partOf(op packet.Operation) part {
	k := op % packet.WriteFirst // a WRITE has the parts of a SEND
	return part{
		write:  op >= packet.WriteFirst,
		starts: k == packet.SendFirst || k >= packet.SendOnly,
		ends:   k >= packet.SendLast,
		imm:    k == packet.SendLastImm || k == packet.SendOnlyImm,
	}
}

// store takes a packet of a SEND or RDMA WRITE that is next in order.
func (e *ConnectionEnd) store(v *packet.View, o ConnectionOwner) ConnectionOutcome {
	op := v.BTH.OpCode().Operation()
	if op > packet.WriteOnlyImm {
		return OpCode // atomics and invalidation: nobody here has them
	}
	p, size := partOf(op), len(v.Payload)
	switch {
	case p.starts == e.open, !p.starts && (e.write != p.write || e.target != o):
		return OpCode
	case size > e.MTU, !p.ends && size != e.MTU, p.ends && !p.starts && size == 0:
		return Length
	case (p.imm || p.starts && !p.write) && !e.held && o.Rooms() == 0:
		return NoRoom
	}
	if p.starts && !e.start(v, o, p) {
		return ConnectionAccess
	}
	switch {
	case p.write && (size > len(e.rest) || p.ends && size != len(e.rest)):
		return Length
	case p.write:
		e.rest = e.rest[copy(e.rest, v.Payload):]
	case size > len(e.into.Buffer)-e.bytes:
		return Length
	default:
		e.bytes += copy(e.into.Buffer[e.bytes:], v.Payload)
	}
	if p.ends {
		e.deliver(v, p)
	}
	return ConnectionTaken
}

// start finds where a message goes.
func (e *ConnectionEnd) start(v *packet.View, o ConnectionOwner, p part) bool {
	m := message{open: true, write: p.write, target: o}
	if p.write {
		var ok bool
		if m.rest, ok = e.memory.Window(v.RETH.RKey(), v.RETH.VA(), v.RETH.DMALen(), true); !ok {
			return false
		}
	} else {
		m.held, m.into = true, o.TakeRoom()
	}
	e.message = m
	return true
}

// deliver ends a message.
func (e *ConnectionEnd) deliver(v *packet.View, p part) {
	m := e.message
	e.message = message{}
	e.msn = (e.msn + 1) & connectionMax24
	switch {
	case !p.write:
		m.target.Received(m.into, ConnectionArrival{Packet: v, Size: m.bytes})
	case p.imm:
		m.target.Received(m.target.TakeRoom(), ConnectionArrival{Packet: v, Write: true})
	}
}
