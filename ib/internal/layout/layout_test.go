package layout

import (
	"bytes"
	"fmt"
	"math/big"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

type entry struct {
	Low  uint8 `ib:"4,4"`
	Next bool  `ib:"8,1"`
}

type inner struct {
	Number uint32 `ib:"4,20"`
	Head   uint8  `ib:"0,4"`
}

func (*inner) UnmarshalBinary([]byte) error { return nil }

type Embedded struct {
	Code uint8 `ib:"0,8"`
}

// sample has a field of every kind, not in the order of the wire.
type sample struct {
	Nine     uint16    `ib:"7,9"`
	Flag     bool      `ib:"0,1"`
	Six      uint8     `ib:"1,6"`
	Word     uint32    `ib:"16,32"`
	Crossing uint8     `ib:"52,8"` // part of two bytes
	Nibble   uint8     `ib:"48,4"`
	Twelve   uint16    `ib:"60,12"`
	Long     uint64    `ib:"72,56"`
	Short    uint16    `ib:"128,8"`
	Bytes    [3]byte   `ib:"136,24"`
	Words    [2]uint16 `ib:"160,32"`
	Nibbles  [4]uint8  `ib:"192,16"`
	Longs    [2]uint64 `ib:"208,128"`
	Entries  [2]entry  `ib:"336,32"`
	Inner    inner     `ib:"368,24"`
	Embedded `ib:"392,8"`
	Quads    [2]uint32 `ib:"408,64"`
	Tail     uint32    `ib:"480,24"`

	reserved400 uint8    `ib:"400,8"`
	spare       [64]byte `ib:"spare"`
}

// bitsOf reads bits one by one.
func bitsOf(data []byte, bit, n int) string {
	v := new(big.Int)
	for i := bit; i < bit+n; i++ {
		v.Or(v.Lsh(v, 1), big.NewInt(int64(data[i/8]>>(7-i%8)&1)))
	}
	return v.Text(16)
}

// fromHex is the value of a field as bitsOf reads it.
func fromHex(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Bool:
		return map[bool]string{true: "1", false: "0"}[v.Bool()]
	case reflect.Array:
		text := ""
		for i := range v.Len() {
			text += fmt.Sprintf("%0*x", v.Type().Elem().Bits()/4, v.Index(i).Uint())
		}
		n, _ := new(big.Int).SetString(text, 16)
		return n.Text(16)
	}
	return fmt.Sprintf("%x", v.Uint())
}

// TestEveryKind reads random bytes bit by bit, as the layout reads them, and gets them back.
func TestEveryKind(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	l := Of[*sample]("sample", 64)
	for range 500 {
		var data, back [64]byte
		for i := range data {
			data[i], back[i] = byte(r.Uint32()), byte(r.Uint32())
		}
		var s sample
		l.Decode(&s, data[:])
		v, elements := reflect.ValueOf(s), map[string]int{}
		for _, f := range l.Fields() {
			name := strings.TrimPrefix(f.Name, "sample.")
			if name == "spare" {
				continue
			}
			field := v
			switch part, inside := strings.CutPrefix(name, "Inner: inner."); {
			case inside:
				field = v.FieldByName("Inner").FieldByName(part)
			case name == "Low", name == "Next":
				field = v.FieldByName("Entries").Index(elements[name]).FieldByName(name)
			case name == "Nibbles":
				field = v.FieldByName(name).Index(elements[name])
			default:
				field = v.FieldByName(name)
			}
			elements[name]++
			if got, want := fromHex(field), bitsOf(data[:], f.Bit, f.Bits); got != want {
				t.Fatalf("seed %d: %s is %s, want %s", seed, f.Name, got, want)
			}
		}
		if err := l.Encode(&s, back[:]); err != nil || back != data {
			t.Fatalf("seed %d: encoded\n%x (%v), want\n%x", seed, back, err, data)
		}
	}
}

