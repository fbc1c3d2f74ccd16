package fabric

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// carried is one packet under way, or waiting to be received.
type carried struct {
	mad        [mad.Size]byte
	at         time.Duration // when it was delivered
	next       *carried      // in an inbox
	index      int32         // of itself
	node       int32         // where it is, or is about to arrive
	slid, dlid ib.LID
	port       ib.PortNum // by which it came, or comes, in
	sl         ib.SL
	pkey       ib.PKey
	crossed    uint8 // links
}

// isDirected reports the class of a packet; all are of one of two classes.
func (p *carried) isDirected() bool {
	return mad.Class(p.mad[mad.OffsetClass]) == mad.ClassSubnDirected
}

// newCarried returns a packet whose bytes are those of its last use, nil when
// there are MaxPackets already.
func (f *Fabric) newCarried() *carried {
	p, index := f.pool.Take(MaxPackets)
	if p != nil {
		p.index, p.pkey = index, ib.PKeyDefaultFull // by convention, of agents and managers
	}
	return p
}

// Reason is why a packet was discarded.
type Reason uint8

// The reasons: chance and hooks first, then the way, then its end.
const (
	NotDiscarded  Reason = iota
	DiscardLoss          // by chance: Config.Loss
	DiscardDrop          // a Drop hook said so
	DiscardClass         // not a subnet-management packet
	DiscardBuffer        // MaxPackets or MaxInbox
	DiscardRoute         // a directed route that makes no sense, or ends nowhere
	DiscardTable         // no entry in a forwarding table
	DiscardLoop          // an entry that leads back where the packet came from
	DiscardHops          // MaxCrossings
	DiscardLink          // the link is down, or there is no cable
	DiscardLID           // not a LID of the port
	DiscardOff           // the node is without power
	DiscardMute          // Fault.Mute
	DiscardAgent         // refused by the agent without an answer
	DiscardMKey          // refused by the agent for its M_Key
	DiscardNobody        // for a manager, and none is attached
	reasonCount
)

var reasonNames = [reasonCount]string{
	"not discarded", "lost", "dropped by a filter", "not a subnet-management packet", "no buffer",
	"bad directed route", "no forwarding entry", "forwarded to where it came from", "too many hops",
	"link down", "not a LID of the port", "node off", "agent mute", "refused by the agent", "bad M_Key",
	"no manager attached",
}

// String says why in a few words.
func (r Reason) String() string {
	if r >= reasonCount {
		return "unknown reason"
	}
	return reasonNames[r]
}

// Seen is where a packet was seen.
type Seen uint8

// The places.
const (
	SeenLeaving   Seen = iota + 1 // a node, by Port, over a link
	SeenByAgent                   // that takes it, having come in by Port
	SeenByManager                 // at Port
	SeenDiscarded                 // at Port, for Reason
)

// Sighting is what Config.Trace is told.
type Sighting struct {
	At         time.Duration
	What       Seen
	Node       ib.NodeGUID
	Port       ib.PortNum
	SLID, DLID ib.LID
	SL         ib.SL
	PKey       ib.PKey
	Reason     Reason
	// Exit and Entry are the two ends of the link that a packet crosses, of
	// SeenLeaving only: ports counted through all nodes in the order of the
	// topology, each from its port 0 on.
	Exit, Entry int32
	MAD         *[mad.Size]byte // valid until the hook returns; not to be written
}

// Counts is the number of packets so far, by outcome.
type Counts struct {
	Sent      uint64 // by managers, answers and traps included
	Crossings uint64 // of links
	Delivered uint64 // to managers
	Discarded [reasonCount]uint64
}

// Received names a kind of packet that agents took in.
type Received struct {
	Method    mad.Method
	Attribute mad.AttributeID
}
