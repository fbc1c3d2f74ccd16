package desired

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// kind is what the tables of a port depend on.
type kind struct {
	lanes, low, high int
	class            uint8
	short            bool
	use              string // how shares are divided among lanes
}

// laneTables are those of a port of a kind.
type laneTables struct {
	// mapping is by the class of the input port; of one element for all.
	mapping   []*smp.SLToVLMappingTable
	low, high []smp.VLArbitrationTable
	// missed is by how much shares are missed, as a part of the worst.
	missed float64
}

// EnterLanes enters the wanted tables of virtual lanes in d. Tables of equal content are
// shared between ports and must not be changed. levels are those of routes that need
// virtual lanes and of levels with shares, nil for others. Where allowed is not nil, switches
// drop what comes in from an end port on a service level that is not in its set. EnterLanes
// fails when a setting is out of its range.
func EnterLanes(f *observed.Fabric, s *policy.Settings, levels *QoSLevels, allowed func(end *observed.Port) uint16, d *observed.Desired) ([]CapabilityFault, []MissedShares, error) {
	if err := s.Check(); err != nil {
		return nil, nil, err
	}
	var faults []CapabilityFault
	var short []MissedShares
	made := make(map[kind]*laneTables)
	inputs := newInputs(levels, allowed)
	trained(f, func(p *observed.Port) {
		if vlCap(p) == 1 {
			short = levels.tooFew(short, p, 1, s)
			return
		}
		// A virtual lane without an entry would never be served, so there are no more
		// virtual lanes than have one.
		low, high := int(p.Info.VLArbitrationLowCap), min(int(p.Info.VLArbitrationHighCap), smp.VLArbitrationMax)
		if low == 0 || low > smp.VLArbitrationMax {
			faults = append(faults, CapabilityFault{p, "VLArbitrationLowCap", uint8(low), smp.VLArbitrationMax})
			low = 1
		}
		k := kind{
			smp.DataVLs(operationalVLs(p, s)), low, high,
			levels.class(p, p.Num), levels.isShort(p), levels.useAt(p),
		}
		t := made[k]
		if t == nil {
			t = fitting(s, levels, p, k)
			made[k] = t
		}
		if n := len(short); len(levels.tooFew(short, p, k.lanes, s)) > n {
			short = levels.tooFew(short, p, k.lanes, s)
		} else if t.missed*100 > shareFaultPercent {
			short = append(short, MissedShares{Port: p, Entries: low, Percent: int(t.missed*100 + 0.5)})
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
	return faults, short, nil
}

// fitting are the tables for as many of the virtual lanes as a port has entries for.
func fitting(s *policy.Settings, levels *QoSLevels, p *observed.Port, k kind) *laneTables {
	wantLow, wantHigh := s.VLArbLow, s.VLArbHigh
	if levels != nil && levels.share == nil {
		wantLow, wantHigh = levels.arbitration(wantLow), levels.arbitration(wantHigh)
	}
	for lanes := k.lanes; ; lanes-- {
		t := &laneTables{}
		if levels == nil {
			t.mapping = []*smp.SLToVLMappingTable{s.Mapping(lanes)}
		} else {
			for in := range levels.classes() {
				t.mapping = append(t.mapping, levels.mapping(uint8(in), k.class, k.short, lanes))
			}
		}
		shares := true
		if levels != nil && levels.share != nil {
			wantLow, t.missed, shares = levels.shared(p, t, lanes, k.low)
			wantHigh = nil
		}
		var lowFits, highFits bool
		t.low, lowFits = policy.Arbitration(wantLow, lanes, k.low)
		t.high, highFits = policy.Arbitration(wantHigh, lanes, k.high)
		if lanes == 1 || shares && lowFits && highFits && t.serves() {
			return t
		}
	}
}

// shared is the low-priority table by which levels have their shares on p's link; ok is
// false where there are more virtual lanes than entries.
func (l *QoSLevels) shared(p *observed.Port, t *laneTables, lanes, entries int) (table []smp.VLArbitrationEntry, missed float64, ok bool) {
	shares := l.sharesAt(p, lanes)
	var turns [ib.VLManagement]bool
	for _, s := range shares {
		turns[s.vl] = true
	}
	var idle []smp.VLArbitrationEntry
	for _, m := range t.mapping {
		for _, vl := range m.VLs {
			if vl != ib.VLManagement && !turns[vl] {
				turns[vl] = true
				idle = append(idle, smp.VLArbitrationEntry{VL: vl, Weight: idleWeight})
			}
		}
	}
	if len(shares)+len(idle) > entries {
		return nil, 0, false
	}
	table, missed = arbitrate(shares, entries-len(idle))
	return append(table, idle...), missed, true
}

// serves reports whether every virtual lane that a level takes has a turn.
func (t *laneTables) serves() bool {
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

// tooFew notes a port whose link has fewer virtual lanes than levels have shares.
func (l *QoSLevels) tooFew(short []MissedShares, p *observed.Port, lanes int, s *policy.Settings) []MissedShares {
	if l != nil && l.share != nil && lanes < len(s.Shares()) {
		short = append(short, MissedShares{Port: p, Lanes: lanes, Levels: len(s.Shares())})
	}
	return short
}

// useAt tells ports apart whose shares are divided among lanes otherwise.
func (l *QoSLevels) useAt(p *observed.Port) string {
	if l == nil || l.share == nil || l.vls == 1 || l.isShort(p) {
		return ""
	}
	steps := make([][]int, len(l.share))
	for group := range l.share {
		steps[group], _ = l.steps(l.useOf(p), group)
	}
	return fmt.Sprint(steps)
}
