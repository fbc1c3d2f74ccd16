package dragonfly

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/test/need"
	"github.com/ibwarden/ibwarden/test/routingtest"
)

// dragonflies builds one of either kind, by chance.
func dragonflies(b *routingtest.Builder, rng *rand.Rand) string {
	groups, hosts, cables := 2+rng.IntN(6), 1+rng.IntN(2), 1+rng.IntN(2)
	if rng.IntN(2) == 0 {
		leaves, spines := 2+rng.IntN(3), 2+rng.IntN(3)
		b.Dragonfly(groups, leaves, spines, hosts)
		return fmt.Sprintf("dragonfly+ of %d groups, %d leaves, %d spines", groups, leaves, spines)
	}
	switches := 4 + rng.IntN(5)
	b.FullDragonfly(groups, switches, cables, hosts)
	return fmt.Sprintf("dragonfly of %d groups, %d switches, %d cables", groups, switches, cables)
}

// Random dragonflies with links and switches missing are routed soundly, or refused where
// too much is missing, which is rare.
func TestBrokenDragonflies(t *testing.T) {
	rounds, start := need.Rounds(100, 10_000), uint64(0)
	if rounds > 100 {
		start = rand.Uint64()
	}
	t.Logf("seeds from %d", start)
	refused := 0
	for seed := start; seed != start+rounds; seed++ {
		rng := rand.New(rand.NewPCG(seed, 20))
		b := routingtest.New(rng)
		what := dragonflies(b, rng)
		broken := rng.Float64() * 0.04
		b.Break(rng, broken, broken)
		const vls = 8
		r, err := Minimal(b.Input(t, vls))
		if err != nil {
			t.Logf("seed %d: %s, %.1f%% broken: %v", seed, what, 100*broken, err)
			refused++
			continue
		}
		if r.Lanes == nil {
			t.Fatal("a dragonfly without virtual lanes")
		}
		b.Sound(t, r, vls)
		if t.Failed() {
			t.Fatalf("seed %d: %s, %.1f%% broken", seed, what, 100*broken)
		}
	}
	t.Logf("%d of %d are refused", refused, rounds)
	if refused > int(rounds/25) {
		t.Errorf("%d of %d are refused", refused, rounds)
	}
}

// Whatever else comes is refused, or routed soundly where it looks like a dragonfly.
func TestOtherGraphs(t *testing.T) {
	const vls = 8
	for seed := range need.Rounds(100, 10_000) {
		rng := rand.New(rand.NewPCG(seed, 21))
		b := routingtest.New(rng)
		b.Irregular(rng, 2+rng.IntN(20), rng.IntN(60))
		if r, err := Minimal(b.Input(t, vls)); err == nil {
			if r.Lanes == nil {
				t.Fatal("a dragonfly without virtual lanes")
			}
			b.Sound(t, r, vls)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// A whole dragonfly needs two lanes and one layer; between hosts packets take one cable
// between groups and three hops at most.
func TestWholeDragonflies(t *testing.T) {
	for _, c := range []struct {
		note  string
		build func(b *routingtest.Builder)
	}{
		{"dragonfly of 5 groups: 20 switches", func(b *routingtest.Builder) { b.FullDragonfly(5, 4, 1, 2) }},
		{"dragonfly of 9 groups: 72 switches", func(b *routingtest.Builder) { b.FullDragonfly(9, 8, 4, 1) }},
		{"dragonfly of 3 groups: 18 switches", func(b *routingtest.Builder) { b.FullDragonfly(3, 6, 5, 2) }},
		{"dragonfly+ of 5 groups: 25 switches", func(b *routingtest.Builder) { b.Dragonfly(5, 3, 2, 3) }},
		{"dragonfly+ of 9 groups: 72 switches", func(b *routingtest.Builder) { b.Dragonfly(9, 4, 4, 1) }},
	} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%s, seed %d", c.note, seed), func(t *testing.T) {
				b := routingtest.New(rand.New(rand.NewPCG(seed, 1)))
				c.build(b)
				r, err := Minimal(b.Input(t, 2))
				if err != nil {
					t.Fatal(err)
				}
				if r.Lanes == nil {
					t.Fatal("a dragonfly without virtual lanes")
				}
				b.Sound(t, r, 2)
				if r.Lanes.Layers != 1 || r.Lanes.VLs != 2 || len(r.Notes) != 1 || r.Notes[0] != c.note {
					t.Errorf("%d layers, %d lanes, notes %q, want %q", r.Lanes.Layers, r.Lanes.VLs, r.Notes, c.note)
				}
				b.EachRoute(t, r, func(from *observed.Node, d graph.Destination, lid ib.LID, steps []routingtest.Step) {
					hosts := hasHosts(from) && d.Port.Node.Switch == nil
					if between := crossings(steps); between > 1 || hosts && len(steps) > 3 || between == 0 && hosts && len(steps) > 2 {
						t.Errorf("%s to LID %d: %d cables between groups, %d hops", from.Name(), lid, between, len(steps))
					}
				})
			})
		}
	}
}

