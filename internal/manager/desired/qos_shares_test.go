package desired

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// served has a table serve lanes that always have packets, of so many blocks each, and tells
// what each gets of the link, in percent.
func served(table []smp.VLArbitrationEntry, packet func(ib.VL) int) (got [ib.VLManagement]float64) {
	all := 0.0
	for range 2000 {
		for _, e := range table {
			for left := int(e.Weight); left > 0; {
				n := packet(e.VL)
				left -= n
				got[e.VL] += float64(n)
				all += float64(n)
			}
		}
	}
	for vl := range got {
		got[vl] *= 100 / all
	}
	return got
}

// A table gives every lane its share of a link, within five parts of a hundred of it, with
// packets of one size, of any size, and of the least number of entries that a table needs.
func TestArbitrate(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	sizes := map[string]func(ib.VL) int{
		"4096":  func(ib.VL) int { return 65 },
		"2048":  func(ib.VL) int { return 33 },
		"256":   func(ib.VL) int { return 5 },
		"mixed": func(ib.VL) int { return []int{2, 5, 9, 17, 33, 65}[r.IntN(6)] },
	}
	for _, c := range []struct {
		shares  []float64
		entries int
	}{
		{[]float64{50, 50}, 2}, {[]float64{30, 70}, 8}, {[]float64{10, 90}, 8}, {[]float64{20, 30, 50}, 8}, {[]float64{1, 99}, 64},
		{[]float64{5, 15, 30, 50}, 32}, {[]float64{10, 20, 30, 40}, 64}, {[]float64{100}, 1}, {[]float64{3, 7, 11, 13, 17, 19, 30}, 64},
		{[]float64{10.0 / 3, 20.0 / 3, 90}, 64},
	} {
		var shares []share
		sum := 0.0
		for i, want := range c.shares {
			shares = append(shares, share{ib.VL(i), want})
			sum += want
		}
		table, missed := arbitrate(shares, c.entries)
		if len(table) > c.entries || missed*100 > shareFaultPercent {
			t.Errorf("shares %v: %d of %d entries, missed by %.3f", c.shares, len(table), c.entries, missed)
		}
		for name, packet := range sizes {
			got := served(table, packet)
			for i, want := range c.shares {
				if want = want * 100 / sum; math.Abs(got[i]-want) > want*0.055+0.05 {
					t.Errorf("shares %v, packets of %s: lane %d gets %.2f %%, want %.2f; %v", c.shares, name, i, got[i], want, table)
				}
			}
		}
	}
}

// Whatever the shares, every lane has a turn, the table has no more entries than the device,
// and what is said to be missed is.
func TestArbitrateRandom(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		shares, sum := make([]share, 1+r.IntN(15)), 0.0
		for i := range shares {
			shares[i] = share{ib.VL(i), float64(1 + r.IntN(60))}
			sum += shares[i].want
		}
		entries := len(shares) + r.IntN(65-len(shares))
		table, missed := arbitrate(shares, entries)
		if len(table) > entries {
			t.Fatalf("seed %d: %d entries, %d are there", seed, len(table), entries)
		}
		got := served(table, func(ib.VL) int { return 65 })
		for i, s := range shares {
			want := s.want * 100 / sum
			if off := math.Abs(got[i]-want) / want; off > missed+1e-3 {
				t.Fatalf("seed %d: lane %d gets %.2f %%, want %.2f, said to be missed by %.3f", seed, i, got[i], want, missed)
			}
			if got[i] == 0 {
				t.Fatalf("seed %d: lane %d has no turn", seed, i)
			}
		}
	}
}

func shared(levels ...policy.Level) policy.Settings {
	s := policy.DefaultSettings()
	s.Levels = levels
	return s
}

// givenShares are the shares that a port's table gives its lanes, in percent.
func givenShares(want *observed.DesiredPort) [ib.VLManagement]float64 {
	var table []smp.VLArbitrationEntry
	for _, part := range want.VLArbitration[:2] {
		if part != nil {
			table = append(table, part.Entries[:]...)
		}
	}
	return served(table, func(ib.VL) int { return 65 })
}

