// Package gsi gives links and servers the general services queue pair (QP1) of an end
// port, to send and receive whole management datagrams.
//
//	Open      takes the queue pair; a port has one
//	Send      sends a datagram
//	Receive   returns what arrived
//	Close     gives the queue pair back
//
// At most Depth datagrams wait in either direction. Those that arrive beyond that are
// dropped, as by an adapter; Send refuses those beyond that.
package gsi

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
)

// Depth is how many datagrams may wait in either direction.
const Depth = 512

// room is the place for a datagram that arrives, with the route header before it.
const room = endpoint.GRHSize + mad.Size

// Pair is the queue pair.
type Pair struct {
	qp      *endpoint.QP
	rooms   [Depth][room]byte     // of receive requests, by their ID
	out     [Depth][mad.Size]byte // of what is on its way, by its ID
	posted  uint64
	sending int
	done    [32]endpoint.Completion
}

// Open takes the queue pair of a port. It fails if the queue pair is in use.
func Open(d *endpoint.Device, num ib.PortNum) (*Pair, error) {
	p := &Pair{}
	var err error
	p.qp, err = d.CreateQP(endpoint.Kernel, endpoint.QPConfig{Service: endpoint.GSI, Port: num, SendDepth: Depth, ReceiveDepth: Depth})
	if err != nil {
		return nil, fmt.Errorf("queue pair 1 of port %d: %w", num, err)
	}
	for _, to := range []endpoint.State{endpoint.StateInit, endpoint.StateRTR, endpoint.StateRTS} {
		if err == nil {
			err = p.qp.Modify(endpoint.Kernel, to, 0, endpoint.Attr{})
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

func (p *Pair) post(id uint64) error {
	return p.qp.PostReceive(endpoint.ReceiveRequest{ID: id, Buffer: p.rooms[id][:]})
}

// Close gives the queue pair back.
func (p *Pair) Close() { p.qp.Destroy() }

// Full reports whether as many datagrams are on their way as there may be.
func (p *Pair) Full() bool { return p.sending == Depth }

// Send puts a copy of m on its way; r says where to, and by which entry of the
// P_Key table. What the queue pair refuses is lost, as on a wire, and told.
func (p *Pair) Send(m *[mad.Size]byte, r endpoint.SendRequest) error {
	if p.Full() {
		return fmt.Errorf("queue pair 1: %d datagrams are on their way, which is as many as there may be", Depth)
	}
	kept := &p.out[p.posted%Depth]
	*kept = *m
	r.ID, r.Op, r.Data, r.RemoteQKey = p.posted, endpoint.OpSend, kept[:], ib.QKeyGSI
	err := p.qp.PostSend(r)
	if err == nil {
		p.posted++
		p.sending++
	}
	return err
}

// Receive calls yield for each datagram that came in; c and m hold until it
// returns. It reports whether anything came in, or was sent.
func (p *Pair) Receive(yield func(c *endpoint.Completion, m *[mad.Size]byte)) (some bool) {
	for n := p.qp.Poll(p.done[:]); n > 0; n = p.qp.Poll(p.done[:]) {
		some = true
		for i := range p.done[:n] {
			c := &p.done[i]
			if c.Op != endpoint.OpReceive {
				p.sending--
				continue
			}
			if c.Status == endpoint.Success && len(c.Octets) == room {
				yield(c, (*[mad.Size]byte)(c.Octets[endpoint.GRHSize:]))
			}
			_ = p.post(c.ID) // there was room for it before
		}
	}
	return some
}
