package packet

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib/internal/vectors"
)

// part is a header of a View under its name.
type part struct {
	name  string
	bytes []byte
}

// parts lists the headers of v in their order on the wire.
func parts(v *View) []part {
	var ps []part
	add := func(name string, present bool, raw func() []byte) {
		if present {
			ps = append(ps, part{name, raw()})
		}
	}
	add("LRH", v.LRH != nil, func() []byte { return v.LRH[:] })
	add("RWH", v.RWH != nil, func() []byte { return v.RWH[:] })
	add("GRH", v.GRH != nil, func() []byte { return v.GRH[:] })
	add("BTH", v.BTH != nil, func() []byte { return v.BTH[:] })
	add("RDETH", v.RDETH != nil, func() []byte { return v.RDETH[:] })
	add("DETH", v.DETH != nil, func() []byte { return v.DETH[:] })
	add("RETH", v.RETH != nil, func() []byte { return v.RETH[:] })
	add("AtomicETH", v.AtomicETH != nil, func() []byte { return v.AtomicETH[:] })
	add("AETH", v.AETH != nil, func() []byte { return v.AETH[:] })
	add("AtomicAckETH", v.AtomicAckETH != nil, func() []byte { return v.AtomicAckETH[:] })
	add("ImmDt", v.ImmDt != nil, func() []byte { return v.ImmDt[:] })
	add("IETH", v.IETH != nil, func() []byte { return v.IETH[:] })
	return ps
}

// names lists the headers of v.
func names(v *View) []string {
	var ns []string
	for _, p := range parts(v) {
		ns = append(ns, p.name)
	}
	return ns
}

// joined puts a View together again.
func joined(v *View) []byte {
	var b []byte
	for _, p := range parts(v) {
		b = append(b, p.bytes...)
	}
	b = append(append(b, v.Payload...), v.Pad...)
	if v.ICRC != nil {
		b = append(b, v.ICRC[:]...)
	}
	return append(b, v.VCRC[:]...)
}

func TestParseVectors(t *testing.T) {
	for _, vec := range allVectors(t) {
		t.Run(vec.Name, func(t *testing.T) {
			v, err := Parse(vec.Packet)
			if err != nil {
				t.Fatal(err)
			}
			if got := joined(&v); !bytes.Equal(got, vec.Packet) {
				t.Errorf("parts make %x, want %x", got, vec.Packet)
			}
			if !bytes.Equal(v.VCRC[:], vec.VCRC) {
				t.Errorf("VCRC %x, want %x", v.VCRC[:], vec.VCRC)
			}
			if v.ICRC == nil != (vec.ICRC == nil) || v.ICRC != nil && !bytes.Equal(v.ICRC[:], vec.ICRC) {
				t.Errorf("ICRC %x, want %x", v.ICRC, vec.ICRC)
			}
			if vec.Headers == nil {
				return
			}
			if got := fmt.Sprint(names(&v)); got != fmt.Sprint(vec.Headers) {
				t.Errorf("headers %s, want %s", got, vec.Headers)
			}
			if !bytes.Equal(v.Payload, vec.Payload) || len(v.Pad) != vec.Pad {
				t.Errorf("payload %x and %d of pad, want %x and %d", v.Payload, len(v.Pad), vec.Payload, vec.Pad)
			}
		})
	}
}

func TestParseTruncated(t *testing.T) {
	for _, vec := range allVectors(t) {
		for n := range vec.Packet {
			if _, err := Parse(vec.Packet[:n:n]); err == nil {
				t.Errorf("%s cut to %d bytes: no error", vec.Name, n)
			}
		}
		if _, err := Parse(append(bytes.Clone(vec.Packet), 0)); err == nil {
			t.Errorf("%s with a byte too many: no error", vec.Name)
		}
	}
}

// cutTo shortens a packet to n bytes before the VCRC and makes PktLen agree.
func cutTo(packet []byte, n int) []byte {
	p := bytes.Clone(packet[:n+VCRCSize])
	(*LRH)(p).SetPktLen(uint16(n / 4))
	return p
}

