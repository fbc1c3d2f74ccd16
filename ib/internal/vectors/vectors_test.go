package vectors

import (
	"bytes"
	"testing"
)

// The number of golden packets; a vector that got lost must not go unnoticed.
const vectorCount = 70

func TestAll(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != vectorCount {
		t.Fatalf("%d vectors, want %d", len(all), vectorCount)
	}
	for _, v := range all {
		t.Run(v.Name, func(t *testing.T) {
			if len(v.Packet) == 0 || len(v.Fields) == 0 || len(v.VCRC) != 2 {
				t.Fatalf("packet of %d bytes, %d fields, VCRC %x", len(v.Packet), len(v.Fields), v.VCRC)
			}
			if !bytes.HasSuffix(v.Packet, append(bytes.Clone(v.ICRC), v.VCRC...)) {
				t.Errorf("packet does not end in its CRCs")
			}
			if v.MAD != nil {
				checkMAD(t, v)
			}
			for _, f := range v.Fields {
				checkField(t, v, f)
			}
		})
	}
}

func checkMAD(t *testing.T, v Vector) {
	if !bytes.Equal(v.Packet[v.MADOffset:v.MADOffset+len(v.MAD)], v.MAD) {
		t.Errorf("MAD is not at byte %d of the packet", v.MADOffset)
	}
	if !bytes.HasPrefix(v.MAD[v.AttributeOffsetInMAD:], v.Attribute) {
		t.Errorf("attribute is not at byte %d of the MAD", v.AttributeOffsetInMAD)
	}
	for _, f := range v.HeaderFields {
		if f.Bit != f.MADBit {
			t.Errorf("%s: bit %d, madbit %d", f.Name, f.Bit, f.MADBit)
		}
	}
}

// checkField reads the value out of the bytes bit by bit.
func checkField(t *testing.T, v Vector, f Field) {
	src, first := v.Attribute, f.Bit
	if f.Header != "" {
		src, first = v.Packet, 8*f.Byte+f.Bit
	}
	want, err := f.Bytes()
	if err != nil {
		t.Error(err)
		return
	}
	got := make([]byte, len(want))
	for i := range f.Width {
		bit := src[(first+i)/8] >> (7 - (first+i)%8) & 1
		to := 8*len(got) - f.Width + i
		got[to/8] |= bit << (7 - to%8)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: bytes hold %x, listed value is %s", f.Name, got, f.Value)
	}
}

func TestLoadUnknown(t *testing.T) {
	if _, err := Load("NoSuchVector"); err == nil {
		t.Error("no error for an unknown vector")
	}
}

func TestFieldErrors(t *testing.T) {
	for _, value := range []string{"", "x", "-1", "0x10000000000000000"} {
		if _, err := (Field{Name: "F", Width: 64, Value: value}).Uint(); err == nil {
			t.Errorf("Uint of %q: no error", value)
		}
		if _, err := (Field{Name: "F", Width: 64, Value: value}).Bytes(); err == nil {
			t.Errorf("Bytes of %q: no error", value)
		}
	}
}