// Every level with a share has a virtual lane of its own, and all others have that of level 0.
func TestLevelsWithShares(t *testing.T) {
	f, left, _ := pair()
	s := shared(policy.Level{SL: 3, Share: 30}, policy.Level{SL: 5, Share: 50})
	levels := []ib.SL{0, 3, 5, 9}
	l, err := NewQoSLevels(f, &s, levels, graph.New(f, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	d := observed.NewDesired(f)
	faults, short, err := EnterLanes(f, &s, l, nil, d)
	if err != nil || faults != nil || short != nil {
		t.Fatal(faults, short, err)
	}
	for _, p := range []*observed.Port{&left.Ports[1], &left.Ports[2], left.Ports[2].Peer} {
		want := d.Port(p)
		for sl, vl := range want.SLToVLFrom(0).VLs {
			if expected := map[int]ib.VL{3: 1, 5: 2}[sl]; vl != expected {
				t.Errorf("%s: level %d takes VL %d, want %d", p, sl, vl, expected)
			}
		}
		got := givenShares(want)
		for vl, percent := range []float64{20, 30, 50} {
			if math.Abs(got[vl]-percent) > percent*0.05 {
				t.Errorf("%s: VL %d has %.1f %%, want %.0f", p, vl, got[vl], percent)
			}
		}
		if high := want.VLArbitration[2]; high != nil && *high != (smp.VLArbitrationTable{}) || want.Info.VLHighLimit != 0 {
			t.Errorf("%s: the other table has %v", p, high)
		}
	}
	if got := l.ServiceLevels().Between(9, &left.Ports[0], left.Ports[2].Peer); got != 9 {
		t.Errorf("a path of level 9 has level %d", got)
	}
}

// A level's share is divided among the lanes of the routes as packets take them, and on links
// to end ports it is not divided. A lane that no packets take costs nothing.
func TestSharesAreDividedAmongLanes(t *testing.T) {
	b := subnettest.New()
	b.PortInfo.VLCap, b.PortInfo.VLArbitrationLowCap, b.PortInfo.VLArbitrationHighCap = 4, 64, 16
	left, middle, right := b.Switch(6, "left"), b.Switch(6, "middle"), b.Switch(6, "right")
	subnettest.Join(left, middle)
	subnettest.Join(middle, right)
	var guids []ib.PortGUID
	var to []graph.Destination
	for i, at := range []*observed.Node{left, left, left, middle, right} {
		h := b.Host(at, fmt.Sprint("host ", i))
		guids = append(guids, h.GUID)
		to = append(to, graph.Destination{Port: h, LID: ib.LID(i + 1)})
	}
	f := b.Fabric
	g := graph.New(f, to)
	linear := make([][]ib.PortNum, len(f.Nodes))
	for i, row := range map[*observed.Node][]ib.PortNum{
		left: {255, 2, 3, 4, 1, 1}, middle: {255, 1, 1, 1, 3, 2}, right: {255, 1, 1, 1, 1, 2},
	} {
		linear[i.Index] = row
	}
	// Paths between left and right are in layer 1, all others in layer 0.
	layer := make([][]uint8, 3)
	for i := range layer {
		layer[i] = make([]uint8, 3)
	}
	x, y := g.Index[left.Index], g.Index[right.Index]
	layer[x][y], layer[y][x] = 1, 1
	s := shared(policy.Level{SL: 1, Share: 60})
	l, err := NewQoSLevels(f, &s, []ib.SL{0, 1}, g, &graph.Lanes{Layers: 2, VLs: 2, Layer: layer})
	if err != nil {
		t.Fatal(err)
	}
	if !l.Divides() {
		t.Fatal("two lanes for a level, and its share is not divided")
	}
	// On level 0 everybody, on level 1 those at the ends only.
	l.Count(linear, []TalkingPorts{{Levels: 1, Full: guids}, {Levels: 2, Full: guids[:2], Limited: guids[4:]}})
	d := observed.NewDesired(f)
	if _, short, err := EnterLanes(f, &s, l, nil, d); err != nil || short != nil {
		t.Fatal(short, err)
	}
	for _, c := range []struct {
		at   *observed.Port
		want []float64 // by virtual lane: level 0 on layers 0 and 1, level 1 likewise
	}{
		// From left 3 hosts send to one in the middle, and as many to one on the right.
		{&left.Ports[1], []float64{20, 20, 0, 60}},
		// From the middle 1 host sends to the right, and 3 from the left.
		{&middle.Ports[2], []float64{10, 30, 0, 60}},
		{&left.Ports[2], []float64{40, 60, 0, 0}},
		{left.Ports[2].Peer, []float64{40, 60, 0, 0}},
	} {
		want := d.Port(c.at)
		got := givenShares(want)
		sum := 100.0 // of what is meant to pass
		for vl, percent := range c.want {
			if percent == 0 {
				sum -= got[vl]
			}
		}
		for vl, percent := range c.want {
			idle := percent == 0
			if share := got[vl] * 100 / sum; !idle && math.Abs(share-percent) > percent*0.05 {
				t.Errorf("%s: VL %d has %.1f %%, want %.0f; all %v", c.at, vl, share, percent, got[:4])
			}
			mapped := false
			for _, to := range want.SLToVLFrom(0).VLs {
				mapped = mapped || to == ib.VL(vl)
			}
			if idle && mapped != (got[vl] > 0) {
				t.Errorf("%s: VL %d, mapped to %v, has %.1f %%", c.at, vl, mapped, got[vl])
			}
		}
	}
}

// A link with fewer lanes than levels has some share one, and a device with few entries comes
// as near as it can; both are said.
func TestLinksThatAreShort(t *testing.T) {
	f, left, _ := pair()
	host := left.Ports[2].Peer
	host.Info.VLCap = 2
	s := shared(policy.Level{SL: 1, Share: 30}, policy.Level{SL: 2, Share: 30})
	l, err := NewQoSLevels(f, &s, []ib.SL{0, 1, 2}, graph.New(f, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	d := observed.NewDesired(f)
	_, short, err := EnterLanes(f, &s, l, nil, d)
	if err != nil || len(short) != 2 || short[0].Lanes != 2 || short[0].Levels != 3 {
		t.Fatalf("%+v, %v", short, err)
	}
	if want := "left:2: qos_levels gives shares to 3 levels, its link has 2 VLs: some levels share one"; short[0].String() != want && short[1].String() != want {
		t.Errorf("said is %q", short)
	}
	got := givenShares(d.Port(host))
	if math.Abs(got[0]-70) > 3.5 || math.Abs(got[1]-30) > 1.5 {
		t.Errorf("levels 0 and 2 together, and 1: %v", got[:2])
	}
	left.Ports[1].Info.VLArbitrationLowCap = 3
	s = shared(policy.Level{SL: 1, Share: 3}, policy.Level{SL: 2, Share: 3})
	d = observed.NewDesired(f)
	if l, err = NewQoSLevels(f, &s, []ib.SL{0, 1, 2}, graph.New(f, nil), nil); err != nil {
		t.Fatal(err)
	}
	_, short, err = EnterLanes(f, &s, l, nil, d)
	if err != nil || len(short) == 0 || short[0].Port != &left.Ports[1] || short[0].Entries != 3 || short[0].Percent < 50 {
		t.Fatalf("%+v, %v", short, err)
	}
}

// Switches drop what comes in from an end port on a level that it may not use, and nothing
// else.
func TestLevelsOfOthersAreDropped(t *testing.T) {
	f, left, right := pair()
	s := policy.DefaultSettings()
	s.EnforceLevels = true
	a, b := left.Ports[2].Peer, right.Ports[2].Peer
	d := observed.NewDesired(f)
	allowed := func(end *observed.Port) uint16 { return map[*observed.Port]uint16{a: 0b101, b: allLevels}[end] }
	if _, _, err := EnterLanes(f, &s, nil, allowed, d); err != nil {
		t.Fatal(err)
	}
	for in := range ib.PortNum(4) {
		for sl, vl := range d.Port(&left.Ports[1]).SLToVLFrom(in).VLs {
			if dropped := in == 2 && sl != 0 && sl != 2; dropped != (vl == ib.VLManagement) {
				t.Errorf("from port %d level %d takes VL %d", in, sl, vl)
			}
		}
	}
	for _, p := range []*observed.Port{&right.Ports[1], a, b} {
		if want := d.Port(p); len(want.SLToVL) != 1 || want.SLToVL[0].VLs[7] == ib.VLManagement {
			t.Errorf("%s: %v", p, want.SLToVL)
		}
	}
}
