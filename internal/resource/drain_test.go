package resource_test

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// Only the provider drains switches, and the policy has those of the file and those that he
// drained.
func TestDrains(t *testing.T) {
	b := newBench(t)
	b.do(provider, file("settings: {drain: [spine-1]}"))
	drain := resource.DrainSwitch{Drain: resource.Drain{Switch: 0x200002, Name: "spine-2"}}
	b.refused(resource.Forbidden, of("red"), drain)
	b.refused(resource.Invalid, provider, resource.DrainSwitch{})
	b.refused(resource.NotFound, provider, resource.UndrainSwitch{Switch: 0x200002})
	b.do(provider, drain)
	b.refused(resource.Forbidden, of("red"), resource.UndrainSwitch{Switch: 0x200002})
	want := []policy.Place{{Name: "spine-1"}, {Switch: 0x200002}}
	if got := b.Policy().Drained; len(got) != 2 || got[0].At != want[0] || got[1].At != want[1] {
		t.Errorf("the policy drains %+v, want %v", got, want)
	}
	b.do(provider, resource.UndrainSwitch{Switch: 0x200002})
	if got := b.Policy().Drained; len(got) != 1 || got[0].At != want[0] {
		t.Errorf("the policy drains %+v, want %v", got, want[:1])
	}
	for i := range resource.DrainsMax {
		b.do(provider, resource.DrainSwitch{Drain: resource.Drain{Switch: drain.Switch + 1 + ib.NodeGUID(i)}})
	}
	b.refused(resource.OverQuota, provider, drain)
}
