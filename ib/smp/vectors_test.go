package smp

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib/internal/vectors"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// codec is one attribute as the tests see it.
type codec struct {
	name string
	make func() Attribute
	size int // shortest input
	// values reads every field that the vectors name, in hexadecimal
	// without leading zeros.
	values func(Attribute) map[string]string
}

// codecs has an entry for every attribute; a vector is matched by its name.
var codecs = []codec{
	{"NodeDescription", func() Attribute { return new(NodeDescription) }, 64, nodeDescriptionValues},
	{"NodeInfo", func() Attribute { return new(NodeInfo) }, NodeInfoSize, nodeInfoValues},
	{"SwitchInfo", func() Attribute { return new(SwitchInfo) }, SwitchInfoSize, switchInfoValues},
	{"GUIDInfo", func() Attribute { return new(GUIDInfo) }, 64, guidInfoValues},
	{"PortInfo", func() Attribute { return new(PortInfo) }, PortInfoSize, portInfoValues},
	{"P_KeyTable", func() Attribute { return new(PKeyTable) }, 64, pkeyTableValues},
	{"SLtoVLMappingTable", func() Attribute { return new(SLToVLMappingTable) }, SLToVLMappingTableSize, slToVLValues},
	{"VLArbitrationTable", func() Attribute { return new(VLArbitrationTable) }, 64, vlArbitrationValues},
	{"LinearForwardingTable", func() Attribute { return new(LinearForwardingTable) }, 64, linearValues},
	{"RandomForwardingTable", func() Attribute { return new(RandomForwardingTable) }, 64, randomValues},
	{"MulticastForwardingTable", func() Attribute { return new(MulticastForwardingTable) }, 64, multicastValues},
	{"SMInfo", func() Attribute { return new(SMInfo) }, SMInfoSize, smInfoValues},
	{"VendorDiag", func() Attribute { return new(VendorDiag) }, 64, vendorDiagValues},
	{"LedInfo", func() Attribute { return new(LEDInfo) }, LEDInfoSize, ledInfoValues},
	{"PortInfoExtended", func() Attribute { return new(PortInfoExtended) }, PortInfoExtendedSize, portInfoExtendedValues},
	{"Notice64", newNotice, 64, noticeValues(new(GIDDetails), gidDetailsValues)},
	{"Notice65", newNotice, 64, noticeValues(new(GIDDetails), gidDetailsValues)},
	{"Notice66", newNotice, 64, noticeValues(new(GIDDetails), gidDetailsValues)},
	{"Notice67", newNotice, 64, noticeValues(new(GIDDetails), gidDetailsValues)},
	{"Notice68", newNotice, 64, noticeValues(new(PathDetails), pathDetailsValues)},
	{"Notice69", newNotice, 64, noticeValues(new(PathDetails), pathDetailsValues)},
	{"Notice128", newNotice, 64, noticeValues(new(LinkStateDetails), linkStateDetailsValues)},
	{"Notice129", newNotice, 64, noticeValues(new(PortDetails), portDetailsValues)},
	{"Notice130", newNotice, 64, noticeValues(new(PortDetails), portDetailsValues)},
	{"Notice131", newNotice, 64, noticeValues(new(PortDetails), portDetailsValues)},
	{"Notice144", newNotice, 64, noticeValues(new(LocalChangeDetails), localChangeDetailsValues)},
	{"Notice145", newNotice, 64, noticeValues(new(SystemImageGUIDDetails), systemImageGUIDDetailsValues)},
	{"Notice256", newNotice, 64, noticeValues(new(BadMKeyDetails), badMKeyDetailsValues)},
	{"Notice257", newNotice, 64, noticeValues(new(BadKeyDetails), badKeyDetailsValues)},
	{"Notice258", newNotice, 64, noticeValues(new(BadKeyDetails), badKeyDetailsValues)},
	{"Notice259", newNotice, 64, noticeValues(new(SwitchBadPKeyDetails), switchBadPKeyDetailsValues)},
}

func newNotice() Attribute { return new(Notice) }

// forEach runs f for every codec with its vector and the 64 bytes of data.
func forEach(t *testing.T, f func(t *testing.T, c codec, v vectors.Vector, data []byte)) {
	for _, c := range codecs {
		t.Run(c.name, func(t *testing.T) {
			v, err := vectors.Load(c.name)
			if err != nil {
				t.Fatal(err)
			}
			f(t, c, v, v.MAD[mad.DataOffset:mad.DataOffset+mad.DataSize])
		})
	}
}

func decode(t *testing.T, c codec, data []byte) Attribute {
	t.Helper()
	a := c.make()
	if err := a.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	return a
}

func encode(t *testing.T, a Attribute) []byte {
	t.Helper()
	b, err := a.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Every vector of the subnet-management classes has a codec here.
func TestVectorsCovered(t *testing.T) {
	all, err := vectors.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		if v.MAD == nil || v.AttributeOffsetInMAD != mad.DataOffset || strings.HasPrefix(v.Name, "PM_") {
			continue
		}
		name := v.Name
		if strings.HasPrefix(name, "DR_NodeInfo") {
			name = "NodeInfo"
		}
		if !slices.ContainsFunc(codecs, func(c codec) bool { return c.name == name }) {
			t.Errorf("vector %s: no codec", v.Name)
		}
	}
}

