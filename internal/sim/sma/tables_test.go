package sma

import (
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

func TestGUIDInfo(t *testing.T) {
	block := func(first uint64) (g smp.GUIDInfo) {
		for i := range g.GUIDs {
			g.GUIDs[i] = ib.GUIDLocalBit | first + uint64(i)
		}
		return g
	}
	capped := func(guids uint8) Config {
		c := caConfig(1)
		c.Ports[0].GUIDCap = guids
		return c
	}
	t.Run("GI-01", func(t *testing.T) {
		start(t, caConfig(1)).wantStatus(mad.StatusOK, 1, mad.MethodGet, 0x0014, 0)
	})
	t.Run("GI-02", func(t *testing.T) {
		for _, at := range endPlaces() {
			at.open(t).wantStatus(mad.StatusOK, at.through, mad.MethodGet, 0x0014, 0)
		}
	})
	t.Run("GI-04", func(t *testing.T) {
		for _, at := range endPlaces() {
			d := at.open(t)
			var g smp.GUIDInfo
			d.mustGet(at.through, 0, &g)
			if want := uint64(d.NodeInfo(at.through).PortGUID); g.GUIDs[0] != want {
				t.Errorf("%s: %#x, want %#x", at.name, g.GUIDs[0], want)
			}
		}
		d := start(t, capped(24))
		for _, b := range []uint32{1, 2} {
			var g smp.GUIDInfo
			if d.mustGet(1, b, &g); g != (smp.GUIDInfo{}) {
				t.Errorf("block %d begins as %#x", b, g.GUIDs)
			}
		}
	})
	t.Run("GI-05", func(t *testing.T) {
		d := start(t, caConfig(1))
		want := block(0x100)
		g := want
		d.mustSet(1, 0, &g)
		want.GUIDs[0] = uint64(testNodeGUID) + 1 // that of the first port
		if g != want {
			t.Errorf("%#x, want %#x", g.GUIDs, want.GUIDs)
		}
	})
	t.Run("GI-06", func(t *testing.T) {
		d := start(t, capped(16))
		var g smp.GUIDInfo
		if d.mustGet(1, 1, &g); g != (smp.GUIDInfo{}) {
			t.Errorf("before the SM wrote: %#x", g.GUIDs)
		}
		want := block(0x200)
		g = want
		d.mustSet(1, 1, &g)
		if d.mustGet(1, 1, &g); g != want {
			t.Errorf("%#x, want %#x", g.GUIDs, want.GUIDs)
		}
	})
	t.Run("GI-08", func(t *testing.T) {
		d := start(t, capped(11))
		g := block(0x300)
		d.mustSet(1, 1, &g)
		d.mustGet(1, 1, &g)
		if g.GUIDs[2] == 0 || !slices.Equal(g.GUIDs[3:], make([]uint64, 5)) {
			t.Errorf("%#x", g.GUIDs)
		}
	})
	for _, rule := range []string{"GI-09", "GI-11"} {
		t.Run(rule, func(t *testing.T) {
			d := start(t, capped(24))
			for b := range uint32(3) {
				g := block(uint64(b) << 8)
				d.mustSet(1, b, &g)
			}
			g := block(0xF00)
			d.mustSet(1, 1, &g)
			for b, first := range []uint64{0, 0xF00, 0x200} {
				var got smp.GUIDInfo
				d.mustGet(1, uint32(b), &got)
				if want := block(first); !slices.Equal(got.GUIDs[1:], want.GUIDs[1:]) {
					t.Errorf("block %d: %#x", b, got.GUIDs)
				}
			}
			var none smp.GUIDInfo
			d.mustSet(1, 2, &none)
			var got smp.GUIDInfo
			if d.mustGet(1, 2, &got); got != (smp.GUIDInfo{}) {
				t.Errorf("block 2 after zeros were written: %#x", got.GUIDs)
			}
		})
	}
	t.Run("GI-10", func(t *testing.T) {
		d := start(t, capped(255))
		g := block(0x400)
		d.mustSet(1, 31, &g)
		if d.mustGet(1, 31, &g); g.GUIDs[6] == 0 || g.GUIDs[7] != 0 {
			t.Errorf("%#x", g.GUIDs)
		}
		d.wantStatus(mad.StatusInvalidField, 1, mad.MethodGet, 0x0014, 32)
		d.wantStatus(mad.StatusInvalidField, 1, mad.MethodSet, 0x0014, 32)
	})
}

// keys is a block with a different key at each index.
func keys(first ib.PKey) (t smp.PKeyTable) {
	for i := range t.Keys {
		t.Keys[i] = first + ib.PKey(i)
	}
	return t
}

func TestPKeyTable(t *testing.T) {
	t.Run("PT-01", func(t *testing.T) {
		start(t, caConfig(1)).wantStatus(mad.StatusOK, 1, mad.MethodGet, 0x0016, 0)
	})
	for _, rule := range []string{"PT-02", "PK-05"} {
		t.Run(rule, func(t *testing.T) {
			d := start(t, caConfig(1))
			want := keys(0x8001)
			got := want
			d.mustSet(1, 0, &got)
			data := d.raw(1, 0x0016, 0)
			if got != want || data[2*5] != 0x80 || data[2*5+1] != 6 {
				t.Errorf("answered %v, bytes %x", got, data)
			}
			if !slices.Equal(d.PKeys(1), want.Keys[:]) {
				t.Errorf("the data path sees %v", d.PKeys(1))
			}
			if e := effects(d.last.Effects, PKeysChanged); len(e) != 0 {
				t.Errorf("a Get changed keys")
			}
		})
	}
	t.Run("PK-02", func(t *testing.T) {
		for _, one := range []bool{false, true} {
			c := caConfig(1)
			c.OneMembership = one // of a partition, not of all
			d := start(t, c)
			d.mustSet(1, 0, &smp.PKeyTable{Keys: [32]ib.PKey{0x8001, 0x0002, 0x8003}})
			if e := effects(d.last.Effects, PKeysChanged); len(e) != 1 || e[0].Port != 1 {
				t.Errorf("effects %v", d.last.Effects)
			}
			if got := d.PKeys(1); !slices.Equal(got, []ib.PKey{0x8001, 0x0002, 0x8003}) {
				t.Errorf("%v", got)
			}
		}
	})
	t.Run("PK-20", func(t *testing.T) {
		for only, want := range map[bool]mad.Status{false: mad.StatusOK, true: mad.StatusInvalidField} {
			c := caConfig(1)
			c.OneMembership = only
			d := start(t, c)
			for _, both := range []smp.PKeyTable{{Keys: [32]ib.PKey{0x8001, 0x0001}}, {Keys: [32]ib.PKey{31: 0x7FFF, 0: 0xFFFF}}} {
				if s := d.set(1, 0, &both); s != want {
					t.Errorf("one membership %v: status %v", only, s)
				}
			}
			if only && !slices.Equal(d.PKeys(1), []ib.PKey{ib.PKeyDefaultFull}) {
				t.Errorf("refused, and yet %v", d.PKeys(1))
			}
			// The same key twice and empty entries are no second membership.
			d.mustSet(1, 0, &smp.PKeyTable{Keys: [32]ib.PKey{0x8001, 0x8001, 0x8000, 0x0000}})
		}
	})
	t.Run("PK-24", func(t *testing.T) {
		for _, at := range places() {
			var table smp.PKeyTable
			d := at.open(t)
			d.mustGet(at.through, smp.PKeyModifier(at.port, 0), &table)
			for i, k := range table.Keys[1:] {
				if k != 0x0000 {
					t.Errorf("%s: index %d reads %v", at.name, i+1, k)
				}
			}
			full := keys(0x8001)
			d.mustSet(at.through, smp.PKeyModifier(at.port, 0), &full)
			emptied := smp.PKeyTable{Keys: [32]ib.PKey{0: 0x8001, 3: 0x8002}}
			d.mustSet(at.through, smp.PKeyModifier(at.port, 0), &emptied)
			d.mustGet(at.through, smp.PKeyModifier(at.port, 0), &table)
			for i, k := range table.Keys {
				if want := map[int]ib.PKey{0: 0x8001, 3: 0x8002}[i]; k != want {
					t.Errorf("%s: index %d reads %v after it was emptied, want %v", at.name, i, k, want)
				}
			}
		}
	})
	t.Run("PK-31/each bit for its own", func(t *testing.T) {
		for bit, want := range map[smp.CapabilityMask]ib.PKey{smp.CapPKeyNVRAM: 0x8001, smp.CapMKeyNVRAM: 0xFFFF} {
			c := caConfig(1)
			c.Ports[0].CapabilityMask |= bit
			d := start(t, c)
			d.mustSet(1, 0, &smp.PKeyTable{Keys: [32]ib.PKey{0x8001}})
			again, err := d.Restart(c)
			if err != nil {
				t.Fatal(err)
			}
			if got := again.PKeys(1); got[0] != want {
				t.Errorf("CapabilityMask %v: after restart %v, want %v", bit, got, want)
			}
		}
	})
	for _, rule := range []string{"PK-31", "PK-32", "PK-33"} {
		t.Run(rule, func(t *testing.T) {
			for keeps, want := range map[bool][]ib.PKey{false: {ib.PKeyDefaultLimited}, true: {0x8001, 0x8002}} {
				c := caConfig(1)
				c.DefaultPKey = ib.PKeyDefaultLimited
				if keeps {
					c.Ports[0].CapabilityMask |= smp.CapPKeyNVRAM | smp.CapMKeyNVRAM
				}
				d := start(t, c)
				if got := d.PKeys(1); !slices.Equal(got, []ib.PKey{ib.PKeyDefaultLimited}) {
					t.Errorf("at power-up %v", got)
				}
				d.mustSet(1, 0, &smp.PKeyTable{Keys: [32]ib.PKey{0x8001, 0x8002}})
				d.mustChange(1, 1, func(p *smp.PortInfo) { p.LID, p.MasterSMLID, p.MKey, p.MKeyProtectBits = 1, testSM, testMKey, 2 })
				again, err := d.Restart(c)
				if err != nil {
					t.Fatal(err)
				}
				if got := again.PKeys(1); !slices.Equal(got, want) {
					t.Errorf("kept %v: after restart %v, want %v", keeps, got, want)
				}
				if got := again.Port(1); (got.MKey == testMKey) != keeps || got.LID != 0 {
					t.Errorf("kept %v: after restart M_Key %v, LID %v", keeps, got.MKey, got.LID)
				}
			}
		})
	}
	t.Run("PK-33/full", func(t *testing.T) {
		for _, at := range places() {
			if got := at.open(t).PKeys(at.port); !slices.Equal(got, []ib.PKey{0xFFFF}) {
				t.Errorf("%s: %v", at.name, got)
			}
		}
	})
	t.Run("PT-03", func(t *testing.T) {
		for _, c := range []Config{caConfig(2), routerConfig(2)} {
			d := start(t, c)
			d.wantStatus(mad.StatusOK, 1, mad.MethodGet, 0x0016, 0)
			d.wantStatus(mad.StatusOK, 2, mad.MethodGet, 0x0016, 0)
		}
	})
	without := switchConfig(4)
	without.Switch.PartitionEnforcementCap = 0
	t.Run("PT-04", func(t *testing.T) {
		for _, c := range []Config{without, switchConfig(4), enhancedConfig(4)} {
			d := start(t, c)
			table := keys(0x8001)
			d.mustSet(2, 0, &table)
			if got := d.PKeys(0); !slices.Equal(got, table.Keys[:]) {
				t.Errorf("%v", got)
			}
		}
	})
	t.Run("PT-05", func(t *testing.T) {
		for _, mode := range []BadInput{BadInputRefused, BadInputIgnored} {
			without.BadInput = mode
			d := start(t, without)
			d.wantStatus(mad.StatusInvalidField, 1, mad.MethodGet, 0x0016, smp.PKeyModifier(3, 0))
			d.wantStatus(mad.StatusInvalidField, 1, mad.MethodSet, 0x0016, smp.PKeyModifier(3, 0))
			if d.PKeys(3) != nil {
				t.Errorf("keys %v", d.PKeys(3))
			}
		}
		start(t, switchConfig(4)).wantStatus(mad.StatusOK, 1, mad.MethodGet, 0x0016, smp.PKeyModifier(3, 0))
	})
	t.Run("PT-06", func(t *testing.T) {
		for _, at := range endPlaces() {
			at.config.PartitionCap = 5
			d := at.open(t)
			table := keys(0x8001)
			d.mustSet(at.through, 0, &table)
			if table.Keys[4] != 0x8005 || table.Keys[5] != 0 || len(d.PKeys(at.port)) != 5 {
				t.Errorf("%s: %v", at.name, table.Keys)
			}
		}
	})
	for _, rule := range []string{"PT-07", "SW-09"} {
		t.Run(rule, func(t *testing.T) {
			for _, size := range []uint16{1, 31, 32, 33, 40, 100, 0xFFFF} {
				c := switchConfig(5)
				c.Switch.PartitionEnforcementCap, c.PartitionCap = size, 7
				d := start(t, c)
				last := uint32(size-1) / 32
				for _, n := range []ib.PortNum{3, 5} {
					table := keys(ib.PKey(0x8001 + 0x100*uint16(n)))
					d.mustSet(1, uint32(n)<<16|last, &table)
					for i, key := range table.Keys {
						if inside := 32*int(last)+i < int(size); (key == ib.PKey(0x8001+0x100*uint16(n)+uint16(i))) != inside || !inside && key != 0 {
							t.Errorf("table of %d, port %d, entry %d holds %v", size, n, 32*int(last)+i, key)
						}
					}
					if got := d.PKeys(n); len(got) != int(size) {
						t.Errorf("table of %d, port %d: %d entries", size, n, len(got))
					}
					d.wantStatus(mad.StatusInvalidField, 1, mad.MethodGet, 0x0016, uint32(n)<<16|last+1)
					d.wantStatus(mad.StatusInvalidField, 1, mad.MethodSet, 0x0016, uint32(n)<<16|last+1)
				}
				if got := d.PKeys(4); !slices.Equal(got, []ib.PKey{ib.PKeyDefaultFull}) {
					t.Errorf("port 4 %v", got)
				}
			}
		})
	}
	t.Run("PT-09", func(t *testing.T) {
		c := caConfig(1)
		c.PartitionCap = 32768
		d := start(t, c)
		table := smp.PKeyTable{Keys: [32]ib.PKey{31: 0x8123}}
		d.mustSet(1, 1023, &table)
		if got := d.PKeys(1); len(got) != 32768 || got[32767] != 0x8123 || got[0] != ib.PKeyDefaultFull {
			t.Errorf("%d keys", len(got))
		}
		d.wantStatus(mad.StatusInvalidField, 1, mad.MethodGet, 0x0016, 1024)
	})
	t.Run("PT-14", func(t *testing.T) {
		c := caConfig(1)
		c.PartitionCap = 0xFFFF
		d := start(t, c)
		table := keys(0x8001)
		d.mustSet(1, 2047, &table)
		if table.Keys[30] != 0x801F || table.Keys[31] != 0 {
			t.Errorf("%v", table.Keys)
		}
		d.wantStatus(mad.StatusInvalidField, 1, mad.MethodGet, 0x0016, 2048)
		for entries, blocks := range map[uint16]uint32{1: 1, 32: 1, 33: 2, 64: 2} {
			c.PartitionCap = entries
			d := start(t, c)
			d.wantStatus(mad.StatusOK, 1, mad.MethodGet, 0x0016, blocks-1)
			d.wantStatus(mad.StatusInvalidField, 1, mad.MethodGet, 0x0016, blocks)
		}
	})
	for _, rule := range []string{"PT-10", "PT-11", "PT-13"} {
		t.Run(rule, func(t *testing.T) {
			c := caConfig(1)
			c.PartitionCap = 128
			d := start(t, c)
			for block := range uint32(4) {
				table := keys(ib.PKey(0x8001 + 32*block))
				d.mustSet(1, block, &table)
			}
			table := keys(0x9000)
			d.mustSet(1, 2, &table)
			for i, k := range d.PKeys(1) {
				want := ib.PKey(0x8001 + i)
				if i/32 == 2 {
					want = ib.PKey(0x9000 + i%32)
				}
				if k != want {
					t.Errorf("index %d: %v, want %v", i, k, want)
				}
			}
			if d.mustGet(1, 0x00000002, &table); table != keys(0x9000) {
				t.Errorf("block 2: %v", table)
			}
		})
	}
	for rule, method := range map[string]mad.Method{"PT-15": mad.MethodSet, "PT-16": mad.MethodGet} {
		t.Run(rule, func(t *testing.T) {
			for mode, want := range map[BadInput]mad.Status{BadInputRefused: mad.StatusInvalidField, BadInputIgnored: mad.StatusOK} {
				c := caConfig(1) // 64 entries
				c.BadInput = mode
				d := start(t, c)
				for _, block := range []uint32{2, 1024, 0xFFFF} {
					p := d.request(1, method, 0x0016, block, [mad.DataSize]byte{0x80, 1})
					if p.Status != want {
						t.Errorf("block %d: status %v", block, p.Status)
					}
					if want == mad.StatusOK && p.Data != [mad.DataSize]byte{} {
						t.Errorf("block %d: data %x", block, p.Data)
					}
				}
				if got := d.PKeys(1); !slices.Equal(got, []ib.PKey{ib.PKeyDefaultFull}) {
					t.Errorf("keys %v", got)
				}
			}
		})
	}
	for _, rule := range []string{"PT-17", "SW-06"} {
		t.Run(rule, func(t *testing.T) {
			d := start(t, switchConfig(5)) // 40 entries at external ports, 64 at port 0
			want := make([]ib.PKey, 40)
			for block := range uint32(2) {
				table := keys(ib.PKey(0x8001 + 32*block))
				copy(want[32*block:], table.Keys[:])
				d.mustSet(1, 0x00030000|block, &table)
			}
			if !slices.Equal(d.PKeys(3), want) {
				t.Errorf("port 3 %v", d.PKeys(3))
			}
			for _, n := range []ib.PortNum{0, 1, 2, 4, 5} {
				if !slices.Equal(d.PKeys(n), []ib.PKey{ib.PKeyDefaultFull}) {
					t.Errorf("port %d %v", n, d.PKeys(n))
				}
			}
			for _, modifier := range []uint32{0x00060000, 0x01030000, 0xFFFF0000} {
				d.wantStatus(mad.StatusInvalidField, 1, mad.MethodGet, 0x0016, modifier)
			}
		})
	}
	t.Run("SW-06/router", func(t *testing.T) {
		c := routerConfig(5)
		c.RouterEnforcement, c.PartitionCap = true, 45
		d := start(t, c)
		for n := ib.PortNum(1); n <= 5; n += 2 {
			table := keys(ib.PKey(0x8000 + 0x100*uint16(n)))
			d.mustSet(n, 1, &table)
		}
		for n := ib.PortNum(1); n <= 5; n++ {
			got := d.PKeys(n)
			if n%2 == 0 && !slices.Equal(got, []ib.PKey{ib.PKeyDefaultFull}) || n%2 == 1 && (len(got) != 45 || got[44] != ib.PKey(0x800C+0x100*uint16(n))) {
				t.Errorf("port %d %v", n, got)
			}
		}
	})
	t.Run("PT-18", func(t *testing.T) {
		d := start(t, switchConfig(4))
		d.mustSet(3, 0, &smp.PKeyTable{Keys: [32]ib.PKey{0x8009}})
		if !slices.Equal(d.PKeys(0), []ib.PKey{0x8009}) {
			t.Errorf("port 0 %v", d.PKeys(0))
		}
	})
	for _, rule := range []string{"PT-19", "VB-02"} {
		t.Run(rule, func(t *testing.T) {
			for _, c := range []Config{caConfig(2), routerConfig(2)} {
				d := start(t, c)
				d.mustSet(2, 0x00010000, &smp.PKeyTable{Keys: [32]ib.PKey{0x8009}})
				if !slices.Equal(d.PKeys(2), []ib.PKey{0x8009}) || !slices.Equal(d.PKeys(1), []ib.PKey{0xFFFF}) {
					t.Errorf("port 1 %v, port 2 %v", d.PKeys(1), d.PKeys(2))
				}
			}
		})
	}
	t.Run("no change, no effect", func(t *testing.T) {
		d := start(t, caConfig(1))
		d.mustSet(1, 0, &smp.PKeyTable{Keys: [32]ib.PKey{0xFFFF}})
		if len(d.last.Effects) != 0 {
			t.Errorf("effects %v", d.last.Effects)
		}
	})
}

// levels is a table with a virtual lane for each level, none as at power-up.
func levels(first ib.VL) (t smp.SLToVLMappingTable) {
	for sl := range t.VLs {
		t.VLs[sl] = (first + ib.VL(sl)) % 15
	}
	return t
}

func TestSLToVL(t *testing.T) {
	oneLane := func(c Config) Config {
		for i := range c.Ports {
			c.Ports[i].VLCap, c.Ports[i].VLArbitrationHighCap, c.Ports[i].VLArbitrationLowCap = 1, 0, 0
		}
		return c
	}
	optimized := switchConfig(4)
	optimized.Switch.OptimizedSLToVL = true
	for _, rule := range []string{"SV-01", "SV-04"} {
		t.Run(rule, func(t *testing.T) {
			d := start(t, caConfig(1))
			want := levels(1)
			got := want
			d.mustSet(1, 0, &got)
			if d.mustGet(1, 0, &got); got != want {
				t.Errorf("%v", got.VLs)
			}
			if bytes := d.raw(1, 0x0017, 0); bytes[0] != byte(want.VLs[0])<<4|byte(want.VLs[1]) {
				t.Errorf("bytes %x", bytes[:8])
			}
			sw := start(t, switchConfig(4))
			sw.mustSet(1, 0x0203, &got)
			if got != want {
				t.Errorf("switch: %v", got.VLs)
			}
		})
	}
	t.Run("SV-02", func(t *testing.T) {
		ca, sw := start(t, caConfig(1)), start(t, switchConfig(4))
		table := levels(3)
		ca.mustSet(1, 0, &table)
		sw.mustSet(1, smp.SLToVLModifier(2, 3), &table)
		for sl, want := range table.VLs {
			if got := ca.VL(0, 1, ib.SL(sl)); got != want {
				t.Errorf("CA: level %d on VL %d, want %d", sl, got, want)
			}
			if got := sw.VL(2, 3, ib.SL(sl)); got != want {
				t.Errorf("switch: level %d on VL %d, want %d", sl, got, want)
			}
			if got := sw.VL(3, 2, ib.SL(sl)); got != 0 {
				t.Errorf("switch: level %d on VL %d before it was written", sl, got)
			}
		}
		if ca.VL(0, 2, 0) != ib.VLManagement || ca.VL(0, 1, 16) != ib.VLManagement {
			t.Error("a port or level that does not exist has a VL")
		}
	})
	t.Run("SV-03", func(t *testing.T) {
		two := caConfig(1)
		two.Ports[0].VLCap = 2
		start(t, two).wantStatus(mad.StatusOK, 1, mad.MethodGet, 0x0017, 0)
		start(t, oneLane(caConfig(1))).wantStatus(mad.StatusUnsupportedMethod, 1, mad.MethodGet, 0x0017, 0)
		start(t, oneLane(switchConfig(4))).wantStatus(mad.StatusUnsupportedMethod, 1, mad.MethodSet, 0x0017, 0x0102)
	})
	t.Run("SV-05", func(t *testing.T) {
		for _, c := range []Config{caConfig(2), routerConfig(2)} {
			d := start(t, c)
			table := levels(2)
			d.mustSet(2, 0xFFFFFFFF, &table)
			want := d.raw(2, 0x0017, 0)
			for _, modifier := range []uint32{1, 0x0101, 0x00030000} {
				if d.raw(2, 0x0017, modifier) != want {
					t.Errorf("modifier %#x: another table", modifier)
				}
			}
			if d.raw(1, 0x0017, 0) == want {
				t.Error("port 1 has the table of port 2")
			}
		}
	})
	for _, rule := range []string{"SV-06", "SV-07"} {
		t.Run(rule, func(t *testing.T) {
			d := start(t, switchConfig(6))
			table := levels(1)
			d.mustSet(1, 0x0205, &table)
			table = levels(2)
			d.mustSet(1, 0x0005, &table)
			for modifier, want := range map[uint32]smp.SLToVLMappingTable{
				0x0205: levels(1), 0x0005: levels(2), 0x0206: {}, 0x0305: {}, 0x0502: {},
			} {
				if d.mustGet(1, modifier, &table); table != want {
					t.Errorf("%#04x: %v, want %v", modifier, table.VLs, want.VLs)
				}
			}
		})
	}
	t.Run("SV-08", func(t *testing.T) {
		d := start(t, switchConfig(4))
		for modifier, want := range map[uint32]mad.Status{
			0x0104: 0, 0x0404: 0, 0x0100: mad.StatusInvalidField, 0x0105: mad.StatusInvalidField, 0x0501: mad.StatusInvalidField,
		} {
			d.wantStatus(want, 1, mad.MethodGet, 0x0017, modifier)
			d.wantStatus(want, 1, mad.MethodSet, 0x0017, modifier)
		}
		start(t, enhancedConfig(4)).wantStatus(mad.StatusOK, 1, mad.MethodGet, 0x0017, 0x0100)
	})
	t.Run("SV-09", func(t *testing.T) {
		for _, modifier := range []uint32{0x00010203, 0x00020203, 0x00040203, 0x80000203} {
			start(t, switchConfig(4)).wantStatus(mad.StatusInvalidField, 1, mad.MethodSet, 0x0017, modifier)
		}
		start(t, optimized).wantStatus(mad.StatusInvalidField, 1, mad.MethodSet, 0x0017, 0x00040203)
		start(t, optimized).wantStatus(mad.StatusInvalidField, 1, mad.MethodGet, 0x0017, 0x00020003)
	})
	t.Run("SV-09/wildcards", func(t *testing.T) {
		for name, test := range map[string]struct {
			modifier uint32
			hit      func(in, out ib.PortNum) bool
		}{
			"all inputs":  {0x00020003, func(_, out ib.PortNum) bool { return out == 3 }},
			"all outputs": {0x00010200, func(in, out ib.PortNum) bool { return in == 2 && out != 0 }},
			"all":         {0x00030000, func(_, out ib.PortNum) bool { return out != 0 }},
		} {
			d := start(t, optimized)
			table := levels(4)
			d.mustSet(1, test.modifier, &table)
			if table != levels(4) {
				t.Errorf("%s: answered %v", name, table.VLs)
			}
			for in := range ib.PortNum(5) {
				for out := range ib.PortNum(5) {
					if got := d.VL(in, out, 0) == 4; got != test.hit(in, out) {
						t.Errorf("%s: (%d,%d) written %v", name, in, out, got)
					}
				}
			}
		}
	})
}

func TestVLArbitration(t *testing.T) {
	entries := func(first uint8) (t smp.VLArbitrationTable) {
		for i := range t.Entries {
			t.Entries[i] = smp.VLArbitrationEntry{VL: ib.VL(i % 8), Weight: first + uint8(i)}
		}
		return t
	}
	full := func(c Config) Config {
		for i := range c.Ports {
			c.Ports[i].VLArbitrationHighCap, c.Ports[i].VLArbitrationLowCap = 64, 64
		}
		return c
	}
	for _, rule := range []string{"VA-01", "VA-04", "VA-07"} {
		t.Run(rule, func(t *testing.T) {
			for _, c := range []Config{caConfig(2), switchConfig(2)} {
				d := start(t, full(c))
				table := entries(10)
				d.mustSet(1, 0x00010001, &table)
				if d.mustGet(1, 0x00010001, &table); table != entries(10) {
					t.Errorf("%v", table.Entries)
				}
				if bytes := d.raw(1, 0x0018, 0x00010001); bytes[1] != table.Entries[0].Weight {
					t.Errorf("bytes %x", bytes)
				}
			}
		})
	}
	t.Run("VA-02", func(t *testing.T) {
		d := start(t, caConfig(1)) // 8 entries each
		table := entries(1)
		d.mustSet(1, 0x00030000, &table)
		if high, low := d.VLArbitration(1); len(high) != 8 || high[3].Weight != 4 || low != nil {
			t.Errorf("high %v, low %v", high, low)
		}
		if high, low := d.VLArbitration(9); high != nil || low != nil {
			t.Error("tables of a port that does not exist")
		}
	})
	t.Run("VA-03", func(t *testing.T) {
		one := caConfig(1)
		one.Ports[0].VLCap, one.Ports[0].VLArbitrationHighCap, one.Ports[0].VLArbitrationLowCap = 1, 0, 0
		start(t, one).wantStatus(mad.StatusUnsupportedMethod, 1, mad.MethodGet, 0x0018, 0x00010000)
		one.Ports[0].VLCap, one.Ports[0].VLArbitrationHighCap, one.Ports[0].VLArbitrationLowCap = 2, 1, 1
		start(t, one).wantStatus(mad.StatusOK, 1, mad.MethodGet, 0x0018, 0x00010000)
	})
	t.Run("VA-05", func(t *testing.T) {
		d := start(t, full(caConfig(1)))
		for part := range uint32(4) {
			table := entries(uint8(40 * part))
			d.mustSet(1, (part+1)<<16, &table)
		}
		table := entries(200)
		d.mustSet(1, 2<<16, &table)
		for part, first := range []uint8{0, 200, 80, 120} {
			d.mustGet(1, uint32(part+1)<<16, &table)
			if table != entries(first) {
				t.Errorf("part %d: %v", part+1, table.Entries)
			}
		}
	})
	t.Run("VA-05/past the cap", func(t *testing.T) {
		d := start(t, caConfig(1))
		for _, part := range []uint32{1, 2} {
			table := entries(9)
			d.mustSet(1, part<<16, &table)
			for i, e := range table.Entries {
				if kept := part == 1 && i < 8; kept != (e != smp.VLArbitrationEntry{}) {
					t.Errorf("part %d entry %d: %v", part, i, e)
				}
			}
		}
	})
	t.Run("VA-06", func(t *testing.T) {
		d := start(t, caConfig(1))
		for _, part := range []uint32{0, 5, 0xFFFF} {
			d.wantStatus(mad.StatusInvalidField, 1, mad.MethodGet, 0x0018, part<<16)
		}
	})
	t.Run("VA-08", func(t *testing.T) {
		d := start(t, caConfig(2))
		table := entries(5)
		d.mustSet(2, 0x0001FFFF, &table)
		if d.raw(2, 0x0018, 0x00010007) != d.raw(2, 0x0018, 0x00010000) || d.raw(1, 0x0018, 0x00010002) == d.raw(2, 0x0018, 0x00010000) {
			t.Error("not the table of the port that received the packet")
		}
	})
	t.Run("VA-09", func(t *testing.T) {
		d := start(t, switchConfig(254))
		ports := []uint32{1, 3, 16, 19, 35, 67, 131, 254} // that differ in every bit of the eight
		for i, n := range ports {
			table := entries(uint8(10 * (i + 1)))
			d.mustSet(1, 0x00010000|n, &table)
		}
		for n := uint32(1); n <= 254; n++ {
			want := 0
			if i := slices.Index(ports, n); i >= 0 {
				want = 10 * (i + 1)
			}
			var table smp.VLArbitrationTable
			d.mustGet(1, 0x00010000|n, &table)
			_, low := d.VLArbitration(ib.PortNum(n))
			if int(table.Entries[0].Weight) != want || (len(low) != 0) != (want != 0) {
				t.Errorf("port %d: first weight %d, %d entries, want %d", n, table.Entries[0].Weight, len(low), want)
			}
		}
		d.wantStatus(mad.StatusInvalidField, 1, mad.MethodGet, 0x0018, 0x00010000)
		d.wantStatus(mad.StatusInvalidField, 1, mad.MethodGet, 0x0018, 0x000100FF)
		start(t, switchConfig(5)).wantStatus(mad.StatusInvalidField, 1, mad.MethodGet, 0x0018, 0x00010006)
	})
	t.Run("VA-10", func(t *testing.T) {
		start(t, switchConfig(4)).wantStatus(mad.StatusInvalidField, 1, mad.MethodGet, 0x0018, 0x00010103)
	})
	t.Run("VL 15", func(t *testing.T) {
		d := start(t, caConfig(1))
		table := smp.VLArbitrationTable{Entries: [32]smp.VLArbitrationEntry{{VL: 15, Weight: 1}}}
		if s := d.set(1, 0x00010000, &table); s != mad.StatusInvalidField {
			t.Errorf("status %v", s)
		}
	})
}
