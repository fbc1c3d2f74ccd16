package servicetest

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
)

// A drained switch is out of the routes of the others on the fabric itself, and back in them
// when it is undrained; the default routes of a fat tree use it.
func TestDrain(t *testing.T) {
	s, _ := start(t, "sim", t.TempDir())
	do(t, s, provider, resource.PutTenant{Tenant: resource.Tenant{Name: "red"}})
	var spine *observed.Node
	carries := func() (routes int) {
		t.Helper()
		snap, err := s.Complete(t.Context(), service.Parts{})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range snap.Fabric.Switches() {
			if n.Description == "spine-1" {
				spine = n
			}
		}
		own := map[ib.LID]bool{spine.Ports[0].Info.LID: true}
		for _, n := range snap.Fabric.Switches() {
			for lid, exit := range n.Switch.LFT {
				if exit == 0 || int(exit) >= len(n.Ports) || own[ib.LID(lid)] || n == spine {
					continue
				}
				if p := &n.Ports[exit]; p.Peer != nil && p.Peer.Node == spine {
					routes++
				}
			}
		}
		return routes
	}
	if n := carries(); n == 0 {
		t.Fatal("no route leads over spine-1 before it is drained")
	}
	drain := resource.DrainSwitch{Drain: resource.Drain{Switch: spine.GUID(), Name: spine.Description}}
	do(t, s, provider, drain)
	if n := carries(); n != 0 {
		t.Errorf("%d routes lead over spine-1, which is drained", n)
	}
	do(t, s, provider, resource.UndrainSwitch{Switch: spine.GUID()})
	if n := carries(); n == 0 {
		t.Error("no route leads over spine-1 after it was undrained")
	}
}
