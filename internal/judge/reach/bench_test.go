package reach

import (
	"testing"

	"github.com/ibwarden/ibwarden/test/need"
)

// BenchmarkCount counts a fabric of 11,664 hosts at 243 leaves under one spine,
// each with a key of its tenant and the default one.
func BenchmarkCount(b *testing.B) {
	f := bigFabric()
	b.ResetTimer()
	for b.Loop() {
		if c, ok := Count(f); !ok || c[Delivered] == 0 || c[NoRoute] > 0 {
			b.Fatal(c, ok)
		}
	}
}

func TestBigCount(t *testing.T) {
	need.Long(t, "136 million pairs")
	c, ok := Count(bigFabric())
	const hosts, tenants = 11664, 729
	const each = hosts / tenants
	want := Counts{Delivered: hosts * (each - 1), OutboundKey: hosts * (hosts - each), DestinationKey: hosts*(hosts-1) + 3*hosts*244 + 244*243}
	if !ok || c != want {
		t.Errorf("%v %v, want %v", c, ok, want)
	}
}
