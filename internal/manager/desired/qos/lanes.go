package qos

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy/settings"
)

// tables are those of a port with so many virtual lanes and entries.
type tables struct {
	// mapping is by the class of the input port; of one element for all.
	mapping   []*smp.SLToVLMappingTable
	low, high []smp.VLArbitrationTable
}

// Lanes enters the wanted tables of virtual lanes in d. Tables of equal content are
// shared between ports and must not be changed. levels are those of routes that need
// virtual lanes, nil for others. It fails when a setting is out of its range.
func Lanes(f *observed.Fabric, s *settings.Settings, levels *Levels, d *observed.Desired) ([]Fault, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	var faults []Fault
	made := make(map[[4]int]*tables)
	inputs := newInputs(levels)
	trained(f, func(p *observed.Port) {
		if vlCap(p) == 1 {
			return
		}
		// A virtual lane without an entry would never be served, so there are no more
		// virtual lanes than have one.
		low, high := int(p.Info.VLArbitrationLowCap), min(int(p.Info.VLArbitrationHighCap), smp.VLArbitrationMax)
		if low == 0 || low > smp.VLArbitrationMax {
			faults = append(faults, Fault{p, "VLArbitrationLowCap", uint8(low), smp.VLArbitrationMax})
			low = 1
		}
		class := levels.class(p, p.Num)
		key := [4]int{smp.DataVLs(operationalVLs(p, s)), low, high, int(class)}
		t := made[key]
		if t == nil {
			t = fitting(s, levels, class, key[0], low, high)
			made[key] = t
		}
		want := d.Port(p)
		want.SLToVL = inputs.of(p, t)
		want.Elements |= observed.ElementVLHighLimit
		want.Info.VLHighLimit = s.VLHighLimit
		if p.Info.VLArbitrationLowCap == 0 {
			return // there is no table to write
		}
		for i := range t.low {
			want.VLArbitration[int(smp.VLArbLowFirst)-1+i] = &t.low[i]
		}
		for i := range t.high {
			want.VLArbitration[int(smp.VLArbHighFirst)-1+i] = &t.high[i]
		}
	})
	return faults, nil
}

// fitting are the tables for as many of the virtual lanes as a port has entries for.
func fitting(s *settings.Settings, levels *Levels, class uint8, lanes, low, high int) *tables {
	wantLow, wantHigh := s.VLArbLow, s.VLArbHigh
	if levels != nil {
		wantLow, wantHigh = levels.arbitration(wantLow), levels.arbitration(wantHigh)
	}
	for ; ; lanes-- {
		t := &tables{}
		if levels == nil {
			t.mapping = []*smp.SLToVLMappingTable{s.Mapping(lanes)}
		} else {
			for in := range levels.classes() {
				t.mapping = append(t.mapping, levels.mapping(uint8(in), class, lanes))
			}
		}
		var lowFits, highFits bool
		t.low, lowFits = settings.Arbitration(wantLow, lanes, low)
		t.high, highFits = settings.Arbitration(wantHigh, lanes, high)
		if lanes == 1 || lowFits && highFits && t.serves() {
			return t
		}
	}
}

// serves reports whether every virtual lane that a level takes has a turn.
func (t *tables) serves() bool {
	var turns [ib.VLManagement]bool
	for _, parts := range [][]smp.VLArbitrationTable{t.low, t.high} {
		for i := range parts {
			for _, e := range parts[i].Entries {
				turns[e.VL] = turns[e.VL] || e.Weight > 0
			}
		}
	}
	for _, m := range t.mapping {
		for _, vl := range m.VLs {
			if vl != ib.VLManagement && !turns[vl] {
				return false
			}
		}
	}
	return true
}