func hasHosts(n *observed.Node) bool {
	return slices.ContainsFunc(n.Ports[1:], func(p observed.Port) bool { return p.Peer != nil && p.Peer.Node.Switch == nil })
}

// crossings is the number of cables between groups, which are in the names of switches.
func crossings(steps []routingtest.Step) (n int) {
	for _, s := range steps {
		if group(s.From) != group(s.From.Ports[s.Exit].Peer.Node) {
			n++
		}
	}
	return n
}

func group(n *observed.Node) string {
	_, place, _ := strings.Cut(n.Description, " ")
	g, _, _ := strings.Cut(place, ".")
	return g
}

// A part of the fabric beside a dragonfly may be a line of any length.
func TestLongLine(t *testing.T) {
	b := routingtest.New(nil)
	b.FullDragonfly(21, 20, 1, 1)
	first := len(b.Destinations)
	line := b.Grid([]int{300}, false, 1, 1)
	r, err := Minimal(b.Input(t, 2))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range b.Destinations[first:] {
		at := slices.Index(line, routingtest.Behind(d.Port))
		if steps, ok := b.Walk(r, line[299], 0, d, d.LID); !ok || len(steps) != 299-at {
			t.Fatalf("from the end of the line to LID %d at place %d: %d hops, arrives %v", d.LID, at, len(steps), ok)
		}
	}
}

// Two groups that lost all cables between them go by a third one.
func TestThirdGroup(t *testing.T) {
	b := routingtest.New(nil)
	all := b.FullDragonfly(4, 5, 2, 1)
	for _, s := range all[0] {
		for i := range s.Ports {
			if p := &s.Ports[i]; p.Peer != nil && group(p.Peer.Node) == "3" {
				routingtest.Cut(p)
			}
		}
	}
	r, err := Minimal(b.Input(t, 4))
	if err != nil {
		t.Fatal(err)
	}
	if r.Lanes == nil {
		t.Fatal("a dragonfly without virtual lanes")
	}
	b.Sound(t, r, 4)
	b.EachRoute(t, r, func(from *observed.Node, d graph.Destination, lid ib.LID, steps []routingtest.Step) {
		to := group(routingtest.Behind(d.Port))
		want := 1
		switch g := group(from); {
		case g == to:
			want = 0
		case g == "0" && to == "3" || g == "3" && to == "0":
			want = 2
		}
		if n := crossings(steps); n != want {
			t.Errorf("%s to LID %d: %d cables between groups, want %d", from.Name(), lid, n, want)
		}
	})
	if len(r.Notes) != 2 || !strings.HasPrefix(r.Notes[1], "25 pairs of switches have a path") {
		t.Errorf("notes %q", r.Notes)
	}
}