func TestVectorValues(t *testing.T) {
	forEach(t, func(t *testing.T, c codec, v vectors.Vector, data []byte) {
		got := c.values(decode(t, c, data))
		listed := map[string]bool{}
		for _, f := range v.Fields {
			if strings.HasPrefix(f.Name, "Reserved") {
				continue
			}
			listed[f.Name] = true
			value, covered := got[f.Name]
			if want := plainHex(f.Value); !covered {
				t.Errorf("field %s is not read", f.Name)
			} else if value != want {
				t.Errorf("%s = %s, want %s", f.Name, value, want)
			}
		}
		for name := range got {
			if !listed[name] {
				t.Errorf("field %s is not in the vector", name)
			}
		}
	})
}

func TestVectorRoundTrip(t *testing.T) {
	forEach(t, func(t *testing.T, c codec, v vectors.Vector, data []byte) {
		a := decode(t, c, data)
		if got := encode(t, a); !bytes.Equal(got, data) {
			t.Errorf("encoded\n%x, want\n%x", got, data)
		}
		if want := mad.AttributeID(v.MAD[16])<<8 | mad.AttributeID(v.MAD[17]); a.ID() != want {
			t.Errorf("ID %#x, want %#x", a.ID(), want)
		}
		if len(v.Attribute) < c.size {
			return // a notice whose vector ends with its trap's fields
		}
		short := encode(t, decode(t, c, v.Attribute))
		if !bytes.HasPrefix(short, v.Attribute) || len(bytes.Trim(short[len(v.Attribute):], "\x00")) != 0 {
			t.Errorf("from the attribute alone\n%x, want\n%x and zeros", short, v.Attribute)
		}
	})
}

// A flipped bit changes the field it is in and no other, and survives.
func TestBitFlips(t *testing.T) {
	forEach(t, func(t *testing.T, c codec, v vectors.Vector, data []byte) {
		before := c.values(decode(t, c, data))
		for bit := range 8 * mad.DataSize {
			flipped := bytes.Clone(data)
			flipped[bit/8] ^= 0x80 >> (bit % 8)
			a := decode(t, c, flipped)
			var changed []string
			after := c.values(a)
			for _, name := range slices.Sorted(maps.Keys(before)) {
				if before[name] != after[name] {
					changed = append(changed, name)
				}
			}
			if want := fieldsAt(v, bit); !slices.Equal(changed, want) {
				t.Errorf("bit %d: changed %q, want %q", bit, changed, want)
			}
			if got := encode(t, a); !bytes.Equal(got, flipped) {
				t.Errorf("bit %d: encoded\n%x, want\n%x", bit, got, flipped)
			}
		}
	})
}

// fieldsAt names the field that a bit belongs to; none for a reserved bit.
func fieldsAt(v vectors.Vector, bit int) []string {
	for _, f := range v.Fields {
		if bit >= f.Bit && bit < f.Bit+f.Width && !strings.HasPrefix(f.Name, "Reserved") {
			return []string{f.Name}
		}
	}
	return nil
}

func TestInputLength(t *testing.T) {
	forEach(t, func(t *testing.T, c codec, _ vectors.Vector, data []byte) {
		for n := range mad.DataSize + 2 {
			input := append(bytes.Clone(data), 0)[:n]
			a := decode(t, c, data)
			before := encode(t, a)
			err := a.UnmarshalBinary(input)
			if n >= c.size && n <= mad.DataSize {
				if err != nil {
					t.Errorf("%d bytes: %v", n, err)
				}
				continue
			}
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%d bytes", n)) {
				t.Errorf("%d bytes: error %v", n, err)
			}
			if !bytes.Equal(encode(t, a), before) {
				t.Errorf("%d bytes: assigned in spite of the error", n)
			}
		}
	})
}

// A decoded attribute does not see later changes of the input.
func TestNoAlias(t *testing.T) {
	forEach(t, func(t *testing.T, c codec, _ vectors.Vector, data []byte) {
		input := bytes.Clone(data)
		a := decode(t, c, input)
		clear(input)
		if got := encode(t, a); !bytes.Equal(got, data) {
			t.Errorf("after the input was cleared\n%x, want\n%x", got, data)
		}
	})
}

func TestNoAllocation(t *testing.T) {
	forEach(t, func(t *testing.T, c codec, _ vectors.Vector, data []byte) {
		a := c.make()
		var dst [mad.DataSize]byte
		n := testing.AllocsPerRun(10, func() {
			if a.UnmarshalBinary(data) != nil || a.Encode(&dst) != nil {
				t.Error("not coded")
			}
		})
		if n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

func plainHex(s string) string {
	s = strings.TrimLeft(strings.TrimPrefix(s, "0x"), "0")
	if s == "" {
		return "0"
	}
	return s
}

// BenchmarkAttributes reads and writes what a sweep asks every device for.
func BenchmarkAttributes(b *testing.B) {
	for _, c := range codecs {
		if !slices.Contains([]string{"PortInfo", "NodeInfo", "SwitchInfo", "P_KeyTable"}, c.name) {
			continue
		}
		v, err := vectors.Load(c.name)
		if err != nil {
			b.Fatal(err)
		}
		a := c.make()
		data, dst := v.MAD[mad.DataOffset:mad.DataOffset+mad.DataSize], [mad.DataSize]byte{}
		b.Run(c.name+"/decode", func(b *testing.B) {
			for b.Loop() {
				if a.UnmarshalBinary(data) != nil {
					b.Fatal("not decoded")
				}
			}
		})
		b.Run(c.name+"/encode", func(b *testing.B) {
			for b.Loop() {
				if a.Encode(&dst) != nil {
					b.Fatal("not encoded")
				}
			}
		})
	}
}
