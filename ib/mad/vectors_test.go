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

type unsigned interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64
}

func num[T unsigned](v T) string { return fmt.Sprintf("%x", uint64(v)) }

func long(b []byte) string { return plainHex(fmt.Sprintf("%x", b)) }

func boolean(v bool) string {
	if v {
		return "1"
	}
	return "0"
}

func plainHex(s string) string {
	s = strings.TrimLeft(strings.TrimPrefix(s, "0x"), "0")
	if s == "" {
		return "0"
	}
	return s
}

// madVectors are the golden packets that hold a MAD.
func madVectors(t testing.TB) []vectors.Vector {
	all, err := vectors.All()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(v vectors.Vector) bool { return v.MAD == nil })
}

func isSMP(v vectors.Vector) bool {
	return Class(v.MAD[1]) == ClassSubnLID || Class(v.MAD[1]) == ClassSubnDirected
}

// headerValues reads a header under the names that the vectors have.
func headerValues(h *Header) map[string]string {
	return map[string]string{
		"MAD.BaseVersion":       num(h.BaseVersion),
		"MAD.MgmtClass":         num(h.Class),
		"MAD.ClassVersion":      num(h.ClassVersion),
		"MAD.R":                 boolean(h.Method.IsResponse()),
		"MAD.Method":            num(h.Method &^ MethodResponse),
		"MAD.Status":            num(h.Status),
		"MAD.ClassSpecific":     num(h.ClassSpecific),
		"MAD.TransactionID":     num(h.TransactionID),
		"MAD.AttributeID":       num(h.AttributeID),
		"MAD.AttributeModifier": num(h.AttributeModifier),
	}
}

// smpValues reads what a directed-route SMP has beyond the common header.
func smpValues(p *SMP) map[string]string {
	return map[string]string{
		"MAD.BaseVersion":       num(p.BaseVersion),
		"MAD.MgmtClass":         num(p.Class),
		"MAD.ClassVersion":      num(p.ClassVersion),
		"MAD.R":                 boolean(p.Method.IsResponse()),
		"MAD.Method":            num(p.Method &^ MethodResponse),
		"SMP.D":                 boolean(p.Direction),
		"SMP.Status":            num(p.Status),
		"SMP.HopPointer":        num(p.HopPointer),
		"SMP.HopCount":          num(p.HopCount),
		"MAD.TransactionID":     num(p.TransactionID),
		"MAD.AttributeID":       num(p.AttributeID),
		"MAD.AttributeModifier": num(p.AttributeModifier),
		"SMP.M_Key":             num(p.MKey),
		"SMP.DrSLID":            num(p.DrSLID),
		"SMP.DrDLID":            num(p.DrDLID),
		"SMP.InitialPath":       long(p.InitialPath[:]),
		"SMP.ReturnPath":        long(p.ReturnPath[:]),
		"data":                  long(p.Data[:]),
	}
}

func TestHeaderVectors(t *testing.T) {
	for _, v := range madVectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			var h Header
			if err := h.UnmarshalBinary(v.MAD); err != nil {
				t.Fatal(err)
			}
			values := headerValues(&h)
			for _, f := range v.HeaderFields {
				if !strings.HasPrefix(f.Name, "MAD.") {
					continue
				}
				if got, ok := values[f.Name]; !ok || got != plainHex(f.Value) {
					t.Errorf("%s = %q, want %s", f.Name, got, f.Value)
				}
			}
			b, err := h.AppendBinary([]byte("before"))
			if err != nil || !bytes.Equal(b, append([]byte("before"), v.MAD[:HeaderSize]...)) {
				t.Errorf("encoded %x, %v", b, err)
			}
		})
	}
}

