package sa

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib/internal/vectors"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// madValues reads a datagram under the names of the golden packets.
func madValues(m *MAD) map[string]string {
	hex := func(n uint64) string { return fmt.Sprintf("%x", n) }
	out := map[string]string{
		"MAD.BaseVersion":            hex(uint64(m.BaseVersion)),
		"MAD.MgmtClass":              hex(uint64(m.Class)),
		"MAD.ClassVersion":           hex(uint64(m.ClassVersion)),
		"MAD.R":                      hex(uint64(m.Method >> 7)),
		"MAD.Method":                 hex(uint64(m.Method &^ mad.MethodResponse)),
		"MAD.Status":                 hex(uint64(m.Status)),
		"MAD.ClassSpecific":          hex(uint64(m.ClassSpecific)),
		"MAD.TransactionID":          hex(m.TransactionID),
		"MAD.AttributeID":            hex(uint64(m.AttributeID)),
		"MAD.AttributeModifier":      hex(uint64(m.AttributeModifier)),
		"RMPP.RMPPVersion":           hex(uint64(m.RMPP.Version)),
		"RMPP.RMPPType":              hex(uint64(m.RMPP.Type)),
		"RMPP.RRespTime":             hex(uint64(m.RMPP.RRespTime)),
		"RMPP.RMPPFlags":             hex(uint64(m.RMPP.Flags)),
		"RMPP.RMPPStatus":            hex(uint64(m.RMPP.Status)),
		"RMPP.Data1 (SegmentNumber)": hex(uint64(m.RMPP.Data1)),
		"RMPP.Data2 (PayloadLength / NewWindowLast)": hex(uint64(m.RMPP.Data2)),
		"SA.SM_Key":          hex(uint64(m.SMKey)),
		"SA.AttributeOffset": hex(uint64(m.AttributeOffset)),
		"SA.ComponentMask":   hex(uint64(m.ComponentMask)),
	}
	out["data"] = fmt.Sprintf("%x", m.Data)
	return out
}

func TestMADVectors(t *testing.T) {
	for _, v := range saVectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			var m MAD
			if err := m.UnmarshalBinary(v.MAD); err != nil {
				t.Fatal(err)
			}
			got := madValues(&m)
			if len(got) != len(v.HeaderFields)+1 {
				t.Errorf("%d fields, want %d", len(got)-1, len(v.HeaderFields))
			}
			for _, f := range v.HeaderFields {
				if value, covered := got[f.Name]; !covered || value != plainHex(f.Value) {
					t.Errorf("%s = %q, want %s", f.Name, value, f.Value)
				}
			}
			if !bytes.HasPrefix(m.Data[:], v.Attribute) {
				t.Errorf("data %x, want %x", m.Data, v.Attribute)
			}
			if b, err := m.AppendBinary([]byte("before")); err != nil || !bytes.Equal(b, append([]byte("before"), v.MAD...)) {
				t.Errorf("encoded %x (%v), want %x", b, err, v.MAD)
			}
		})
	}
}

// A flipped bit changes the field it is in and no other, and survives; in the
// class byte it is another class, which is refused.
func TestMADBitFlips(t *testing.T) {
	v, err := vectors.Load("SA_PathRecord")
	if err != nil {
		t.Fatal(err)
	}
	var m MAD
	if err := m.UnmarshalBinary(v.MAD); err != nil {
		t.Fatal(err)
	}
	before := madValues(&m)
	for bit := range 8 * mad.Size {
		flipped := bytes.Clone(v.MAD)
		flipped[bit/8] ^= 0x80 >> (bit % 8)
		err := m.UnmarshalBinary(flipped)
		if bit/8 == 1 {
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("class 0x%02x, want 0x03", flipped[1])) {
				t.Errorf("bit %d: error %v", bit, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("bit %d: %v", bit, err)
		}
		var want []string
		for _, f := range v.HeaderFields {
			if bit >= f.Bit && bit < f.Bit+f.Width {
				want = []string{f.Name}
			}
		}
		if bit >= 8*DataOffset {
			want = []string{"data"}
		}
		if got := changes(before, madValues(&m)); !slices.Equal(got, want) {
			t.Errorf("bit %d: changed %q, want %q", bit, got, want)
		}
		if b, err := m.AppendBinary(nil); err != nil || !bytes.Equal(b, flipped) {
			t.Errorf("bit %d: encoded\n%x (%v), want\n%x", bit, b, err, flipped)
		}
	}
}

func TestMADRefused(t *testing.T) {
	whole := make([]byte, mad.Size+1)
	whole[1] = byte(mad.ClassSubnAdm)
	m := MAD{SMKey: 7}
	for n := range len(whole) + 1 {
		if n == mad.Size {
			continue
		}
		err := m.UnmarshalBinary(whole[:n])
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%d bytes, want 256", n)) {
			t.Errorf("%d bytes: error %v", n, err)
		}
	}
	whole[1] = byte(mad.ClassPerfMgt)
	if err := m.UnmarshalBinary(whole[:mad.Size]); err == nil {
		t.Error("another class: no error")
	}
	if m != (MAD{SMKey: 7}) {
		t.Error("assigned in spite of an error")
	}
	if b, err := m.AppendBinary([]byte("before")); err == nil || string(b) != "before" {
		t.Errorf("class 0: %q, %v", b, err)
	}
	m.Class = mad.ClassSubnAdm
	m.RMPP.Flags = 1 << 3
	b, err := m.AppendBinary([]byte("before"))
	if err == nil || !strings.Contains(err.Error(), "RMPP.Flags") || string(b) != "before" {
		t.Errorf("wide flags: %q, %v", b, err)
	}
}
