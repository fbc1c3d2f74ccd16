package dfsssp

import (
	"slices"

	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
)

// lanes spreads the pairs over the layers that are needed, nil for no more than one.
func (m *repairer) lanes() *graph.Lanes {
	var used layers
	for _, row := range m.layer {
		for _, layer := range row {
			used |= 1 << layer
		}
	}
	if used&(used-1) == 0 {
		return nil
	}
	free := make([][]layers, len(m.Nodes))
	for s := range free {
		free[s] = slices.Repeat([]layers{used}, len(m.Nodes))
	}
	for r, lids := range m.lids {
		for _, lid := range lids {
			m.t.read(m.linear, uint16(r), lid)
			for _, s := range m.t.order {
				free[s][r] &= m.t.free[s]
				free[r][s] &= m.t.free[s]
			}
		}
	}
	number := make(map[uint8]uint8)
	for k := range uint8(maxLayers) {
		if used>>k&1 != 0 {
			number[k] = uint8(len(number))
		}
	}
	taken := make([]uint64, maxLayers)
	for s := range m.layer {
		for r := range s {
			best := m.layer[s][r]
			for k := range uint8(maxLayers) {
				if free[s][r]>>k&1 != 0 && taken[k] < taken[best] {
					best = k
				}
			}
			taken[best] += uint64(m.Hosts[s]+1) * uint64(m.Hosts[r]+1)
			m.layer[s][r], m.layer[r][s] = number[best], number[best]
		}
		m.layer[s][s] = 0
	}
	return &graph.Lanes{Layers: len(number), VLs: len(number), Layer: m.layer}
}