// A value that does not fit is told by its path, and nothing is written.
func TestTooWide(t *testing.T) {
	l := Of[*sample]("sample", 64)
	for want, s := range map[string]sample{
		"sample.Nine: value 0x200 does not fit 9 bits":                    {Nine: 0x200},
		"sample.Six: value 0x40 does not fit 6 bits":                      {Six: 0x40, Tail: 1 << 30},
		"sample.Short: value 0x100 does not fit 8 bits":                   {Short: 0x100},
		"sample.Long: value 0x100000000000000 does not fit 56 bits":       {Long: 1 << 56},
		"sample.Nibbles: value 0x10 does not fit 4 bits":                  {Nibbles: [4]uint8{3: 16}},
		"sample.Low: value 0xff does not fit 4 bits":                      {Entries: [2]entry{1: {Low: 255}}},
		"sample.Inner: inner.Number: value 0x100000 does not fit 20 bits": {Inner: inner{Number: 1 << 20}},
		"sample.Tail: value 0x1000000 does not fit 24 bits":               {Tail: 1 << 24},
	} {
		data := bytes.Repeat([]byte{7}, 64)
		if err := l.Encode(&s, data); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		if !bytes.Equal(data, bytes.Repeat([]byte{7}, 64)) {
			t.Errorf("%s: written all the same", want)
		}
		if b, err := l.Append([]byte("before"), &s); err == nil || string(b) != "before" {
			t.Errorf("%s: appended %q", want, b)
		}
	}
}

// What is behind the last field is kept as a string, without the zeros at its end.
func TestSpareString(t *testing.T) {
	type short struct {
		Number uint16 `ib:"0,16"`
		rest   string `ib:"spare"`
	}
	l := Of[*short]("short", 8)
	for _, data := range [][]byte{{1, 2, 0, 0, 0, 0, 0, 0}, {1, 2, 0, 0, 5, 0, 0, 0}, {1, 2, 3, 4, 5, 6, 7, 8}} {
		var s short
		l.Decode(&s, data)
		if want := string(bytes.TrimRight(data[2:], "\x00")); s.Number != 0x0102 || s.rest != want {
			t.Errorf("% x: %+v", data, s)
		}
		if b, err := l.Append(nil, &s); err != nil || !bytes.Equal(b, data) {
			t.Errorf("% x comes back as % x, %v", data, b, err)
		}
	}
}

// Inside another, a structure keeps the spare bits of its own bytes and no more.
func TestSpareInside(t *testing.T) {
	type part struct {
		Number uint16   `ib:"0,12"`
		spare  [64]byte `ib:"spare"`
	}
	type whole struct {
		Before uint8  `ib:"0,8"`
		Part   part   `ib:"8,24"`
		After  uint32 `ib:"32,32"`
	}
	l := Of[*whole]("whole", 8)
	w := whole{Part: part{spare: [64]byte{40: 9}}}
	data := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	if err := l.Unmarshal(&w, data); err != nil || w.Part.Number != 0x020 || w.Part.spare != [64]byte{1: 3, 2: 4} {
		t.Errorf("%+v, %v", w, err)
	}
	if b, err := l.Append(nil, &w); err != nil || !bytes.Equal(b, data) {
		t.Errorf("% x, %v", b, err)
	}
	if err := l.Unmarshal(&w, data[:7]); err == nil || err.Error() != "whole: 7 bytes, want 8" || w.Before != 1 {
		t.Errorf("%v", err)
	}
}

