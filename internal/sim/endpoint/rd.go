package endpoint

import (
	"fmt"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib/packet"
)

// EEContext is one end of a reliable-datagram channel between two nodes, which
// the RD QPs of both share. It has the port, the P_Key and the connection that
// its QPs do not have.
type EEContext struct{ context }

// CreateEEContext makes an EE context in state RESET, in domain 0.
func (d *Device) CreateEEContext() (*EEContext, error) { return d.CreateEEContextIn(0) }

// CreateEEContextIn is CreateEEContext for a domain.
func (d *Device) CreateEEContextIn(domain Domain) (*EEContext, error) {
	if len(d.contexts) >= MaxEEContexts {
		return nil, fmt.Errorf("create EE context: the device has %d: %w", MaxEEContexts, ErrFull)
	}
	for {
		d.lastEE = d.lastEE%max24 + 1
		if d.contexts[d.lastEE] == nil {
			break
		}
	}
	e := &EEContext{context{d: d, service: eeContext, domain: domain, number: d.lastEE}}
	d.contexts[e.number] = e
	d.inOrder = append(d.inOrder, e)
	return e, nil
}

// Number is what the other end calls the context, Attr.Remote there.
func (e *EEContext) Number() uint32 { return e.number }

// Query tells the state and the attributes.
func (e *EEContext) Query() (State, Attr) { return e.state, e.attr }

// Modify is as that of an RC QP.
func (e *EEContext) Modify(to State, mask AttrMask, a Attr) error {
	return e.modify(Kernel, to, mask, a)
}

// Destroy ends the context. Requests under way complete as flushed.
func (e *EEContext) Destroy() {
	if e.destroyed {
		return
	}
	e.reset()
	e.destroyed = true
	delete(e.d.contexts, e.number)
	e.d.inOrder = slices.DeleteFunc(e.d.inOrder, func(other *EEContext) bool { return other == e })
}

// receiveRD takes a packet of the reliable datagram service: its EE context
// decides on the P_Key, its QP on the Q_Key.
func (d *Device) receiveRD(now time.Duration, p *port, v *packet.View) Reason {
	e := d.contexts[v.RDETH.EEContext()]
	switch {
	case e == nil:
		return ReasonNoQP
	case e.attr.Port != p.number:
		return ReasonPort
	case !e.state.receives():
		return ReasonState
	}
	if r, _ := e.checkPKey(v); r != Taken {
		return d.violated(BadPKey, v, r)
	}
	if v.BTH.OpCode().Operation().IsResponse() {
		return e.answered(now, v)
	}
	q, wrong := d.qps[v.BTH.DestQP()], Taken
	switch {
	case v.BTH.OpCode().Operation() == packet.Resync:
	case q == nil:
		wrong = ReasonNoQP
	case q.service != RD || q.domain != e.domain:
		wrong = ReasonService
	case !q.state.receives():
		wrong = ReasonState
	case q.attr.QKey != v.DETH.QKey():
		wrong = ReasonQKey
	}
	if wrong != Taken {
		q = nil
	}
	r := e.requested(v, q)
	if r != ReasonRefused {
		return r
	}
	if wrong == ReasonQKey {
		d.violated(BadQKey, v, wrong)
	}
	return wrong
}

// failSend takes a QP whose request was refused to SQE.
func (q *QP) failSend() {
	if q.state == StateRTS {
		q.state = StateSQE
	}
	q.flushSends()
}
