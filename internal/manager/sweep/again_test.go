package sweep

import (
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// TestFallen: of a switch that does not answer any more while one of its links is looked
// behind, the other links that are down are told, and none that is up.
func TestFallen(t *testing.T) {
	const leaf, spine = 5, 6
	for _, x := range []struct {
		name string
		mute bool     // the spine does not answer
		down []uint32 // ports of the leaf
		want []ib.PortNum
	}{
		{"it has died", true, []uint32{2, 3}, []ib.PortNum{3}},
		{"it is busy", true, []uint32{2}, nil},
		{"one cable was pulled", false, []uint32{2}, nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			begun := false
			alive := device(map[string]smp.NodeInfo{"1": switchInfo(leaf, 4, 1), "1,2": switchInfo(spine, 2, 1), "1,3": switchInfo(spine, 2, 2), "1,4": hostInfo(8)})
			at := host(0, nil, func(route string, p *mad.SMP) (smp.Attribute, mad.Status, bool) {
				behind := strings.HasPrefix(route, "1,2") || strings.HasPrefix(route, "1,3")
				switch {
				case begun && behind && (x.mute || strings.HasPrefix(route, "1,2")):
					return nil, 0, false
				case begun && route == "1" && p.AttributeID == smp.AttrPortInfo && slices.Contains(x.down, p.AttributeModifier):
					return &smp.PortInfo{PortState: smp.PortDown, PortPhysicalState: smp.PhysPolling}, 0, true
				}
				return alive(route, p)
			})
			whole, _ := sweepOver(t, Options{}, at)
			f := whole.Fabric()
			if len(f.Nodes) != 4 || f.Node(leaf).Port(3).Peer != f.Node(spine).Port(2) {
				t.Fatalf("%d nodes before", len(f.Nodes))
			}
			begun = true
			moved := []*observed.Port{f.Node(leaf).Port(2)}
			w := transact.NewWindow(transact.DefaultLimits())
			d := Again(w, Options{}, f, moved, moved)
			drive(t, w, d, at, func(*Discovery) {})
			var got []ib.PortNum
			for _, p := range d.Fallen() {
				if p.Node.GUID() != leaf {
					t.Errorf("%s is told", p)
				}
				got = append(got, p.Num)
			}
			if !slices.Equal(got, x.want) {
				t.Errorf("ports %v of the leaf, want %v; faults:\n%s", got, x.want, faultsOf(d))
			}
		})
	}
}