func TestParseErrors(t *testing.T) {
	tests := []struct {
		vector string
		name   string
		change func(p []byte) []byte
		want   string
	}{
		{"HDR_RC_ACK", "LVer", func(p []byte) []byte { (*LRH)(p).SetLVer(1); return p }, "LVer 1, want 0"},
		{"HDR_RC_ACK", "PktLen too small", func(p []byte) []byte { (*LRH)(p).SetPktLen(6); return p }, "30 bytes, PktLen 6 and the VCRC make 26"},
		{"HDR_RC_ACK", "PktLen too large", func(p []byte) []byte { (*LRH)(p).SetPktLen(8); return p }, "PktLen 8 and the VCRC make 34"},
		{"HDR_RC_ACK", "no room for the AETH", func(p []byte) []byte { return cutTo(p, 24) }, "0 bytes between BTH and ICRC, RC acknowledge has 4 of headers"},
		{"HDR_RC_ACK", "no room for the ICRC", func(p []byte) []byte { return cutTo(p, 20) }, "12 bytes from the BTH to the ICRC, want at least 16"},
		{"HDR_RC_ACK", "no room for the BTH", func(p []byte) []byte { return cutTo(p, 8) }, "0 bytes from the BTH"},
		{"HDR_RC_ACK", "TVer", func(p []byte) []byte { (*BTH)(p[8:]).SetTVer(15); return p }, "TVer 15, want 0"},
		{"HDR_RC_ACK", "pad without payload", func(p []byte) []byte { (*BTH)(p[8:]).SetPadCnt(1); return p }, "PadCnt is 1"},
		{"HDR_RC_WRITE_ONLY_IMM", "payload where there is none", func(p []byte) []byte { (*BTH)(p[8:]).SetOpCode(0x0C); return p }, "RC RDMA READ request with a payload"},
		{"HDR_RC_WRITE_ONLY_IMM", "unknown opcode", func(p []byte) []byte { (*BTH)(p[8:]).SetOpCode(0x81); return p }, "unknown opcode 0x81"},
		{"HDR_RC_SEND_ONLY_PAD", "pad longer than the payload", func(p []byte) []byte { return cutTo(p, 24) }, "PadCnt is 2"},
		{"HDR_UD_SEND_ONLY_GRH", "IPVer", func(p []byte) []byte { (*GRH)(p[8:]).SetIPVer(4); return p }, "IPVer 4, want 6"},
		{"HDR_UD_SEND_ONLY_GRH", "NxtHdr", func(p []byte) []byte { (*GRH)(p[8:]).SetNxtHdr(59); return p }, "NxtHdr 0x3b, want 0x1b"},
		{"HDR_UD_SEND_ONLY_GRH", "PayLen", func(p []byte) []byte { (*GRH)(p[8:]).SetPayLen(55); return p }, "PayLen 55, 56 bytes follow"},
		{"HDR_UD_SEND_ONLY_GRH", "no room for the GRH", func(p []byte) []byte { return cutTo(p, 44) }, "36 bytes after the LRH, a GRH has 40"},
		{"HDR_RAW_ETHERTYPE", "no room for the RWH", func(p []byte) []byte { return cutTo(p, 8) }, "an RWH has 4"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			vec, err := vectors.Load(tt.vector)
			if err != nil {
				t.Fatal(err)
			}
			v, err := Parse(tt.change(vec.Packet))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
			if len(parts(&v)) != 0 {
				t.Errorf("an error came with headers %v", names(&v))
			}
		})
	}
}

func TestParseShortestPackets(t *testing.T) {
	raw := []byte{0, byte(LNHRawIPv6), 0, 1, 0, 2, 0, 1, 0, 0}
	if v, err := Parse(raw); err != nil || len(v.Payload) != 0 {
		t.Errorf("raw packet without payload: %v, payload %x", err, v.Payload)
	}
	for n := range LRHSize {
		if h, err := ParseLRH(make([]byte, n)); err == nil || h != nil {
			t.Errorf("LRH of %d bytes: %v, %v", n, h, err)
		}
	}
}

