package qos

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
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

func links(t *testing.T, f *observed.Fabric, s Settings) (*observed.Desired, []Fault) {
	t.Helper()
	d := observed.NewDesired(f)
	faults, err := Links(f, s, d)
	if err != nil {
		t.Fatal(err)
	}
	return d, faults
}

func lanes(t *testing.T, f *observed.Fabric, s Settings) (*observed.Desired, []Fault) {
	t.Helper()
	d := observed.NewDesired(f)
	faults, err := Lanes(f, s, d)
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
			d, faults := links(t, f, DefaultSettings())
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
			d, faults := links(t, f, DefaultSettings())
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
	d, faults := links(t, f, DefaultSettings())
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
	settings := Settings{HOQLife: 17, LeafHOQLife: 9, VLStallCount: 3, Weight: 1}
	c := capability{ib.MTU2048, 2, 8}
	for _, l := range []struct {
		kind ib.NodeType // of the far end
		want ib.TimeValue
	}{{ib.NodeSwitch, 17}, {ib.NodeCA, 9}, {ib.NodeRouter, 9}} {
		f, x, y := link(ib.NodeSwitch, l.kind, c, c)
		d, _ := links(t, f, settings)
		const both = observed.ElementHOQLife | observed.ElementVLStallCount
		if want := d.Port(x); want.Elements&both != both || want.Info.HOQLife != l.want || want.Info.VLStallCount != 3 {
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
		forLinks, _ := links(t, f, DefaultSettings())
		forLanes, _ := lanes(t, f, DefaultSettings())
		for _, p := range []*observed.Port{x, y} {
			if forLinks.Port(p).Elements != 0 || forLanes.Port(p).SLToVL != nil || forLanes.Port(p).VLArbitration != nil {
				t.Errorf("%s: something is wanted for %s", name, p)
			}
		}
	}
}

// VA-02: the manager programs the arbitration tables so that every lane in
// use has its turn.
func TestVA02EveryLaneHasItsTurn(t *testing.T) {
	for _, c := range []struct {
		x, y  capability
		turns int // entries with a weight at x, on as many lanes
		parts int
	}{
		{capability{5, 5, 64}, capability{5, 5, 64}, 15, 2},
		{capability{5, 4, 8}, capability{5, 5, 8}, 8, 1},
		{capability{5, 4, 33}, capability{5, 2, 8}, 2, 2},
		{capability{5, 3, 32}, capability{5, 1, 0}, 1, 1},
		{capability{5, 5, 6}, capability{5, 5, 64}, 6, 1}, // fewer entries than the link has lanes
	} {
		f, x, _ := link(ib.NodeSwitch, ib.NodeCA, c.x, c.y)
		d, faults := lanes(t, f, Settings{Weight: 10})
		want := d.Port(x)
		if faults != nil || len(want.VLArbitration) != c.parts {
			t.Fatalf("%v: %d parts, want %d; faults %v", c, len(want.VLArbitration), c.parts, faults)
		}
		served := map[ib.VL]int{}
		for i, part := range want.VLArbitration {
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
			t.Errorf("%v: lanes with a turn: %v, want %d", c, served, c.turns)
		}
		for _, vl := range want.SLToVL.VLs {
			if served[vl] != 1 {
				t.Errorf("%v: lane %d is mapped to and has %d entries", c, vl, served[vl])
			}
		}
	}
}

// SV-04: the manager writes mappings in which service level s takes lane s
// modulo the number of lanes, so that no packet is dropped for its level.
func TestSV04EveryLevelReachesADataLane(t *testing.T) {
	for code, want := range map[uint8]int{2: 2, 3: 4, 4: 8, 5: 15} {
		c := capability{ib.MTU2048, code, 64}
		f, x, y := link(ib.NodeSwitch, ib.NodeCA, c, c)
		d, _ := lanes(t, f, DefaultSettings())
		for _, p := range []*observed.Port{x, y} {
			for sl, vl := range d.Port(p).SLToVL.VLs {
				if vl == ib.VLManagement || int(vl) != sl%want {
					t.Errorf("VLCap %d: %s maps SL %d to lane %d", code, p, sl, vl)
				}
			}
		}
	}
}

// VA-03 and SV-03: a port with one data lane need not have the tables.
func TestVA03AndSV03NoTablesForOneLane(t *testing.T) {
	f, x, y := link(ib.NodeSwitch, ib.NodeCA, capability{5, 4, 8}, capability{5, 1, 0})
	d, faults := lanes(t, f, DefaultSettings())
	if want := d.Port(y); want.SLToVL != nil || want.VLArbitration != nil {
		t.Errorf("%s has one lane, wanted are %v and %v", y, want.SLToVL, want.VLArbitration)
	}
	// The other end can have more, and must not use them.
	if want := d.Port(x).SLToVL; want == nil || slices.Max(want.VLs[:]) != 0 {
		t.Errorf("%s: mapping %v", x, want)
	}
	if faults != nil {
		t.Errorf("faults %v", faults)
	}
}

func TestMeaninglessLowCap(t *testing.T) {
	for low, parts := range map[uint8]int{0: 0, 65: 1} {
		f, x, _ := link(ib.NodeSwitch, ib.NodeSwitch, capability{5, 4, low}, capability{5, 4, 8})
		d, faults := lanes(t, f, DefaultSettings())
		if len(faults) != 1 || faults[0] != (Fault{x, "VLArbitrationLowCap", low, 64}) {
			t.Errorf("faults %v", faults)
		}
		if want := d.Port(x); slices.Max(want.SLToVL.VLs[:]) != 0 || len(want.VLArbitration) != parts {
			t.Errorf("wanted are %v and %v", want.SLToVL, want.VLArbitration)
		}
	}
}

func TestBadSettings(t *testing.T) {
	for want, change := range map[string]func(*Settings){
		"HOQLife 32, want 0 to 31":     func(s *Settings) { s.HOQLife = 32 },
		"LeafHOQLife 40, want 0 to 31": func(s *Settings) { s.LeafHOQLife = 40 },
		"VLStallCount 8, want 0 to 7":  func(s *Settings) { s.VLStallCount = 8 },
		"Weight 0, want 1 to 255":      func(s *Settings) { s.Weight = 0 },
	} {
		s := DefaultSettings()
		change(&s)
		f := observed.NewFabric()
		for _, compute := range []func(*observed.Fabric, Settings, *observed.Desired) ([]Fault, error){Links, Lanes} {
			if _, err := compute(f, s, observed.NewDesired(f)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
		}
	}
}

// What is wanted fits the fields of the attributes.
func TestWantedValuesEncode(t *testing.T) {
	c := capability{ib.MTU4096, 5, 64}
	f, x, _ := link(ib.NodeSwitch, ib.NodeCA, c, c)
	d, _ := links(t, f, DefaultSettings())
	tables, _ := lanes(t, f, DefaultSettings())
	var data [64]byte
	if err := d.Port(x).Info.Encode(&data); err != nil {
		t.Error(err)
	}
	if err := tables.Port(x).SLToVL.Encode(&data); err != nil {
		t.Error(err)
	}
	if err := tables.Port(x).VLArbitration[0].Encode(&data); err != nil {
		t.Error(err)
	}
}
