package mad

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib/internal/vectors"
)

// part is a piece of a datagram as the tests see it.
type part interface {
	UnmarshalBinary(data []byte) error
	AppendBinary(b []byte) ([]byte, error)
}

func rmppValues(p part) map[string]string {
	h := p.(*RMPP)
	return map[string]string{
		"RMPP.RMPPVersion":                           num(h.Version),
		"RMPP.RMPPType":                              num(h.Type),
		"RMPP.RRespTime":                             num(h.RRespTime),
		"RMPP.RMPPFlags":                             num(h.Flags),
		"RMPP.RMPPStatus":                            num(h.Status),
		"RMPP.Data1 (SegmentNumber)":                 num(h.Data1),
		"RMPP.Data2 (PayloadLength / NewWindowLast)": num(h.Data2),
	}
}

func classPortInfoValues(p part) map[string]string {
	c := p.(*ClassPortInfo)
	values := map[string]string{
		"BaseVersion":     num(c.BaseVersion),
		"ClassVersion":    num(c.ClassVersion),
		"CapabilityMask":  num(c.CapabilityMask),
		"CapabilityMask2": num(c.CapabilityMask2),
		"RespTimeValue":   num(c.RespTimeValue),
		"Reserved":        num(c.Redirect.HL),
		"TrapHL":          num(c.Trap.HL),
	}
	for prefix, a := range map[string]*ClassAddress{"Redirect": &c.Redirect, "Trap": &c.Trap} {
		values[prefix+"GID"] = long(a.GID[:])
		values[prefix+"TC"] = num(a.TC)
		values[prefix+"SL"] = num(a.SL)
		values[prefix+"FL"] = num(a.FL)
		values[prefix+"LID"] = num(a.LID)
		values[prefix+"P_Key"] = num(a.PKey)
		values[prefix+"QP"] = num(a.QP)
		values[prefix+"Q_Key"] = num(a.QKey)
	}
	return values
}

// generalParts are the pieces with the golden packet that holds each.
var generalParts = []struct {
	name   string
	vector string
	make   func() part
	bytes  func(vectors.Vector) []byte
	fields func(vectors.Vector) []vectors.Field
	bit    int // where the piece begins in the numbering of the fields
	values func(part) map[string]string
}{
	{
		name: "RMPP", vector: "SA_NodeRecord", make: func() part { return new(RMPP) },
		bytes: func(v vectors.Vector) []byte { return v.MAD[HeaderSize : HeaderSize+RMPPHeaderSize] },
		fields: func(v vectors.Vector) []vectors.Field {
			return slices.DeleteFunc(slices.Clone(v.HeaderFields), func(f vectors.Field) bool {
				return !strings.HasPrefix(f.Name, "RMPP.")
			})
		},
		bit:    8 * HeaderSize,
		values: rmppValues,
	},
	{
		name: "ClassPortInfo", vector: "SA_ClassPortInfo", make: func() part { return new(ClassPortInfo) },
		bytes:  func(v vectors.Vector) []byte { return v.Attribute },
		fields: func(v vectors.Vector) []vectors.Field { return v.Fields },
		values: classPortInfoValues,
	},
}

func TestGeneralVectors(t *testing.T) {
	for _, g := range generalParts {
		t.Run(g.name, func(t *testing.T) {
			v, err := vectors.Load(g.vector)
			if err != nil {
				t.Fatal(err)
			}
			p, data := g.make(), g.bytes(v)
			if err := p.UnmarshalBinary(data); err != nil {
				t.Fatal(err)
			}
			values := g.values(p)
			if fields := g.fields(v); len(fields) != len(values) {
				t.Errorf("%d fields, want %d", len(values), len(fields))
			}
			for _, f := range g.fields(v) {
				if got, ok := values[f.Name]; !ok || got != plainHex(f.Value) {
					t.Errorf("%s = %q, want %s", f.Name, got, f.Value)
				}
			}
			b, err := p.AppendBinary([]byte("before"))
			if err != nil || !bytes.Equal(b, append([]byte("before"), data...)) {
				t.Errorf("encoded %x (%v), want %x", b, err, data)
			}
			for n := range data {
				err := p.UnmarshalBinary(data[:n])
				if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%d bytes", n)) {
					t.Errorf("%d bytes: error %v", n, err)
				}
				if !maps.Equal(g.values(p), values) {
					t.Errorf("%d bytes: assigned in spite of the error", n)
				}
			}
		})
	}
}

