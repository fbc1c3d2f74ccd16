package dor

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/test/need"
	"github.com/ibwarden/ibwarden/test/routingtest"
)

// What is whole is found with its dimensions, packets go the shortest way, and no more
// lanes are taken than it needs: two where rings have five switches or more.
func TestWholeGrids(t *testing.T) {
	for _, c := range []struct {
		sizes         []int
		rings         bool
		cables        int
		dims          string // a ring of 4 is a square of 2x2
		vls, layers   int
		shape, reason string
	}{
		{[]int{1}, false, 1, "1", 1, 1, "mesh", "one switch"},
		{[]int{2}, false, 1, "2", 1, 1, "mesh", "two switches"},
		{[]int{7}, false, 1, "7", 1, 1, "mesh", "line"},
		{[]int{3}, true, 1, "3", 1, 1, "torus", "triangle"},
		{[]int{4}, true, 1, "2x2", 1, 1, "mesh", "square"},
		{[]int{5}, true, 1, "5", 2, 2, "torus", "ring"},
		{[]int{8}, true, 2, "8", 2, 2, "torus", "ring of double cables"},
		{[]int{4, 5}, true, 1, "2x2x5", 2, 2, "torus", "one dateline"},
		{[]int{5, 7}, true, 1, "5x7", 2, 4, "torus", "two datelines"},
		{[]int{2, 6}, true, 1, "2x6", 2, 2, "torus", "ladder"},
		{[]int{3, 3, 3}, true, 1, "3x3x3", 1, 1, "torus", "no dateline"},
		{[]int{6, 5, 5}, true, 1, "5x5x6", 2, 8, "torus", "three datelines"},
		{[]int{3, 4, 5}, false, 1, "3x4x5", 1, 1, "mesh", "mesh"},
		{[]int{4, 4, 4}, true, 1, "2x2x2x2x2x2", 1, 1, "mesh", "hypercube"},
		{[]int{3, 2, 4, 5}, false, 3, "2x3x4x5", 1, 1, "mesh", "four dimensions"},
	} {
		for seed := range need.Share[uint64](1, 3) {
			t.Run(fmt.Sprintf("%s, seed %d", c.reason, seed), func(t *testing.T) {
				b := routingtest.New(rand.New(rand.NewPCG(seed, 1)))
				b.Grid(c.sizes, c.rings, c.cables, 2)
				r, err := DimensionOrder(b.Input(t, c.vls))
				if err != nil {
					t.Fatal(err)
				}
				b.Sound(t, r, c.vls)
				name, rest, _ := strings.Cut(r.Notes[0], ":")
				kind, dims, _ := strings.Cut(name, " of ")
				sorted := strings.Split(dims, "x")
				slices.Sort(sorted)
				if got := strings.Join(sorted, "x"); got != c.dims || kind != c.shape || strings.Contains(rest, "missing") || len(r.Notes) > 1 {
					t.Errorf("notes %q, want a %s of %s", r.Notes, c.shape, c.dims)
				}
				layers := 1
				if r.Lanes != nil {
					layers = r.Lanes.Layers
				}
				if layers != c.layers {
					t.Errorf("%d layers, want %d", layers, c.layers)
				}
				hops := map[*observed.Node]map[*observed.Node]int{}
				for _, s := range b.Fabric.Switches() {
					hops[s] = routingtest.Hops(s)
				}
				b.EachRoute(t, r, func(from *observed.Node, d graph.Destination, lid ib.LID, steps []routingtest.Step) {
					if want := hops[from][routingtest.Behind(d.Port)]; len(steps) != want {
						t.Errorf("%s to LID %d: %d hops, the shortest way has %d", from.Name(), lid, len(steps), want)
					}
				})
			})
		}
	}
}

// Random tori and meshes with links and switches missing are routed soundly, or refused
// where too much is missing, which is rare.
func TestBrokenGrids(t *testing.T) {
	rounds := need.Rounds(need.Share[uint64](20, 60), 10_000)
	start := rand.Uint64()
	if !need.Soak() {
		start = 0
	}
	t.Logf("seeds from %d", start)
	refused := 0
	for seed := start; seed != start+rounds; seed++ {
		rng := rand.New(rand.NewPCG(seed, 18))
		sizes := make([]int, 1+rng.IntN(3))
		for i, limit := range []int{9, 6, 3}[:len(sizes)] {
			sizes[i] = 2 + rng.IntN(limit)
		}
		b := routingtest.New(rng)
		rings := rng.IntN(3) > 0
		b.Grid(sizes, rings, 1+rng.IntN(2), rng.IntN(3))
		broken := rng.Float64() * 0.04
		b.Break(rng, broken, broken)
		const vls = 8
		r, err := DimensionOrder(b.Input(t, vls))
		if err != nil {
			t.Logf("seed %d: %v, rings %v, %.1f%% broken: %v", seed, sizes, rings, 100*broken, err)
			refused++
			continue
		}
		b.Sound(t, r, vls)
		if t.Failed() {
			t.Fatalf("seed %d: %v, rings %v, %.1f%% broken", seed, sizes, rings, 100*broken)
		}
	}
	t.Logf("%d of %d are refused", refused, rounds)
	if refused > int(rounds/20) {
		t.Errorf("%d of %d are refused", refused, rounds)
	}
}

