package endpoint

import (
	"time"

	"github.com/ibwarden/ibwarden/ib/packet"
)

// work is a request on its way.
type work struct {
	ConnectionRequest
	begun   bool   // it has its PSNs
	first   uint32 // PSN
	packets int    // PSNs
	settled int    // of them: acknowledged, or for a READ arrived
	resync  bool   // the end's own RESYNC, of which Owner hears nothing
}

// sender is the half of an end that asks.
type sender struct {
	requests   ConnectionQueue[work]
	cursor     int    // the request that is sent next, from the oldest
	part       int    // its packet that is sent next
	nextPSN    uint32 // of the next request to begin
	retries    uint8
	rnrRetries uint8
	notReady   bool // the peer asked for time, until deadline
	gap        bool // READ responses were missed, and asked for again
	armed      bool
	deadline   time.Duration // when armed
}

// Post queues a request.
func (e *ConnectionEnd) Post(r ConnectionRequest) { e.requests.Push(work{ConnectionRequest: r}) }

// Posted is the number of requests that have not ended.
func (e *ConnectionEnd) Posted() int { return e.requests.Len() }

// outstanding reports whether anything was sent that is not settled.
func (s *sender) outstanding() bool { return s.requests.Len() > 0 && s.requests.At(0).begun }

// inFlight is the number of PSNs from the oldest that is not settled to the
// cursor.
func (s *sender) inFlight() int {
	if !s.outstanding() {
		return 0
	}
	oldest, next := s.requests.At(0), s.nextPSN
	if s.cursor < s.requests.Len() {
		if w := s.requests.At(s.cursor); w.begun {
			next = w.first + uint32(s.part)
		}
	}
	return distance(next, oldest.first+uint32(oldest.settled))
}

// HasRequest reports whether a packet of a request may leave now; with begunOnly
// a request that was not begun does not count.
func (e *ConnectionEnd) HasRequest(begunOnly bool) bool {
	if e.cursor >= e.requests.Len() || e.notReady {
		return false
	}
	w := e.requests.At(e.cursor)
	switch {
	case begunOnly && !w.begun:
		return false
	case e.Transport == packet.UC:
		return true
	case e.inFlight() >= MaxInFlight:
		return false
	case e.Transport == packet.RD:
		return e.cursor == 0
	case w.Op != OpRead:
		return true
	}
	reads := 0
	for i := range e.cursor {
		if e.requests.At(i).Op == OpRead {
			reads++
		}
	}
	return reads < MaxReadsInFlight
}

// Outgoing is a packet without the fields that package endpoint fills.
type Outgoing struct {
	OpCode    packet.OpCode
	PSN       uint32
	AckReq    bool
	Solicited bool
	Payload   []byte
	Imm       uint32

	Request *ConnectionRequest // of a request or RESYNC
	VA      uint64             // of RDMA, with the length of what is asked for
	DMALen  uint32

	Peer     packet.DETH // of an answer in RD: the datagram header of what was asked
	Syndrome packet.Syndrome
	MSN      uint32
}

// Next is the next packet, an answer before a request; HasAnswer or HasRequest
// must be true. What it points to is valid until the next call.
func (e *ConnectionEnd) Next(now time.Duration) Outgoing {
	if e.HasAnswer() {
		return e.nextAnswer()
	}
	w := e.requests.At(e.cursor)
	e.begin(w)
	o := Outgoing{PSN: (w.first + uint32(e.part)) & connectionMax24, Request: &w.ConnectionRequest}
	op, last, from := packet.SendOnly, true, e.part*e.MTU
	switch {
	case w.resync:
		op = packet.Resync
	case w.Op == OpRead:
		op = packet.ReadRequest
	default:
		to := min(from+e.MTU, len(w.Data))
		last = to == len(w.Data)
		op = operation(w, e.part == 0, last)
		o.Payload = w.Data[from:to]
		from = 0 // an RDMA WRITE names all of it
	}
	o.OpCode = packet.MakeOpCode(e.Transport, op)
	o.AckReq = e.Transport != packet.UC && (last || e.part%ackEvery == ackEvery-1)
	o.Solicited = w.Solicited && last
	o.Imm, o.VA, o.DMALen = w.Imm, w.RemoteAddress+uint64(from), uint32(len(w.Data)-from)
	if e.Transport == packet.UC && last {
		r := w.ConnectionRequest // w goes with its place in the queue
		o.Request = &r
	}
	e.advance(now, w)
	return o
}

