package desired

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// inputs gives ports mappings by input port. Ports of one switch whose mappings are the
// same share them.
type inputs struct {
	levels  *QoSLevels
	allowed func(*observed.Port) uint16
	node    *observed.Node
	sets    []uint16 // of node, the levels that may come in by each port
	made    map[*laneTables][]*smp.SLToVLMappingTable
	held    map[heldInput]*smp.SLToVLMappingTable
}

// heldInput is a mapping without the levels that are not in a set.
type heldInput struct {
	of  *smp.SLToVLMappingTable
	set uint16
}

// allLevels is the set of all service levels.
const allLevels = 1<<smp.SLCount - 1

func newInputs(l *QoSLevels, allowed func(*observed.Port) uint16) *inputs {
	return &inputs{levels: l, allowed: allowed, held: make(map[heldInput]*smp.SLToVLMappingTable)}
}

// of are the mappings of a port with these tables.
func (x *inputs) of(p *observed.Port, t *laneTables) []*smp.SLToVLMappingTable {
	if p.Node.Switch == nil {
		return t.mapping[:1]
	}
	if x.node != p.Node {
		x.node, x.made, x.sets = p.Node, make(map[*laneTables][]*smp.SLToVLMappingTable), x.setsOf(p.Node)
	}
	if len(t.mapping) == 1 && x.sets == nil {
		return t.mapping
	}
	out := x.made[t]
	if out == nil {
		out = make([]*smp.SLToVLMappingTable, len(p.Node.Ports))
		for in := range out {
			out[in] = t.mapping[0]
			if len(t.mapping) > 1 {
				out[in] = t.mapping[x.levels.class(p, ib.PortNum(in))]
			}
			if x.sets != nil {
				out[in] = x.hold(out[in], x.sets[in])
			}
		}
		x.made[t] = out
	}
	return out
}

// setsOf are the levels that may come in by each port of a switch; nil where all may by any.
func (x *inputs) setsOf(n *observed.Node) (sets []uint16) {
	if x.allowed == nil {
		return nil
	}
	for i := range n.Ports {
		p := &n.Ports[i]
		if !p.FacesEnd() {
			continue
		}
		if set := x.allowed(p.Peer); set != allLevels {
			if sets == nil {
				sets = make([]uint16, len(n.Ports))
				for j := range sets {
					sets[j] = allLevels
				}
			}
			sets[i] = set
		}
	}
	return sets
}

// hold is a mapping by which levels that are not in a set are dropped.
func (x *inputs) hold(m *smp.SLToVLMappingTable, set uint16) *smp.SLToVLMappingTable {
	if set == allLevels {
		return m
	}
	key := heldInput{m, set}
	out := x.held[key]
	if out == nil {
		out = &smp.SLToVLMappingTable{}
		*out = *m
		for sl := range out.VLs {
			if set>>sl&1 == 0 {
				out.VLs[sl] = ib.VLManagement
			}
		}
		x.held[key] = out
	}
	return out
}
