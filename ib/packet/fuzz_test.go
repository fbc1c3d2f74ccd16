package packet

import (
	"bytes"
	"slices"
	"testing"
)

func FuzzParse(f *testing.F) {
	for _, vec := range allVectors(f) {
		f.Add(vec.Packet)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		v, err := Parse(data)
		icrcRight, icrcErr := CheckICRC(data)
		vcrcRight := CheckVCRC(data)
		if !bytes.Equal(data, before) {
			t.Fatal("the packet was changed")
		}
		if err != nil {
			return
		}
		if !bytes.Equal(joined(&v), data) {
			t.Fatalf("parts make %x, want %x", joined(&v), data)
		}
		if (icrcErr == nil) != (v.ICRC != nil) {
			t.Fatalf("CheckICRC: %v, ICRC %x", icrcErr, v.ICRC)
		}
		if err := Seal(data); err != nil {
			t.Fatal(err)
		}
		same := bytes.Equal(data, before)
		if right := vcrcRight && (icrcRight || v.ICRC == nil); right != same {
			t.Fatalf("CRCs are right: %v, Seal changed nothing: %v", right, same)
		}
	})
}

// fuzzHeader writes one field of a header and reads all of them: that field
// has the value as far as it fits, and writing back what was there before
// restores every byte.
func fuzzHeader(f *testing.F, header string) {
	fields := headerFields(f)[header]
	fields = slices.DeleteFunc(fields, isReserved)
	for i, field := range fields {
		v := fieldValue(f, field)
		f.Add(uint8(i), v[:], make([]byte, sizeOf[header]))
	}
	f.Fuzz(func(t *testing.T, which uint8, in, raw []byte) {
		if len(raw) < sizeOf[header] || len(in) != len(value{}) {
			return
		}
		field := fields[int(which)%len(fields)]
		a := accessors[header][field.Name]
		was := a.get(raw)
		changed := bytes.Clone(raw)
		want := value(in)
		a.set(changed, want)
		for i := range 8*len(want) - field.Width {
			want[i/8] &^= 0x80 >> (i % 8)
		}
		if got := a.get(changed); got != want {
			t.Fatalf("%s.%s = %x after writing %x", header, field.Name, got, in)
		}
		if a.set(changed, was); !bytes.Equal(changed, raw) {
			t.Fatalf("%s.%s written and restored: %x, was %x", header, field.Name, changed, raw)
		}
	})
}

func FuzzLRH(f *testing.F)          { fuzzHeader(f, "LRH") }
func FuzzGRH(f *testing.F)          { fuzzHeader(f, "GRH") }
func FuzzBTH(f *testing.F)          { fuzzHeader(f, "BTH") }
func FuzzRDETH(f *testing.F)        { fuzzHeader(f, "RDETH") }
func FuzzDETH(f *testing.F)         { fuzzHeader(f, "DETH") }
func FuzzRETH(f *testing.F)         { fuzzHeader(f, "RETH") }
func FuzzAtomicETH(f *testing.F)    { fuzzHeader(f, "AtomicETH") }
func FuzzAETH(f *testing.F)         { fuzzHeader(f, "AETH") }
func FuzzAtomicAckETH(f *testing.F) { fuzzHeader(f, "AtomicAckETH") }
func FuzzImmDt(f *testing.F)        { fuzzHeader(f, "ImmDt") }
func FuzzIETH(f *testing.F)         { fuzzHeader(f, "IETH") }
func FuzzRWH(f *testing.F)          { fuzzHeader(f, "RWH") }
