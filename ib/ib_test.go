package ib

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

func TestLID(t *testing.T) {
	for _, test := range []struct {
		lid                LID
		unicast, multicast bool
	}{
		{0x0000, false, false}, {0x0001, true, false}, {0xBFFF, true, false},
		{0xC000, false, true}, {0xFFFE, false, true}, {0xFFFF, false, false},
	} {
		if test.lid.IsUnicast() != test.unicast || test.lid.IsMulticast() != test.multicast {
			t.Errorf("LID %#x: unicast %v, multicast %v", uint16(test.lid), test.lid.IsUnicast(), test.lid.IsMulticast())
		}
	}
	for text, want := range map[string]LID{"0": 0, "7": 7, "0xc000": 0xC000, "65535": 0xFFFF} {
		if got, err := ParseLID(text); err != nil || got != want {
			t.Errorf("ParseLID(%q) = %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "x", "-1", "65536", "0x10000", " 1"} {
		if got, err := ParseLID(text); err == nil {
			t.Errorf("ParseLID(%q) = %d, want an error", text, got)
		}
	}
	if got := LID(0xC000).String(); got != "49152" {
		t.Errorf("String: %q", got)
	}
	for m := range LMCMax + 1 {
		if got := m.Count(); got != 1<<m {
			t.Errorf("LMC %d: %d LIDs", m, got)
		}
	}
}

// The low 15 bits decide, then one of the two must be full.
func TestCheckLIDs(t *testing.T) {
	for _, c := range []struct {
		ends, switches int
		lmc            LMC
		want           string
	}{
		{49151, 0, 0, ""},
		{45567, 3584, 0, ""},
		{49152, 0, 0, "49152 CA and router ports and 0 switches need 49152 unicast LIDs, and a subnet has 49151: divide the fabric into several subnets"},
		{65536, 5120, 0, "65536 CA and router ports and 5120 switches need 70656 unicast LIDs, and a subnet has 49151: divide the fabric into several subnets"},
		{383, 127, 7, ""},
		{383, 128, 7, "383 end ports with 128 LIDs each (LMC 7) and 128 switches need 49152 unicast LIDs, and a subnet has 49151: take LMC 6 or less"},
		{24576, 0, 1, "24576 end ports with 2 LIDs each (LMC 1) and 0 switches need 49152 unicast LIDs, and a subnet has 49151: take LMC 0"},
		{50000, 0, 7, "50000 end ports with 128 LIDs each (LMC 7) and 0 switches need 6400000 unicast LIDs, and a subnet has 49151: divide the fabric into several subnets"},
	} {
		got := ""
		if err := CheckLIDs(c.ends, c.switches, c.lmc); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%d and %d, LMC %d:\n%s\nwant\n%s", c.ends, c.switches, c.lmc, got, c.want)
		}
	}
}

func TestPKeyMatches(t *testing.T) {
	for _, test := range []struct {
		rule string
		a, b PKey
		want bool
	}{
		{"PK-06/one partition", 0x8001, 0x0001, true},
		{"PK-06/two partitions", 0x8001, 0x8002, false},
		{"PK-06/one high bit apart", 0x8001, 0xC001, false},
		{"PK-09", 0x0001, 0x0001, false},
		{"PK-10", 0x0001, 0x8001, true},
		{"PK-11", 0x8001, 0x0001, true},
		{"PK-12", 0x8001, 0x8001, true},
		{"PK-13", 0xFFFF, 0x8001, false},
		{"PK-13/limited", 0x0001, 0x8002, false},
		{"default, full and limited", 0xFFFF, 0x7FFF, true},
		{"default, limited", 0x7FFF, 0x7FFF, false},
		{"default, full", 0xFFFF, 0xFFFF, true},
		{"PK-24/0x0000", 0x0000, 0x0000, false},
		{"PK-24/0x8000", 0x8000, 0x8000, false},
		{"PK-24/0x8000 and 0x0000", 0x8000, 0x0000, false},
		{"PK-24/0x0000 and 0x8000", 0x0000, 0x8000, false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			if got := test.a.Matches(test.b); got != test.want {
				t.Errorf("%v against %v: %v", test.a, test.b, got)
			}
		})
	}
}

// The relation is symmetric, and a full key is accepted wherever a limited
// one of its partition is.
func TestPKeyMatchesProperties(t *testing.T) {
	const seed = 1
	random := rand.New(rand.NewPCG(seed, seed))
	for range 100_000 {
		a := PKey(random.Uint32())
		b := PKey(random.Uint32())
		if random.IntN(2) == 0 {
			b = a ^ b&0x8000
		}
		if a.Matches(b) != b.Matches(a) {
			t.Fatalf("seed %d: %v and %v: not symmetric", seed, a, b)
		}
		if a.Matches(b) && !a.Base().Full().Matches(b) {
			t.Fatalf("seed %d: %v matches %v, full membership does not", seed, a, b)
		}
		if a.Matches(b) && a.Base() != b.Base() {
			t.Fatalf("seed %d: %v matches %v of another partition", seed, a, b)
		}
	}
}