// From takes less data, as if zeros followed, but none behind the layout; FillTo writes more.
func TestFromAndFillTo(t *testing.T) {
	type short struct {
		A uint16   `ib:"0,16"`
		B [8]uint8 `ib:"16,64"`
	}
	l := Of[*short]("short", 10).From(3).FillTo(8)
	for n := range 12 {
		s := short{A: 9, B: [8]uint8{7: 9}}
		err := l.Unmarshal(&s, bytes.Repeat([]byte{1}, 12)[:n])
		want := short{A: 0x0101}
		copy(want.B[:min(8, max(0, n-2))], bytes.Repeat([]byte{1}, 8))
		switch {
		case n >= 3 && n <= 10:
			if err != nil || s != want {
				t.Errorf("%d bytes: %+v, %v, want %+v", n, s, err, want)
			}
		case err == nil || err.Error() != fmt.Sprintf("short: %d bytes, want 3 to 10", n) || s.A != 9:
			t.Errorf("%d bytes: %+v, %v", n, s, err)
		}
	}
	b, err := l.Append([]byte{7}, &short{A: 1, B: [8]uint8{7: 2}})
	if want := []byte{7, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0}; err != nil || !bytes.Equal(b, want) {
		t.Errorf("% x, %v, want % x", b, err, want)
	}
}

// A mistake in a tag shows when the program starts.
func TestRefused(t *testing.T) {
	type (
		none struct{ A uint8 }
		gap  struct {
			A uint8 `ib:"0,8"`
			B uint8 `ib:"12,4"`
		}
		overlap struct {
			A uint8 `ib:"0,8"`
			B uint8 `ib:"7,8"`
		}
		outside struct {
			A uint16 `ib:"8,16"`
		}
		wide struct {
			A uint8 `ib:"0,16"`
		}
		flag struct {
			A bool `ib:"0,2"`
		}
		uneven struct {
			A [3]uint8 `ib:"0,16"`
		}
		signed struct {
			A int16 `ib:"0,16"`
		}
		narrow struct {
			A uint8 `ib:"0,4"`
			B uint8 `ib:"4,4"`
		}
		odd struct {
			A uint16 `ib:"0,12"`
			B uint8  `ib:"12,4"`
		}
		spare struct {
			A     uint8   `ib:"0,8"`
			spare [1]byte `ib:"spare"`
		}
	)
	for want, of := range map[string]func(){
		`none.A: tag "", want the offset and the length in bits, within 16`: func() { Of[*none]("none", 2) },
		"gap: no field has bit 8":                                                  func() { Of[*gap]("gap", 2) },
		"overlap.B: another field has bit 7":                                       func() { Of[*overlap]("overlap", 2) },
		`outside.A: tag "8,16", want the offset and the length in bits, within 16`: func() { Of[*outside]("outside", 2) },
		"wide.A: 16 bits in a uint8":                                               func() { Of[*wide]("wide", 2) },
		"flag.A: 2 bits in a bool":                                                 func() { Of[*flag]("flag", 2) },
		"uneven.A: 3 elements in 16 bits":                                          func() { Of[*uneven]("uneven", 2) },
		"signed.A: a field of type int16 has no layout":                            func() { Of[*signed]("signed", 2) },
		"narrow: numbers of less bits than their type in less than 8 bytes":        func() { Of[*narrow]("narrow", 1) },
		"odd.A: 12 bits in 2 bytes of 2":                                           func() { Of[*odd]("odd", 2) },
		"long: 72 bytes, want at most 64": func() {
			Of[*struct {
				A [72]uint8 `ib:"0,576"`
			}]("long", 72).From(1)
		},
		"spare.spare: a [1]uint8 cannot hold the spare bits of 16": func() { Of[*spare]("spare", 2) },
	} {
		t.Run(want, func(t *testing.T) {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("%v", got)
				}
			}()
			of()
		})
	}
}

func TestNoAllocation(t *testing.T) {
	l := Of[*sample]("sample", 64)
	data, buf := bytes.Repeat([]byte{0xA5}, 64), make([]byte, 0, 64)
	var s sample
	if n := testing.AllocsPerRun(100, func() {
		if l.Unmarshal(&s, data) != nil || l.Encode(&s, data) != nil {
			t.Error("not coded")
		}
		if _, err := l.Append(buf, &s); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
