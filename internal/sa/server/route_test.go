package server

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// TestPathAboveLinearFDBTop: what stands in a linear table above its top does not
// count, for paths as little as for packets.
func TestPathAboveLinearFDBTop(t *testing.T) {
	for _, tc := range []struct {
		top  ib.LID
		ways int
	}{{3, 2}, {2, 1}, {1, 0}} {
		v := NewView(observed.Subnet{Fabric: star(tc.top), GIDPrefix: ib.DefaultGIDPrefix, Lifetime: 18})
		a, b := v.At(2), v.At(3)
		ways := 0
		for _, to := range []struct{ from, to *Port }{{a, b}, {b, a}} {
			if _, ok := v.Path(to.from, to.to, to.from.LID, to.to.LID); ok {
				ways++
			}
		}
		if ways != tc.ways {
			t.Errorf("LinearFDBTop %d: %d of two ways, want %d", tc.top, ways, tc.ways)
		}
	}
}

// star is a switch with LID 1 and two hosts with LIDs 2 and 3.
func star(top ib.LID) *observed.Fabric {
	b := subnettest.New()
	b.PortInfo = smp.PortInfo{NeighborMTU: ib.MTU4096, MTUCap: ib.MTU4096, LinkWidthActive: smp.LinkWidth4X, LinkSpeedActive: smp.LinkSpeedQDR}
	s := b.Switch(2, "switch")
	b.Host(s, "a")
	b.Host(s, "b")
	b.Route()
	s.Switch.Info.LinearFDBTop = top
	b.Fabric.Self = &s.Ports[0]
	return b.Fabric
}
