package verbs

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
)

// QPInit has the permanent attributes of a queue pair.
type QPInit struct {
	Type      QPType
	SendCQ    *CQ
	ReceiveCQ *CQ
	// Requests that a queue holds, 1 to MaxQueueDepth; 0 for 64.
	SendDepth    int
	ReceiveDepth int
}

// QP is a queue pair.
type QP struct {
	object
	number ib.QPN
}

// CreateQP makes a queue pair in RESET, without a port. ErrService says that there
// are none of this type: RD, and the management queue pairs.
func (d *Device) CreateQP(c QPInit) (*QP, error) { return d.createQP(c, false) }

// CreateRDQP makes a queue pair of the reliable datagram service, whatever the
// type in c says. No verbs have it; it exists in the architecture, and here beneath
// the verbs. Its messages go by an EE context.
func (d *Device) CreateRDQP(c QPInit) (*QP, error) { return d.createQP(c, true) }

func (d *Device) createQP(c QPInit, rd bool) (*QP, error) {
	if c.SendCQ == nil || c.ReceiveCQ == nil {
		return nil, fmt.Errorf("create QP: want a completion queue for sends and one for receives: %w", ErrAttribute)
	}
	if c.SendCQ.d != d || c.ReceiveCQ.d != d {
		return nil, fmt.Errorf("create QP: a completion queue of another device: %w", ErrDestroyed)
	}
	a, err := d.call(Request{
		Call: CallCreateQP, Type: c.Type, RD: rd, CQ: c.SendCQ.handle, ReceiveCQ: c.ReceiveCQ.handle,
		SendDepth: c.SendDepth, ReceiveDepth: c.ReceiveDepth,
	})
	if err != nil {
		return nil, err
	}
	return &QP{object{d, a.Object}, a.QPN}, nil
}

// Number is the number that others address the queue pair by.
func (q *QP) Number() ib.QPN { return q.number }

// Modify sets the attributes of mask, the state among them:
//
//	RESET to INIT   Port and PKeyIndex, QKey for UD; Port for raw; QKey for RD
//	INIT to RTR     for RC and UC AV, PathMTU, DestQPN, RQPSN; for RC MinRNRTimer
//	RTR to RTS      SQPSN for RC, UC, UD; for RC Timeout, RetryCount, RNRRetry
//	RTS to SQD, SQD to RTS, SQE to RTS, any to RESET or ERR
//
// Attributes of an earlier step may be set again in INIT to INIT and INIT to RTR
// (but for the port), QKey and MinRNRTimer later too, the P_Key index, the way and
// the retries in SQD. Without AttrState the state stays. A change that is refused
// changes nothing.
//
// The P_Key index counts in the table of the QP's port: ErrPKeyIndex past its end,
// ErrPKeyEmpty at an entry without a key. Q_Keys from 0x80010000 up are reserved:
// ErrPermission for a device that was not opened as privileged.
func (q *QP) Modify(a QPAttr, mask QPAttrMask) error {
	_, err := q.d.call(Request{Call: CallModifyQP, Object: q.handle, Mask: mask, Attr: &a})
	return err
}

// Query returns the state and the attributes.
func (q *QP) Query() (QPAttr, error) { return q.query(CallQueryQP) }

func (o object) query(c Call) (QPAttr, error) {
	a, err := o.d.call(Request{Call: c, Object: o.handle})
	if err != nil {
		return QPAttr{}, err
	}
	if a.Attr == nil {
		return QPAttr{}, fmt.Errorf("query: an answer without attributes: %w", ErrProtocol)
	}
	return *a.Attr, nil
}

