package testbed

import (
	"encoding/binary"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
)

// hearing is a 64-bit value in a management packet that reached a node.
type hearing struct {
	node ib.NodeGUID
	// process reports whether a program of the node got the packet, and not its
	// subnet-management agent alone.
	process bool
	word    uint64
}

// keyAlign is where a key can stand in a management packet: all that have one
// keep to 4 bytes.
const keyAlign = 4

// hear records the keys in a management packet for the nodes that it reached.
func (s *Testbed) hear(seen fabric.Sighting) {
	if s.deaf {
		return
	}
	switch seen.What {
	case fabric.SeenByAgent:
		s.keysHeld(seen.Node)
	case fabric.SeenByManager:
	case fabric.SeenLeaving:
		if !s.suspects[seen.Node] {
			return // who passes a packet on is believed to forget it
		}
	default:
		return
	}
	s.note(seen.Node, seen.What == fabric.SeenByManager, seen.MAD[:])
}

// keysHeld keeps who held a key first.
func (s *Testbed) keysHeld(g ib.NodeGUID) {
	for _, i := range EndPorts(s.nodes[g]) {
		if key := uint64(s.Fabric.Agent(g).Port(i).MKey); key != 0 {
			if _, held := s.holders[key]; !held {
				s.holders[key] = g
			}
		}
	}
}

func (s *Testbed) note(node ib.NodeGUID, process bool, bytes []byte) {
	management := len(bytes) == mad.Size
	for i := 0; i+8 <= len(bytes); i += keyAlign {
		// An answer repeats the key of its request, which the requester knows.
		if i == mad.OffsetMKey && management && process && mad.Method(bytes[3]).IsResponse() {
			continue
		}
		if word := binary.BigEndian.Uint64(bytes[i:]); word != 0 {
			s.heard[hearing{node, process, word}] = struct{}{}
		}
	}
}

// authored keeps what a node wrote itself: to get it back tells it nothing.
func (s *Testbed) authored(node ib.NodeGUID, data []byte) {
	for i := 0; i+8 <= len(data); i += keyAlign {
		s.wrote[hearing{node: node, word: binary.BigEndian.Uint64(data[i:])}] = struct{}{}
	}
}

// noteData records a management datagram that reached a queue pair 1.
func (s *Testbed) noteData(d fabric.DataSighting) {
	if d.Outcome != fabric.OutcomeTaken && d.Outcome != fabric.OutcomeManagement || len(d.Bytes) < mad.Size {
		return
	}
	s.note(d.Node, true, d.Bytes)
}

// Suspect lets a node be one that keeps the keys of packets that pass it.
func (s *Testbed) Suspect(g ib.NodeGUID) { s.suspects[g] = true }

// KeysHeard are the end ports whose M_Key, as it is now, a node has heard: those
// of others whatever got the packet, its own when a program of the node did; none
// that it gave itself.
func (s *Testbed) KeysHeard(by ib.NodeGUID) (out []observed.Place) {
	for _, n := range s.Topology.Nodes {
		for _, i := range EndPorts(n) {
			key := uint64(s.Fabric.Agent(n.GUID).Port(i).MKey)
			_, process := s.heard[hearing{by, true, key}]
			_, device := s.heard[hearing{by, false, key}]
			if first, held := s.holders[key]; held && first == by {
				device = false // it was the node's own before it was this port's
			}
			if _, own := s.wrote[hearing{node: by, word: key}]; own {
				continue
			}
			if key != 0 && (process || device && n.GUID != by) {
				out = append(out, observed.Place{Node: n.GUID, Port: i})
			}
		}
	}
	return out
}

// Heard reports whether a number stood in a management packet that a program of a
// node got.
func (s *Testbed) Heard(by ib.NodeGUID, word uint64) bool {
	_, heard := s.heard[hearing{by, true, word}]
	return heard
}

// Managed reports whether a manager that runs by itself was ever seated at a node.
func (s *Testbed) Managed(g ib.NodeGUID) bool { return s.seats[g] }
