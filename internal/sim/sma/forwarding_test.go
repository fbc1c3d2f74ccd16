package sma

import (
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// routeTo sets entries of the linear table and LinearFDBTop.
func routeTo(d *device, top ib.LID, exits map[ib.LID]ib.PortNum) {
	d.Helper()
	for lid, exit := range exits {
		var t smp.LinearForwardingTable
		block := uint32(lid / smp.LIDsPerLinearBlock)
		d.mustGet(1, block, &t)
		t.Ports[lid%smp.LIDsPerLinearBlock] = exit
		d.mustSet(1, block, &t)
	}
	settings(d, func(s *smp.SwitchInfo) { s.LinearFDBTop = top })
}

// settings changes SwitchInfo.
func settings(d *device, edit func(*smp.SwitchInfo)) {
	d.Helper()
	var s smp.SwitchInfo
	d.mustGet(1, 0, &s)
	edit(&s)
	d.mustSet(1, 0, &s)
}

func TestSwitchInfo(t *testing.T) {
	t.Run("SI-01", func(t *testing.T) {
		d := start(t, switchConfig(4))
		d.wantStatus(mad.StatusOK, 1, mad.MethodGet, 0x0012, 0)
		d.wantStatus(mad.StatusInvalidField, 1, mad.MethodGet, 0x0012, 1)
	})
	t.Run("SI-02", func(t *testing.T) {
		for _, c := range []Config{switchConfig(4), enhancedConfig(4)} {
			start(t, c).wantStatus(mad.StatusOK, 1, mad.MethodGet, 0x0012, 0)
		}
		for _, c := range []Config{caConfig(1), routerConfig(1)} {
			for _, id := range []mad.AttributeID{0x0012, 0x0019, 0x001A, 0x001B} {
				start(t, c).wantStatus(mad.StatusUnsupportedAttrib, 1, mad.MethodGet, id, 0)
				start(t, c).wantStatus(mad.StatusUnsupportedAttrib, 1, mad.MethodSet, id, 0)
			}
		}
	})
	written := []struct {
		rule   string
		config Config
		write  func(*smp.SwitchInfo)
	}{
		{"SI-03", switchConfig(4), func(s *smp.SwitchInfo) { s.LifeTimeValue, s.LinearFDBTop = 9, 5 }},
		{"SI-07", switchConfig(4), func(s *smp.SwitchInfo) { s.LinearFDBTop = 0xBFFF }},
		{"SI-08", randomConfig(4), func(s *smp.SwitchInfo) { s.DefaultPort = 3 }},
		{"SI-09", switchConfig(4), func(s *smp.SwitchInfo) { s.DefaultMulticastPrimaryPort = 2 }},
		{"SI-10", switchConfig(4), func(s *smp.SwitchInfo) { s.DefaultMulticastNotPrimaryPort = 4 }},
		{"SI-19", switchConfig(4), func(s *smp.SwitchInfo) { s.LifeTimeValue = 31 }},
	}
	for _, test := range written {
		t.Run(test.rule, func(t *testing.T) {
			d := start(t, test.config)
			var want, got smp.SwitchInfo
			d.mustGet(1, 0, &want)
			test.write(&want)
			answer := want
			d.mustSet(1, 0, &answer)
			if len(effects(d.last.Effects, ForwardingChanged)) != 1 {
				t.Errorf("effects %v", d.last.Effects)
			}
			if d.mustGet(1, 0, &got); got != want || answer != want {
				t.Errorf("reads\n%+v, want\n%+v", got, want)
			}
		})
	}
	readOnly := map[string]func(*smp.SwitchInfo){
		"SI-04":                     func(s *smp.SwitchInfo) { s.LinearFDBCap = 100 },
		"SI-05":                     func(s *smp.SwitchInfo) { s.RandomFDBCap = 100 },
		"SI-06":                     func(s *smp.SwitchInfo) { s.MulticastFDBCap = 100 },
		"SI-20":                     func(s *smp.SwitchInfo) { s.OptimizedSLToVLMappingProgramming = 3 },
		"SI-32":                     func(s *smp.SwitchInfo) { s.LIDsPerPort = 9 },
		"SI-33":                     func(s *smp.SwitchInfo) { s.PartitionEnforcementCap = 100 },
		"SI-34":                     func(s *smp.SwitchInfo) { s.InboundEnforcementCap = false },
		"SI-35":                     func(s *smp.SwitchInfo) { s.OutboundEnforcementCap = false },
		"SI-36":                     func(s *smp.SwitchInfo) { s.FilterRawInboundCap = false },
		"SI-37":                     func(s *smp.SwitchInfo) { s.FilterRawOutboundCap = false },
		"SI-37/EnhancedPort0":       func(s *smp.SwitchInfo) { s.EnhancedPort0 = true },
		"SI-37/MulticastFDBTop":     func(s *smp.SwitchInfo) { s.MulticastFDBTop = 0xC100 }, // without the capability
		"SI-08/with a linear table": func(s *smp.SwitchInfo) { s.DefaultPort = 3 },
	}
	for rule, write := range readOnly {
		t.Run(rule, func(t *testing.T) {
			d := start(t, switchConfig(4))
			var before, after smp.SwitchInfo
			d.mustGet(1, 0, &before)
			settings(d, write)
			if d.mustGet(1, 0, &after); after != before {
				t.Errorf("changed to\n%+v, was\n%+v", after, before)
			}
		})
	}
	bytes := []struct {
		rule string
		at   int
		want byte
	}{
		{"SI-04", 0, 0xC0}, {"SI-05", 3, 0}, {"SI-06", 4, 4}, {"SI-11", 11, 0}, {"SI-20", 11, 0},
		{"SI-33", 15, 40}, {"SI-34", 16, 0xF0}, {"SI-35", 16, 0xF0}, {"SI-36", 16, 0xF0}, {"SI-37", 16, 0xF0},
	}
	for _, test := range bytes {
		t.Run(test.rule+"/byte", func(t *testing.T) {
			if got := start(t, switchConfig(4)).raw(1, 0x0012, 0)[test.at]; got != test.want {
				t.Errorf("byte %d is %#x, want %#x", test.at, got, test.want)
			}
		})
	}
	t.Run("SI-11", func(t *testing.T) {
		d := start(t, switchConfig(4))
		d.plug(3)
		if got := d.raw(1, 0x0012, 0)[11]; got != 0x04 {
			t.Errorf("byte 11 is %#x", got)
		}
	})
	t.Run("LinearFDBTop past the table", func(t *testing.T) {
		c := switchConfig(4)
		c.Switch.LinearFDBCap = 100
		d := start(t, c)
		s := smp.SwitchInfo{LinearFDBTop: 100}
		if status := d.set(1, 0, &s); status != mad.StatusInvalidField || s.LinearFDBTop != 0 {
			t.Errorf("status %v, top %v", status, s.LinearFDBTop)
		}
		settings(d, func(s *smp.SwitchInfo) { s.LinearFDBTop = 99 })
	})
}

func TestLinear(t *testing.T) {
	t.Run("LF-01", func(t *testing.T) {
		d := start(t, switchConfig(4))
		d.wantStatus(mad.StatusOK, 1, mad.MethodGet, 0x0019, 0)
		d.wantStatus(mad.StatusOK, 1, mad.MethodGet, 0x0019, 767)
		d.wantStatus(mad.StatusInvalidField, 1, mad.MethodGet, 0x0019, 768)
		d.wantStatus(mad.StatusInvalidField, 1, mad.MethodSet, 0x0019, 0x10000)
		var table smp.LinearForwardingTable
		for i := range table.Ports {
			table.Ports[i] = ib.PortNum(i)
		}
		want := table
		d.mustSet(1, 3, &table)
		if len(effects(d.last.Effects, ForwardingChanged)) != 1 {
			t.Errorf("effects %v", d.last.Effects)
		}
		if d.mustGet(1, 3, &table); table != want {
			t.Errorf("%v", table.Ports)
		}
		for _, block := range []uint32{0, 2, 4} {
			d.mustGet(1, block, &table)
			if i := slices.IndexFunc(table.Ports[:], func(n ib.PortNum) bool { return n != ib.PortNone }); i >= 0 {
				t.Errorf("block %d entry %d: %d", block, i, table.Ports[i])
			}
		}
	})
	t.Run("LF-02", func(t *testing.T) {
		d := start(t, switchConfig(4))
		routeTo(d, 100, map[ib.LID]ib.PortNum{5: 2, 6: 0, 7: 255, 8: 5})
		for lid, want := range map[ib.LID]ib.PortNum{5: 2, 6: 0, 7: 255, 8: 255, 9: 255, 70: 255, 0xC000: 255, 0xFFFF: 255} {
			exit, ok := d.UnicastExit(1, lid)
			if ok != (want != 255) || ok && exit != want {
				t.Errorf("LID %v: port %d, %v", lid, exit, ok)
			}
		}
		if _, ok := start(t, caConfig(1)).UnicastExit(1, 5); ok {
			t.Error("a CA forwards")
		}
	})
	t.Run("LF-03", func(t *testing.T) {
		start(t, switchConfig(4)).wantStatus(mad.StatusUnsupportedAttrib, 1, mad.MethodGet, 0x001A, 0)
		start(t, randomConfig(4)).wantStatus(mad.StatusUnsupportedAttrib, 1, mad.MethodGet, 0x0019, 0)
	})
	t.Run("LF-04/whole blocks", func(t *testing.T) {
		c := switchConfig(4)
		c.Switch.LinearFDBCap = 128
		d := start(t, c)
		d.wantStatus(mad.StatusOK, 1, mad.MethodGet, 0x0019, 1)
		d.wantStatus(mad.StatusInvalidField, 1, mad.MethodGet, 0x0019, 2)
		d.wantStatus(mad.StatusInvalidField, 1, mad.MethodSet, 0x0019, 2)
	})
	t.Run("LF-04", func(t *testing.T) {
		for mode, want := range map[BadInput]mad.Status{BadInputRefused: mad.StatusInvalidField, BadInputIgnored: mad.StatusOK} {
			c := switchConfig(4)
			c.Switch.LinearFDBCap, c.BadInput = 70, mode
			d := start(t, c)
			var table smp.LinearForwardingTable
			for i := range table.Ports {
				table.Ports[i] = 2
			}
			d.mustSet(1, 1, &table)
			if table.Ports[5] != 2 || table.Ports[6] != ib.PortNone {
				t.Errorf("%v", table.Ports)
			}
			d.wantStatus(want, 1, mad.MethodGet, 0x0019, 2)
			d.wantStatus(want, 1, mad.MethodSet, 0x0019, 2)
			if d.fabric.linear.size != 70 {
				t.Errorf("%d entries", d.fabric.linear.size)
			}
		}
	})
	t.Run("LF-05", func(t *testing.T) {
		d := start(t, switchConfig(4))
		routeTo(d, 100, map[ib.LID]ib.PortNum{0: 2})
		if _, ok := d.UnicastExit(1, 0); ok {
			t.Error("LID 0 is forwarded")
		}
	})
	t.Run("LF-06", func(t *testing.T) {
		d := start(t, switchConfig(4))
		routeTo(d, 10, map[ib.LID]ib.PortNum{10: 2, 11: 2})
		if _, ok := d.UnicastExit(1, 10); !ok {
			t.Error("LID 10 is dropped")
		}
		if _, ok := d.UnicastExit(1, 11); ok {
			t.Error("LID 11 is forwarded")
		}
	})
	t.Run("LF-07", func(t *testing.T) {
		d := start(t, randomConfig(4))
		d.mustSet(1, 0, &smp.RandomForwardingTable{Entries: [16]smp.RandomEntry{{LID: 5, Valid: true, Port: 2}}})
		if exit, ok := d.UnicastExit(1, 5); !ok || exit != 2 {
			t.Errorf("port %d, %v", exit, ok)
		}
	})
}

func TestRandom(t *testing.T) {
	open := func(t *testing.T) *device {
		d := start(t, randomConfig(4))
		d.mustSet(1, 1, &smp.RandomForwardingTable{Entries: [16]smp.RandomEntry{
			3: {LID: 5, Valid: true, Port: 2}, 4: {LID: 0x10, Valid: true, LMC: 2, Port: 3},
			5: {LID: 9, Port: 1}, 6: {LID: 5, Valid: true, Port: 4}, 7: {LID: 6, Valid: true, Port: 255},
		}})
		return d
	}
	exits := func(t *testing.T, d *device, in ib.PortNum, want map[ib.LID]ib.PortNum) {
		t.Helper()
		for lid, n := range want {
			exit, ok := d.UnicastExit(in, lid)
			if ok != (n != 255) || ok && exit != n {
				t.Errorf("LID %v from port %d: port %d, %v, want %d", lid, in, exit, ok, n)
			}
		}
	}
	t.Run("RF-01", func(t *testing.T) {
		d := open(t)
		var table smp.RandomForwardingTable
		d.mustGet(1, 1, &table)
		if table.Entries[4] != (smp.RandomEntry{LID: 0x10, Valid: true, LMC: 2, Port: 3}) {
			t.Errorf("%v", table.Entries)
		}
		for i := range table.Entries {
			table.Entries[i] = smp.RandomEntry{LID: 0x20, Valid: true, Port: 1}
		}
		d.mustSet(1, 6, &table) // 100 entries: 4 of this block
		if table.Entries[3].Port != 1 || table.Entries[4] != (smp.RandomEntry{}) {
			t.Errorf("%v", table.Entries)
		}
		d.wantStatus(mad.StatusInvalidField, 1, mad.MethodGet, 0x001A, 7)
		d.wantStatus(mad.StatusInvalidField, 1, mad.MethodGet, 0x001A, 3072)
	})
	t.Run("RF-02", func(t *testing.T) {
		d := open(t)
		exits(t, d, 1, map[ib.LID]ib.PortNum{5: 2, 0x0F: 255, 0x10: 3, 0x13: 3, 0x14: 255, 9: 255})
		d.mustSet(1, 1, &smp.RandomForwardingTable{Entries: [16]smp.RandomEntry{{LID: 5, Valid: true, Port: 1}}})
		exits(t, d, 2, map[ib.LID]ib.PortNum{5: 1, 0x10: 255})
	})
	t.Run("RF-03", func(t *testing.T) {
		d := open(t)
		settings(d, func(s *smp.SwitchInfo) { s.DefaultPort = 4 })
		exits(t, d, 1, map[ib.LID]ib.PortNum{0x30: 4, 5: 2, 6: 255, 0xC000: 255})
	})
	t.Run("RF-04", func(t *testing.T) {
		d := open(t)
		settings(d, func(s *smp.SwitchInfo) { s.DefaultPort = 4 })
		exits(t, d, 1, map[ib.LID]ib.PortNum{0xFFFF: 255, 0: 255})
	})
	t.Run("RF-05", func(t *testing.T) {
		d := open(t)
		exits(t, d, 1, map[ib.LID]ib.PortNum{0x30: 255}) // none at power-up
		settings(d, func(s *smp.SwitchInfo) { s.DefaultPort = 5 })
		exits(t, d, 1, map[ib.LID]ib.PortNum{0x30: 255})
	})
	t.Run("RF-06", func(t *testing.T) {
		d := open(t)
		settings(d, func(s *smp.SwitchInfo) { s.DefaultPort = 4 })
		exits(t, d, 4, map[ib.LID]ib.PortNum{0x30: 255, 5: 2})
	})
}

func TestMulticast(t *testing.T) {
	withCap := func(entries uint16) Config {
		c := switchConfig(20)
		c.Switch.MulticastFDBCap = entries
		return c
	}
	defaults := func(d *device, primary, notPrimary ib.PortNum) {
		settings(d, func(s *smp.SwitchInfo) {
			s.DefaultMulticastPrimaryPort, s.DefaultMulticastNotPrimaryPort = primary, notPrimary
		})
	}
	exits := func(t *testing.T, d *device, in ib.PortNum, lid ib.LID, want ...ib.PortNum) {
		t.Helper()
		set := d.MulticastExits(in, lid)
		if got := slices.Collect(set.All()); !slices.Equal(got, want) {
			t.Errorf("LID %#x from port %d leaves by %v, want %v", uint16(lid), in, got, want)
		}
	}
	t.Run("MF-01", func(t *testing.T) {
		d := start(t, withCap(1000))
		var table smp.MulticastForwardingTable
		for i := range table.Masks {
			table.Masks[i] = uint16(i + 1)
		}
		want := table
		d.mustSet(1, smp.MFTModifier(2, 1), &table)
		if d.mustGet(1, 0x10000002, &table); table != want {
			t.Errorf("%v", table.Masks)
		}
		if d.mustGet(1, 0x00000002, &table); table != (smp.MulticastForwardingTable{}) {
			t.Errorf("position 0: %v", table.Masks)
		}
		for _, modifier := range []uint32{0x20000000, 0x00000200, 0x08000000, 32} {
			d.wantStatus(mad.StatusInvalidField, 1, mad.MethodGet, 0x001B, modifier)
		}
	})
	t.Run("MF-02", func(t *testing.T) {
		start(t, withCap(0)).wantStatus(mad.StatusUnsupportedAttrib, 1, mad.MethodGet, 0x001B, 0)
		d := start(t, withCap(64))
		d.mustSet(1, smp.MFTModifier(1, 0), &smp.MulticastForwardingTable{Masks: [32]uint16{3: 0x000F}})
		d.mustSet(1, smp.MFTModifier(1, 1), &smp.MulticastForwardingTable{Masks: [32]uint16{3: 0xC011}})
		exits(t, d, 5, 0xC023, 0, 1, 2, 3, 16, 20)
		exits(t, d, 16, 0xC023, 0, 1, 2, 3, 20)
		if set := d.MulticastExits(5, 0xC023); !set.Has(20) || set.Has(5) {
			t.Errorf("%v", set)
		}
		exits(t, d, 1, 0x0023) // a unicast LID
		exits(t, d, 1, 0xFFFF)
		exits(t, start(t, caConfig(1)), 1, 0xC000)
	})
	t.Run("MF-03", func(t *testing.T) {
		d := start(t, withCap(0x3FFF))
		table := smp.MulticastForwardingTable{Masks: [32]uint16{30: 2, 31: 2}}
		d.mustSet(1, 511, &table)
		if table.Masks[30] != 2 || table.Masks[31] != 0 {
			t.Errorf("%v", table.Masks)
		}
		d.mustSet(1, 0, &smp.MulticastForwardingTable{Masks: [32]uint16{0: 4, 1: 8}})
		exits(t, d, 5, 0xC000, 2)
		exits(t, d, 5, 0xC001, 3)
		exits(t, d, 5, 0xFFFE, 1)
		exits(t, d, 5, 0xFFFF)
	})
	// What makes the default ports count: no table, an LID outside it, and an
	// entry of zero.
	cases := []struct {
		entries         uint16
		primary, second string // rules for arrival elsewhere, and on the primary port
	}{
		{0, "MF-04", "MF-07"}, {16, "MF-05", "MF-08"}, {64, "MF-06", "MF-09"},
	}
	for _, c := range cases {
		t.Run(c.primary, func(t *testing.T) {
			d := start(t, withCap(c.entries))
			exits(t, d, 1, 0xC010) // none at power-up
			defaults(d, 3, 4)
			exits(t, d, 1, 0xC010, 3)
			exits(t, d, 4, 0xC010, 3)
		})
		t.Run(c.second, func(t *testing.T) {
			d := start(t, withCap(c.entries))
			defaults(d, 3, 4)
			exits(t, d, 3, 0xC010, 4)
		})
		t.Run("MF-10/"+c.primary, func(t *testing.T) {
			d := start(t, withCap(c.entries))
			defaults(d, 21, 4)
			exits(t, d, 1, 0xC010)
		})
		t.Run("MF-11/"+c.second, func(t *testing.T) {
			d := start(t, withCap(c.entries))
			defaults(d, 3, 255)
			exits(t, d, 3, 0xC010)
		})
	}
	t.Run("entry of ports that do not exist", func(t *testing.T) {
		d := start(t, withCap(64))
		defaults(d, 3, 4)
		d.mustSet(1, smp.MFTModifier(0, 1), &smp.MulticastForwardingTable{Masks: [32]uint16{0x8000}})
		exits(t, d, 1, 0xC000)
	})
	t.Run("MulticastFDBTop", func(t *testing.T) {
		c := withCap(64)
		c.Switch.Port0.CapabilityMask |= smp.CapMulticastFDBTop
		d := start(t, c)
		d.mustSet(1, 0, &smp.MulticastForwardingTable{Masks: [32]uint16{2, 2}})
		exits(t, d, 5, 0xC000)
		settings(d, func(s *smp.SwitchInfo) { s.MulticastFDBTop = 0xC000 })
		exits(t, d, 5, 0xC000, 1)
		exits(t, d, 5, 0xC001)
	})
}