func TestPKeyParts(t *testing.T) {
	for _, test := range []struct {
		key   PKey
		base  PKeyBase
		full  bool
		valid bool
	}{
		{0x0000, 0, false, false}, {0x8000, 0, true, false},
		{0x0001, 1, false, true}, {0x8001, 1, true, true},
		{0x7FFF, 0x7FFF, false, true}, {0xFFFF, 0x7FFF, true, true},
	} {
		if test.key.Base() != test.base || test.key.IsFull() != test.full || test.key.IsValid() != test.valid {
			t.Errorf("%v: base %v, full %v, valid %v", test.key, test.key.Base(), test.key.IsFull(), test.key.IsValid())
		}
	}
	if b := PKeyBase(0x1234); b.Full() != 0x9234 || b.Limited() != 0x1234 {
		t.Errorf("%v: full %v, limited %v", b, b.Full(), b.Limited())
	}
	for b, want := range map[PKeyBase]bool{0: false, 1: true, 0x7FFF: true, 0x8000: false, 0xFFFF: false} {
		if b.IsValid() != want {
			t.Errorf("%v: valid %v", b, b.IsValid())
		}
	}
}

func TestParsePKeyBase(t *testing.T) {
	for text, want := range map[string]PKeyBase{"1": 1, "0x7fff": 0x7FFF, "0x0001": 1, "32767": 0x7FFF} {
		if got, err := ParsePKeyBase(text); err != nil || got != want {
			t.Errorf("ParsePKeyBase(%q) = %v, %v", text, got, err)
		}
	}
	// 0x18001 has a valid low half.
	for _, text := range []string{"", "0", "0x8000", "0x8001", "0xffff", "0x10001", "0x18001", "-1", "all"} {
		if got, err := ParsePKeyBase(text); err == nil {
			t.Errorf("ParsePKeyBase(%q) = %v, want an error", text, got)
		}
	}
}

