package observed

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// ServiceLevels gives each path its service level. A policy says a level for a partition;
// routes that need virtual lanes to be free of deadlock put each path in a layer. A packet
// names both by its service level. nil: the service level is that of the policy.
type ServiceLevels struct {
	// SL is by the level of the policy and the layer. The first of each level is the level
	// itself.
	SL [smp.SLCount][]ib.SL
	// Layer is by two switches, by their places, and the same both ways; nil: all 0.
	Layer [][]uint8
	// Place is that of a switch, by Node.Index; below 0 for other nodes.
	Place []int32
	// Multicast are the levels of the packets of groups; nil: those that groups have.
	Multicast *GroupLevels
}

// GroupLevels are the service levels of multicast packets.
type GroupLevels struct {
	// Wire is the service level by the level that the policy, or the host that made the
	// group, gave it; Level is the level by the service level.
	Wire, Level [smp.SLCount]ib.SL
}

// OfGroup is the service level of the packets of a group of a level.
func (s *ServiceLevels) OfGroup(level ib.SL) ib.SL {
	if s == nil || s.Multicast == nil {
		return level
	}
	return s.Multicast.Wire[level]
}

// GroupLevel is the level of a group whose packets have a service level.
func (s *ServiceLevels) GroupLevel(sl ib.SL) ib.SL {
	if s == nil || s.Multicast == nil {
		return sl
	}
	return s.Multicast.Level[sl]
}

// Between is the service level of packets of a level, from one end port to another and back.
func (s *ServiceLevels) Between(level ib.SL, a, b *Port) ib.SL {
	if s == nil || s.Layer == nil {
		return level
	}
	x, y := s.place(a), s.place(b)
	if x < 0 || y < 0 {
		return level
	}
	return s.SL[level][s.Layer[x][y]]
}

// place is that of the switch that an end port is at, below 0 for none.
func (s *ServiceLevels) place(p *Port) int32 {
	n := p.Node
	if n.Switch == nil {
		if p.Peer == nil {
			return -1
		}
		n = p.Peer.Node
	}
	if n.Index >= len(s.Place) {
		return -1
	}
	return s.Place[n.Index]
}