// operation is what a packet of a SEND or RDMA WRITE does.
func operation(w *work, first, last bool) packet.Operation {
	var op packet.Operation
	switch {
	case first && last:
		op = packet.SendOnly
	case first:
		op = packet.SendFirst
	case last:
		op = packet.SendLast
	default:
		op = packet.SendMiddle
	}
	if last && w.HasImm {
		op++ // the operation with immediate data comes next
	}
	if w.Op == OpWrite {
		op += packet.WriteFirst
	}
	return op
}

// begin gives a request its PSNs.
func (e *ConnectionEnd) begin(w *work) {
	if w.begun {
		return
	}
	w.begun, w.first, w.packets = true, e.nextPSN, 1
	if !w.resync {
		w.packets = packetsOf(len(w.Data), e.MTU)
	}
	e.nextPSN = (e.nextPSN + uint32(w.packets)) & connectionMax24
}

// advance moves the cursor behind the packet that leaves.
func (e *ConnectionEnd) advance(now time.Duration, w *work) {
	e.part++
	if w.Op == OpRead || e.part == w.packets {
		e.cursor, e.part = e.cursor+1, 0
	}
	switch {
	case e.Transport != packet.UC:
		if !e.armed {
			e.arm(now)
		}
	case e.cursor > 0: // sent is done
		e.finish(Success)
	}
}

// arm starts the time in which something has to be settled.
func (e *ConnectionEnd) arm(now time.Duration) {
	if !e.notReady {
		e.armed = e.Timeout != 0 && e.outstanding()
		e.deadline = now + e.Timeout.Duration()
	}
}

// Expire does what is due.
func (e *ConnectionEnd) Expire(now time.Duration) {
	switch {
	case !e.armed || e.deadline > now:
	case e.notReady:
		e.notReady = false
		e.armed = false
	default:
		e.arm(now)
		e.gap = false
		e.retry()
	}
}

// rewind has everything that is not settled sent again.
func (e *ConnectionEnd) rewind() {
	e.cursor, e.part = 0, 0
	if e.requests.Len() > 0 {
		e.part = e.requests.At(0).settled
	}
}

// retry sends again, or gives up.
func (e *ConnectionEnd) retry() {
	switch {
	case !e.outstanding():
	case e.retries == 0:
		e.breakOff(RetryExceeded)
	default:
		e.retries--
		e.rewind()
	}
}

// progress follows from something having been settled.
func (e *ConnectionEnd) progress(now time.Duration) {
	e.restart()
	e.gap = false
	if e.cursor == 0 && e.requests.Len() > 0 {
		e.part = max(e.part, e.requests.At(0).settled)
	}
	e.arm(now)
}

// finish ends the oldest request.
func (e *ConnectionEnd) finish(s Status) {
	w := e.requests.Pop()
	if e.cursor > 0 {
		e.cursor--
	} else {
		e.part = 0
	}
	if !w.resync {
		w.Owner.Sent(&w.ConnectionRequest, s)
	}
}

// breakOff ends the oldest request with an error, and what depends on it: the end,
// or in RD the message. The peer is then told where the next one begins, unless
// it does not answer at all.
func (e *ConnectionEnd) breakOff(s Status) {
	w := e.requests.At(0)
	cut := ConnectionRequest{Owner: w.Owner, RemoteQP: w.RemoteQP}
	switch {
	case e.Transport != packet.RD || w.resync:
		e.failure.Broken = true
	default:
		e.failure = ConnectionFailure{Owner: w.Owner, Broken: s == RetryExceeded}
	}
	e.finish(s)
	if !e.failure.Broken {
		e.resync(cut)
	}
}

// resync puts a RESYNC before everything else. It goes between the queue pairs of
// the request that was cut off.
func (e *ConnectionEnd) resync(cut ConnectionRequest) {
	e.requests.PushFront(work{ConnectionRequest: cut, resync: true})
	e.restart()
	e.notReady, e.gap, e.armed = false, false, false
	e.rewind()
}

