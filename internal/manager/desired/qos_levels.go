package desired

import (
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// RoutingRoom is the room that a policy leaves routes when packets are on these levels, in
// rising order: each of them needs service levels of its own, and those that the settings
// put on different virtual lanes stay on different ones.
func RoutingRoom(f *observed.Fabric, s *policy.Settings, levels []ib.SL) graph.Room {
	between := lanesBetween(f, s)
	return graph.Room{VLs: max(1, between/groupsOf(s, levels, between).n), Layers: 1 + (smp.SLCount-len(levels))/len(levels)}
}

// lanesBetween is the least number of data virtual lanes of a link between switches, as far as
// VL arbitration serves them; all that there can be where there is no such link.
func lanesBetween(f *observed.Fabric, s *policy.Settings) int {
	least := smp.DataVLs(mostVLCap)
	trained(f, func(p *observed.Port) {
		if p.Node.Switch == nil || p.Peer.Node.Switch == nil {
			return
		}
		if vlCap(p) == 1 {
			least = 1
			return
		}
		least = min(least, smp.DataVLs(operationalVLs(p, s)), int(p.Info.VLArbitrationLowCap))
	})
	return max(1, least)
}

// QoSLevels says how the levels of a policy and the layers of routes share service levels and
// virtual lanes. A level keeps its number for layer 0; the other layers get numbers
// that no partition has. The virtual lanes of a level's group are next to each other.
type QoSLevels struct {
	lanes *graph.Lanes
	graph *graph.Graph
	sl    [smp.SLCount][]ib.SL // by level and layer
	layer [smp.SLCount]uint8   // by service level
	vls   int                  // of a group
	groups
	// use is how many pairs of hosts have packets on each virtual lane, by switch, port and
	// virtual lane; nil where that does not count.
	use [][]uint64
	// places are those of switches in the graph, whose routes may be of an earlier snapshot.
	places    map[*observed.Node]uint16
	multicast observed.GroupLevels
	apart     [smp.SLCount]bool // service levels of multicast packets only
}

// NewQoSLevels shares them out. The lanes are those that the routes need, nil for one. It
// fails when the routes need more than the room for them.
func NewQoSLevels(f *observed.Fabric, s *policy.Settings, levels []ib.SL, g *graph.Graph, lanes *graph.Lanes) (*QoSLevels, error) {
	if lanes == nil {
		lanes = &graph.Lanes{VLs: 1, Layers: 1}
	}
	room := RoutingRoom(f, s, levels)
	vls, layers := lanes.VLs, lanes.Layers
	if lanes.Groups {
		vls, layers = vls+1, layers+1
	}
	if vls > room.VLs || layers > room.Layers {
		return nil, fmt.Errorf("the routes need %d virtual lanes and %d layers, the links between switches and the service levels of the policy leave %d and %d",
			vls, layers, room.VLs, room.Layers)
	}
	l := &QoSLevels{lanes: lanes, graph: g, vls: vls, groups: *groupsOf(s, levels, lanesBetween(f, s))}
	for sl := range l.sl {
		l.sl[sl] = []ib.SL{ib.SL(sl)}
	}
	free := ib.SL(0)
	for _, level := range levels {
		for layer := 1; layer < lanes.Layers; layer++ {
			for slices.Contains(levels, free) {
				free++
			}
			l.sl[level] = append(l.sl[level], free)
			l.layer[free], l.of[free] = uint8(layer), l.of[level]
			free++
		}
	}
	l.setGroups(levels)
	// A level that no partition has, and that is no layer's, has the one service level.
	for sl := range l.sl {
		for len(l.sl[sl]) < lanes.Layers {
			l.sl[sl] = append(l.sl[sl], ib.SL(sl))
		}
	}
	return l, nil
}

// ServiceLevels are those of paths.
func (l *QoSLevels) ServiceLevels() *observed.ServiceLevels {
	if l == nil || l.graph == nil {
		return nil
	}
	return &observed.ServiceLevels{SL: l.sl, Layer: l.lanes.Layer, Place: l.graph.Index, Multicast: &l.multicast}
}

// Layers is the set of service levels of a level's paths and groups, bit n for level n.
func (l *QoSLevels) Layers(level ib.SL) (set uint16) {
	if l == nil {
		return 1 << level
	}
	for _, sl := range l.sl[level] {
		set |= 1 << sl
	}
	return set | 1<<l.multicast.Wire[level]
}

// class is that of a port at a switch, for the routes.
func (l *QoSLevels) class(p *observed.Port, num ib.PortNum) uint8 {
	if l == nil || l.lanes.Class == nil || p.Node.Switch == nil {
		return 0
	}
	return l.lanes.Class[l.graph.Index[p.Node.Index]][num]
}

// classes is the number of classes of ports.
func (l *QoSLevels) classes() int {
	if l.lanes.Class == nil {
		return 1
	}
	return len(l.lanes.Lane)
}

// isShort reports whether p is at a link to an end port where levels have shares. Nothing
// waits in a circle there, so that one virtual lane for each level will do, and their shares
// hold whatever the layers of packets.
func (l *QoSLevels) isShort(p *observed.Port) bool {
	return l != nil && l.share != nil && (p.IsEnd() || p.FacesEnd())
}

// laneOf is the virtual lane of a group and a lane of the routes, on a link of so many.
func (l *QoSLevels) laneOf(group, lane ib.VL, short bool, lanes int) ib.VL {
	if short {
		return group % ib.VL(lanes)
	}
	return (group*ib.VL(l.vls) + lane) % ib.VL(lanes)
}

// mapping is that of packets from a port of class in to one of class out, on a link of so
// many virtual lanes. A CA's own layer tells nothing of the way to its switch: nothing waits
// in a circle there.
func (l *QoSLevels) mapping(in, out uint8, short bool, lanes int) *smp.SLToVLMappingTable {
	t := &smp.SLToVLMappingTable{}
	for sl := range t.VLs {
		group := l.of[sl]
		if group == ib.VLManagement {
			t.VLs[sl] = group
			continue
		}
		lane := ib.VL(l.layer[sl])
		if l.apart[sl] {
			lane = ib.VL(l.lanes.VLs)
		} else if l.lanes.Lane != nil {
			lane = l.lanes.Lane[in][out][lane]
		}
		t.VLs[sl] = l.laneOf(group, lane, short, lanes)
	}
	return t
}

// arbitration is a table of the settings with an entry for each virtual lane of a group.
func (l *QoSLevels) arbitration(table []smp.VLArbitrationEntry) (out []smp.VLArbitrationEntry) {
	for _, e := range table {
		group := slices.Index(l.asked, e.VL)
		if group < 0 {
			continue
		}
		for lane := range l.vls {
			out = append(out, smp.VLArbitrationEntry{VL: ib.VL(group*l.vls + lane), Weight: e.Weight})
		}
	}
	return out
}
