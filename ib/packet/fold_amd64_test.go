//go:build !purego

package packet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/ibwarden/ibwarden/test/need"
)

// judge compares carry-less multiplication, 16 and 64 bytes at a time, with the tables. The
// bytes are read at every alignment, and nothing after them.
func judge(t *testing.T, b []byte, crc uint32) {
	t.Helper()
	if len(b) < 16 {
		return
	}
	word := binary.LittleEndian.Uint64
	want32 := crc32Rest(crc, b)
	want16 := ^vcrcByTables(b)
	rest := b[16:]
	p := &b[len(b)-1]
	if len(rest) > 0 {
		p = &rest[0]
	}
	for _, wide := range []bool{false, true} {
		if wide && !foldsWide {
			continue
		}
		if got := foldBytes(icrcFolding, word(b)^uint64(crc), word(b[8:]), p, len(rest), wide); got != want32 {
			t.Fatalf("CRC-32 of %d bytes after %#x, wide %v: %#08x, by tables %#08x\n%x", len(b), crc, wide, got, want32, b)
		}
		got := foldBytes(vcrcFolding, word(b)^0xFFFF, word(b[8:]), p, len(rest), wide)
		if got>>16 != 0 || uint16(got) != want16 {
			t.Fatalf("CRC-16 of %d bytes, wide %v: %#08x, by tables %#04x\n%x", len(b), wide, got, want16, b)
		}
	}
}

func needFold(t testing.TB) {
	t.Helper()
	if !canFold {
		need.Need(t, errors.New("this processor has no carry-less multiplication"))
	}
}

// TestFoldAgainstTables tries every length up to 1,300 bytes, which takes each loop
// several times and ends it with each remainder, and those around the longest packet.
func TestFoldAgainstTables(t *testing.T) {
	needFold(t)
	const seed = 1
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	raw := make([]byte, MaxSize+32)
	for i := range raw {
		raw[i] = byte(random.Uint32())
	}
	for n := range 1300 {
		at := random.IntN(32)
		judge(t, raw[at:at+n:at+n], random.Uint32())
	}
	for n := MaxSize - 300; n <= MaxSize; n++ {
		judge(t, raw[n%32:][:n:n], random.Uint32())
	}
}

// TestFoldSeesEveryBit: each bit of a long message alone, so that no lane and no shuffle can
// be wrong and be hidden by another.
func TestFoldSeesEveryBit(t *testing.T) {
	needFold(t)
	for _, n := range []int{17, 31, 127, 128, 512, 777, 1040} {
		b := make([]byte, n)
		for bit := range 8 * n {
			b[bit/8] = 1 << (bit % 8)
			judge(t, b, 0)
			b[bit/8] = 0
		}
	}
}

// TestFoldReadsNoFurther: bytes before and after change nothing.
func TestFoldReadsNoFurther(t *testing.T) {
	needFold(t)
	for n := 16; n < 600; n++ {
		b := bytes.Repeat([]byte{0xA5}, n+64)
		of := func() (uint32, uint16) {
			crc := crc32Of(7, 1, 2, b[48:32+n])
			return crc, vcrc(b[32 : 32+n])
		}
		x, y := of()
		for i := range 16 {
			b[i], b[16+i], b[32+n+i] = byte(i), byte(n), byte(i*n)
		}
		if x2, y2 := of(); x2 != x || y2 != y {
			t.Fatalf("%d bytes: %#x and %#x, with others around them %#x and %#x", n, x, y, x2, y2)
		}
	}
}

func FuzzFold(f *testing.F) {
	needFold(f)
	for _, n := range []int{16, 17, 47, 128, 129, 500, 512, 600, 2086} {
		f.Add(bytes.Repeat([]byte{0xC3, 1}, n)[:n], ^uint32(0))
	}
	f.Fuzz(func(t *testing.T, b []byte, crc uint32) { judge(t, b, crc) })
}
