package qos

import (
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy/settings"
)

// RoomFor is the room that a policy leaves routes when packets are on these levels, in
// rising order: each of them needs service levels of its own, and those that the settings
// put on different virtual lanes stay on different ones.
func RoomFor(f *observed.Fabric, s *settings.Settings, levels []ib.SL) graph.Room {
	between := lanesBetween(f, s)
	groups := len(groupsOf(s, levels, between))
	return graph.Room{VLs: max(1, between/groups), Layers: 1 + (smp.SLCount-len(levels))/len(levels)}
}

// lanesBetween is the least number of data virtual lanes of a link between switches, as far as
// VL arbitration serves them; all that there can be where there is no such link.
func lanesBetween(f *observed.Fabric, s *settings.Settings) int {
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

// groupsOf are the virtual lanes that the settings give the levels on a link with so many,
// each once, in rising order.
func groupsOf(s *settings.Settings, levels []ib.SL, lanes int) []ib.VL {
	var groups []ib.VL
	m := s.Mapping(lanes)
	for _, level := range levels {
		if vl := m.VLs[level]; vl != ib.VLManagement {
			groups = append(groups, vl)
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

// Levels says how the levels of a policy and the layers of routes share service levels and
// virtual lanes. A level keeps its number for layer 0; the other layers get numbers
// that no partition has. The virtual lanes of a level's group are next to each other.
type Levels struct {
	lanes *graph.Lanes
	graph *graph.Graph
	sl    [smp.SLCount][]ib.SL // by level and layer
	layer [smp.SLCount]uint8   // by service level
	group [smp.SLCount]ib.VL   // by service level; VLManagement where packets are dropped
	vls   int                  // of a group
	of    []ib.VL              // the virtual lane of each group in the settings
}

// NewLevels shares them out. It fails when the routes need more than the room for them.
func NewLevels(f *observed.Fabric, s *settings.Settings, levels []ib.SL, g *graph.Graph, lanes *graph.Lanes) (*Levels, error) {
	room := RoomFor(f, s, levels)
	if lanes.VLs > room.VLs || lanes.Layers > room.Layers {
		return nil, fmt.Errorf("the routes need %d virtual lanes and %d layers, the links between switches and the service levels of the policy leave %d and %d",
			lanes.VLs, lanes.Layers, room.VLs, room.Layers)
	}
	l := &Levels{lanes: lanes, graph: g, vls: lanes.VLs}
	between := lanesBetween(f, s)
	l.of = groupsOf(s, levels, between)
	mapping := s.Mapping(between)
	for sl := range l.sl {
		l.sl[sl] = []ib.SL{ib.SL(sl)}
		l.group[sl] = l.groupOf(mapping.VLs[sl])
	}
	free := ib.SL(0)
	for _, level := range levels {
		for layer := 1; layer < lanes.Layers; layer++ {
			for slices.Contains(levels, free) {
				free++
			}
			l.sl[level] = append(l.sl[level], free)
			l.layer[free], l.group[free] = uint8(layer), l.group[level]
			free++
		}
	}
	// A level that no partition has, and that is no layer's, has the one service level.
	for sl := range l.sl {
		for len(l.sl[sl]) < lanes.Layers {
			l.sl[sl] = append(l.sl[sl], ib.SL(sl))
		}
	}
	return l, nil
}

// groupOf is the group of a virtual lane of the settings: its own, or that of another lane
// where no partition's packets take it.
func (l *Levels) groupOf(vl ib.VL) ib.VL {
	if vl == ib.VLManagement {
		return vl
	}
	if i := slices.Index(l.of, vl); i >= 0 {
		return ib.VL(i)
	}
	return vl % ib.VL(len(l.of))
}

// ServiceLevels are those of paths.
func (l *Levels) ServiceLevels() *observed.ServiceLevels {
	if l == nil {
		return nil
	}
	return &observed.ServiceLevels{SL: l.sl, Layer: l.lanes.Layer, Place: l.graph.Index}
}

// class is that of a port at a switch, for the routes.
func (l *Levels) class(p *observed.Port, num ib.PortNum) uint8 {
	if l == nil || l.lanes.Class == nil || p.Node.Switch == nil {
		return 0
	}
	return l.lanes.Class[l.graph.Index[p.Node.Index]][num]
}

// classes is the number of classes of ports.
func (l *Levels) classes() int {
	if l.lanes.Class == nil {
		return 1
	}
	return len(l.lanes.Lane)
}

// mapping is that of packets from a port of class in to one of class out, on a link of so
// many virtual lanes. A CA's own layer tells nothing of the way to its switch: nothing waits
// in a circle there.
func (l *Levels) mapping(in, out uint8, lanes int) *smp.SLToVLMappingTable {
	t := &smp.SLToVLMappingTable{}
	for sl := range t.VLs {
		group := l.group[sl]
		if group == ib.VLManagement {
			t.VLs[sl] = group
			continue
		}
		lane := ib.VL(l.layer[sl])
		if l.lanes.Lane != nil {
			lane = l.lanes.Lane[in][out][lane]
		}
		t.VLs[sl] = (group*ib.VL(l.vls) + lane) % ib.VL(lanes)
	}
	return t
}

// arbitration is a table of the settings with an entry for each virtual lane of a group.
func (l *Levels) arbitration(table []smp.VLArbitrationEntry) (out []smp.VLArbitrationEntry) {
	for _, e := range table {
		group := slices.Index(l.of, e.VL)
		if group < 0 {
			continue
		}
		for lane := range l.vls {
			out = append(out, smp.VLArbitrationEntry{VL: ib.VL(group*l.vls + lane), Weight: e.Weight})
		}
	}
	return out
}

// inputs gives ports mappings by input port. Ports of one switch whose mappings are the
// same share them.
type inputs struct {
	levels *Levels
	node   *observed.Node
	made   map[*tables][]*smp.SLToVLMappingTable
}

func newInputs(l *Levels) *inputs { return &inputs{levels: l} }

// of are the mappings of a port with these tables.
func (x *inputs) of(p *observed.Port, t *tables) []*smp.SLToVLMappingTable {
	if len(t.mapping) == 1 || p.Node.Switch == nil {
		return t.mapping[:1]
	}
	if x.node != p.Node {
		x.node, x.made = p.Node, make(map[*tables][]*smp.SLToVLMappingTable)
	}
	out := x.made[t]
	if out == nil {
		out = make([]*smp.SLToVLMappingTable, len(p.Node.Ports))
		for in := range out {
			out[in] = t.mapping[x.levels.class(p, ib.PortNum(in))]
		}
		x.made[t] = out
	}
	return out
}
