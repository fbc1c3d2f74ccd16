package endpoint

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
)

// QP is a queue pair.
type QP struct {
	context
	sends       ConnectionQueue[SendRequest] // of datagrams
	psn         uint32                       // of the next one
	receives    ConnectionQueue[ReceiveRequest]
	completions ConnectionQueue[Completion]

	sendDepth, receiveDepth int // limits of the two below
	sendOpen, receiveOpen   int // requests posted whose completion was not polled
	groups                  []group
}

// Number is the QP's number, 0 and 1 for the management QPs of each port.
func (q *QP) Number() ib.QPN { return ib.QPN(q.number) }

// Service is what the QP was made for.
func (q *QP) Service() Service { return q.service }

// Query tells the state and the attributes.
func (q *QP) Query() (State, Attr) { return q.state, q.attr }

// Modify moves the QP to a state and sets the attributes of mask:
//
//	RESET to INIT   Port and PKeyIndex, QKey for UD; Port for raw; QKey for RD
//	INIT to RTR     for RC and UC Path, PathMTU, Remote, ReceivePSN; for RC MinRNRTimer
//	RTR to RTS      SendPSN for RC, UC, UD; for RC Timeout and the retry counts
//	RTS to SQD, SQD to RTS, SQE to RTS, any to RESET or ERR
//
// Attributes of an earlier step may be set again in INIT to INIT and INIT to RTR
// (but for the port), QKey and MinRNRTimer later too, the P_Key index, the path
// and the retries in SQD. A change that is refused changes nothing. Reserved
// Q_Keys, 0x80010000 and above, are for privileged callers. The management QPs
// have their port and Q_Key for good.
func (q *QP) Modify(caller Caller, to State, mask AttrMask, a Attr) error {
	return q.modify(caller, to, mask, a)
}

// resetAttr leaves what a QP has for good.
func (q *QP) resetAttr(n ib.PortNum) {
	q.attr = Attr{}
	if q.service.isManagement() {
		q.attr.Port = n
	}
	if q.service == GSI {
		q.attr.QKey = ib.QKeyGSI
	}
}

// reset takes the context back to its beginning. Nothing of its own completes.
func (c *context) reset() {
	c.unready()
	c.fail()
	c.end = ConnectionEnd{}
	c.state = StateReset
	if c.qp == nil {
		c.attr = Attr{}
		return
	}
	q := c.qp
	if p := q.port(); q.service.isRaw() {
		p.raw = slices.DeleteFunc(p.raw, func(other *QP) bool { return other == q })
	}
	q.completions = ConnectionQueue[Completion]{}
	q.sendOpen, q.receiveOpen = 0, 0
	q.resetAttr(q.attr.Port)
}

// fail takes the context to ERR: all that was queued completes as flushed. An
// answer that says why may still leave.
func (c *context) fail() {
	c.state = StateErr
	c.end.Flush()
	c.sleep()
	if c.qp != nil {
		c.qp.flushSends()
		c.qp.flushReceives()
	}
}

// flushSends completes all send requests as flushed, and gives up the messages
// that EE contexts have for the QP.
func (q *QP) flushSends() {
	for q.sends.Len() > 0 {
		r := q.sends.Pop()
		q.complete(Completion{ID: r.ID, Op: r.Op, Status: Flushed})
	}
	if q.service == RD {
		for _, e := range q.d.inOrder {
			e.end.Leave(owner{q})
			e.after()
		}
	}
}

func (q *QP) flushReceives() {
	for q.receives.Len() > 0 {
		q.complete(Completion{ID: q.receives.Pop().ID, Op: OpReceive, Status: Flushed})
	}
}

// The operations. The last two are those of completions at a receiver.
const (
	OpReceive      = OpRead + 1 // of a SEND
	OpReceiveWrite = OpRead + 2 // of an RDMA WRITE with immediate data
)

// Completion is the end of a request.
type Completion struct {
	ID     uint64 // of the request
	Op     Operation
	Status Status
	// Bytes is what came, in the request's buffer: of a receive or READ that
	// succeeded. A datagram's begins with GRHSize bytes, meant when Global.
	Bytes []byte

	// Of a receive that succeeded.
	HasImm    bool
	Imm       uint32
	Solicited bool
	Global    bool
	SLID      ib.LID
	DLID      ib.LID
	SL        ib.SL
	SrcQP     ib.QPN
	PKey      ib.PKey // of the packet
	PKeyIndex uint16  // of the entry that it matched; 0 on SMI
	EtherType uint16  // of raw EtherType
}

// Poll takes the oldest completions that fit into dst, and tells how many.
func (q *QP) Poll(dst []Completion) int {
	n := min(len(dst), q.completions.Len())
	for i := range n {
		dst[i] = q.completions.Pop()
		if dst[i].Op >= OpReceive {
			q.receiveOpen--
		} else {
			q.sendOpen--
		}
	}
	return n
}

func (q *QP) complete(c Completion) { q.completions.Push(c) }

// owner is a QP as its connection sees it.
type owner struct{ *QP }

// Sent completes a send request.
func (o owner) Sent(r *ConnectionRequest, s Status) {
	c := Completion{ID: r.ID, Op: r.Op, Status: s}
	if r.Op == OpRead && s == Success {
		c.Bytes = r.Data
	}
	o.complete(c)
}

// Rooms is the number of receive requests.
func (o owner) Rooms() int { return o.receives.Len() }

// TakeRoom takes the oldest receive request.
func (o owner) TakeRoom() ConnectionRoom { return ConnectionRoom(o.receives.Pop()) }

// ReturnRoom puts one back.
func (o owner) ReturnRoom(r ConnectionRoom) { o.receives.PushFront(ReceiveRequest(r)) }

// Received completes one.
func (o owner) Received(r ConnectionRoom, a ConnectionArrival) {
	c := Completion{ID: r.ID, Op: OpReceive, Status: LocalLengthError}
	if !a.TooLong {
		c.Status = Success
		c.describe(a.Packet)
		c.PKeyIndex = o.attr.PKeyIndex
		if c.Bytes = r.Buffer[:a.Size]; a.Write {
			c.Op, c.Bytes = OpReceiveWrite, nil
		}
		if a.Packet.DETH == nil {
			c.SrcQP = ib.QPN(o.attr.Remote)
		} else if e := o.d.contexts[a.Packet.RDETH.EEContext()]; e != nil {
			c.PKeyIndex = e.attr.PKeyIndex
		}
	}
	o.complete(c)
}
