package desired

import (
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// pair is two switches with a host each, whose links have eight virtual lanes.
func pair() (f *observed.Fabric, left, right *observed.Node) {
	b := subnettest.New()
	b.PortInfo.VLCap, b.PortInfo.VLArbitrationLowCap, b.PortInfo.VLArbitrationHighCap = 4, 16, 16
	left, right = b.Switch(3, "left"), b.Switch(3, "right")
	subnettest.Join(left, right)
	b.Host(left, "a")
	b.Host(right, "b")
	return b.Fabric, left, right
}

func TestRoom(t *testing.T) {
	f, _, _ := pair()
	s := policy.DefaultSettings()
	for _, c := range []struct {
		levels      []ib.SL
		vls, layers int
	}{
		{[]ib.SL{0}, 8, 16},
		{[]ib.SL{0, 5}, 4, 8},
		{[]ib.SL{0, 8}, 8, 8}, // both on VL 0
		{[]ib.SL{0, 1, 2, 3}, 2, 4},
		{[]ib.SL{0, 1, 2, 3, 4, 5, 6, 7, 8}, 1, 1},
	} {
		if got := RoutingRoom(f, &s, c.levels); got != (graph.Room{VLs: c.vls, Layers: c.layers}) {
			t.Errorf("levels %v leave %+v, want %d VLs and %d layers", c.levels, got, c.vls, c.layers)
		}
	}
}

// A path of a partition's level takes a service level that no other level has, and stays on
// the virtual lanes of its level.
func TestLevelsAndLayersShareServiceLevels(t *testing.T) {
	f, left, right := pair()
	g := graph.New(f, nil)
	s := policy.DefaultSettings()
	lanes := &graph.Lanes{Layers: 3, VLs: 3, Layer: [][]uint8{{0, 2}, {2, 0}}}
	levels := []ib.SL{0, 1}
	l, err := NewQoSLevels(f, &s, levels, g, lanes)
	if err != nil {
		t.Fatal(err)
	}
	a, b := left.Ports[2].Peer, right.Ports[2].Peer
	seen := map[ib.SL]bool{}
	for i, level := range levels {
		if got := l.ServiceLevels().Between(level, a, &left.Ports[0]); got != level {
			t.Errorf("layer 0 of level %d has service level %d", level, got)
		}
		sl := l.ServiceLevels().Between(level, a, b)
		if back := l.ServiceLevels().Between(level, b, a); back != sl || sl == 0 || sl == 1 || seen[sl] {
			t.Errorf("level %d: service level %d there, %d back", level, sl, back)
		}
		seen[sl] = true
		d := observed.NewDesired(f)
		if faults, _, err := EnterLanes(f, &s, l, nil, d); err != nil || faults != nil {
			t.Fatal(faults, err)
		}
		want := d.Port(&left.Ports[1])
		m := want.SLToVLFrom(2)
		if m.VLs[level] != ib.VL(3*i) || m.VLs[sl] != ib.VL(3*i+2) {
			t.Errorf("level %d takes virtual lane %d, its layer 2 %d", level, m.VLs[level], m.VLs[sl])
		}
		turn := map[ib.VL]bool{}
		for _, e := range want.VLArbitration[0].Entries {
			turn[e.VL] = turn[e.VL] || e.Weight > 0
		}
		for _, vl := range m.VLs {
			if !turn[vl] {
				t.Errorf("VL %d is mapped to and has no turn", vl)
			}
		}
	}
	if _, err := NewQoSLevels(f, &s, []ib.SL{0, 1, 2}, g, lanes); err == nil || !strings.Contains(err.Error(), "need 3 virtual lanes and 3 layers") {
		t.Errorf("three levels of three lanes each on links of eight: %v", err)
	}
}

// Where a lane depends on where a packet came in, each input port has its own mapping.
func TestLanesByEntry(t *testing.T) {
	f, left, _ := pair()
	s := policy.DefaultSettings()
	lanes := &graph.Lanes{
		Layers: 1, VLs: 2,
		Class: [][]uint8{{0, 1, 0, 0}, {0, 1, 0, 0}},
		Lane:  [][][]ib.VL{{{0}, {0}}, {{1}, {1}}},
	}
	l, err := NewQoSLevels(f, &s, []ib.SL{0}, graph.New(f, nil), lanes)
	if err != nil {
		t.Fatal(err)
	}
	d := observed.NewDesired(f)
	if _, _, err := EnterLanes(f, &s, l, nil, d); err != nil {
		t.Fatal(err)
	}
	for in, vl := range map[ib.PortNum]ib.VL{0: 0, 1: 1, 3: 0} {
		if got := d.Port(&left.Ports[2]).SLToVLFrom(in); got.VLs[0] != vl {
			t.Errorf("from port %d: VL %d, want %d", in, got.VLs[0], vl)
		}
	}
	host := d.Port(left.Ports[2].Peer)
	if len(host.SLToVL) != 1 || host.SLToVL[0].VLs[0] != 0 || host.SLToVL[0].VLs[smp.SLCount-1] != 0 {
		t.Errorf("the host maps %v", host.SLToVL)
	}
}