// opCodes lists every opcode and the headers after its BTH, "+" standing for a
// payload.
const opCodes = `
00 + | 01 + | 02 + | 03 ImmDt + | 04 + | 05 ImmDt +
06 RETH + | 07 + | 08 + | 09 ImmDt + | 0a RETH + | 0b RETH ImmDt +
0c RETH | 0d AETH + | 0e + | 0f AETH + | 10 AETH + | 11 AETH
12 AETH AtomicAckETH | 13 AtomicETH | 14 AtomicETH | 16 IETH + | 17 IETH +
20 + | 21 + | 22 + | 23 ImmDt + | 24 + | 25 ImmDt +
26 RETH + | 27 + | 28 + | 29 ImmDt + | 2a RETH + | 2b RETH ImmDt +
40 RDETH DETH + | 41 RDETH DETH + | 42 RDETH DETH + | 43 RDETH DETH ImmDt +
44 RDETH DETH + | 45 RDETH DETH ImmDt + | 46 RDETH DETH RETH + | 47 RDETH DETH +
48 RDETH DETH + | 49 RDETH DETH ImmDt + | 4a RDETH DETH RETH + | 4b RDETH DETH RETH ImmDt +
4c RDETH DETH RETH | 4d RDETH AETH + | 4e RDETH + | 4f RDETH AETH + | 50 RDETH AETH +
51 RDETH AETH | 52 RDETH AETH AtomicAckETH | 53 RDETH DETH AtomicETH
54 RDETH DETH AtomicETH | 55 RDETH DETH
64 DETH + | 65 DETH ImmDt +
`

// opCodeTable is opCodes as a map; the strings have their headers and "+".
func opCodeTable(t testing.TB) map[OpCode][]string {
	table := map[OpCode][]string{}
	for _, line := range strings.Split(strings.TrimSpace(opCodes), "\n") {
		for _, entry := range strings.Split(line, "|") {
			words := strings.Fields(entry)
			var o OpCode
			if _, err := fmt.Sscanf(words[0], "%x", &o); err != nil {
				t.Fatal(err)
			}
			table[o] = words[1:]
		}
	}
	return table
}

func TestOpCodes(t *testing.T) {
	table := opCodeTable(t)
	for i := range 256 {
		o := OpCode(i)
		want, known := table[o]
		if o.IsValid() != known {
			t.Errorf("%v: IsValid %v, want %v", o, o.IsValid(), known)
		}
		if !known {
			if o.Headers() != 0 || o.HasPayload() || !strings.HasPrefix(o.String(), "opcode 0x") {
				t.Errorf("%v: unknown, but headers %b", o, o.Headers())
			}
			continue
		}
		if o != MakeOpCode(o.Transport(), o.Operation()) {
			t.Errorf("0x%02x: taken apart and joined is 0x%02x", i, MakeOpCode(o.Transport(), o.Operation()))
		}
		size := 0
		for _, name := range want {
			size += sizeOf[name]
		}
		if o.Headers().Size() != size {
			t.Errorf("%v: headers of %d bytes, want %d", o, o.Headers().Size(), size)
		}
	}
}

func TestOpCodeString(t *testing.T) {
	for o, want := range map[OpCode]string{
		OpCodeUDSendOnly: "UD SEND only",
		0x0B:             "RC RDMA WRITE only with immediate",
		0x55:             "RD RESYNC",
		0x81:             "opcode 0x81",
		0x7F:             "opcode 0x7f",
	} {
		if got := o.String(); got != want {
			t.Errorf("0x%02x: %q, want %q", uint8(o), got, want)
		}
	}
}

func TestHotPathDoesNotAllocate(t *testing.T) {
	for _, vec := range headerVectors(t) {
		p := bytes.Clone(vec.Packet)
		allocs := testing.AllocsPerRun(20, func() {
			v, err := Parse(p)
			if err != nil || !CheckVCRC(p) {
				t.Fatal("packet refused")
			}
			if v.ICRC != nil {
				if ok, err := CheckICRC(p); !ok || err != nil {
					t.Fatal("ICRC refused")
				}
			}
			v.LRH.SetVL(v.LRH.VL())
			SealVCRC(p)
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations", vec.Name, allocs)
		}
	}
}
