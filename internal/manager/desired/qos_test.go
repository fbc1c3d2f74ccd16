package desired

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// capability is what one end of a link can do.
type capability struct {
	mtu     ib.MTU
	vl, low uint8
}

// link is a fabric of two nodes, joined at their ports 1 by a trained link.
func link(kindA, kindB ib.NodeType, a, b capability) (f *observed.Fabric, x, y *observed.Port) {
	f = observed.NewFabric()
	end := func(kind ib.NodeType, name string, c capability) *observed.Port {
		n := f.AddNode(smp.NodeInfo{NodeType: kind, NumPorts: 2, NodeGUID: ib.NodeGUID(len(f.Nodes) + 1)})
		n.Description = name
		p := &n.Ports[1]
		p.InfoRead = true
		p.Info.PortState, p.Info.PortPhysicalState = smp.PortInit, smp.PhysLinkUp
		p.Info.MTUCap, p.Info.VLCap, p.Info.VLArbitrationLowCap = c.mtu, c.vl, c.low
		return p
	}
	x, y = end(kindA, "x", a), end(kindB, "y", b)
	observed.Connect(x, y)
	return f, x, y
}

func links(t *testing.T, f *observed.Fabric, s policy.Settings) (*observed.Desired, []CapabilityFault) {
	t.Helper()
	d := observed.NewDesired(f)
	faults, err := EnterLinks(f, &s, d)
	if err != nil {
		t.Fatal(err)
	}
	return d, faults
}

func lanes(t *testing.T, f *observed.Fabric, s policy.Settings) (*observed.Desired, []CapabilityFault) {
	t.Helper()
	d := observed.NewDesired(f)
	faults, _, err := EnterLanes(f, &s, nil, nil, d)
	if err != nil {
		t.Fatal(err)
	}
	return d, faults
}

// PI-61: NeighborMTU is the smaller MTUCap of the two ends, at both of them.
func TestPI61NeighborMTUIsTheSmallerMTUCap(t *testing.T) {
	for a := ib.MTU256; a <= ib.MTU4096; a++ {
		for b := ib.MTU256; b <= ib.MTU4096; b++ {
			f, x, y := link(ib.NodeCA, ib.NodeSwitch, capability{mtu: a, vl: 1}, capability{mtu: b, vl: 1})
			d, faults := links(t, f, policy.DefaultSettings())
			for _, p := range []*observed.Port{x, y} {
				want := d.Port(p)
				if want.Info.NeighborMTU != min(a, b) || want.Elements&observed.ElementNeighborMTU == 0 {
					t.Errorf("MTUCap %s and %s: %s gets %s", a, b, p, want.Info.NeighborMTU)
				}
			}
			if faults != nil {
				t.Errorf("faults %v", faults)
			}
		}
	}
}

// PI-83: OperationalVLs is the smaller VLCap of the two ends, at both of them.
func TestPI83OperationalVLsIsTheSmallerVLCap(t *testing.T) {
	for a := uint8(1); a <= 5; a++ {
		for b := uint8(1); b <= 5; b++ {
			f, x, y := link(ib.NodeSwitch, ib.NodeSwitch, capability{ib.MTU2048, a, 8}, capability{ib.MTU2048, b, 8})
			d, faults := links(t, f, policy.DefaultSettings())
			for _, p := range []*observed.Port{x, y} {
				want := d.Port(p)
				if want.Info.OperationalVLs != min(a, b) || want.Elements&observed.ElementOperationalVLs == 0 {
					t.Errorf("VLCap %d and %d: %s gets %d", a, b, p, want.Info.OperationalVLs)
				}
			}
			if faults != nil {
				t.Errorf("faults %v", faults)
			}
		}
	}
}