func TestSMPVectors(t *testing.T) {
	tested := 0
	for _, v := range madVectors(t) {
		if !isSMP(v) {
			continue
		}
		tested++
		t.Run(v.Name, func(t *testing.T) {
			var p SMP
			if err := p.UnmarshalBinary(v.MAD); err != nil {
				t.Fatal(err)
			}
			values := smpValues(&p)
			values["MAD.Status"] = num(p.Status) // its name in a LID-routed SMP
			values["MAD.ClassSpecific"] = num(uint16(p.HopPointer)<<8 | uint16(p.HopCount))
			for _, f := range v.HeaderFields {
				if got, ok := values[f.Name]; !ok || got != plainHex(f.Value) {
					t.Errorf("%s = %q, want %s", f.Name, got, f.Value)
				}
			}
			if !bytes.HasPrefix(p.Data[:], v.Attribute) {
				t.Errorf("data %x, want %x", p.Data, v.Attribute)
			}
			b, err := p.AppendBinary([]byte("before"))
			if err != nil || !bytes.Equal(b, append([]byte("before"), v.MAD...)) {
				t.Errorf("encoded %x, %v", b, err)
			}
		})
	}
	if want := 33; tested != want {
		t.Errorf("%d vectors of subnet management, want %d", tested, want)
	}
}

// A flipped bit of a directed-route SMP changes its own field only and
// survives; in the class byte it is another class, which is refused.
func TestSMPBitFlips(t *testing.T) {
	v, err := vectors.Load("DR_NodeInfo_outgoing")
	if err != nil {
		t.Fatal(err)
	}
	// The class bit that tells LID-routed from directed-route.
	const routingBit = 8
	var p SMP
	if err := p.UnmarshalBinary(v.MAD); err != nil {
		t.Fatal(err)
	}
	before := smpValues(&p)
	for bit := range 8 * Size {
		flipped := bytes.Clone(v.MAD)
		flipped[bit/8] ^= 0x80 >> (bit % 8)
		err := p.UnmarshalBinary(flipped)
		if bit/8 == 1 && bit != routingBit {
			if err == nil {
				t.Errorf("bit %d: class %#02x accepted", bit, flipped[1])
			}
			continue
		}
		if err != nil {
			t.Errorf("bit %d: %v", bit, err)
			continue
		}
		var changed []string
		after := smpValues(&p)
		for _, name := range slices.Sorted(maps.Keys(before)) {
			if before[name] != after[name] {
				changed = append(changed, name)
			}
		}
		if want := smpFieldAt(v, bit); !slices.Equal(changed, want) {
			t.Errorf("bit %d: changed %q, want %q", bit, changed, want)
		}
		if b, err := p.AppendBinary(nil); err != nil || !bytes.Equal(b, flipped) {
			t.Errorf("bit %d: encoded\n%x (%v), want\n%x", bit, b, err, flipped)
		}
	}
}

func smpFieldAt(v vectors.Vector, bit int) []string {
	for _, f := range v.HeaderFields {
		if bit >= f.Bit && bit < f.Bit+f.Width {
			return []string{f.Name}
		}
	}
	if at := bit / 8; at >= DataOffset && at < DataOffset+DataSize {
		return []string{"data"}
	}
	return nil
}

func FuzzSMP(f *testing.F) {
	for _, v := range madVectors(f) {
		f.Add(v.MAD)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var p SMP
		if err := p.UnmarshalBinary(data); err != nil {
			if p != (SMP{}) {
				t.Fatal("assigned in spite of the error")
			}
			return
		}
		if b, err := p.AppendBinary(nil); err != nil || !bytes.Equal(b, data) {
			t.Fatalf("encoded\n%x (%v), want\n%x", b, err, data)
		}
	})
}

func FuzzHeader(f *testing.F) {
	for _, v := range madVectors(f) {
		f.Add(v.MAD[:HeaderSize])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var h Header
		if err := h.UnmarshalBinary(data); err != nil {
			if len(data) >= HeaderSize || h != (Header{}) {
				t.Fatal(err)
			}
			return
		}
		if b, err := h.AppendBinary(nil); err != nil || !bytes.Equal(b, data[:HeaderSize]) {
			t.Fatalf("encoded\n%x (%v), want\n%x", b, err, data[:HeaderSize])
		}
	})
}
