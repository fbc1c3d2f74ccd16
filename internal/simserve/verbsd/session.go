package verbsd

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/verbs"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
)

// Limits of one connection.
const (
	MaxQPs         = 256      // queue pairs, RD ones too
	MaxEEs         = 64       // EE contexts
	MaxCQs         = 256      // completion queues
	MaxCQDepth     = 1 << 12  // completions in a queue
	MaxAHs         = 1 << 10  // address handles
	MaxRegions     = 256      // memory regions
	MaxAttachments = 64       // of its queue pairs to multicast groups
	MaxBytes       = 32 << 20 // of its requests, completions and memory regions
	MaxEvents      = 1 << 10  // events that nobody took; more are lost
	MaxQueueDepth  = 1 << 12  // requests in a queue
	maxPolled      = 1 << 10  // completions in one answer

	requestBytes = 256 // that a request counts for in addition to its own
)

// session is what one connection has. It is used where the fabric may be.
type session struct {
	host       *host
	privileged bool
	domain     endpoint.Domain
	removed    bool // the device is no more

	last        uint32 // handle
	cqs         map[uint32]*queue
	qps         map[uint32]*pair
	inOrder     []*pair // of creation
	ees         map[uint32]*endpoint.EEContext
	handles     map[uint32]handle
	regions     map[uint32]*region
	bytes       int
	attachments int

	events []verbs.Event
	fresh  bool          // something arrived since the last wake
	wake   chan struct{} // closed then; nil when nobody waits
}

// handle is an address handle.
type handle struct {
	port ib.PortNum
	to   endpoint.Address
}

// region is a memory region.
type region struct {
	memory *endpoint.Memory
	bytes  []byte
}

// queue is a completion queue.
type queue struct {
	depth int
	users int // sides of queue pairs that complete there
	done  []completed
}

// completed is a completion that was not polled yet.
type completed struct {
	wc    verbs.WC
	of    *pair
	bytes int // that it stands for
}

// pair is a queue pair.
type pair struct {
	qp            *endpoint.QP
	handle        uint32
	send, receive *queue
	lastID        uint64
	open          map[uint64]request // by the ID that the device knows it by
	groups        int
}

// request is a work request whose completion is still in the device.
type request struct {
	id    uint64 // that its consumer gave it
	bytes int
	grh   bool // its buffer begins with the room for a route header
}

func newSession(h *host, privileged bool, domain endpoint.Domain) *session {
	return &session{
		host: h, privileged: privileged, domain: domain, cqs: map[uint32]*queue{}, qps: map[uint32]*pair{},
		ees: map[uint32]*endpoint.EEContext{}, handles: map[uint32]handle{}, regions: map[uint32]*region{},
	}
}

func (s *session) caller() endpoint.Caller {
	if s.privileged {
		return endpoint.Kernel
	}
	return endpoint.Application
}

// handle is the next number for something that is made.
func (s *session) handle() uint32 {
	s.last++
	return s.last
}

// room makes sure of bytes more, and takes them.
func (s *session) room(bytes int) error {
	if bytes > MaxBytes-s.bytes {
		return fmt.Errorf("%d bytes more: this connection has %d of %d: %w", bytes, s.bytes, MaxBytes, verbs.ErrFull)
	}
	s.bytes += bytes
	return nil
}

// leave gives everything back.
func (s *session) leave() {
	for _, p := range s.inOrder {
		p.qp.Destroy()
	}
	for _, e := range s.ees {
		e.Destroy()
	}
	for _, r := range s.regions {
		r.memory.Deregister()
	}
	*s = session{host: s.host, removed: true}
}

// raise queues an event.
func (s *session) raise(e verbs.Event) {
	if len(s.events) < MaxEvents {
		s.events = append(s.events, e)
		s.fresh = true
	}
}

// pump moves completions from queue pairs to completion queues, as far as these
// have room.
func (s *session) pump() {
	var c [1]endpoint.Completion
	for _, p := range s.inOrder {
		for len(p.send.done) < p.send.depth && len(p.receive.done) < p.receive.depth && p.qp.Poll(c[:]) > 0 {
			p.complete(&c[0])
			s.fresh = true
		}
	}
}

// complete queues a completion.
func (p *pair) complete(c *endpoint.Completion) {
	r := p.open[c.ID]
	delete(p.open, c.ID)
	to := p.send
	if c.Op >= endpoint.OpReceive {
		to = p.receive
	}
	wc := verbs.WC{
		ID: r.id, Status: verbs.WCStatus(c.Status), Opcode: opcodeOf(c.Op), QPN: p.qp.Number(), Data: c.Bytes,
		HasImm: c.HasImm, Imm: c.Imm, Solicited: c.Solicited, SrcQP: c.SrcQP, SLID: c.SLID, SL: c.SL,
		PKey: c.PKey, PKeyIndex: c.PKeyIndex, EtherType: c.EtherType,
	}
	if r.grh && len(wc.Data) >= endpoint.GRHSize {
		if c.Global {
			wc.GRH = wc.Data[:endpoint.GRHSize]
		}
		wc.Data = wc.Data[endpoint.GRHSize:]
	}
	to.done = append(to.done, completed{wc, p, r.bytes})
}

func opcodeOf(o endpoint.Operation) verbs.WCOpcode {
	switch o {
	case endpoint.OpSend:
		return verbs.WCSend
	case endpoint.OpWrite:
		return verbs.WCRDMAWrite
	case endpoint.OpRead:
		return verbs.WCRDMARead
	case endpoint.OpReceive:
		return verbs.WCRecv
	}
	return verbs.WCRecvRDMAWithImm
}

// forget drops the requests and completions of a queue pair that was reset or
// destroyed.
func (s *session) forget(p *pair) {
	for _, r := range p.open {
		s.bytes -= r.bytes
	}
	clear(p.open)
	for _, q := range []*queue{p.send, p.receive} {
		kept := q.done[:0]
		for _, c := range q.done {
			if c.of == p {
				s.bytes -= c.bytes
				continue
			}
			kept = append(kept, c)
		}
		clear(q.done[len(kept):])
		q.done = kept
	}
}
