package policy

import (
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
)

// Shares that no link could give are refused, and what is not listed shares with level 0.
func TestLevels(t *testing.T) {
	with := func(levels ...Level) Settings {
		s := DefaultSettings()
		s.Levels = levels
		return s
	}
	for want, s := range map[string]Settings{
		"SL 16, want 0 to 15":              with(Level{16, 10}),
		"SL 2 after SL 3, want each level": with(Level{3, 10}, Level{2, 10}),
		"SL 3 after SL 3":                  with(Level{3, 10}, Level{3, 10}),
		"a share of 0 %":                   with(Level{3, 0}),
		"a share of 101 %":                 with(Level{0, 101}),
		"come to 101 %, want at most 100":  with(Level{0, 50}, Level{3, 51}),
		"leaves nothing for SL 0":          with(Level{2, 50}, Level{3, 50}),
	} {
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", s.Levels, err, want)
		}
	}
	few := with(Level{1, 30}, Level{2, 30})
	few.MaxOperationalVLs = 2
	if err := few.Check(); err == nil || !strings.Contains(err.Error(), "3 levels with SL 0, each of which needs a VL, but max_op_vls 2 allows 2") {
		t.Error(err)
	}
	for _, change := range []func(*Settings){
		func(s *Settings) { s.SLToVL = &[SLs]ib.VL{} },
		func(s *Settings) { s.VLHighLimit = 4 },
		func(s *Settings) { s.VLArbHigh = s.VLArbLow },
		func(s *Settings) { s.VLArbLow = slices.Concat(s.VLArbLow, s.VLArbLow) },
	} {
		s := with(Level{1, 30})
		change(&s)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), "qos_levels with qos_sl2vl") {
			t.Error(err)
		}
	}
	s := with(Level{1, 30}, Level{5, 60})
	if err := s.Check(); err != nil || !slices.Equal(s.Shares(), []Level{{0, 10}, {1, 30}, {5, 60}}) {
		t.Errorf("%v, shares %v", err, s.Shares())
	}
	s = with(Level{0, 30}, Level{5, 60})
	if err := s.Check(); err != nil || !slices.Equal(s.Shares(), s.Levels) || !s.UsesLanes() {
		t.Errorf("%v, shares %v", err, s.Shares())
	}
}
