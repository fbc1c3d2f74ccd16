package smp

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLinkSpeed holds the speed, the lanes and the rate of every encoding of the active elements of
// PortInfo, alone and with the bits that devices set beside them, against a table, which
// IBWARDEN_UPDATE=1 writes again.
func TestLinkSpeed(t *testing.T) {
	var text strings.Builder
	line := func(w LinkWidth, plain LinkSpeed, ext LinkSpeedExt, ext2 LinkSpeedExt2) {
		p := PortInfo{LinkWidthActive: w, LinkSpeedActive: plain, LinkSpeedExtActive: ext, LinkSpeedExtActive2: ext2}
		s := p.Speed()
		fmt.Fprintf(&text, "width %d speed %d ext %d ext2 %d: %dx %v, %s, %g Gb/s on the wire and %d Mb/s of data a lane, rate %v Gb/s (code %d)\n",
			w, plain, ext, ext2, w.Lanes(), s, s.Gbps(), s.Signal(), s.Data(), p.Rate(), p.Rate())
	}
	for plain := range LinkSpeed(16) {
		line(LinkWidth4X, plain, 0, 0)
	}
	for ext := range LinkSpeedExt(16) {
		line(LinkWidth4X, 0, ext, 0)
		line(LinkWidth4X, LinkSpeedQDR, ext, 0) // as devices show it to who does not know extended speeds
	}
	for ext2 := range LinkSpeedExt2(4) {
		line(LinkWidth4X, 0, 0, ext2)
		line(LinkWidth4X, LinkSpeedQDR, LinkSpeedNDR, ext2)
	}
	for _, w := range []LinkWidth{0, LinkWidth1X, LinkWidth2X, LinkWidth4X, LinkWidth8X, LinkWidth12X, 3, 32, 255} {
		for s := SpeedSDR; s <= SpeedXDR; s++ {
			plain, ext, ext2 := s.Bits()
			line(w, plain, ext, ext2)
		}
	}
	golden := filepath.Join("testdata", "linkspeed.txt")
	if os.Getenv("IBWARDEN_UPDATE") != "" {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := text.String(); got != string(want) {
		for i, l := range strings.Split(got, "\n") {
			if w := strings.Split(string(want), "\n"); i >= len(w) || w[i] != l {
				t.Fatalf("line %d is\n%s", i+1, l)
			}
		}
		t.Fatal("there are lines in the table that nothing is compared with")
	}
}

// Sets give their fastest speed, their widest width, and each speed is the fastest of its own bits.
func TestFastestSpeed(t *testing.T) {
	for s := SpeedSDR; s <= SpeedXDR; s++ {
		plain, ext, ext2 := s.Bits()
		if got := FastestSpeed(plain, ext, ext2); got != s {
			t.Errorf("the bits of %v give %v", s, got)
		}
		for slower := SpeedSDR; slower < s; slower++ {
			a, b, c := slower.Bits()
			if got := FastestSpeed(plain|a, ext|b, ext2|c); got != s {
				t.Errorf("%v and %v give %v", s, slower, got)
			}
			if slower.Data() >= s.Data() || slower.Signal() >= s.Signal() || slower.Tenths() >= s.Tenths() {
				t.Errorf("%v is not slower than %v", slower, s)
			}
		}
	}
	if got := FastestSpeed(8, 0, 2); got != SpeedNone {
		t.Errorf("unknown bits give %v", got)
	}
	lanes := 0
	for _, set := range []LinkWidth{1, 1 | 16, 1 | 16 | 2, 1 | 2 | 4, 31, 255} {
		if w := WidestWidth(set); w.Lanes() <= lanes && w != LinkWidth12X {
			t.Errorf("the widest of %v is %v", set, w)
		} else {
			lanes = w.Lanes()
		}
	}
}
