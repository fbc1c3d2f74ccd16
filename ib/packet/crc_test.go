package packet

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"
)

// TestCRCExamples checks the worked examples; the ICRC of the first is a
// published one.
func TestCRCExamples(t *testing.T) {
	data, err := os.ReadFile("testdata/crc_examples.json")
	if err != nil {
		t.Fatal(err)
	}
	var examples []struct {
		Name   string
		Packet string `json:"packet_without_crc"`
		ICRC   string `json:"icrc_wire"`
		VCRC   string `json:"vcrc_wire"`
	}
	if err := json.Unmarshal(data, &examples); err != nil {
		t.Fatal(err)
	}
	if len(examples) != 2 {
		t.Fatalf("%d examples, want 2", len(examples))
	}
	for _, e := range examples {
		t.Run(e.Name, func(t *testing.T) {
			p, err := hex.DecodeString(e.Packet)
			if err != nil {
				t.Fatal(err)
			}
			got, err := AppendICRC(p)
			if err != nil {
				t.Fatal(err)
			}
			got = AppendVCRC(got)
			if want := e.Packet + e.ICRC + e.VCRC; hex.EncodeToString(got) != want {
				t.Errorf("CRCs %x, want %s%s", got[len(p):], e.ICRC, e.VCRC)
			}
		})
	}
}

func TestCRCOfVectors(t *testing.T) {
	for _, vec := range allVectors(t) {
		t.Run(vec.Name, func(t *testing.T) {
			crcs := len(vec.ICRC) + len(vec.VCRC)
			body := vec.Packet[:len(vec.Packet)-crcs]
			got := bytes.Clone(body)
			if vec.ICRC != nil {
				var err error
				if got, err = AppendICRC(got); err != nil {
					t.Fatal(err)
				}
				if ok, err := CheckICRC(vec.Packet); !ok || err != nil {
					t.Errorf("CheckICRC: %v, %v", ok, err)
				}
			}
			if got = AppendVCRC(got); !bytes.Equal(got, vec.Packet) {
				t.Errorf("CRCs %x, want %x%x", got[len(body):], vec.ICRC, vec.VCRC)
			}
			if !CheckVCRC(vec.Packet) {
				t.Error("CheckVCRC refused it")
			}
			sealed := append(bytes.Clone(body), make([]byte, crcs)...)
			if err := Seal(sealed); err != nil || !bytes.Equal(sealed, vec.Packet) {
				t.Errorf("Seal: %v, CRCs %x", err, sealed[len(body):])
			}
		})
	}
}

// TestCRCsSeeEveryBit flips each bit of each header vector. The VCRC sees all
// of them; the ICRC all but the ones that change on the way.
func TestCRCsSeeEveryBit(t *testing.T) {
	for _, vec := range headerVectors(t) {
		t.Run(vec.Name, func(t *testing.T) {
			for i := range 8 * len(vec.Packet) {
				p := bytes.Clone(vec.Packet)
				p[i/8] ^= 0x80 >> (i % 8)
				if CheckVCRC(p) {
					t.Fatalf("VCRC right with bit %d flipped", i)
				}
				// Another LNH is another packet, with another rule.
				if vec.ICRC == nil || i == 14 || i == 15 || i >= 8*(len(p)-VCRCSize) {
					continue
				}
				ok, err := CheckICRC(p)
				if want := isVariant(vec.Headers, i); err != nil || ok != want {
					t.Errorf("ICRC right with bit %d flipped: %v (%v), want %v", i, ok, err, want)
				}
			}
		})
	}
}

// isVariant reports whether bit i of a packet with these headers is left out
// of the ICRC.
func isVariant(headers []string, i int) bool {
	grh := len(headers) > 1 && headers[1] == "GRH"
	bth := 8 * LRHSize
	if grh {
		bth += 8 * GRHSize
	}
	switch {
	case i >= bth+32 && i < bth+40: // FECN, BECN, reserved
		return true
	case !grh:
		return i < 4 // VL
	case i < 64: // LRH
		return true
	}
	i -= 64
	return i >= 4 && i < 32 || i >= 56 && i < 64 // TClass, FlowLabel; HopLmt
}