// Whatever else comes is refused, or routed soundly where it looks like a broken grid.
func TestOtherGraphs(t *testing.T) {
	const vls = 8
	for seed := range need.Rounds(100, 10_000) {
		rng := rand.New(rand.NewPCG(seed, 19))
		b := routingtest.New(rng)
		b.Irregular(rng, 2+rng.IntN(20), rng.IntN(20))
		if r, err := DimensionOrder(b.Input(t, vls)); err == nil {
			b.Sound(t, r, vls)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// The error says what was seen, where, and what was expected.
func TestErrors(t *testing.T) {
	twisted := func(b *routingtest.Builder) {
		var at [6][2]*observed.Node
		for i := range at {
			for j := range at[i] {
				at[i][j] = b.Switch(4, "%d.%d", i, j)
			}
			subnettest.Join(at[i][0], at[i][1])
		}
		for i := range at {
			for j := range at[i] {
				to := j
				if i == 5 {
					to = 1 - j
				}
				subnettest.Join(at[i][j], at[(i+1)%6][to])
			}
		}
	}
	for _, c := range []struct {
		name  string
		vls   int
		room  int
		build func(b *routingtest.Builder)
		want  string
	}{
		{"tree", 8, 16, func(b *routingtest.Builder) { b.FatTree2(4, 3, 1, 1) },
			"spine 0 and spine 1 have 3 or more neighbours in common"},
		{"full mesh", 8, 16, func(b *routingtest.Builder) { b.Clique(5, 1) },
			" have 2 or more neighbours in common"},
		{"random", 8, 16, func(b *routingtest.Builder) { b.Irregular(rand.New(rand.NewPCG(1, 1)), 500, 300) },
			"switches connected with it make no dimension"},
		{"twist", 8, 16, twisted, "a torus has no such twist"},
		{"one lane", 1, 16, func(b *routingtest.Builder) { b.Grid([]int{5, 6}, true, 1, 1) },
			"a torus of 5x6 needs 2 virtual lanes, there is 1"},
		{"few service levels", 8, 3, func(b *routingtest.Builder) { b.Grid([]int{5, 6}, true, 1, 1) },
			"a torus of 5x6 needs 4 service levels for its 2 dimensions with rings of 5 or more switches, there are 3"},
		{"dead switch and no lane left", 2, 16, func(b *routingtest.Builder) { kill(b.Grid([]int{5, 6}, true, 1, 1)[12]) },
			"too much of the torus or mesh of 5x6 is missing: packets between "},
	} {
		b := routingtest.New(nil)
		c.build(b)
		in := b.Input(t, c.vls)
		in.Layers = c.room
		if _, err := DimensionOrder(in); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}

// kill takes all links of a switch down.
func kill(n *observed.Node) {
	for i := 1; i < len(n.Ports); i++ {
		if n.Ports[i].Peer != nil {
			routingtest.Cut(&n.Ports[i])
		}
	}
}

// paths are all paths of a fabric, by the switch where they begin and the LID.
func paths(t *testing.T, b *routingtest.Builder, vls int) map[string]string {
	t.Helper()
	r, err := DimensionOrder(b.Input(t, vls))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	b.EachRoute(t, r, func(from *observed.Node, _ graph.Destination, lid ib.LID, steps []routingtest.Step) {
		path := ""
		for _, s := range steps {
			path += fmt.Sprintf(" %s/%d", s.From.Description, s.Exit)
		}
		out[fmt.Sprintf("%s to %d", from.Description, lid)] = path
	})
	return out
}

// With one switch or one link gone, each path that does not come by there stays as it is.
func TestOthersStay(t *testing.T) {
	for _, sizes := range [][]int{{6, 7}, {5, 5, 3}, {4, 4}, {3, 8}} {
		for seed := range need.Share[uint64](2, 6) {
			rng := rand.New(rand.NewPCG(seed, 4))
			b := routingtest.New(nil)
			all := b.Grid(sizes, true, 1, 1)
			before := paths(t, b, 4)
			n := all[1+rng.IntN(len(all)-1)]
			p := &n.Ports[2+rng.IntN(len(sizes))]
			if gone := []string{n.Description + "/"}; seed%2 == 0 {
				kill(n)
				moved(t, before, paths(t, b, 4), gone)
			} else {
				gone = []string{fmt.Sprintf(" %s/%d", n.Description, p.Num), fmt.Sprintf(" %s/%d", p.Peer.Node.Description, p.Peer.Num)}
				routingtest.Cut(p)
				moved(t, before, paths(t, b, 4), gone)
			}
		}
	}
}

func moved(t *testing.T, before, after map[string]string, gone []string) {
	t.Helper()
	must, did := 0, 0
	for _, k := range slices.Sorted(maps.Keys(after)) {
		through := slices.ContainsFunc(gone, func(g string) bool { return strings.Contains(before[k], g) })
		if through {
			must++
		}
		if before[k] == after[k] {
			continue
		}
		did++
		if !through {
			t.Fatalf("%s went by%s, now by%s: nothing there is gone", k, before[k], after[k])
		}
	}
	t.Logf("%d paths moved, %d had to", did, must)
}

// The order in which a fabric was discovered changes nothing.
func TestSameWhateverTheDiscovery(t *testing.T) {
	tables := func(reversed bool) map[string][]ib.PortNum {
		rng := rand.New(rand.NewPCG(6, 6))
		b := routingtest.New(rng)
		b.Grid([]int{6, 5, 3}, true, 2, 2)
		b.Break(rng, 0.02, 0.01)
		if reversed {
			slices.Reverse(b.Fabric.Nodes)
			slices.Reverse(b.Destinations)
			for i, n := range b.Fabric.Nodes {
				n.Index = i
			}
		}
		r, err := DimensionOrder(b.Input(t, 8))
		if err != nil {
			t.Fatal(err)
		}
		out := map[string][]ib.PortNum{}
		for _, s := range b.Fabric.Switches() {
			out[s.Name()] = r.Linear[s.Index]
		}
		return out
	}
	if d := cmp.Diff(tables(false), tables(true)); d != "" {
		t.Errorf("tables differ:\n%s", d)
	}
}

// All links of a whole torus carry the same in traffic of all pairs, but for what the
// halves of even rings leave over, and each of the parallel cables its share.
func TestBalance(t *testing.T) {
	for _, c := range []struct {
		sizes  []int
		cables int
		most   float64 // the worst link beside the mean
	}{
		{[]int{7, 5}, 1, 1}, {[]int{8, 8}, 1, 1.125}, {[]int{8, 8, 4}, 1, 1}, {[]int{5, 3}, 2, 1},
	} {
		b := routingtest.New(nil)
		b.Grid(c.sizes, true, c.cables, 2)
		r, err := DimensionOrder(b.Input(t, 2))
		if err != nil {
			t.Fatal(err)
		}
		load := map[routingtest.Step]int{}
		b.EachRoute(t, r, func(_ *observed.Node, d graph.Destination, _ ib.LID, steps []routingtest.Step) {
			if d.Port.Node.Switch != nil {
				return
			}
			for _, s := range steps {
				s.VL = 0
				load[s]++
			}
		})
		// By dimension, that is by groups of ports.
		dims := map[int][]int{}
		for s, n := range load {
			dim := (int(s.Exit) - 3) / (2 * c.cables)
			dims[dim] = append(dims[dim], n)
		}
		for dim, loads := range dims {
			sum := 0
			for _, n := range loads {
				sum += n
			}
			mean := float64(sum) / float64(len(loads))
			if worst := slices.Max(loads); float64(worst) > mean*c.most {
				t.Errorf("%v, dimension %d: %d links, mean load %.1f, worst %d", c.sizes, dim, len(loads), mean, worst)
			}
		}
	}
}

func TestLIDsOfOnePortTakeParallelCables(t *testing.T) {
	b := routingtest.New(nil)
	b.LMC = 1
	all := b.Grid([]int{5, 4}, true, 2, 1)
	r, err := DimensionOrder(b.Input(t, 2))
	if err != nil {
		t.Fatal(err)
	}
	b.Sound(t, r, 2)
	for _, d := range b.Destinations {
		for _, s := range all {
			if d.Port.Node.Switch == nil && routingtest.Behind(d.Port) != s && r.Linear[s.Index][d.LID] == r.Linear[s.Index][d.LID+1] {
				t.Errorf("%s sends both LIDs of %s by port %d", s.Name(), d.Port, r.Linear[s.Index][d.LID])
			}
		}
	}
}
