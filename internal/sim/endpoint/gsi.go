// This file gives links and servers the general services queue pair (QP1) of an end
// port, to send and receive whole management datagrams.
//
//	Open      takes the queue pair; a port has one
//	Send      sends a datagram
//	Receive   returns what arrived
//	Close     gives the queue pair back
//
// At most Depth datagrams wait in either direction. Those that arrive beyond that are
// dropped, as by an adapter; Send refuses those beyond that.

package endpoint

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// GSIDepth is how many datagrams may wait in either direction.
const GSIDepth = 512

// room is the place for a datagram that arrives, with the route header before it.
const room = GRHSize + mad.Size

// GSIPair is the queue pair.
type GSIPair struct {
	qp      *QP
	rooms   [GSIDepth][room]byte     // of receive requests, by their ID
	out     [GSIDepth][mad.Size]byte // of what is on its way, by its ID
	posted  uint64
	sending int
	done    [32]Completion
}

// OpenGSI takes the queue pair of a port. It fails if the queue pair is in use.
func OpenGSI(d *Device, num ib.PortNum) (*GSIPair, error) {
	p := &GSIPair{}
	var err error
	p.qp, err = d.CreateQP(Kernel, QPConfig{Service: GSI, Port: num, SendDepth: GSIDepth, ReceiveDepth: GSIDepth})
	if err != nil {
		return nil, fmt.Errorf("queue pair 1 of port %d: %w", num, err)
	}
	for _, to := range []State{StateInit, StateRTR, StateRTS} {
		if err == nil {
			err = p.qp.Modify(Kernel, to, 0, Attr{})
		}
	}
	for i := range p.rooms {
		if err == nil {
			err = p.post(uint64(i))
		}
	}
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("queue pair 1 of port %d: %w", num, err)
	}
	return p, nil
}

func (p *GSIPair) post(id uint64) error {
	return p.qp.PostReceive(ReceiveRequest{ID: id, Buffer: p.rooms[id][:]})
}

// Close gives the queue pair back.
func (p *GSIPair) Close() { p.qp.Destroy() }

// Full reports whether as many datagrams are on their way as there may be.
func (p *GSIPair) Full() bool { return p.sending == GSIDepth }

// Send puts a copy of m on its way; r says where to, and by which entry of the
// P_Key table. What the queue pair refuses is lost, as on a wire, and told.
func (p *GSIPair) Send(m *[mad.Size]byte, r SendRequest) error {
	if p.Full() {
		return fmt.Errorf("queue pair 1: %d datagrams are on their way, which is as many as there may be", GSIDepth)
	}
	kept := &p.out[p.posted%GSIDepth]
	*kept = *m
	r.ID, r.Op, r.Data, r.RemoteQKey = p.posted, OpSend, kept[:], ib.QKeyGSI
	err := p.qp.PostSend(r)
	if err == nil {
		p.posted++
		p.sending++
	}
	return err
}

// Receive calls yield for each datagram that came in; c and m hold until it
// returns. It reports whether anything came in, or was sent.
func (p *GSIPair) Receive(yield func(c *Completion, m *[mad.Size]byte)) (some bool) {
	for n := p.qp.Poll(p.done[:]); n > 0; n = p.qp.Poll(p.done[:]) {
		some = true
		for i := range p.done[:n] {
			c := &p.done[i]
			if c.Op != OpReceive {
				p.sending--
				continue
			}
			if c.Status == Success && len(c.Bytes) == room {
				yield(c, (*[mad.Size]byte)(c.Bytes[GRHSize:]))
			}
			_ = p.post(c.ID) // there was room for it before
		}
	}
	return some
}
