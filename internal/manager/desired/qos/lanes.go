package qos

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Lanes enters the wanted tables of lanes in d. Tables of equal content are
// shared between ports and must not be changed. It fails when a setting is
// out of its range.
func Lanes(f *observed.Fabric, s Settings, d *observed.Desired) ([]Fault, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	var faults []Fault
	mappings := make(map[int]*smp.SLToVLMappingTable)
	arbitrations := make(map[[2]int][]smp.VLArbitrationTable)
	trained(f, func(p *observed.Port) {
		if vlCap(p) == 1 {
			return
		}
		// A lane without an entry in the low-priority table would never be
		// served, so there are no more lanes than entries.
		entries := int(p.Info.VLArbitrationLowCap)
		if entries == 0 || entries > smp.VLArbitrationMax {
			faults = append(faults, Fault{p, "VLArbitrationLowCap", uint8(entries), smp.VLArbitrationMax})
			entries = 1
		}
		lanes := min(smp.DataVLs(min(vlCap(p), vlCap(p.Peer))), entries)
		if mappings[lanes] == nil {
			mappings[lanes] = mapping(lanes)
		}
		want := d.Port(p)
		want.SLToVL = mappings[lanes]
		if p.Info.VLArbitrationLowCap == 0 {
			return // there is no table to write
		}
		key := [2]int{lanes, entries}
		if arbitrations[key] == nil {
			arbitrations[key] = arbitration(lanes, entries, s.Weight)
		}
		want.VLArbitration = arbitrations[key]
	})
	return faults, nil
}

// mapping spreads the service levels over so many lanes.
func mapping(lanes int) *smp.SLToVLMappingTable {
	t := &smp.SLToVLMappingTable{}
	for sl := range t.VLs {
		t.VLs[sl] = ib.VL(sl % lanes)
	}
	return t
}

// arbitration gives each lane one entry of a low-priority table of so many
// entries and leaves the others empty. It holds the parts that such a table
// has, one or two.
func arbitration(lanes, entries int, weight uint8) []smp.VLArbitrationTable {
	parts := make([]smp.VLArbitrationTable, (entries+smp.VLArbitrationPerPart-1)/smp.VLArbitrationPerPart)
	for vl := range lanes {
		parts[0].Entries[vl] = smp.VLArbitrationEntry{VL: ib.VL(vl), Weight: weight}
	}
	return parts
}
