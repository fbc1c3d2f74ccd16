package pm

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/vectors"
	"github.com/ibwarden/ibwarden/ib/mad"
)

var _ Attribute = (*mad.ClassPortInfo)(nil)

// codec is one attribute as the tests see it.
type codec struct {
	vector vectors.Vector
	make   func() Attribute
	size   int
}

func codecs(t testing.TB) []codec {
	t.Helper()
	load := func(name string) vectors.Vector {
		v, err := vectors.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	return []codec{
		{load("PM_PortCounters"), func() Attribute { return new(PortCounters) }, PortCountersSize},
		{load("PM_PortCountersExtended"), func() Attribute { return new(PortCountersExtended) }, PortCountersExtendedSize},
		{load("PM_PortRcvErrorDetails"), func() Attribute { return new(PortRcvErrorDetails) }, PortRcvErrorDetailsSize},
		{xmitDiscardVector(), func() Attribute { return new(PortXmitDiscardDetails) }, PortXmitDiscardDetailsSize},
	}
}

// xmitDiscardVector stands in for a golden packet, of which there is none.
func xmitDiscardVector() vectors.Vector {
	v := vectors.Vector{
		Name:      "PortXmitDiscardDetails",
		Attribute: []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
		MAD:       make([]byte, mad.Size),
	}
	copy(v.MAD[16:], []byte{0x00, 0x16})
	copy(v.MAD[DataOffset:], v.Attribute)
	for _, f := range []struct {
		name              string
		bit, width, bytes int
	}{
		{"Reserved", 0, 8, 0},
		{"PortSelect", 8, 8, 0x01},
		{"CounterSelect", 16, 16, 0x0203},
		{"PortInactiveDiscards", 32, 16, 0x0405},
		{"PortNeighborMTUDiscards", 48, 16, 0x0607},
		{"PortSwLifetimeLimitDiscards", 64, 16, 0x0809},
		{"PortSwHOQLifetimeLimitDiscards", 80, 16, 0x0A0B},
	} {
		v.Fields = append(v.Fields, vectors.Field{Name: f.name, Bit: f.bit, Width: f.width, Value: fmt.Sprintf("%#x", f.bytes)})
	}
	return v
}

func forEach(t *testing.T, f func(t *testing.T, c codec)) {
	for _, c := range codecs(t) {
		t.Run(c.vector.Name, func(t *testing.T) { f(t, c) })
	}
}

func decoded(t testing.TB, c codec, data []byte) Attribute {
	t.Helper()
	a := c.make()
	if err := a.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	return a
}

// values reads every field of an attribute; the fields are called as in the
// golden packets.
func values(a Attribute) map[string]uint64 {
	out := map[string]uint64{}
	v := reflect.ValueOf(a).Elem()
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() {
			out[f.Name] = v.Field(i).Uint()
		}
	}
	return out
}

func TestVectors(t *testing.T) {
	forEach(t, func(t *testing.T, c codec) {
		for _, data := range [][]byte{c.vector.Attribute, c.vector.MAD[DataOffset:]} {
			a := decoded(t, c, data)
			got := values(a)
			if len(got) != len(c.vector.Fields)-1 {
				t.Errorf("%d fields, want %d", len(got), len(c.vector.Fields)-1)
			}
			for _, f := range c.vector.Fields {
				want, err := f.Uint()
				if err != nil {
					t.Fatal(err)
				}
				if value, covered := got[f.Name]; f.Name != "Reserved" && (!covered || value != want) {
					t.Errorf("%s = %#x, want %#x", f.Name, value, want)
				}
			}
			b, err := a.AppendBinary([]byte("before"))
			if err != nil || !bytes.Equal(b, append([]byte("before"), c.vector.Attribute...)) {
				t.Errorf("encoded %x (%v), want %x", b, err, c.vector.Attribute)
			}
			if want := mad.AttributeID(c.vector.MAD[16])<<8 | mad.AttributeID(c.vector.MAD[17]); a.ID() != want {
				t.Errorf("ID %#x, want %#x", a.ID(), want)
			}
		}
	})
}

