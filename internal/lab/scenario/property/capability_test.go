package property

import (
	"math/bits"
	"testing"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
)

// Every bit of both masks but IsSM has one trait, which changes this bit of every
// port and no other.
func TestEveryCapability(t *testing.T) {
	all := All()
	var seen smp.CapabilityMask
	var seen2 smp.CapabilityMask2
	for name := range all {
		if capabilities[name] == 0 && capabilities2[name] == 0 {
			continue
		}
		before := sma.PortConfig{CapabilityMask: 0x0F0F0F0F, CapabilityMask2: 0x0F0F}
		for _, n := range []uint64{1, 0} {
			c := sma.Config{Ports: []sma.PortConfig{before, before}, Switch: &sma.SwitchConfig{Port0: before}}
			if !all[name].Apply(&c, n) {
				t.Fatalf("%s: not for a switch", name)
			}
			for i, p := range []sma.PortConfig{c.Ports[0], c.Ports[1], c.Switch.Port0} {
				bit, bit2 := capabilities[name], capabilities2[name]
				if bits.OnesCount32(uint32(bit))+bits.OnesCount16(uint16(bit2)) != 1 {
					t.Fatalf("%s: bits %#x and %#x, want one in one of them", name, uint32(bit), uint16(bit2))
				}
				if p.CapabilityMask.Has(bit) != (n == 1 || bit == 0) || p.CapabilityMask2.Has(bit2) != (n == 1 || bit2 == 0) ||
					(p.CapabilityMask^before.CapabilityMask)&^bit != 0 || (p.CapabilityMask2^before.CapabilityMask2)&^bit2 != 0 {
					t.Errorf("%s=%d: port %d has %#x and %#x", name, n, i, uint32(p.CapabilityMask), uint16(p.CapabilityMask2))
				}
			}
		}
		if seen&capabilities[name] != 0 || seen2&capabilities2[name] != 0 {
			t.Errorf("%s: another has this bit too", name)
		}
		seen, seen2 = seen|capabilities[name], seen2|capabilities2[name]
	}
	if seen|smp.CapIsSM != 0xFFFFFFFE || seen2 != 0x1FFF {
		t.Errorf("bits %#x and %#x, want all that have a name", uint32(seen), uint16(seen2))
	}
}