func TestMeaninglessCapabilities(t *testing.T) {
	bad := capability{mtu: 0, vl: 6, low: 8}
	f, x, y := link(ib.NodeCA, ib.NodeSwitch, bad, capability{ib.MTU4096, 4, 8})
	d, faults := links(t, f, policy.DefaultSettings())
	for _, p := range []*observed.Port{x, y} {
		if want := d.Port(p); want.Info.NeighborMTU != ib.MTU256 || want.Info.OperationalVLs != 1 {
			t.Errorf("%s gets MTU %s and OperationalVLs %d", p, want.Info.NeighborMTU, want.Info.OperationalVLs)
		}
	}
	var told []string
	for _, fault := range faults {
		told = append(told, fault.String())
	}
	want := []string{
		"x:1: PortInfo.MTUCap is 0, want 1 to 5; the least is assumed",
		"x:1: PortInfo.VLCap is 6, want 1 to 5; the least is assumed",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

// HOQLife and VLStallCount belong to the external ports of switches.
func TestHOQLife(t *testing.T) {
	asked := policy.DefaultSettings()
	asked.HOQLife, asked.LeafHOQLife, asked.VLStallCount, asked.LeafVLStallCount = 17, 9, 3, 2
	c := capability{ib.MTU2048, 2, 8}
	for _, l := range []struct {
		kind  ib.NodeType // of the far end
		want  ib.TimeValue
		stall uint8
	}{{ib.NodeSwitch, 17, 3}, {ib.NodeCA, 9, 2}, {ib.NodeRouter, 9, 2}} {
		f, x, y := link(ib.NodeSwitch, l.kind, c, c)
		d, _ := links(t, f, asked)
		const both = observed.ElementHOQLife | observed.ElementVLStallCount
		if want := d.Port(x); want.Elements&both != both || want.Info.HOQLife != l.want || want.Info.VLStallCount != l.stall {
			t.Errorf("switch port to a %s: HOQLife %d, VLStallCount %d", l.kind, want.Info.HOQLife, want.Info.VLStallCount)
		}
		if want := d.Port(y); l.kind != ib.NodeSwitch && want.Elements&both != 0 {
			t.Errorf("port of a %s: wanted %v", l.kind, want.Elements.Names())
		}
	}
}

// Links that are not trained at both ends, and ports without a peer, are left
// alone.
func TestLinksThatAreNotUp(t *testing.T) {
	c := capability{ib.MTU2048, 4, 8}
	for name, change := range map[string]func(x, y *observed.Port){
		"near end down":     func(x, y *observed.Port) { x.Info.PortState = smp.PortDown },
		"far end down":      func(x, y *observed.Port) { y.Info.PortState = smp.PortDown },
		"not trained":       func(x, y *observed.Port) { y.Info.PortPhysicalState = smp.PhysPolling },
		"unread":            func(x, y *observed.Port) { y.InfoRead = false },
		"nobody at the end": func(x, y *observed.Port) { x.Peer, y.Peer = nil, nil },
	} {
		f, x, y := link(ib.NodeSwitch, ib.NodeSwitch, c, c)
		change(x, y)
		forLinks, _ := links(t, f, policy.DefaultSettings())
		forLanes, _ := lanes(t, f, policy.DefaultSettings())
		for _, p := range []*observed.Port{x, y} {
			if forLinks.Port(p).Elements != 0 || forLanes.Port(p).SLToVL != nil || len(written(forLanes.Port(p))) > 0 {
				t.Errorf("%s: something is wanted for %s", name, p)
			}
		}
	}
}

// VA-02: the manager programs the arbitration tables so that every virtual lane in
// use has its turn.
func TestVA02EveryLaneHasItsTurn(t *testing.T) {
	for _, c := range []struct {
		x, y  capability
		turns int // entries with a weight at x, on as many virtual lanes
		parts int
	}{
		{capability{5, 5, 64}, capability{5, 5, 64}, 15, 2},
		{capability{5, 4, 8}, capability{5, 5, 8}, 8, 1},
		{capability{5, 4, 33}, capability{5, 2, 8}, 2, 2},
		{capability{5, 3, 32}, capability{5, 1, 0}, 1, 1},
		{capability{5, 5, 6}, capability{5, 5, 64}, 6, 1}, // fewer entries than the link has virtual lanes
	} {
		f, x, _ := link(ib.NodeSwitch, ib.NodeCA, c.x, c.y)
		asked := policy.DefaultSettings()
		for i := range asked.VLArbLow {
			asked.VLArbLow[i].Weight = 10
		}
		d, faults := lanes(t, f, asked)
		want := d.Port(x)
		if faults != nil || len(written(want)) != c.parts {
			t.Fatalf("%v: %d parts, want %d; faults %v", c, len(written(want)), c.parts, faults)
		}
		served := map[ib.VL]int{}
		for i, part := range written(want) {
			for j, e := range part.Entries {
				if e.Weight == 0 {
					continue
				}
				served[e.VL]++
				if at := 32*i + j; at >= int(c.x.low) || e.Weight != 10 {
					t.Errorf("%v: entry %d has weight %d, the table has %d entries", c, at, e.Weight, c.x.low)
				}
			}
		}
		if len(served) != c.turns {
			t.Errorf("%v: VLs with a turn: %v, want %d", c, served, c.turns)
		}
		for _, vl := range want.SLToVLFrom(0).VLs {
			if served[vl] != 1 {
				t.Errorf("%v: VL %d is mapped to and has %d entries", c, vl, served[vl])
			}
		}
	}
}

// SV-04: the manager writes mappings in which service level s takes virtual lane s
// modulo the number of virtual lanes, so that no packet is dropped for its level.
func TestSV04EveryLevelReachesADataLane(t *testing.T) {
	for code, want := range map[uint8]int{2: 2, 3: 4, 4: 8, 5: 15} {
		c := capability{ib.MTU2048, code, 64}
		f, x, y := link(ib.NodeSwitch, ib.NodeCA, c, c)
		d, _ := lanes(t, f, policy.DefaultSettings())
		for _, p := range []*observed.Port{x, y} {
			for sl, vl := range d.Port(p).SLToVLFrom(0).VLs {
				if vl == ib.VLManagement || int(vl) != sl%want {
					t.Errorf("VLCap %d: %s maps SL %d to VL %d", code, p, sl, vl)
				}
			}
		}
	}
}

// VA-03 and SV-03: a port with one data virtual lane need not have the tables.
func TestVA03AndSV03NoTablesForOneLane(t *testing.T) {
	f, x, y := link(ib.NodeSwitch, ib.NodeCA, capability{5, 4, 8}, capability{5, 1, 0})
	d, faults := lanes(t, f, policy.DefaultSettings())
	if want := d.Port(y); want.SLToVL != nil || len(written(want)) > 0 {
		t.Errorf("%s has one VL, wanted are %v and %v", y, want.SLToVL, want.VLArbitration)
	}
	// The other end can have more, and must not use them.
	if want := d.Port(x).SLToVLFrom(0); want == nil || slices.Max(want.VLs[:]) != 0 {
		t.Errorf("%s: mapping %v", x, want)
	}
	if faults != nil {
		t.Errorf("faults %v", faults)
	}
}

func TestMeaninglessLowCap(t *testing.T) {
	for low, parts := range map[uint8]int{0: 0, 65: 1} {
		f, x, _ := link(ib.NodeSwitch, ib.NodeSwitch, capability{5, 4, low}, capability{5, 4, 8})
		d, faults := lanes(t, f, policy.DefaultSettings())
		if len(faults) != 1 || faults[0] != (CapabilityFault{x, "VLArbitrationLowCap", low, 64}) {
			t.Errorf("faults %v", faults)
		}
		if want := d.Port(x); slices.Max(want.SLToVLFrom(0).VLs[:]) != 0 || len(written(want)) != parts {
			t.Errorf("wanted are %v and %v", want.SLToVL, want.VLArbitration)
		}
	}
}

func TestBadSettings(t *testing.T) {
	for want, change := range map[string]func(*policy.Settings){
		"head_of_queue_lifetime 32, want 0 to 31":      func(s *policy.Settings) { s.HOQLife = 32 },
		"leaf_head_of_queue_lifetime 40, want 0 to 31": func(s *policy.Settings) { s.LeafHOQLife = 40 },
		"vl_stall_count 8, want 0 to 7":                func(s *policy.Settings) { s.VLStallCount = 8 },
		"VL 1, which service level 1 takes":            func(s *policy.Settings) { s.VLArbLow[1].Weight = 0 },
	} {
		s := policy.DefaultSettings()
		change(&s)
		f := observed.NewFabric()
		for _, compute := range []func(*observed.Fabric, *policy.Settings, *observed.Desired) ([]CapabilityFault, error){EnterLinks, func(f *observed.Fabric, s *policy.Settings, d *observed.Desired) ([]CapabilityFault, error) {
			faults, _, err := EnterLanes(f, s, nil, nil, d)
			return faults, err
		}} {
			if _, err := compute(f, &s, observed.NewDesired(f)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
		}
	}
}

// What is wanted fits the fields of the attributes.
func TestWantedValuesEncode(t *testing.T) {
	c := capability{ib.MTU4096, 5, 64}
	f, x, _ := link(ib.NodeSwitch, ib.NodeCA, c, c)
	d, _ := links(t, f, policy.DefaultSettings())
	tables, _ := lanes(t, f, policy.DefaultSettings())
	var data [64]byte
	if err := d.Port(x).Info.Encode(&data); err != nil {
		t.Error(err)
	}
	if err := tables.Port(x).SLToVLFrom(0).Encode(&data); err != nil {
		t.Error(err)
	}
	if err := tables.Port(x).VLArbitration[0].Encode(&data); err != nil {
		t.Error(err)
	}
}

// written are the parts of arbitration tables that are wanted.
func written(want *observed.DesiredPort) (parts []*smp.VLArbitrationTable) {
	for _, part := range want.VLArbitration {
		if part != nil {
			parts = append(parts, part)
		}
	}
	return parts
}

// VA-12: both arbitration tables and VLHighLimit are those that were asked for,
// as far as the link has the virtual lanes and the port the entries.
func TestVA12BothTablesAndTheLimit(t *testing.T) {
	asked := policy.DefaultSettings()
	asked.VLHighLimit = 9
	asked.VLArbHigh = []smp.VLArbitrationEntry{{VL: 1, Weight: 200}, {VL: 14, Weight: 3}}
	f, x, y := link(ib.NodeSwitch, ib.NodeCA, capability{5, 4, 8}, capability{5, 3, 8})
	x.Info.VLArbitrationHighCap, x.Info.VLArbitrationLowCap = 40, 40
	d, faults := lanes(t, f, asked)
	if faults != nil {
		t.Fatal(faults)
	}
	want := d.Port(x)
	if want.Info.VLHighLimit != 9 || want.Elements&observed.ElementVLHighLimit == 0 {
		t.Errorf("VLHighLimit %d, elements %v", want.Info.VLHighLimit, want.Elements.Names())
	}
	high := smp.VLArbitrationTable{}
	high.Entries[0] = smp.VLArbitrationEntry{VL: 1, Weight: 200} // the link has no virtual lane 14
	for part, table := range map[smp.VLArbPart]smp.VLArbitrationTable{smp.VLArbHighFirst: high, smp.VLArbHighSecond: {}} {
		if got := want.VLArbitration[part-1]; got == nil || *got != table {
			t.Errorf("part %d: %v", part, got)
		}
	}
	if got := want.VLArbitration[smp.VLArbLowSecond-1]; got == nil || *got != (smp.VLArbitrationTable{}) {
		t.Errorf("second part of the low-priority table: %v", got)
	}
	low := want.VLArbitration[smp.VLArbLowFirst-1]
	for vl := range 8 {
		turn := smp.VLArbitrationEntry{}
		if vl < 4 {
			turn = smp.VLArbitrationEntry{VL: ib.VL(vl), Weight: 64}
		}
		if low.Entries[vl] != turn {
			t.Errorf("low entry %d: %v, want %v", vl, low.Entries[vl], turn)
		}
	}
	// A port without a high-priority table gets none.
	if d.Port(y).VLArbitration[smp.VLArbHighFirst-1] != nil {
		t.Error("a high-priority table for a port that has none")
	}
}

// A table with more entries than a port has is cut to as many virtual lanes as fit, and
// levels go to those.
func TestTablesThatDoNotFit(t *testing.T) {
	asked := policy.DefaultSettings()
	asked.VLArbLow = nil
	for range 3 {
		for vl := range 15 {
			asked.VLArbLow = append(asked.VLArbLow, smp.VLArbitrationEntry{VL: ib.VL(vl), Weight: 5})
		}
	}
	f, x, _ := link(ib.NodeSwitch, ib.NodeCA, capability{5, 4, 8}, capability{5, 4, 8})
	d, _ := lanes(t, f, asked)
	want := d.Port(x)
	if most := slices.Max(want.SLToVLFrom(0).VLs[:]); most != 1 {
		t.Errorf("VLs up to %d; three entries each fit for two VLs", most)
	}
	for i, e := range want.VLArbitration[0].Entries {
		if served := i < 6; served != (e.Weight > 0) || served && int(e.VL) != i%2 {
			t.Errorf("entry %d: %v", i, e)
		}
	}
}

// PI-118: a link is limited at both ends to what each supports of the width and
// the speed, the newer speeds turned off where none is allowed.
func TestPI118LinksAreLimited(t *testing.T) {
	asked := policy.DefaultSettings()
	asked.LinkWidth, asked.LinkSpeed = 4, policy.QDR
	f, x, y := link(ib.NodeSwitch, ib.NodeCA, capability{5, 4, 8}, capability{5, 4, 8})
	for _, p := range []*observed.Port{x, y} {
		p.Info.LinkWidthSupported, p.Info.LinkSpeedSupported = smp.LinkWidth1X|smp.LinkWidth4X|smp.LinkWidth12X, 7
		p.Info.LinkSpeedExtSupported, p.Info.CapabilityMask = 3, smp.CapExtendedSpeeds
	}
	d, _ := links(t, f, asked)
	for _, p := range []*observed.Port{x, y} {
		const all = observed.ElementLinkWidthEnabled | observed.ElementLinkSpeedEnabled | observed.ElementLinkSpeedExtEnabled
		want := d.Port(p)
		if want.Elements&all != all || want.Info.LinkWidthEnabled != smp.LinkWidth1X|smp.LinkWidth4X ||
			want.Info.LinkSpeedEnabled != 7 || want.Info.LinkSpeedExtEnabled != 0 {
			t.Errorf("%s: %v, width %v, speed %v, %v", p, want.Elements.Names(), want.Info.LinkWidthEnabled, want.Info.LinkSpeedEnabled, want.Info.LinkSpeedExtEnabled)
		}
	}
	x.Info.LinkWidthSupported = smp.LinkWidth4X
	d = observed.NewDesired(f)
	if LimitLink(x, 1, 0, d) || d.Port(x).Elements&observed.ElementLinkWidthEnabled != 0 {
		t.Errorf("a port was limited to a width below everything that it supports: %v", d.Port(x).Elements.Names())
	}
	x.Info.LinkWidthSupported |= smp.LinkWidth1X
	if !LimitLink(x, 12, 0, d) || d.Port(x).Info.LinkWidthEnabled != smp.LinkWidth1X|smp.LinkWidth4X {
		t.Errorf("width %v enabled, which the port has not", d.Port(x).Info.LinkWidthEnabled)
	}
	if x.Info.LinkSpeedSupported = 4; LimitLink(x, 0, policy.SDR, observed.NewDesired(f)) {
		t.Error("a port was limited to a speed below everything that it supports")
	}
	x.Info.LinkSpeedSupported, x.Info.LinkSpeedExtSupported, x.Info.LinkSpeedExtSupported2 = 7, 15, smp.LinkSpeedXDR
	d = observed.NewDesired(f)
	if LimitLink(x, 0, policy.HDR, d) || d.Port(x).Elements != 0 {
		t.Errorf("a port with XDR was limited: %v", d.Port(x).Elements.Names())
	}
}
