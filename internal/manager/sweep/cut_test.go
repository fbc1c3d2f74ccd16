package sweep

import (
	"testing"

	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// TestCutForgetsWhoWasBehind: what was found behind a link that is cut is not in the snapshot
// any more, on neither side; behind other links it stays.
func TestCutForgetsWhoWasBehind(t *testing.T) {
	b := subnettest.New()
	leaf, spine := b.Switch(6, "leaf"), b.Switch(6, "spine")
	manager := b.Host(leaf, "manager")
	subnettest.Join(leaf, spine)
	b.ManagedFrom(manager)
	gone, stays := leaf.Port(5), leaf.Port(6)
	for _, p := range []*observed.Port{gone, stays} {
		p.Stranger, p.Leads = &observed.Stranger{Undeclared: true}, true
	}
	out := Cut(b.Fabric, []*observed.Port{gone})
	if p := twin(out, gone); p.Stranger != nil || p.Leads {
		t.Errorf("behind the link that was cut: %+v, leads %v; want nobody", p.Stranger, p.Leads)
	}
	if p := twin(out, stays); p.Stranger != stays.Stranger || !p.Leads {
		t.Errorf("behind the other link: %+v, leads %v; want who was there", p.Stranger, p.Leads)
	}
}