// SendWR asks for a message to be sent, or for memory to be read.
type SendWR struct {
	ID uint64 // given back in the completion (wr_id)
	Op SendOp
	// Data is the message, at most MaxMessage bytes. Raw packets have whole words;
	// a raw IPv6 packet begins with its IPv6 header.
	Data      []byte `json:",omitempty"`
	Length    int    `json:",omitempty"` // of an RDMA READ: the bytes to read
	HasImm    bool   `json:",omitempty"`
	Imm       uint32 `json:",omitempty"`
	Solicited bool   `json:",omitempty"`

	// Of RDMA.
	RemoteAddress uint64 `json:",omitempty"`
	RKey          uint32 `json:",omitempty"`

	// Of datagrams and, as far as AH goes, of raw packets. RemoteQPN is
	// ib.QPMulticast for a group. A RemoteQKey with its top bit set stands for the
	// QP's own.
	AH         *AH        `json:"-"`
	RemoteQPN  ib.QPN     `json:",omitempty"`
	RemoteQKey ib.QKey    `json:",omitempty"`
	EE         *EEContext `json:"-"`          // of RD
	EtherType  uint16     `json:",omitempty"` // of raw EtherType
}

// PostSend queues a request. In RTS it is sent, in SQD later; in SQE and ERR it
// completes as flushed.
func (q *QP) PostSend(w SendWR) error {
	r := SendRequest{SendWR: w}
	if w.AH != nil {
		if w.AH.d != q.d {
			return fmt.Errorf("post send: an address handle of another device: %w", ErrDestroyed)
		}
		r.AH = w.AH.handle
	}
	if w.EE != nil {
		if w.EE.d != q.d {
			return fmt.Errorf("post send: an EE context of another device: %w", ErrDestroyed)
		}
		r.EE = w.EE.handle
	}
	_, err := q.d.call(Request{Call: CallPostSend, Object: q.handle, ID: w.ID, Send: &r})
	return err
}

// PostReceive gives the queue pair room for one message of at most size bytes,
// from INIT on; id comes back in the completion.
func (q *QP) PostReceive(id uint64, size int) error {
	_, err := q.d.call(Request{Call: CallPostReceive, Object: q.handle, ID: id, Count: size})
	return err
}

// AttachMulticast lets a UD queue pair receive what is sent to a group, as far as
// its port gets it: JoinMulticast sees to that.
func (q *QP) AttachMulticast(mgid ib.GID, mlid ib.LID) error {
	_, err := q.d.call(Request{Call: CallAttach, Object: q.handle, Address: &AHAttr{DLID: mlid, DGID: mgid}})
	return err
}

// DetachMulticast ends AttachMulticast.
func (q *QP) DetachMulticast(mgid ib.GID, mlid ib.LID) error {
	_, err := q.d.call(Request{Call: CallDetach, Object: q.handle, Address: &AHAttr{DLID: mlid, DGID: mgid}})
	return err
}

// Destroy ends the queue pair. What was queued is gone without a completion.
func (q *QP) Destroy() error { return q.end(CallDestroyQP) }

// EEContext is one end of a reliable-datagram channel between two hosts, which RD
// queue pairs of one device share. It has the port, the P_Key and the connection
// that they do not have.
type EEContext struct {
	object
	number ib.QPN
}

// CreateEEContext makes an EE context in RESET.
func (d *Device) CreateEEContext() (*EEContext, error) {
	a, err := d.call(Request{Call: CallCreateEE})
	if err != nil {
		return nil, err
	}
	return &EEContext{object{d, a.Object}, a.QPN}, nil
}

// Number is what the other end calls the context, QPAttr.DestQPN there.
func (e *EEContext) Number() ib.QPN { return e.number }

// Modify is as that of an RC queue pair.
func (e *EEContext) Modify(a QPAttr, mask QPAttrMask) error {
	_, err := e.d.call(Request{Call: CallModifyEE, Object: e.handle, Mask: mask, Attr: &a})
	return err
}

// Query returns the state and the attributes.
func (e *EEContext) Query() (QPAttr, error) { return e.query(CallQueryEE) }

// Destroy ends the context. Requests under way complete as flushed.
func (e *EEContext) Destroy() error { return e.end(CallDestroyEE) }
