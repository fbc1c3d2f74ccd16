package topology

import "github.com/ibwarden/ibwarden/ib"

// guidSequence gives nodes the GUIDs that ibsim gives them when a file has
// none: counted up per type, a switch taking one, any other node one for itself
// and one for each port.
type guidSequence struct {
	next [4]uint64 // by ib.NodeType
	base [4]uint64 // the last GUID that a file gave, from which "+N" counts
}

func newGUIDSequence() guidSequence {
	first := [4]uint64{ib.NodeCA: 0x10_0000, ib.NodeSwitch: 0x20_0000, ib.NodeRouter: 0}
	return guidSequence{next: first, base: first}
}

// take returns the GUID of the next node of type t.
func (s *guidSequence) take(t ib.NodeType, ports ib.PortNum) ib.NodeGUID {
	guid := s.next[t]
	s.next[t]++
	if t != ib.NodeSwitch {
		s.next[t] += uint64(ports)
	}
	return ib.NodeGUID(guid)
}

// set makes guid the GUID of the next node of type t.
func (s *guidSequence) set(t ib.NodeType, guid uint64) { s.next[t], s.base[t] = guid, guid }

// setRelative makes offset, counted from the last base, that GUID.
func (s *guidSequence) setRelative(t ib.NodeType, offset uint64) { s.next[t] = s.base[t] + offset }