// Every vector of performance management has a codec here.
func TestVectorsCovered(t *testing.T) {
	all, err := vectors.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		known := slices.ContainsFunc(codecs(t), func(c codec) bool { return c.vector.Name == v.Name })
		if strings.HasPrefix(v.Name, "PM_") && !known {
			t.Errorf("vector %s: no codec", v.Name)
		}
	}
}

// A flipped bit changes the field it is in and no other, and survives.
func TestBitFlips(t *testing.T) {
	forEach(t, func(t *testing.T, c codec) {
		before := values(decoded(t, c, c.vector.Attribute))
		for bit := range 8 * c.size {
			flipped := bytes.Clone(c.vector.Attribute)
			flipped[bit/8] ^= 0x80 >> (bit % 8)
			a := decoded(t, c, flipped)
			after := values(a)
			for _, f := range c.vector.Fields {
				want := before[f.Name]
				if bit >= f.Bit && bit < f.Bit+f.Width && f.Name != "Reserved" {
					want ^= 1 << (f.Bit + f.Width - 1 - bit)
				}
				if after[f.Name] != want {
					t.Errorf("bit %d: %s = %#x, want %#x", bit, f.Name, after[f.Name], want)
				}
			}
			if b, err := a.AppendBinary(nil); err != nil || !bytes.Equal(b, flipped) {
				t.Errorf("bit %d: encoded %x (%v), want %x", bit, b, err, flipped)
			}
		}
	})
}

