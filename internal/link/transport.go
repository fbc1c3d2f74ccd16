// Package link connects a subnet management engine to a fabric. The engine is a value:
// packets and time go in, packets come out; a Link moves them. The implementations
// are packages of their own: inproc for
// a simulated fabric in this process, ibsim for a running ibsim, umad for an
// adapter of this machine.
package link

import (
	"context"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/protocol/rmpp"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// Engine is what a link drives. Times count from the link's own origin and
// never go back.
type Engine interface {
	// Next fills p with the next packet to send, and names its destination:
	// the permissive LID for a directed route. It is called until it has none.
	Next(now time.Duration, p *mad.SMP) (dlid ib.LID, ok bool)
	// Receive takes a packet that arrived from slid.
	Receive(now time.Duration, p *mad.SMP, slid ib.LID)
	// Lost takes back a packet that the link knows nobody answered.
	Lost(now time.Duration, p *mad.SMP)
	// Expire reports whether time has passed.
	Expire(now time.Duration)
	// Deadline is when Expire wants to be called; false for never.
	Deadline() (time.Duration, bool)
}

// Patient is what an engine is that can tell how long it waits for the answer to
// a packet, just given out by Next, that it will not send again; 0 for others.
type Patient interface {
	LastWait(p *mad.SMP) time.Duration
}

// General is what an engine is that takes general management datagrams (QP 1)
// too. A link that carries them asks whether its engine is one.
type General interface {
	Engine
	// NextGeneral fills m with the next datagram to send. It is called until it
	// has none.
	NextGeneral(now time.Duration, m *[mad.Size]byte) (to mad.Address, ok bool)
	// ReceiveGeneral takes a datagram that arrived.
	ReceiveGeneral(now time.Duration, m *[mad.Size]byte, from mad.Address)
	// LostGeneral takes back a request that the link knows nobody answered.
	LostGeneral(now time.Duration, m *[mad.Size]byte)
}

// Long is what an engine is that can leave the cutting and joining of long
// messages to a link that is a Joiner.
type Long interface {
	General
	// NextLong hands out the next message to cut. It is called until there is
	// none.
	NextLong(now time.Duration) (to mad.Address, m rmpp.Message, ok bool)
	// ReceiveLong takes a message that was joined.
	ReceiveLong(now time.Duration, m *rmpp.Message, from mad.Address)
	// LostLong reports whether a message to this address was not acknowledged.
	LostLong(now time.Duration, to mad.Address)
}

// Joiner is a link that cuts and joins long messages itself, as Linux does. It
// tells of those that were not acknowledged, and not when one has come through.
type Joiner interface{ JoinsLong() }

// Unacknowledged is a link to programs some of which do not acknowledge the segments of
// long messages and take the first one only.
type Unacknowledged interface{ Unacknowledged() }

// Placed is a link that knows at which port of its own machine it is, without
// asking the fabric; what it does not know is 0.
type Placed interface {
	Own() (ib.NodeGUID, ib.PortGUID)
}

// Waker is a link whose Drive can be called back from its wait for packets, by
// any goroutine: it asks soon whether it is done. Now and then a call is lost,
// and Drive asks when it would have anyway.
type Waker interface{ Wake() }

// Link is a way to a fabric.
type Link interface {
	// Drive moves packets and time until done reports true, the context ends,
	// or the link breaks. It may be called again.
	Drive(ctx context.Context, e Engine, done func() bool) error
	// SetIsSM tells the fabric whether a subnet manager lives at this port.
	SetIsSM(on bool) error
	// Limits are the request limits that suit this link.
	Limits() transact.Limits
	// Close leaves the fabric.
	Close() error
}
