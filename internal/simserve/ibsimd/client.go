package ibsimd

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// Limits of one client.
const (
	maxClients = 10 // the protocol has numbers for no more

	// maxRequests are the requests that may wait for an answer; more come back
	// at once, as if nobody had answered.
	maxRequests = 1 << indexBits
	// maxOutbox are the packets that may wait until the client reads; more are
	// lost to it.
	maxOutbox = 4096
	// The server looks for one packet of a client so often before it looks for
	// several: the more often, the longer there was only one.
	minSingleLooks, maxSingleLooks = 2, 64
	// packetsPerTurn is how many are taken from one client before the next has
	// its turn.
	packetsPerTurn = 64
)

// client is a program that is attached.
type client struct {
	slot    int
	control DgramAddress // where its control requests come from
	data    DgramAddress
	place   *place
	isSM    bool
	replies int // to control requests, since all clients had read theirs

	requests []request
	free     []uint16 // indexes in requests
	waiting  int      // requests in use

	outbox outbox
	bulk   bool // to be asked for several packets at once
	looks  int  // for one packet, since bulk was set
	single int  // looks until bulk is set
	busy   bool // it has probably sent something
	full   bool // its socket takes nothing at present
	gone   bool // its socket is no more

	received, sent, dropped, strays uint64 // packets
}

// place is an end port that clients are attached to.
type place struct {
	node       *topology.Node
	port       ib.PortNum
	attachment attachment
	// gsi is queue pair 1; came says by which entry of the P_Key table a request of
	// others came by it.
	gsi     *endpoint.GSIPair
	came    map[origin]uint16
	clients []*client
}

// manager is the client that said that it is a subnet manager, nil for none.
func (p *place) manager() *client {
	for _, c := range p.clients {
		if c.isSM {
			return c
		}
	}
	return nil
}

// request is a packet that a client waits for an answer to. While it is in the
// fabric, its tag says which it is: the client's slot, counted from 1, in the
// upper bits and the index in the lower. Nothing else has a tag of that kind:
// traps of agents have 0, and so has what needs no answer.
type request struct {
	packet datagram // as it came
	state  requestState
	peer   *client // while atPeer or underWay back
	// due is when it is given up: in the fabric's time while underWay, in that
	// of the clock while atPeer.
	due time.Duration
}

type requestState uint8

const (
	unused requestState = iota
	underWay
	atPeer // with another client, a subnet manager
)

const indexBits = 12

func tagOf(slot int, index uint16) uint16 { return uint16(slot+1)<<indexBits | index }

// open notes a request and returns its tag; false when there are too many.
func (c *client) open(p *datagram, due time.Duration) (tag uint16, ok bool) {
	if len(c.free) == 0 {
		first := len(c.requests)
		if first == maxRequests {
			return 0, false
		}
		grown := make([]request, max(2*first, packetsPerTurn))
		copy(grown, c.requests)
		c.requests = grown
		for i := len(grown) - 1; i >= first; i-- {
			c.free = append(c.free, uint16(i))
		}
	}
	last := len(c.free) - 1
	index := c.free[last]
	c.free = c.free[:last]
	c.waiting++
	r := &c.requests[index]
	r.packet, r.state, r.due, r.peer = *p, underWay, due, nil
	return tagOf(c.slot, index), true
}

// close forgets the request with this tag.
func (c *client) close(tag uint16) {
	index := tag & (maxRequests - 1)
	c.requests[index].state = unused
	c.requests[index].peer = nil
	c.free = append(c.free, index)
	c.waiting--
}

// post puts a packet into the outbox. The caller fills it in; nil means that
// the client has read too little for too long.
func (c *client) post() *datagram {
	p := c.outbox.push()
	if p == nil {
		c.dropped++
	}
	return p
}

// expect learns from n packets that were found at one look. Taking several at
// once costs more when there is only one; where there were several, there will
// be more.
func (c *client) expect(n int) {
	c.busy = n > 1
	switch {
	case c.busy:
		c.bulk, c.single = true, minSingleLooks
	case c.bulk:
		c.bulk, c.looks, c.single = false, 0, min(max(2*c.single, minSingleLooks), maxSingleLooks)
	default:
		c.looks++
		c.bulk = c.looks >= c.single
	}
}

// bounce gives a request back that nobody answered.
func (c *client) bounce(p *datagram) {
	if out := c.post(); out != nil {
		*out = *p
		clear(out[offStatus:offLength])
		out[offStatus+3] = statusNoAnswer
	}
}

// outbox is a first-in first-out list of packets to a client; its capacity is
// a power of two.
type outbox struct {
	packets      []datagram
	first, count int
}

func (o *outbox) push() *datagram {
	if o.count == len(o.packets) {
		if o.count == maxOutbox {
			return nil
		}
		grown := make([]datagram, max(packetsPerTurn, 2*o.count))
		n := copy(grown, o.packets[o.first:])
		copy(grown[n:], o.packets[:o.first])
		o.packets, o.first = grown, 0
	}
	p := &o.packets[(o.first+o.count)&(len(o.packets)-1)]
	o.count++
	return p
}

// empty sends what can be sent without waiting.
func (o *outbox) empty(s *DgramSender, fd int) (sent int, err error) {
	for o.count > 0 {
		n := min(o.count, packetsPerTurn)
		moved, err := s.Send(fd, n, func(i int) []byte { return o.packets[(o.first+i)&(len(o.packets)-1)][:] })
		o.first = (o.first + moved) & (len(o.packets) - 1)
		o.count -= moved
		sent += moved
		if err != nil || moved < n {
			return sent, err
		}
	}
	o.first = 0
	return sent, nil
}