func TestGUID(t *testing.T) {
	for text, want := range map[string]uint64{
		"0x0002c90300a1b2c3": 0x0002C90300A1B2C3, "0X1F": 0x1F, "12": 12,
		"0xffffffffffffffff": 1<<64 - 1, "18446744073709551615": 1<<64 - 1,
	} {
		if got, err := ParseNodeGUID(text); err != nil || uint64(got) != want {
			t.Errorf("ParseNodeGUID(%q) = %v, %v", text, got, err)
		}
		if got, err := ParsePortGUID(text); err != nil || uint64(got) != want {
			t.Errorf("ParsePortGUID(%q) = %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0x", "0x10000000000000000", "1f", "-1", "0x0x1", "0b1", "1_000", "0x1_0"} {
		if got, err := ParseNodeGUID(text); err == nil {
			t.Errorf("ParseNodeGUID(%q) = %v, want an error", text, got)
		}
		if got, err := ParsePortGUID(text); err == nil {
			t.Errorf("ParsePortGUID(%q) = %v, want an error", text, got)
		}
	}
}

func TestGID(t *testing.T) {
	g := MakeGID(DefaultGIDPrefix, 0x0002C90300A1B2C3)
	if g.Prefix() != DefaultGIDPrefix || g.PortGUID() != 0x0002C90300A1B2C3 || g.IsMulticast() {
		t.Errorf("%v: prefix %#x, GUID %v", g, g.Prefix(), g.PortGUID())
	}
	if got := g.String(); got != "fe80::2:c903:a1:b2c3" {
		t.Errorf("String: %q", got)
	}
	if again, err := ParseGID(g.String()); err != nil || again != g {
		t.Errorf("ParseGID: %v, %v", again, err)
	}
	if m, err := ParseGID("ff12:401b::ffff:ffff"); err != nil || !m.IsMulticast() {
		t.Errorf("%v, %v", m, err)
	}
	for _, text := range []string{"", "1.2.3.4", "fe80::1%eth0", "fe80"} {
		if got, err := ParseGID(text); err == nil {
			t.Errorf("ParseGID(%q) = %v, want an error", text, got)
		}
	}
}

func TestMTU(t *testing.T) {
	for code, bytes := range []int{0, 256, 512, 1024, 2048, 4096, 0, 0} {
		m := MTU(code)
		if m.Bytes() != bytes || m.IsValid() != (bytes != 0) {
			t.Errorf("code %d: %d bytes, valid %v", code, m.Bytes(), m.IsValid())
		}
		if bytes == 0 {
			continue
		}
		if got, err := MTUFromBytes(bytes); err != nil || got != m {
			t.Errorf("MTUFromBytes(%d) = %d, %v", bytes, got, err)
		}
	}
	for _, bytes := range []int{0, 128, 300, 8192, -256} {
		if got, err := MTUFromBytes(bytes); err == nil {
			t.Errorf("MTUFromBytes(%d) = %d, want an error", bytes, got)
		}
	}
}

func TestRate(t *testing.T) {
	for code, want := range map[Rate]string{
		2: "2.5", 3: "10", 4: "30", 5: "5", 6: "20", 7: "40", 8: "60", 9: "80", 10: "120", 11: "14",
		12: "56", 13: "112", 14: "168", 15: "25", 16: "100", 17: "200", 18: "300", 19: "28", 20: "50",
		21: "400", 22: "600", 23: "800", 24: "1200",
	} {
		if got := code.String(); got != want || !code.IsValid() {
			t.Errorf("code %d: %q, want %q", uint8(code), got, want)
		}
		if got, err := RateFromGbps(rateGbps[code]); err != nil || got != code {
			t.Errorf("RateFromGbps(%d) = %d, %v", rateGbps[code], uint8(got), err)
		}
	}
	for _, code := range []Rate{0, 1, 25, 63, 255} {
		if code.IsValid() || code.String() != fmt.Sprintf("invalid rate code %d", uint8(code)) {
			t.Errorf("code %d: %q", uint8(code), code)
		}
	}
	for _, tenths := range []int{0, -25, 26, 99} {
		if got, err := RateFromGbps(tenths); err == nil {
			t.Errorf("RateFromGbps(%d) = %v, want an error", tenths, got)
		}
	}
}

// 4.096 microseconds times two to the power of the value.
func TestTimeValue(t *testing.T) {
	for _, rule := range []string{"PI-112", "PI-114"} {
		t.Run(rule, func(t *testing.T) {
			for v, want := range map[TimeValue]time.Duration{
				0: 4096 * time.Nanosecond, 1: 8192 * time.Nanosecond, 18: 1073741824 * time.Nanosecond, 31: 8796093022208 * time.Nanosecond,
			} {
				if got := v.Duration(); got != want {
					t.Errorf("value %d: %v, want %v", v, got, want)
				}
			}
		})
	}
}

func TestQKeyIsPrivileged(t *testing.T) {
	for k, want := range map[QKey]bool{0: false, 0x7FFFFFFF: false, 0x80000000: true, QKeyGSI: true, 0xFFFFFFFF: true} {
		if k.IsPrivileged() != want {
			t.Errorf("%v: %v", k, !want)
		}
	}
}

func TestText(t *testing.T) {
	for want, v := range map[string]fmt.Stringer{
		"0x8001": PKey(0x8001), "0x0001": PKeyBase(1), "0x80010000": QKeyGSI,
		"0x00000000000000ff": MKey(255), "0x000000000000001f": NodeGUID(31), "0x000000000000001e": PortGUID(30),
		"CA": NodeCA, "switch": NodeSwitch, "router": NodeRouter, "unknown node type 4": NodeType(4),
		"2048": MTU2048, "invalid MTU code 6": MTU(6),
	} {
		if got := v.String(); got != want {
			t.Errorf("%T: %q, want %q", v, got, want)
		}
	}
	got, err := json.Marshal([]any{PKey(0x8001), PKeyBase(1), NodeGUID(1), PortGUID(2)})
	if want := `["0x8001","0x0001","0x0000000000000001","0x0000000000000002"]`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"0x0002c90300a1b2c3", "12", "0x7fff", "fe80::1", "ff12:401b::1", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if g, err := ParseNodeGUID(text); err == nil {
			if again, err := ParseNodeGUID(g.String()); err != nil || again != g {
				t.Errorf("node GUID %q: %v, then %v, %v", text, g, again, err)
			}
		}
		if g, err := ParseGID(text); err == nil {
			if again, err := ParseGID(g.String()); err != nil || again != g {
				t.Errorf("GID %q: %v, then %v, %v", text, g, again, err)
			}
		}
		if b, err := ParsePKeyBase(text); err == nil {
			if again, err := ParsePKeyBase(b.String()); err != nil || again != b || !b.IsValid() {
				t.Errorf("partition %q: %v, then %v, %v", text, b, again, err)
			}
		}
		if l, err := ParseLID(text); err == nil {
			if again, err := ParseLID(l.String()); err != nil || again != l {
				t.Errorf("LID %q: %v, then %v, %v", text, l, again, err)
			}
		}
	})
}
