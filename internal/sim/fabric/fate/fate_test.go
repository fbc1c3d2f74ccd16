package fate_test

import (
	"testing"

	"github.com/ibwarden/ibwarden/internal/sim/egress"
	"github.com/ibwarden/ibwarden/internal/sim/fabric/fate"
	"github.com/ibwarden/ibwarden/internal/sim/pma"
	"github.com/ibwarden/ibwarden/internal/sim/relay"
)

// moved lists the counters that a fate moves: those of PortCounters, and the
// details that tell why.
func moved(f fate.Fate) map[string]uint64 {
	var p pma.Port
	f.Drop(&p)
	out := map[string]uint64{}
	for name, n := range map[string]uint64{
		"PortRcvErrors": p.PortRcvErrors, "PortRcvConstraintErrors": p.PortRcvConstraintErrors,
		"PortRcvSwitchRelayErrors": p.PortRcvSwitchRelayErrors, "PortXmitDiscards": p.PortXmitDiscards,
		"PortXmitConstraintErrors": p.PortXmitConstraintErrors, "VL15Dropped": p.VL15Dropped,
		"LocalPhysicalErrors": p.LocalPhysicalErrors, "MalformedPacketErrors": p.MalformedPacketErrors,
		"BufferOverrunErrors": p.BufferOverrunErrors,
		"DLIDMappingErrors":   p.DLIDMappingErrors, "LoopingErrors": p.LoopingErrors, "VLMappingErrors": p.VLMappingErrors,
		"InactiveDiscards": p.InactiveDiscards, "NeighborMTUDiscards": p.NeighborMTUDiscards,
		"SwLifetimeLimitDiscards": p.SwLifetimeLimitDiscards, "SwHOQLifetimeLimitDiscards": p.SwHOQLifetimeLimitDiscards,
	} {
		if n != 0 {
			out[name] = n
		}
	}
	return out
}

// Every drop moves the counter that a real port has for it, by one, and the detail
// beside it; what a port does not count moves none.
func TestDropMovesItsCounters(t *testing.T) {
	want := map[fate.Fate][]string{
		fate.Left: nil, fate.Taken: nil, fate.Management: nil, fate.Refused: nil, fate.EntryState: nil,
		fate.Lost: nil, fate.Buffer: nil, fate.Hops: nil,
		fate.VCRC:       {"PortRcvErrors", "LocalPhysicalErrors"},
		fate.Overrun:    {"PortRcvErrors", "BufferOverrunErrors"},
		fate.Malformed:  {"PortRcvErrors", "MalformedPacketErrors"},
		fate.EntryLane:  {"PortRcvErrors", "MalformedPacketErrors"},
		fate.EntryRaw:   {"PortRcvConstraintErrors"},
		fate.EntryPKey:  {"PortRcvConstraintErrors"},
		fate.ExitRaw:    {"PortXmitConstraintErrors"},
		fate.ExitPKey:   {"PortXmitConstraintErrors"},
		fate.NoRoute:    {"PortRcvSwitchRelayErrors", "DLIDMappingErrors"},
		fate.HopLimit:   {"PortRcvSwitchRelayErrors", "DLIDMappingErrors"},
		fate.Loop:       {"PortRcvSwitchRelayErrors", "LoopingErrors"},
		fate.ExitLane:   {"PortXmitDiscards", "VLMappingErrors"},
		fate.LaneClosed: {"PortXmitDiscards", "VLMappingErrors"},
		fate.ExitState:  {"PortXmitDiscards", "InactiveDiscards"},
		fate.LinkDown:   {"PortXmitDiscards", "InactiveDiscards"},
		fate.TooLong:    {"PortXmitDiscards", "NeighborMTUDiscards"},
		fate.TooOld:     {"PortXmitDiscards", "SwLifetimeLimitDiscards"},
		fate.HeadTooOld: {"PortXmitDiscards", "SwHOQLifetimeLimitDiscards"},
		fate.Stalled:    {"PortXmitDiscards", "SwHOQLifetimeLimitDiscards"},
	}
	for f := range fate.Count {
		names, known := want[f]
		if !known {
			t.Errorf("%v: this test does not say what it moves", f)
		}
		got := moved(f)
		if f.IsRelayError() != (got["PortRcvSwitchRelayErrors"] != 0) {
			t.Errorf("%v: IsRelayError %v", f, f.IsRelayError())
		}
		if len(got) != len(names) {
			t.Errorf("%v moves %v, want %v", f, got, names)
		}
		for _, name := range names {
			if got[name] != 1 {
				t.Errorf("%v moves %v, want %v", f, got, names)
			}
		}
	}
}

func TestNames(t *testing.T) {
	seen := map[string]fate.Fate{}
	for f := range fate.Count {
		if other, twice := seen[f.String()]; twice || f.String() == "" {
			t.Errorf("fates %d and %d are both %q", other, f, f)
		}
		seen[f.String()] = f
		if f.IsDrop() != (f > fate.Management) {
			t.Errorf("%v: IsDrop %v", f, f.IsDrop())
		}
	}
	if fate.Count.String() != "unknown fate" {
		t.Error("a fate that there is not has a name")
	}
}

// Every verdict that is not Pass, and every reason that is not Accepted, is a drop
// of its own.
func TestVerdictsAndReasons(t *testing.T) {
	seen := map[fate.Fate]bool{}
	for v := relay.Malformed; v.String() != "unknown verdict"; v++ {
		f := fate.OfVerdict(v)
		if !f.IsDrop() || seen[f] || f.String() != v.String() {
			t.Errorf("%v becomes %v", v, f)
		}
		seen[f] = true
	}
	if len(seen) != int(relay.HopLimit) {
		t.Errorf("%d verdicts, want %d", len(seen), relay.HopLimit)
	}
	for r := egress.HeadTooOld; r <= egress.LaneFull; r++ {
		f := fate.OfReason(r)
		if !f.IsDrop() || seen[f] {
			t.Errorf("%v becomes %v", r, f)
		}
		seen[f] = true
	}
}
