package fabric_test

import (
	"testing"

	"github.com/ibwarden/ibwarden/internal/sim/egress"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/pma"
	"github.com/ibwarden/ibwarden/internal/sim/relay"
)

// moved lists the counters that a outcome moves: those of PortCounters, and the
// details that tell why.
func moved(f fabric.Outcome) map[string]uint64 {
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
	want := map[fabric.Outcome][]string{
		fabric.OutcomeLeft: nil, fabric.OutcomeTaken: nil, fabric.OutcomeManagement: nil, fabric.OutcomeRefused: nil, fabric.OutcomeEntryState: nil,
		fabric.OutcomeLost: nil, fabric.OutcomeBuffer: nil, fabric.OutcomeHops: nil,
		fabric.OutcomeVCRC:       {"PortRcvErrors", "LocalPhysicalErrors"},
		fabric.Overrun:           {"PortRcvErrors", "BufferOverrunErrors"},
		fabric.OutcomeMalformed:  {"PortRcvErrors", "MalformedPacketErrors"},
		fabric.OutcomeEntryLane:  {"PortRcvErrors", "MalformedPacketErrors"},
		fabric.OutcomeEntryRaw:   {"PortRcvConstraintErrors"},
		fabric.OutcomeEntryPKey:  {"PortRcvConstraintErrors"},
		fabric.OutcomeExitRaw:    {"PortXmitConstraintErrors"},
		fabric.OutcomeExitPKey:   {"PortXmitConstraintErrors"},
		fabric.OutcomeNoRoute:    {"PortRcvSwitchRelayErrors", "DLIDMappingErrors"},
		fabric.OutcomeHopLimit:   {"PortRcvSwitchRelayErrors", "DLIDMappingErrors"},
		fabric.OutcomeLoop:       {"PortRcvSwitchRelayErrors", "LoopingErrors"},
		fabric.OutcomeExitLane:   {"PortXmitDiscards", "VLMappingErrors"},
		fabric.OutcomeLaneClosed: {"PortXmitDiscards", "VLMappingErrors"},
		fabric.OutcomeExitState:  {"PortXmitDiscards", "InactiveDiscards"},
		fabric.OutcomeLinkDown:   {"PortXmitDiscards", "InactiveDiscards"},
		fabric.OutcomeTooLong:    {"PortXmitDiscards", "NeighborMTUDiscards"},
		fabric.OutcomeTooOld:     {"PortXmitDiscards", "SwLifetimeLimitDiscards"},
		fabric.OutcomeHeadTooOld: {"PortXmitDiscards", "SwHOQLifetimeLimitDiscards"},
		fabric.OutcomeStalled:    {"PortXmitDiscards", "SwHOQLifetimeLimitDiscards"},
	}
	for f := range fabric.Count {
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
	seen := map[string]fabric.Outcome{}
	for f := range fabric.Count {
		if other, twice := seen[f.String()]; twice || f.String() == "" {
			t.Errorf("outcomes %d and %d are both %q", other, f, f)
		}
		seen[f.String()] = f
		if f.IsDrop() != (f > fabric.OutcomeManagement) {
			t.Errorf("%v: IsDrop %v", f, f.IsDrop())
		}
	}
	if fabric.Count.String() != "unknown outcome" {
		t.Error("a outcome that there is not has a name")
	}
}

// Every verdict that is not Pass, and every reason that is not Accepted, is a drop
// of its own.
func TestVerdictsAndReasons(t *testing.T) {
	seen := map[fabric.Outcome]bool{}
	for v := relay.Malformed; v.String() != "unknown verdict"; v++ {
		f := fabric.OfVerdict(v)
		if !f.IsDrop() || seen[f] || f.String() != v.String() {
			t.Errorf("%v becomes %v", v, f)
		}
		seen[f] = true
	}
	if len(seen) != int(relay.HopLimit) {
		t.Errorf("%d verdicts, want %d", len(seen), relay.HopLimit)
	}
	for r := egress.HeadTooOld; r <= egress.LaneFull; r++ {
		f := fabric.OfReason(r)
		if !f.IsDrop() || seen[f] {
			t.Errorf("%v becomes %v", r, f)
		}
		seen[f] = true
	}
}