// The error says what was seen, where, and what was expected.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		name  string
		vls   int
		build func(b *routingtest.Builder)
		want  string
	}{
		{"one lane", 1, func(b *routingtest.Builder) { b.Dragonfly(3, 2, 2, 1) }, "a dragonfly needs 2 virtual lanes, there is 1"},
		{"no hosts", 8, func(b *routingtest.Builder) { b.Dragonfly(3, 2, 2, 0) }, "no switch has hosts"},
		{"two-level tree", 8, func(b *routingtest.Builder) { b.FatTree2(4, 2, 2, 1) },
			"make one group: a dragonfly+ has two or more"},
		{"three-level tree", 8, func(b *routingtest.Builder) { b.FatTree3(4) },
			"0 of 6 pairs of groups have links"},
		{"torus", 8, func(b *routingtest.Builder) { b.Grid([]int{5, 5}, true, 1, 1) },
			"50 of 300 pairs of groups have links, the group of "},
	} {
		b := routingtest.New(nil)
		c.build(b)
		if _, err := Minimal(b.Input(t, c.vls)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}

// The order in which a fabric was discovered changes nothing.
func TestSameWhateverTheDiscovery(t *testing.T) {
	for kind := range 2 {
		tables := func(reversed bool) map[string][]ib.PortNum {
			rng := rand.New(rand.NewPCG(6, 6))
			b := routingtest.New(rng)
			if kind == 0 {
				b.FullDragonfly(5, 6, 2, 2)
			} else {
				b.Dragonfly(6, 4, 3, 2)
			}
			b.Break(rng, 0.02, 0.01)
			if reversed {
				slices.Reverse(b.Fabric.Nodes)
				slices.Reverse(b.Destinations)
				for i, n := range b.Fabric.Nodes {
					n.Index = i
				}
			}
			r, err := Minimal(b.Input(t, 8))
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
}

// Parallel ways between two groups carry about the same in traffic of all pairs, and LIDs
// of one port take different ones where their switch can choose.
func TestBalance(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(b *routingtest.Builder)
		most  float64 // the worst cable of two groups beside the mean
	}{
		{"dragonfly", func(b *routingtest.Builder) { b.FullDragonfly(5, 8, 4, 4) }, 1.5},
		{"one cable", func(b *routingtest.Builder) { b.FullDragonfly(9, 8, 1, 4) }, 1},
		{"dragonfly+", func(b *routingtest.Builder) { b.Dragonfly(9, 4, 4, 4) }, 1},
	} {
		b := routingtest.New(nil)
		c.build(b)
		r, err := Minimal(b.Input(t, 2))
		if err != nil {
			t.Fatal(err)
		}
		load := map[string]map[routingtest.Step]int{}
		b.EachRoute(t, r, func(from *observed.Node, d graph.Destination, _ ib.LID, steps []routingtest.Step) {
			if d.Port.Node.Switch != nil || !hasHosts(from) {
				return
			}
			for _, s := range steps {
				if a, z := group(s.From), group(s.From.Ports[s.Exit].Peer.Node); a != z {
					s.VL = 0
					if load[a+" to "+z] == nil {
						load[a+" to "+z] = map[routingtest.Step]int{}
					}
					load[a+" to "+z][s]++
				}
			}
		})
		for pair, cables := range load {
			sum, worst := 0, 0
			for _, n := range cables {
				sum += n
				worst = max(worst, n)
			}
			if mean := float64(sum) / float64(len(cables)); float64(worst) > c.most*mean {
				t.Errorf("%s, from group %s: %d cables, mean load %.1f, worst %d", c.name, pair, len(cables), mean, worst)
			}
		}
	}
}

func TestLIDsOfOnePortTakeDifferentPaths(t *testing.T) {
	b := routingtest.New(nil)
	b.LMC = 1
	b.Dragonfly(3, 3, 2, 2)
	r, err := Minimal(b.Input(t, 2))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range b.Destinations {
		for _, s := range b.Fabric.Switches() {
			if d.Port.Node.Switch == nil && hasHosts(s) && s != routingtest.Behind(d.Port) && group(s) == group(routingtest.Behind(d.Port)) &&
				r.Linear[s.Index][d.LID] == r.Linear[s.Index][d.LID+1] {
				t.Errorf("%s sends both LIDs of %s by port %d", s.Name(), d.Port, r.Linear[s.Index][d.LID])
			}
		}
	}
}

// mostMoved is how many paths may move for each that has to.
const mostMoved = 1.3

// With one cable gone, few paths move that did not take it.
func TestOthersStay(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(b *routingtest.Builder)
	}{
		{"dragonfly", func(b *routingtest.Builder) { b.FullDragonfly(5, 6, 3, 2) }},
		{"dragonfly+", func(b *routingtest.Builder) { b.Dragonfly(7, 4, 3, 2) }},
	} {
		must, did, all := 0, 0, 0
		for seed := range need.Share[uint64](6, 20) {
			rng := rand.New(rand.NewPCG(seed, 5))
			b := routingtest.New(nil)
			c.build(b)
			before := paths(t, b)
			switches := b.Fabric.Switches()
			var p *observed.Port
			for p == nil || p.Peer == nil || p.Peer.Node.Switch == nil {
				n := switches[rng.IntN(len(switches))]
				p = &n.Ports[1+rng.IntN(len(n.Ports)-1)]
			}
			gone := []string{fmt.Sprintf(" %s/%d;", p.Node.Description, p.Num), fmt.Sprintf(" %s/%d;", p.Peer.Node.Description, p.Peer.Num)}
			routingtest.Cut(p)
			for k, path := range paths(t, b) {
				all++
				if slices.ContainsFunc(gone, func(g string) bool { return strings.Contains(before[k], g) }) {
					must++
				}
				if path != before[k] {
					did++
				}
			}
		}
		t.Logf("%s: of %d paths %d moved, %d had to", c.name, all, did, must)
		if float64(did) > mostMoved*float64(must) {
			t.Errorf("%s: of %d paths %d moved, %d had to", c.name, all, did, must)
		}
	}
}

// paths are all paths of a fabric, by the switch where they begin and the LID.
func paths(t *testing.T, b *routingtest.Builder) map[string]string {
	t.Helper()
	r, err := Minimal(b.Input(t, 8))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	b.EachRoute(t, r, func(from *observed.Node, _ graph.Destination, lid ib.LID, steps []routingtest.Step) {
		path := ""
		for _, s := range steps {
			path += fmt.Sprintf(" %s/%d;", s.From.Description, s.Exit)
		}
		out[fmt.Sprintf("%s to %d", from.Description, lid)] = path
	})
	return out
}
