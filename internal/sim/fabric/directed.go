// This file implements directed-route processing at one node: the rules for hop
// pointer and hop count, in both directions, with or without LID-routed parts.
//
//	Direct       the decision, with the packet's pointer and return path updated
//	StartsByLID  whether a packet begins with a LID-routed part
//
// It reads the packet and its location, and moves nothing. Invalid packets are to be
// discarded.

package fabric

import (
	"encoding/binary"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// DirectedAction is what a node does with a packet.
type DirectedAction uint8

const (
	Discard DirectedAction = iota
	Leave                  // by one of the node's external ports
	Take                   // by the node's agent, or by a manager, as the method says
	TakeByManager
	RouteByLID // on, or from here on, as an ordinary packet
)

// DirectedLocation is the node that processes a directed-route packet, and its port of arrival.
type DirectedLocation struct {
	IsSwitch bool
	Ports    ib.PortNum // the node's highest port number
	// in is the port that the packet came in by. At its originator it is the
	// port that it is to leave by, 0 on a switch, which may use any.
	In ib.PortNum
	// origin reports whether the packet starts here.
	Origin bool
	// byLID reports whether a LID-routed part of its way ends here.
	ByLID bool
}

// DirectedDecision is an action with what it needs.
type DirectedDecision struct {
	Action DirectedAction
	Port   ib.PortNum // for Leave
	LID    ib.LID     // for RouteByLID
}

// Direct applies the directed-route rules of one node to a packet of class
// 0x81 and writes the hop pointer and the return path as they say (IBA 14.2.2;
// the clauses are those of the outgoing and the returning packet in turn).
func Direct(m *[mad.Size]byte, at DirectedLocation) DirectedDecision {
	if m[mad.OffsetHopCount] > mad.MaxHops {
		return DirectedDecision{}
	}
	if m[mad.OffsetStatus]&mad.DirectionBit != 0 {
		return returning(m, at)
	}
	return outgoing(m, at)
}

func outgoing(m *[mad.Size]byte, at DirectedLocation) DirectedDecision {
	count, pointer := m[mad.OffsetHopCount], m[mad.OffsetHopPointer]
	switch {
	case count != 0 && pointer == 0:
		// The first step is the originator's, or that of the switch where a
		// LID-routed part ends; from a wire of the directed part it is wrong.
		if !at.Origin && !(at.ByLID && at.IsSwitch) {
			return DirectedDecision{}
		}
		return at.send(m, mad.OffsetInitialPath, 1)
	case pointer < count:
		if !at.IsSwitch {
			return DirectedDecision{}
		}
		m[mad.OffsetReturnPath+int(pointer)] = byte(at.In)
		return at.send(m, mad.OffsetInitialPath, pointer+1)
	case pointer == count:
		if count != 0 {
			m[mad.OffsetReturnPath+int(pointer)] = byte(at.In)
		}
		m[mad.OffsetHopPointer] = pointer + 1
		lid := drDLID(m)
		if lid == ib.LIDPermissive {
			return DirectedDecision{Action: Take}
		}
		if !at.IsSwitch {
			return DirectedDecision{}
		}
		return DirectedDecision{Action: RouteByLID, LID: lid}
	case pointer == count+1:
		return DirectedDecision{Action: Take}
	}
	return DirectedDecision{}
}

func returning(m *[mad.Size]byte, at DirectedLocation) DirectedDecision {
	count, pointer := m[mad.OffsetHopCount], m[mad.OffsetHopPointer]
	switch {
	case count != 0 && pointer == count+1:
		if !at.Origin && !(at.ByLID && at.IsSwitch) {
			return DirectedDecision{}
		}
		return at.send(m, mad.OffsetReturnPath, pointer-1)
	case pointer >= 2 && pointer <= count:
		if !at.IsSwitch {
			return DirectedDecision{}
		}
		return at.send(m, mad.OffsetReturnPath, pointer-1)
	case pointer == 1:
		m[mad.OffsetHopPointer] = 0
		lid := drSLID(m)
		if lid == ib.LIDPermissive {
			return DirectedDecision{Action: TakeByManager}
		}
		if !at.IsSwitch && !at.Origin {
			return DirectedDecision{}
		}
		return DirectedDecision{Action: RouteByLID, LID: lid}
	case pointer == 0:
		return DirectedDecision{Action: TakeByManager}
	}
	return DirectedDecision{}
}

// send sets the hop pointer and leaves by the port that the path names there:
// an external port, and on a CA or router the one port that the packet has to
// do with.
func (at DirectedLocation) send(m *[mad.Size]byte, path int, pointer uint8) DirectedDecision {
	m[mad.OffsetHopPointer] = pointer
	out := ib.PortNum(m[path+int(pointer)])
	if out == 0 || out > at.Ports || !at.IsSwitch && out != at.In {
		return DirectedDecision{}
	}
	return DirectedDecision{Action: Leave, Port: out}
}

func drSLID(m *[mad.Size]byte) ib.LID { return ib.LID(binary.BigEndian.Uint16(m[mad.OffsetDrSLID:])) }

func drDLID(m *[mad.Size]byte) ib.LID { return ib.LID(binary.BigEndian.Uint16(m[mad.OffsetDrDLID:])) }

// StartsByLID reports whether a directed-route packet begins with a LID-routed
// part, during which its hop pointer stands still.
func StartsByLID(m *[mad.Size]byte) bool {
	if m[mad.OffsetStatus]&mad.DirectionBit != 0 {
		return drDLID(m) != ib.LIDPermissive
	}
	return drSLID(m) != ib.LIDPermissive
}