// A flipped bit changes the field it is in and no other, and survives.
func TestGeneralBitFlips(t *testing.T) {
	for _, g := range generalParts {
		t.Run(g.name, func(t *testing.T) {
			v, err := vectors.Load(g.vector)
			if err != nil {
				t.Fatal(err)
			}
			p, data := g.make(), g.bytes(v)
			if err := p.UnmarshalBinary(data); err != nil {
				t.Fatal(err)
			}
			before := g.values(p)
			for i := range 8 * len(data) {
				flipped := bytes.Clone(data)
				flipped[i/8] ^= 0x80 >> (i % 8)
				if err := p.UnmarshalBinary(flipped); err != nil {
					t.Fatal(err)
				}
				after := g.values(p)
				for _, f := range g.fields(v) {
					first := f.Bit - g.bit
					inside := i >= first && i < first+f.Width
					if changed := before[f.Name] != after[f.Name]; changed != inside {
						t.Errorf("bit %d: %s changed: %v, want %v", i, f.Name, changed, inside)
					}
				}
				if b, err := p.AppendBinary(nil); err != nil || !bytes.Equal(b, flipped) {
					t.Errorf("bit %d: encoded %x (%v), want %x", i, b, err, flipped)
				}
			}
		})
	}
}

// Every field that is narrower than its type refuses the next larger value.
func TestGeneralTooWide(t *testing.T) {
	for _, test := range []struct {
		field string
		p     part
	}{
		{"RMPP.RRespTime", &RMPP{RRespTime: 1 << 5}},
		{"RMPP.Flags", &RMPP{Flags: 1 << 3}},
		{"ClassPortInfo.CapabilityMask2", &ClassPortInfo{CapabilityMask2: 1 << 27}},
		{"ClassPortInfo.RespTimeValue", &ClassPortInfo{RespTimeValue: 1 << 5}},
		{"ClassPortInfo.Redirect.SL", &ClassPortInfo{Redirect: ClassAddress{SL: 1 << 4}}},
		{"ClassPortInfo.Redirect.FL", &ClassPortInfo{Redirect: ClassAddress{FL: 1 << 20}}},
		{"ClassPortInfo.Redirect.QP", &ClassPortInfo{Redirect: ClassAddress{QP: 1 << 24}}},
		{"ClassPortInfo.Trap.SL", &ClassPortInfo{Trap: ClassAddress{SL: 1 << 4}}},
		{"ClassPortInfo.Trap.FL", &ClassPortInfo{Trap: ClassAddress{FL: 1 << 20}}},
		{"ClassPortInfo.Trap.QP", &ClassPortInfo{Trap: ClassAddress{QP: 1 << 24}}},
	} {
		t.Run(test.field, func(t *testing.T) {
			b, err := test.p.AppendBinary([]byte("before"))
			if err == nil || !strings.HasPrefix(err.Error(), test.field+":") || string(b) != "before" {
				t.Errorf("%q, error %v, want one about %s", b, err, test.field)
			}
		})
	}
}

func TestGeneralBits(t *testing.T) {
	if f := RMPPActive | RMPPLast; !f.Has(RMPPLast) || f.Has(RMPPFirst) || f.Has(RMPPFirst|RMPPLast) {
		t.Error("RMPPFlags.Has")
	}
	if c := ClassCapTraps | ClassCapCapabilityMask2; !c.Has(ClassCapTraps) || c.Has(ClassCapNotice) {
		t.Error("ClassCapability.Has")
	}
	if c := ClassCapability2(1<<1 | 1<<12); !c.Has(1<<12) || c.Has(1<<2) || c.Has(1<<1|1<<2) {
		t.Error("ClassCapability2.Has")
	}
	if id := new(ClassPortInfo).ID(); id != AttrClassPortInfo {
		t.Errorf("ID %#x", id)
	}
}

func fuzzGeneral(f *testing.F, name string) {
	for _, g := range generalParts {
		if g.name != name {
			continue
		}
		v, err := vectors.Load(g.vector)
		if err != nil {
			f.Fatal(err)
		}
		size := len(g.bytes(v))
		f.Add(g.bytes(v))
		f.Fuzz(func(t *testing.T, data []byte) {
			p := g.make()
			if err := p.UnmarshalBinary(data); err != nil {
				if len(data) >= size {
					t.Fatal(err)
				}
				return
			}
			if b, err := p.AppendBinary(nil); err != nil || !bytes.Equal(b, data[:size]) {
				t.Fatalf("encoded %x (%v), want %x", b, err, data[:size])
			}
		})
	}
}

func FuzzRMPP(f *testing.F)          { fuzzGeneral(f, "RMPP") }
func FuzzClassPortInfo(f *testing.F) { fuzzGeneral(f, "ClassPortInfo") }