func TestNoAllocation(t *testing.T) {
	forEach(t, func(t *testing.T, c codec) {
		a, buf := c.make(), make([]byte, 0, 512)
		if n := testing.AllocsPerRun(10, func() {
			if _, err := a.AppendBinary(buf); err != nil || a.UnmarshalBinary(c.vector.Attribute) != nil {
				t.Error("not coded")
			}
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

func TestTooShort(t *testing.T) {
	forEach(t, func(t *testing.T, c codec) {
		a := decoded(t, c, c.vector.Attribute)
		for n := range c.size {
			err := a.UnmarshalBinary(make([]byte, n))
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%d bytes, want %d", n, c.size)) {
				t.Errorf("%d bytes: error %v", n, err)
			}
		}
		if b, err := a.AppendBinary(nil); err != nil || !bytes.Equal(b, c.vector.Attribute) {
			t.Error("assigned in spite of an error")
		}
	})
}

func TestTooWide(t *testing.T) {
	for field, p := range map[string]PortCounters{
		"LocalLinkIntegrityErrors":     {LocalLinkIntegrityErrors: 1 << 4},
		"ExcessiveBufferOverrunErrors": {ExcessiveBufferOverrunErrors: 1 << 4},
	} {
		b, err := p.AppendBinary([]byte("before"))
		if err == nil || !strings.HasPrefix(err.Error(), "PortCounters."+field+":") || string(b) != "before" {
			t.Errorf("%s: %q, error %v", field, b, err)
		}
	}
}

func TestSelectBits(t *testing.T) {
	for bit, s := range map[int]CounterSelect{
		0: SelectSymbolError, 3: SelectPortRcvErrors, 6: SelectPortXmitDiscards,
		7: SelectPortXmitConstraintErrors, 8: SelectPortRcvConstraintErrors,
		11: SelectVL15Dropped, 12: SelectPortXmitData, 15: SelectPortRcvPkts,
	} {
		if s != 1<<bit {
			t.Errorf("bit %d is %#x", bit, uint16(s))
		}
	}
	if ExtendedPortXmitData != 1 || ExtendedPortMulticastRcvPkts != 1<<7 {
		t.Error("ExtendedSelect")
	}
}

func TestMAD(t *testing.T) {
	for _, c := range codecs(t)[:3] {
		var m MAD
		if err := m.UnmarshalBinary(c.vector.MAD); err != nil {
			t.Fatal(err)
		}
		var h mad.Header
		if err := h.UnmarshalBinary(c.vector.MAD); err != nil {
			t.Fatal(err)
		}
		if m.Header != h || !bytes.HasPrefix(m.Data[:], c.vector.Attribute) {
			t.Errorf("%s: %+v", c.vector.Name, m)
		}
		for bit := range 8 * mad.Size {
			flipped := bytes.Clone(c.vector.MAD)
			flipped[bit/8] ^= 0x80 >> (bit % 8)
			if err := m.UnmarshalBinary(flipped); (err != nil) != (bit/8 == 1) {
				t.Fatalf("bit %d: error %v", bit, err)
			}
			if b, err := m.AppendBinary(nil); bit/8 != 1 && (err != nil || !bytes.Equal(b, flipped)) {
				t.Errorf("bit %d: encoded %x (%v), want %x", bit, b, err, flipped)
			}
		}
	}
}

func TestMADRefused(t *testing.T) {
	m := MAD{Data: [DataSize]byte{7}}
	for _, n := range []int{0, mad.Size - 1, mad.Size + 1} {
		data := make([]byte, n)
		if n > 0 {
			data[1] = byte(mad.ClassPerfMgt)
		}
		if err := m.UnmarshalBinary(data); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%d bytes, want 256", n)) {
			t.Errorf("%d bytes: error %v", n, err)
		}
	}
	if err := m.UnmarshalBinary(make([]byte, mad.Size)); err == nil || !strings.Contains(err.Error(), "class 0x00, want 0x04") {
		t.Errorf("class 0: error %v", err)
	}
	if m != (MAD{Data: [DataSize]byte{7}}) {
		t.Error("assigned in spite of an error")
	}
	if b, err := m.AppendBinary([]byte("before")); err == nil || string(b) != "before" {
		t.Errorf("class 0: %q, %v", b, err)
	}
}

// TestClassPortInfo puts a ClassPortInfo where performance management has it.
func TestClassPortInfo(t *testing.T) {
	want := mad.ClassPortInfo{CapabilityMask: CapAllPortSelect | CapExtendedWidth, Trap: mad.ClassAddress{LID: ib.LID(7)}}
	raw, err := want.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	m := MAD{Header: mad.Header{Class: mad.ClassPerfMgt, AttributeID: want.ID()}}
	copy(m.Data[:], raw)
	b, err := m.AppendBinary(nil)
	if err != nil || !bytes.Equal(b[64:64+mad.ClassPortInfoSize], raw) {
		t.Fatalf("datagram %x, %v", b, err)
	}
	var got mad.ClassPortInfo
	if err := got.UnmarshalBinary(m.Data[:]); err != nil || got != want {
		t.Errorf("%+v (%v), want %+v", got, err, want)
	}
}

func fuzz(f *testing.F, which int) {
	c := codecs(f)[which]
	f.Add(c.vector.Attribute)
	f.Fuzz(func(t *testing.T, data []byte) {
		a := c.make()
		if err := a.UnmarshalBinary(data); err != nil {
			if len(data) >= c.size {
				t.Fatal(err)
			}
			return
		}
		if b, err := a.AppendBinary(nil); err != nil || !bytes.Equal(b, data[:c.size]) {
			t.Fatalf("encoded %x (%v), want %x", b, err, data[:c.size])
		}
	})
}

func FuzzPortCounters(f *testing.F)           { fuzz(f, 0) }
func FuzzPortCountersExtended(f *testing.F)   { fuzz(f, 1) }
func FuzzPortRcvErrorDetails(f *testing.F)    { fuzz(f, 2) }
func FuzzPortXmitDiscardDetails(f *testing.F) { fuzz(f, 3) }

func FuzzMAD(f *testing.F) {
	for _, c := range codecs(f)[:3] {
		f.Add(c.vector.MAD)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var m MAD
		if err := m.UnmarshalBinary(data); err != nil {
			if len(data) == mad.Size && data[1] == byte(mad.ClassPerfMgt) || m != (MAD{}) {
				t.Fatal(err)
			}
			return
		}
		if b, err := m.AppendBinary(nil); err != nil || !bytes.Equal(b, data) {
			t.Fatalf("encoded %x (%v), want %x", b, err, data)
		}
	})
}