// Answered takes a packet of the peer's receiver.
func (e *ConnectionEnd) Answered(now time.Duration, v *packet.View) ConnectionOutcome {
	psn := v.BTH.PSN()
	if !e.outstanding() {
		return Duplicate
	}
	oldest := e.requests.At(0)
	switch {
	case distance(psn, oldest.first+uint32(oldest.settled)) < 0:
		return Duplicate
	case distance(psn, e.nextPSN) >= 0:
		return Sequence
	}
	switch v.BTH.OpCode().Operation() {
	case packet.Acknowledge:
		return e.acknowledged(now, psn, v.AETH.Syndrome())
	case packet.ReadResponseFirst, packet.ReadResponseMiddle, packet.ReadResponseLast, packet.ReadResponseOnly:
		return e.readResponse(now, psn, v.Payload)
	}
	return OpCode // atomics, which no end asks for
}

// settle takes all packets up to a PSN as arrived. It reports false when the
// responses to a READ among them are missing, and asks for those again.
func (e *ConnectionEnd) settle(now time.Duration, psn uint32) bool {
	moved, complete := false, true
	for e.outstanding() {
		w := e.requests.At(0)
		n := distance(psn, w.first) + 1
		if n <= w.settled {
			break
		}
		if w.Op == OpRead {
			complete = false
			break
		}
		moved = true
		w.settled = min(n, w.packets)
		if w.settled < w.packets {
			break
		}
		e.finish(Success)
	}
	if moved {
		e.progress(now)
	}
	if !complete && !e.gap {
		e.gap = true // once, until more arrive or the time is over
		e.retry()
	}
	return complete
}

// acknowledged takes an ACK or NAK.
func (e *ConnectionEnd) acknowledged(now time.Duration, psn uint32, s packet.Syndrome) ConnectionOutcome {
	if s.Kind() == packet.SyndromeACK {
		if !e.settle(now, psn) {
			return Sequence
		}
		return ConnectionTaken
	}
	if !e.settle(now, psn-1) || !e.outstanding() {
		return Sequence // the NAK comes again when its packet does
	}
	switch value := s.Value(); {
	case s.Kind() == packet.SyndromeRNRNAK:
		e.wait(now, value)
	case s.Kind() != packet.SyndromeNAK || int(value) >= len(nakStatus):
		return OpCode
	case value == packet.NAKSequence:
		e.retry()
	default:
		e.breakOff(nakStatus[value])
	}
	return ConnectionTaken
}

var nakStatus = [...]Status{
	packet.NAKInvalidRequest:   RemoteInvalidRequest,
	packet.NAKRemoteAccess:     RemoteAccessError,
	packet.NAKRemoteOperation:  RemoteOperationError,
	packet.NAKInvalidRDRequest: RemoteInvalidRDRequest,
}

// wait sends again after the time that the peer asks for.
func (e *ConnectionEnd) wait(now time.Duration, code uint8) {
	if e.rnrRetries == 0 {
		e.breakOff(RNRRetryExceeded)
		return
	}
	if e.RNRRetryCount != RNRRetryAlways {
		e.rnrRetries--
	}
	e.rewind()
	e.notReady, e.armed = true, true
	e.deadline = now + rnrWaits[code]*rnrUnit
}

const rnrUnit = 10 * time.Microsecond

// rnrWaits are the waits that an RNR NAK asks for by code, in rnrUnit.
var rnrWaits = [32]time.Duration{
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096,
	6144, 8192, 12288, 16384, 24576, 32768, 49152,
}

// readResponse takes a part of what a READ asked for.
func (e *ConnectionEnd) readResponse(now time.Duration, psn uint32, payload []byte) ConnectionOutcome {
	if !e.settle(now, psn-1) || !e.outstanding() {
		return Sequence
	}
	w := e.requests.At(0)
	if w.Op != OpRead || psn != (w.first+uint32(w.settled))&connectionMax24 {
		return Sequence
	}
	from := w.settled * e.MTU
	to := min(from+e.MTU, len(w.Data))
	if len(payload) != to-from {
		e.breakOff(BadResponse)
		return Length
	}
	copy(w.Data[from:to], payload)
	if w.settled++; w.settled == w.packets {
		e.finish(Success)
	}
	e.progress(now)
	return ConnectionTaken
}
