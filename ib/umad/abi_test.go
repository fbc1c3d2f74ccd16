package umad

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib/mad"
)

// TestLayout holds the codecs against bytes written by hand from the kernel's
// structures, for a little-endian machine.
func TestLayout(t *testing.T) {
	h := Header{
		ID: 1, Status: 110, TimeoutMilliseconds: 0x0102, Retries: 3, Length: 320, QPN: 1, QKey: 0x80010000,
		LID: 0x1234, SL: 5, PathBits: 6, GRHPresent: 1, PKeyIndex: 0x0A0B,
		GRH: GRH{GIDIndex: 7, HopLimit: 8, TrafficClass: 9, GID: [16]byte{0xFE, 0x80, 15: 0xAA}, FlowLabel: 0xBCDEF},
	}
	r := Registration{
		ID: 2, QPN: 1, Class: mad.ClassSubnAdm, ClassVersion: 2, OUI: 0x112233, RMPPVersion: 1,
		Methods: MethodSet(mad.MethodGet, mad.MethodGetMulti, 0x7F),
	}
	r2 := r
	r2.Flags = FlagUserRMPP
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{"header", put(&h, true), `01000000 6e000000 02010000 03000000 40010000 00000001 80010000 1234 05 06 01 07 08 09
			fe8000000000000000000000000000aa 000bcdef 0b0a 000000000000`},
		{"short header", put(&h, false), `01000000 6e000000 02010000 03000000 40010000 00000001 80010000 1234 05 06 01 07 08 09
			fe8000000000000000000000000000aa 000bcdef`},
		{"register", r.Encode(), `02000000 0200100000000000 0000000000000080 01 03 02 112233 01 00`},
		{"register 2", r2.Encode2(), `02000000 01000000 03 02 0000 01000000 0200100000000000 0000000000000080 33221100 01 000000`},
		{"unregister", EncodeID(5), `05000000`},
	} {
		if want := strings.Join(strings.Fields(c.want), ""); hex.EncodeToString(c.got) != want {
			t.Errorf("%s:\n%x, want\n%s", c.name, c.got, want)
		}
	}
	if got, err := ReadHeader(put(&h, true), true); err != nil || got != h {
		t.Errorf("read %+v, %v, want %+v", got, err, h)
	}
	if got, err := ReadRegistration(CommandRegister, r.Encode()); err != nil || got != r {
		t.Errorf("read %+v, %v, want %+v", got, err, r)
	}
	if got, err := ReadRegistration(CommandRegister2, r2.Encode2()); err != nil || got != r2 {
		t.Errorf("read %+v, %v, want %+v", got, err, r2)
	}
}

func put(h *Header, long bool) []byte {
	b := make([]byte, SizeOf(long))
	h.Put(b, long)
	return b
}

func TestShort(t *testing.T) {
	if _, err := ReadHeader(make([]byte, HeaderSize-1), true); err == nil {
		t.Error("a short header was read")
	}
	for _, command := range []uint32{CommandRegister, CommandRegister2, CommandEnablePKey} {
		if _, err := ReadRegistration(command, make([]byte, RegisterSize-1)); err == nil {
			t.Errorf("command %#x: a short argument was read", command)
		}
	}
	if _, ok := ReadID(make([]byte, UnregisterSize-1)); ok {
		t.Error("a short number was read")
	}
	if got := Errno(95).Error() + " " + EIO.Error(); got != "errno 95 EIO" {
		t.Error(got)
	}
}

func TestMethods(t *testing.T) {
	for m := range mad.Method(0x80) {
		s := MethodSet(m)
		for o := range mad.Method(0x80) {
			if s.Has(o) != (o == m) {
				t.Fatalf("method %#x in the set of %#x: %v", o, m, s.Has(o))
			}
		}
	}
}
