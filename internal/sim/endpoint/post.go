package endpoint

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// SendRequest asks for a message to be sent, or for memory to be read.
type SendRequest struct {
	ID uint64 // given back in the completion
	Op Operation
	// Data is the message, or where an RDMA READ puts what it reads. Raw packets
	// have whole words; a raw IPv6 packet begins with its IPv6 header.
	Data      []byte
	HasImm    bool // of SEND and RDMA WRITE
	Imm       uint32
	Solicited bool

	// Of RDMA.
	RemoteAddress uint64
	RKey          uint32

	// Of datagrams. RemoteQP is QPMulticast for a multicast DLID. A RemoteQKey
	// with its top bit set stands for the QP's own; GSI sends no other.
	To         Address // not of RD
	RemoteQP   ib.QPN
	RemoteQKey ib.QKey
	EEContext  uint32  // of RD, number of the device's own
	PKeyIndex  uint16  // of GSI
	PKey       ib.PKey // of SMI, 0 for the default key
	EtherType  uint16  // of raw EtherType
}

// ReceiveRequest is room for a message.
type ReceiveRequest struct {
	ID uint64
	// Buffer of a datagram QP (not raw, not RD) has GRHSize bytes more than the
	// longest message.
	Buffer []byte
}

// PostReceive gives the QP room for one message, from INIT on.
func (q *QP) PostReceive(r ReceiveRequest) error {
	switch {
	case q.state == StateReset:
		return q.errorf(ErrState, "post receive in %v", q.state)
	case q.receiveOpen >= q.receiveDepth:
		return q.errorf(ErrFull, "post receive: %d requests are open", q.receiveOpen)
	}
	q.receiveOpen++
	q.receives.Push(r)
	if q.state == StateErr {
		q.flushReceives()
	}
	return nil
}

// PostSend queues a request. In RTS it is sent, in SQD later; in SQE and ERR it
// completes as flushed.
func (q *QP) PostSend(r SendRequest) error {
	switch {
	case q.state < StateRTS:
		return q.errorf(ErrState, "post send in %v", q.state)
	case q.sendOpen >= q.sendDepth:
		return q.errorf(ErrFull, "post send: %d requests are open", q.sendOpen)
	}
	if err := q.checkOperation(&r); err != nil {
		return err
	}
	if q.service.isDatagram() {
		if err := q.checkDatagram(&r); err != nil {
			return err
		}
	}
	c := &q.context
	if q.service == RD {
		e := q.d.contexts[r.EEContext]
		switch {
		case e == nil || e.domain != q.domain || e.state != StateRTS || r.RemoteQP > max24:
			return q.errorf(ErrRequest, "post send to QP %#x by EE context %d: want one in RTS", r.RemoteQP, r.EEContext)
		case e.end.Posted() >= MaxQueueDepth:
			return q.errorf(ErrFull, "post send: EE context %d has %d requests", e.number, MaxQueueDepth)
		}
		c = &e.context
	}
	q.sendOpen++
	switch {
	case q.state >= StateSQE:
		q.complete(Completion{ID: r.ID, Op: r.Op, Status: Flushed})
	case q.service.isDatagram():
		q.sends.Push(r)
	default:
		c.end.Post(ConnectionRequest{
			Owner: owner{q}, ID: r.ID, Op: r.Op, Data: r.Data, HasImm: r.HasImm, Imm: r.Imm, Solicited: r.Solicited,
			RemoteAddress: r.RemoteAddress, RKey: r.RKey, RemoteQP: r.RemoteQP, RemoteQKey: r.RemoteQKey,
		})
	}
	c.kick()
	return nil
}

func (q *QP) checkOperation(r *SendRequest) error {
	rdma := q.service == RC || q.service == RD || q.service == UC && r.Op == OpWrite
	switch {
	case r.Op > OpRead || r.Op != OpSend && !rdma:
		return q.errorf(ErrService, "post operation %d on %v", r.Op, q.service)
	case r.HasImm && (r.Op == OpRead || q.service.isRaw() || q.service.isManagement()):
		return q.errorf(ErrService, "post operation %d with immediate data on %v", r.Op, q.service)
	case len(r.Data) > MaxMessage:
		return q.errorf(ErrRequest, "post send: %d bytes, want at most %d", len(r.Data), MaxMessage)
	}
	return nil
}

const ipv6HeaderSize = 40 // bytes

// checkDatagram checks what a request says for itself alone.
func (q *QP) checkDatagram(r *SendRequest) error {
	p, size, lid := q.port(), len(r.Data), r.To.DLID
	multicast := lid.IsMulticast() && q.service != GSI && q.service != SMI
	switch {
	case size > p.mtu():
		return q.errorf(ErrRequest, "post send: %d bytes, the port's MTU is %d", size, p.mtu())
	case q.service.isManagement() && size != mad.Size:
		return q.errorf(ErrRequest, "post send: %d bytes, a management datagram has %d", size, mad.Size)
	case q.service.isRaw() && size%4 != 0:
		return q.errorf(ErrRequest, "post send: %d bytes, a raw packet has whole words", size)
	case q.service == RawIPv6 && size < ipv6HeaderSize:
		return q.errorf(ErrRequest, "post send: %d bytes, an IPv6 header has %d", size, ipv6HeaderSize)
	case q.service == GSI && int(r.PKeyIndex) >= p.PKeyTableLen():
		return q.errorf(ErrPKeyIndex, "post send: P_Key index %d: want 0 to %d", r.PKeyIndex, p.PKeyTableLen()-1)
	case !lid.IsUnicast() && !multicast && !(q.service == SMI && lid == ib.LIDPermissive):
		return q.errorf(ErrRequest, "post send to LID %v on %v", lid, q.service)
	}
	if err := p.checkAddress(&r.To); err != nil {
		return q.errorf(ErrRequest, "post send: %v", err)
	}
	switch {
	case q.service.isRaw():
	case (r.RemoteQP == ib.QP0) != (q.service == SMI):
		return q.errorf(ErrRequest, "post send to QP %d: QP0 is reached from QP0 alone", r.RemoteQP)
	case r.RemoteQP > max24 || multicast != (r.RemoteQP == ib.QPMulticast) || multicast && !r.To.Global:
		return q.errorf(ErrRequest, "post send to LID %v, QP %#x: multicast wants QP %#x and a GRH", lid, r.RemoteQP, ib.QPMulticast)
	}
	return nil
}