func TestCRCErrors(t *testing.T) {
	raw := make([]byte, 64)
	if _, err := AppendICRC(raw); !errors.Is(err, ErrNoICRC) {
		t.Errorf("AppendICRC of a raw packet: %v, want %v", err, ErrNoICRC)
	}
	if _, err := CheckICRC(raw); !errors.Is(err, ErrNoICRC) {
		t.Errorf("CheckICRC of a raw packet: %v, want %v", err, ErrNoICRC)
	}
	for lnh, headers := range map[LNH]int{LNHLocal: LRHSize + BTHSize, LNHGlobal: LRHSize + GRHSize + BTHSize} {
		for n := range headers {
			b := make([]byte, n)
			if n >= LRHSize {
				(*LRH)(b).SetLNH(lnh)
			}
			if got, err := AppendICRC(b); err == nil || len(got) != n {
				t.Errorf("LNH %d: AppendICRC of %d bytes: %d bytes, error %v", lnh, n, len(got), err)
			}
			whole := append(b, make([]byte, ICRCSize+VCRCSize)...)
			if _, err := CheckICRC(whole); err == nil {
				t.Errorf("LNH %d: CheckICRC of %d bytes: no error", lnh, len(whole))
			}
			if err := Seal(whole); err == nil && n >= LRHSize {
				t.Errorf("LNH %d: Seal of %d bytes: no error", lnh, len(whole))
			}
		}
	}
	for n := range LRHSize + VCRCSize {
		b := make([]byte, n)
		if err := Seal(b); err == nil || CheckVCRC(b) {
			t.Errorf("%d bytes: Seal %v, CheckVCRC %v", n, err, CheckVCRC(b))
		}
		SealVCRC(b)
		if !bytes.Equal(b, make([]byte, n)) {
			t.Errorf("%d bytes: SealVCRC wrote %x", n, b)
		}
	}
}

// TestVCRCBitByBit compares the tables with the definition: generator 0x100B,
// least significant bit first, ones before and inverted after.
func TestVCRCBitByBit(t *testing.T) {
	for at, want := range map[int]uint16{1: 0x1BA1, 128: 0xD008, 255: 0x0960} {
		if got := vcrcTables[0][at]; got != want {
			t.Errorf("table[%d] = 0x%04x, want 0x%04x", at, got, want)
		}
	}
	const seed = 1
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for n := range 70 {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		if got, want := vcrc(b), vcrcByDefinition(b); got != want {
			t.Errorf("%x: 0x%04x, want 0x%04x", b, got, want)
		}
	}
}

func vcrcByDefinition(b []byte) uint16 {
	var register uint16 = 0xFFFF
	for i := range 8 * len(b) {
		in := uint16(b[i/8]>>(i%8)) & 1
		out := register >> 15
		register <<= 1
		if in != out {
			register ^= 0x100B
		}
	}
	var reversed uint16
	for i := range 16 {
		reversed |= register >> i & 1 << (15 - i)
	}
	return ^reversed
}

// BenchmarkCheckCRCs checks both CRCs of datagrams. x-tables is the time that both take
// by tables alone, as on a processor without carry-less multiplication, as a multiple.
func BenchmarkCheckCRCs(b *testing.B) {
	for _, size := range []int{0, 64, 256, 2048} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			p, _, err := Append(nil, OpCodeUDSendOnly, false, make([]byte, size))
			if err != nil || Seal(p) != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(p)))
			b.ReportAllocs()
			for b.Loop() {
				if ok, err := CheckICRC(p); !ok || err != nil || !CheckVCRC(p) {
					b.Fatal("wrong CRC")
				}
			}
			took := b.Elapsed().Seconds() / float64(b.N)
			const rounds = 100_000
			begin := time.Now()
			var sum uint32
			for range rounds {
				sum += crc32Rest(^uint32(0), p[:len(p)-VCRCSize-ICRCSize]) + uint32(vcrcByTables(p[:len(p)-VCRCSize]))
			}
			if sum == 0 {
				b.Log("the sum of all CRCs is 0") // so that they are computed
			}
			b.ReportMetric(time.Since(begin).Seconds()/rounds/took, "x-tables")
		})
	}
}

func BenchmarkParse(b *testing.B) {
	p, _, err := Append(nil, OpCodeUDSendOnly, true, make([]byte, 256))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(p); err != nil {
			b.Fatal(err)
		}
	}
}
