package policy

import (
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// The default settings are good, and every value out of its range is found and named.
func TestCheck(t *testing.T) {
	s := DefaultSettings()
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	if s.UsesLanes() {
		t.Error("by default the tables of virtual lanes are left alone")
	}
	for want, change := range map[string]func(*Settings){
		"packet_life_time 32, want 0 to 31":             func(s *Settings) { s.LifeTimeValue = 32 },
		"head_of_queue_lifetime 32":                     func(s *Settings) { s.HOQLife = 32 },
		"leaf_head_of_queue_lifetime 32":                func(s *Settings) { s.LeafHOQLife = 32 },
		"vl_stall_count 8, want 0 to 7":                 func(s *Settings) { s.VLStallCount = 8 },
		"leaf_vl_stall_count 8":                         func(s *Settings) { s.LeafVLStallCount = 8 },
		"max_op_vls 0, want 1 to 5":                     func(s *Settings) { s.MaxOperationalVLs = 0 },
		"max_op_vls 6":                                  func(s *Settings) { s.MaxOperationalVLs = 6 },
		"overrun_errors_threshold 16":                   func(s *Settings) { s.OverrunErrors = 16 },
		"local_phy_errors_threshold 16":                 func(s *Settings) { s.LocalPhyErrors = 16 },
		"subnet_timeout 32":                             func(s *Settings) { s.SubnetTimeOut = 32 },
		"sm_sl 16":                                      func(s *Settings) { s.MasterSMSL = 16 },
		"m_key_protection_level 4, want 0 to 3":         func(s *Settings) { s.MKeyProtectBits = 4 },
		"master_sm_lid 49152, want 1 to 49151":          func(s *Settings) { s.MasterSMLID = 0xC000 },
		"part_enforce in no direction":                  func(s *Settings) { s.EnforceInbound, s.EnforceOutbound = false, false },
		"qos_vlarb_high of 65 entries, want at most 64": func(s *Settings) { s.VLArbHigh = make([]smp.VLArbitrationEntry, 65) },
		"qos_vlarb_low: VL 15, want 0 to 14":            func(s *Settings) { s.VLArbLow = []smp.VLArbitrationEntry{{VL: 15, Weight: 1}} },
		"VL 1, which service level 1 takes on a link of 2 VLs, has no weight": func(s *Settings) {
			s.VLArbLow = []smp.VLArbitrationEntry{{VL: 0, Weight: 1}, {VL: 1, Weight: 0}}
		},
		"VL 8, which service level 8 takes on a link of 15 VLs": func(s *Settings) { s.VLArbLow = s.VLArbLow[:8] },
		"sm_sl 3, which qos_sl2vl drops":                        func(s *Settings) { s.SLToVL, s.MasterSMSL = &[SLs]ib.VL{3: 15}, 3 },
	} {
		s := DefaultSettings()
		change(&s)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for name, change := range map[string]func(*Settings){
		"one direction":                    func(s *Settings) { s.EnforceInbound = false },
		"one virtual lane, no table":       func(s *Settings) { s.MaxOperationalVLs, s.VLArbLow = 1, nil },
		"no more lanes than the table has": func(s *Settings) { s.MaxOperationalVLs, s.VLArbLow = 4, s.VLArbLow[:8] },
		"a turn in the other table":        func(s *Settings) { s.VLArbHigh, s.VLArbLow = s.VLArbLow, nil },
		"a lane that nothing takes": func(s *Settings) {
			s.SLToVL, s.VLArbLow = new([SLs]ib.VL), []smp.VLArbitrationEntry{{VL: 0, Weight: 1}}
		},
	} {
		s := DefaultSettings()
		change(&s)
		if err := s.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever has traffic leave lane 0 has the tables of virtual lanes written.
func TestUsesLanes(t *testing.T) {
	for name, change := range map[string]func(*Settings){
		"qos":        func(s *Settings) { s.Lanes = true },
		"sm_sl":      func(s *Settings) { s.MasterSMSL = 1 },
		"mapping":    func(s *Settings) { s.SLToVL = new([SLs]ib.VL) },
		"high limit": func(s *Settings) { s.VLHighLimit = 1 },
		"high table": func(s *Settings) { s.VLArbHigh = []smp.VLArbitrationEntry{{VL: 0, Weight: 1}} },
		"low table":  func(s *Settings) { s.VLArbLow = s.VLArbLow[:3] },
	} {
		s := DefaultSettings()
		change(&s)
		if !s.UsesLanes() {
			t.Errorf("%s: the tables are left alone", name)
		}
		if usual := DefaultSettings(); s.Equal(&usual) {
			t.Errorf("%s: equal to the default", name)
		}
	}
}

// No level is mapped to a lane that the link does not have, but for one that drops.
func TestMapping(t *testing.T) {
	s := DefaultSettings()
	s.SLToVL = &[SLs]ib.VL{0: 0, 1: 3, 2: 14, 3: 15}
	for _, lanes := range []int{1, 2, 4, 8, 15} {
		for sl, vl := range s.Mapping(lanes).VLs {
			if want := s.SLToVL[sl] % ib.VL(lanes); sl != 3 && vl != want || sl == 3 && vl != 15 {
				t.Errorf("%d lanes: level %d takes %d", lanes, sl, vl)
			}
		}
		usual := DefaultSettings()
		for sl, vl := range usual.Mapping(lanes).VLs {
			if int(vl) != sl%lanes {
				t.Errorf("%d lanes: level %d takes %d by default", lanes, sl, vl)
			}
		}
	}
}

// A table is cut into parts as the device has them; what has no turn on the link is
// left out, and what does not fit is told.
func TestArbitration(t *testing.T) {
	var table []smp.VLArbitrationEntry
	for i := range 40 {
		table = append(table, smp.VLArbitrationEntry{VL: ib.VL(i % 4), Weight: uint8(i)})
	}
	parts, ok := Arbitration(table, 2, 64)
	if !ok || len(parts) != 2 || parts[0].Entries[0] != table[1] || parts[0].Entries[1] != table[4] || parts[0].Entries[18] != table[37] || parts[0].Entries[19] != (smp.VLArbitrationEntry{}) {
		t.Errorf("%v, %v", ok, parts)
	}
	parts, ok = Arbitration(table, 4, 64)
	if !ok || parts[1].Entries[0] != table[33] {
		t.Errorf("%v, the second part begins with %v", ok, parts[1].Entries[0])
	}
	if parts, ok := Arbitration(table, 4, 8); ok || len(parts) != 1 || parts[0].Entries[7] != table[8] || parts[0].Entries[8] != (smp.VLArbitrationEntry{}) {
		t.Errorf("40 entries fit in 8: %v, %v", ok, parts)
	}
	if parts, ok := Arbitration(table[:1], 4, 0); !ok || len(parts) != 0 {
		t.Errorf("an entry without weight needs no room: %v, %v", ok, parts)
	}
}

func TestTexts(t *testing.T) {
	table, err := ParseArbitration(" 0:64, 14:255,3:0 ")
	want := []smp.VLArbitrationEntry{{VL: 0, Weight: 64}, {VL: 14, Weight: 255}, {VL: 3, Weight: 0}}
	if err != nil || !slices.Equal(table, want) || ArbitrationText(table) != "0:64,14:255,3:0" {
		t.Errorf("%v, %v", table, err)
	}
	if table, err := ParseArbitration(" "); err != nil || table != nil {
		t.Errorf("%v, %v", table, err)
	}
	for _, bad := range []string{"0", "15:1", "0:256", "0:-1", "a:1", "0:1,", "16:1", strings.Repeat("0:1,", 64) + "0:1"} {
		if table, err := ParseArbitration(bad); err == nil {
			t.Errorf("%q reads %v", bad, table)
		}
	}
	m, err := ParseMapping("0, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15")
	if err != nil || m[14] != 14 || m[15] != 15 || MappingText(m) != "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15" || MappingText(nil) != "" {
		t.Errorf("%v, %v", m, err)
	}
	for _, bad := range []string{"", "0,1", strings.Repeat("0,", 16) + "0", strings.Repeat("0,", 15) + "16", strings.Repeat("0,", 15) + "x"} {
		if m, err := ParseMapping(bad); err == nil {
			t.Errorf("%q reads %v", bad, m)
		}
	}
}

func TestWidthAndSpeed(t *testing.T) {
	for _, name := range WidthNames() {
		if w, ok := ParseWidth(name); !ok || w.String() != name {
			t.Errorf("%s reads %v, %v", name, w, ok)
		}
	}
	for _, name := range SpeedNames() {
		if s, ok := ParseSpeed(name); !ok || s.String() != name {
			t.Errorf("%s reads %v, %v", name, s, ok)
		}
	}
	if _, ok := ParseWidth("3x"); ok {
		t.Error("3x is a width")
	}
	if _, ok := ParseSpeed("EDR2"); ok {
		t.Error("EDR2 is a speed")
	}
	four, _ := ParseWidth("4x")
	all := smp.LinkWidth1X | smp.LinkWidth2X | smp.LinkWidth4X | smp.LinkWidth8X | smp.LinkWidth12X
	if got := four.Enabled(all); got != smp.LinkWidth1X|smp.LinkWidth2X|smp.LinkWidth4X {
		t.Errorf("4x of all: %v", got)
	}
	if four.Enabled(smp.LinkWidth8X) != 0 || Width(0).Enabled(all) != 0 || Width(0).String() != "any" {
		t.Error("nothing that is so narrow, and no wish")
	}
	old, ext := FDR.Enabled(smp.LinkSpeedSDR|smp.LinkSpeedQDR, smp.LinkSpeedFDR|smp.LinkSpeedEDR)
	if old != smp.LinkSpeedSDR|smp.LinkSpeedQDR || ext != smp.LinkSpeedFDR {
		t.Errorf("FDR: %v, %v", old, ext)
	}
	if old, ext := QDR.Enabled(smp.LinkSpeedQDR, smp.LinkSpeedEDR); old != smp.LinkSpeedQDR || ext != 0 {
		t.Errorf("QDR: %v, %v", old, ext)
	}
	if Speed(0).String() != "any" {
		t.Error("no wish")
	}
}
