package packet

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/vectors"
)

// TestAppendEveryOpCode lays out a packet of each opcode, with and without a
// GRH, and checks what Parse makes of it against the list of opcodes.
func TestAppendEveryOpCode(t *testing.T) {
	before := []byte("before")
	for o, want := range opCodeTable(t) {
		for _, global := range []bool{false, true} {
			for n := range 5 {
				headers := []string{"LRH", "BTH"}
				if global {
					headers = []string{"LRH", "GRH", "BTH"}
				}
				headers = append(headers, want...)
				payload := bytes.Repeat([]byte{0xAB}, n)
				if last := len(headers) - 1; headers[last] == "+" {
					headers = headers[:last]
				} else if n != 0 {
					if _, _, err := Append(nil, o, global, payload); err == nil {
						t.Errorf("%v with a payload: no error", o)
					}
					continue
				}
				b, v, err := Append(before, o, global, payload)
				if err != nil {
					t.Fatalf("%v: %v", o, err)
				}
				if !bytes.HasPrefix(b, before) {
					t.Fatalf("%v: what was there is gone", o)
				}
				if got := fmt.Sprint(names(&v)); got != fmt.Sprint(headers) {
					t.Errorf("%v: headers %s, want %s", o, got, headers)
				}
				if !bytes.Equal(v.Payload, payload) || len(v.Pad) != (4-n)&3 {
					t.Errorf("%v: payload %x and %d of pad, want %x", o, v.Payload, len(v.Pad), payload)
				}
				p := b[len(before):]
				if &p[0] != &v.LRH[0] || !bytes.Equal(joined(&v), p) {
					t.Errorf("%v: View does not lie over the packet", o)
				}
				if err := Seal(p); err != nil || !CheckVCRC(p) {
					t.Errorf("%v: Seal: %v", o, err)
				}
			}
		}
	}
}

func TestAppendErrors(t *testing.T) {
	if _, _, err := Append(nil, 0x81, false, nil); err == nil {
		t.Error("unknown opcode: no error")
	}
	most := maxPktLen*wordSize - LRHSize - BTHSize - ICRCSize
	if b, _, err := Append(nil, MakeOpCode(RC, SendOnly), false, make([]byte, most)); err != nil || len(b) != MaxSize {
		t.Errorf("payload of %d bytes: %d bytes, error %v", most, len(b), err)
	}
	if _, _, err := Append(nil, MakeOpCode(RC, SendOnly), false, make([]byte, most+1)); err == nil {
		t.Errorf("payload of %d bytes: no error", most+1)
	}
}

// TestMADPacketVectors makes the golden packets from their datagrams.
func TestMADPacketVectors(t *testing.T) {
	for _, vec := range vectorsWhere(t, func(v vectors.Vector) bool { return v.MAD != nil }) {
		p := MADPacket{QP: ib.QP1, SLID: 0x456, DLID: 0x123, PKey: 0x8123, PSN: 0xA1B2C3, MAD: vec.MAD}
		if vec.MAD[1]&0x7F == 1 { // a class of subnet management
			p.QP = ib.QP0
		}
		got, err := p.AppendBinary([]byte("before"))
		if err != nil {
			t.Fatalf("%s: %v", vec.Name, err)
		}
		if want := append([]byte("before"), vec.Packet...); !bytes.Equal(got, want) {
			t.Errorf("%s: %x, want %x", vec.Name, got, want)
		}
	}
}

func TestMADPacketErrors(t *testing.T) {
	gmp := make([]byte, 256)
	for _, tt := range []struct {
		name string
		p    MADPacket
		want string
	}{
		{"short", MADPacket{MAD: gmp[:255]}, "datagram of 255 bytes, want 256"},
		{"no datagram", MADPacket{}, "datagram of 0 bytes"},
		{"VL 15", MADPacket{QP: ib.QP1, MAD: gmp, VL: ib.VLManagement}, "VL 15 on QP1"},
		{"VL 16", MADPacket{QP: ib.QP1, MAD: gmp, VL: 16}, "VL 16"},
		{"queue pair", MADPacket{QP: 2, MAD: gmp}, "QP 2, want 0 or 1"},
		{"service level", MADPacket{MAD: gmp, SL: 16}, "SL 16, want 0 to 15"},
		{"sequence number", MADPacket{MAD: gmp, PSN: 1 << 24}, "PSN 0x1000000, want 24 bits"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, err := tt.p.AppendBinary([]byte("before"))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
			if string(b) != "before" {
				t.Errorf("an error came with %x", b)
			}
		})
	}
}
