package fabric_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/packet"
)

// start is the time of the first packet of the test captures.
var start = time.Unix(1_700_000_000, 123_456_789)

// headerSize is the length of the header of a record.
const headerSize = 16

func TestCaptureBytes(t *testing.T) {
	var file bytes.Buffer
	c, err := packet.NewCaptureWriter(&file)
	if err != nil {
		t.Fatal(err)
	}
	golden, err := (&packet.MADPacket{QP: ib.QP1, SLID: 1, DLID: 2, MAD: make([]byte, 256)}).AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	packets := [][]byte{{0xAB}, golden, make([]byte, packet.MaxSize), {}}
	for i, p := range packets {
		if err := c.WritePacket(start.Add(time.Duration(i)), p); err != nil {
			t.Fatal(err)
		}
	}
	r, err := pcapgo.NewReader(&file)
	if err != nil {
		t.Fatal(err)
	}
	if r.LinkType() != 197 {
		t.Errorf("link type %d, want 197 (ERF)", r.LinkType())
	}
	for i, p := range packets {
		got, info, err := r.ReadPacketData()
		if err != nil {
			t.Fatal(err)
		}
		if want := start.Add(time.Duration(i)); !info.Timestamp.Equal(want) {
			t.Errorf("packet %d at %v, want %v", i, info.Timestamp, want)
		}
		if len(got) < headerSize || !bytes.Equal(got[headerSize:], p) {
			t.Errorf("packet %d: record %x, want a header and %x", i, got, p)
		}
		if i == 0 {
			want := "38dd9a1f00f15365" + "1504" + "0011" + "0000" + "0001" + "ab"
			if hex.EncodeToString(got) != want {
				t.Errorf("record %x, want %s", got, want)
			}
		}
	}
	if _, _, err := r.ReadPacketData(); err != io.EOF {
		t.Errorf("after the last packet: %v, want EOF", err)
	}
}

var errDiskFull = errors.New("disk full")

// failAfter is a file that takes n writes.
type failAfter struct{ n int }

func (f *failAfter) Write(b []byte) (int, error) {
	if f.n--; f.n < 0 {
		return 0, errDiskFull
	}
	return len(b), nil
}

func TestCaptureErrors(t *testing.T) {
	if _, err := packet.NewCaptureWriter(&failAfter{0}); !errors.Is(err, errDiskFull) {
		t.Errorf("header: %v, want %v", err, errDiskFull)
	}
	c, err := packet.NewCaptureWriter(&failAfter{1})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.WritePacket(start, []byte{1}); err == nil || !strings.Contains(err.Error(), errDiskFull.Error()) {
		t.Errorf("packet: %v, want %v", err, errDiskFull)
	}
	c, err = packet.NewCaptureWriter(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.WritePacket(start, make([]byte, packet.MaxSize+1)); err == nil {
		t.Error("packet longer than MaxSize: no error")
	}
	for _, at := range []time.Time{{}, time.Unix(-1, 0), time.Unix(1<<32, 0)} {
		if err := c.WritePacket(at, []byte{1}); err == nil {
			t.Errorf("time %v: no error", at)
		}
	}
}
