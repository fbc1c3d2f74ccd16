package ftree

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/test/need"
	"github.com/ibwarden/ibwarden/test/routingtest"
)

func route(t testing.TB, b *routingtest.Builder) *graph.Routes {
	t.Helper()
	r, err := FatTree(b.Input(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

type level = routingtest.TreeLevel

// wholeTrees have as many cables up as down below their tops.
var wholeTrees = map[string]struct {
	hosts  int
	levels []level
}{
	"two levels":                {4, []level{{6, 4, 1}}},
	"two cables":                {4, []level{{4, 2, 2}}},
	"three cables":              {6, []level{{5, 2, 3}}},
	"three levels":              {3, []level{{3, 3, 1}, {6, 3, 1}}},
	"three levels, odd pods":    {4, []level{{4, 4, 1}, {5, 4, 1}}},
	"two cables at the top":     {4, []level{{4, 4, 1}, {4, 2, 2}}},
	"two cables at the bottom":  {4, []level{{2, 2, 2}, {4, 4, 1}}},
	"two cables on both levels": {4, []level{{4, 2, 2}, {3, 4, 2}}},
	"four levels":               {2, []level{{2, 2, 1}, {2, 2, 1}, {4, 2, 1}}},
	"four levels of three":      {3, []level{{3, 3, 1}, {3, 3, 1}, {2, 3, 1}}},
}

// otherTrees are whole too, of other shapes.
var otherTrees = map[string]func(b *routingtest.Builder){
	"one switch":           func(b *routingtest.Builder) { b.Hosts(b.Switch(4, "only"), 4) },
	"no CAs":               func(b *routingtest.Builder) { b.Tree(0, level{4, 2, 1}, level{4, 2, 1}) },
	"oversubscribed":       func(b *routingtest.Builder) { b.FatTree2(5, 3, 7, 1) },
	"few hosts":            func(b *routingtest.Builder) { b.Tree(1, level{4, 3, 1}, level{4, 3, 1}) },
	"one way up":           func(b *routingtest.Builder) { b.Tree(3, level{4, 1, 1}, level{4, 1, 1}) },
	"one way up, of three": func(b *routingtest.Builder) { b.Tree(3, level{4, 1, 3}, level{4, 2, 2}) },
	"a host at a spine": func(b *routingtest.Builder) {
		_, spine := b.FatTree2(6, 4, 4, 1)
		b.Hosts(spine[1], 1)
	},
	"a host at every switch": func(b *routingtest.Builder) {
		for _, all := range b.Tree(4, level{3, 3, 1}, level{3, 2, 1}) {
			for _, s := range all {
				b.Hosts(s, 1)
			}
		}
	},
	"leaves at the cores": func(b *routingtest.Builder) {
		made := b.Tree(4, level{4, 4, 1}, level{5, 4, 1})
		for i := range 2 {
			l := b.Switch(40, "near the top %d", i)
			b.Hosts(l, 3)
			for _, core := range made[2][8*i : 8*i+8] {
				subnettest.Join(core, l)
			}
		}
	},
	"pods of two sizes": func(b *routingtest.Builder) {
		made := b.Tree(4, level{4, 4, 1}, level{3, 4, 1})
		for i := range 4 { // a pod of four leaves, each with half the cables, under the same cores
			l := b.Switch(10, "small %d", i)
			b.Hosts(l, 4)
			for j := range 4 {
				subnettest.Join(made[2][4*j+i], l)
			}
		}
	},
}

func eachWholeTree(t *testing.T, test func(t *testing.T, b *routingtest.Builder, seed uint64)) {
	builders := map[string]func(b *routingtest.Builder){}
	for name, c := range wholeTrees {
		builders[name] = func(b *routingtest.Builder) { b.Tree(c.hosts, c.levels...) }
	}
	for name, build := range otherTrees {
		builders[name] = build
	}
	for name, build := range builders {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%s, seed %d", name, seed), func(t *testing.T) {
				var rng *rand.Rand // seed 0: GUIDs in order
				if seed > 0 {
					rng = rand.New(rand.NewPCG(seed, 2))
				}
				b := routingtest.New(rng)
				b.Spare = 4
				build(b)
				test(t, b, seed)
			})
		}
	}
}

// Whatever is connected stays so, without a loop or a circle of links, and CAs are as near
// to each other as they can be.
func TestWholeTrees(t *testing.T) {
	eachWholeTree(t, func(t *testing.T, b *routingtest.Builder, _ uint64) {
		r := route(t, b)
		if n, pairs := longer(t, b, r); n > 0 {
			t.Errorf("%d of %d pairs of CAs take a longer way than needed", n, pairs)
		}
		if b.Deadlocks(t, r, 1) {
			t.Error("links depend on each other in a circle")
		}
	})
}

// isHigh reports whether a switch was made to be above leaves.
func isHigh(n *observed.Node) bool {
	return strings.HasPrefix(n.Description, "level") || strings.HasPrefix(n.Description, "spine")
}

// longer counts the routes between CAs, of which one is at a leaf, that are longer than the
// shortest, and all.
func longer(t *testing.T, b *routingtest.Builder, r *graph.Routes) (longer, pairs int) {
	t.Helper()
	near := map[*observed.Node]map[*observed.Node]int{}
	for _, s := range b.Fabric.Switches() {
		near[s] = routingtest.Hops(s)
	}
	leaf := map[*observed.Node]bool{}
	for _, d := range b.Destinations {
		if n := routingtest.Behind(d.Port); n != nil && d.Port.Node.Switch == nil {
			leaf[n] = true
		}
	}
	b.EachRoute(t, r, func(from *observed.Node, d graph.Destination, _ ib.LID, steps []routingtest.Step) {
		if !leaf[from] || d.Port.Node.Switch != nil || isHigh(from) && isHigh(routingtest.Behind(d.Port)) {
			return
		}
		pairs++
		if len(steps) > near[from][routingtest.Behind(d.Port)] {
			longer++
		}
	})
	return longer, pairs
}

// byNumber lists the LIDs of CAs by their numbers, and the switches they are behind.
func byNumber(t *testing.T, b *routingtest.Builder) (lids []ib.LID, at []*observed.Node) {
	t.Helper()
	x := newTree(b.Input(t, 1).Graph)
	x.findLevels()
	x.number()
	type place struct {
		e  entry
		at *observed.Node
	}
	var all []place
	for s, n := range x.Nodes {
		for _, e := range x.entries[x.entryFirst[s]:x.entryFirst[s+1]] {
			if e.lid != n.Ports[0].Info.LID {
				all = append(all, place{e, n})
			}
		}
	}
	sortBy(all, func(p place) int { return int(p.e.number) })
	for i, p := range all {
		if i > 0 && all[i-1].e.number == p.e.number {
			t.Errorf("LIDs %d and %d have number %d", all[i-1].e.lid, p.e.lid, p.e.number)
		}
		lids, at = append(lids, p.e.lid), append(at, p.at)
	}
	return lids, at
}

// worstShift is the highest load of a link when each CA sends to the one so many places
// after it, for any such number.
func worstShift(t *testing.T, b *routingtest.Builder, r *graph.Routes) (worst int) {
	t.Helper()
	lids, at := byNumber(t, b)
	of := map[ib.LID]graph.Destination{}
	for _, d := range b.Destinations {
		of[d.LID] = d
	}
	for by := 1; by < len(lids); by++ {
		load := map[routingtest.Step]int{}
		for i := range lids {
			to := lids[(i+by)%len(lids)]
			steps, ok := b.Walk(r, at[i], 0, of[to], to)
			if !ok {
				t.Fatalf("no way from %s to LID %d", at[i].Name(), to)
			}
			for _, s := range steps {
				load[s]++
				worst = max(worst, load[s])
			}
		}
	}
	return worst
}

// In a whole tree no two flows of a cyclic shift share a link.
func TestShiftsDoNotBlock(t *testing.T) {
	for name, c := range wholeTrees {
		for seed := range uint64(3) {
			var rng *rand.Rand // seed 0: GUIDs in order
			if seed > 0 {
				rng = rand.New(rand.NewPCG(seed, 2))
			}
			b := routingtest.New(rng)
			b.Tree(c.hosts, c.levels...)
			if worst := worstShift(t, b, route(t, b)); worst != 1 {
				t.Errorf("%s, seed %d: a link carries %d flows of a shift", name, seed, worst)
			}
		}
	}
}

// A CA more at every switch, as switches that reduce data in the network have one, leaves
// the shifts of the others as they are.
func TestShiftsBesideOtherHosts(t *testing.T) {
	b := routingtest.New(nil)
	b.Tree(4, level{4, 4, 1}, level{4, 4, 1})
	plain := route(t, b)
	beside := routingtest.New(nil)
	beside.Spare = 1
	for _, all := range beside.Tree(4, level{4, 4, 1}, level{4, 4, 1}) {
		for _, s := range all {
			beside.Hosts(s, 1)
		}
	}
	r := route(t, beside)
	for _, s := range b.Fabric.Switches() {
		for _, d := range b.Destinations {
			if got, want := r.Linear[s.Index][d.LID], plain.Linear[s.Index][d.LID]; got != want && d.Port.Node.Switch == nil {
				t.Fatalf("%s: LID %d leaves by port %d, without the other CAs by %d", s.Name(), d.LID, got, want)
			}
		}
	}
}

// broken makes a random tree and breaks it.
func broken(seed uint64) *routingtest.Builder {
	rng := rand.New(rand.NewPCG(seed, 1))
	b := routingtest.New(rng)
	b.Spare = 12
	b.LMC = ib.LMC(max(0, rng.IntN(5)-2))
	var all [][]*observed.Node
	few := func() int { return 1 + rng.IntN(3) }
	switch rng.IntN(4) {
	case 0:
		all = b.Tree(rng.IntN(5), level{2 + rng.IntN(7), 1 + rng.IntN(4), few()})
	case 1, 2:
		all = b.Tree(few(), level{few(), few(), 1 + rng.IntN(2)}, level{1 + few(), few(), 1 + rng.IntN(2)})
	default:
		all = b.Tree(few(), level{2, 2, 1}, level{few(), 2, 1}, level{2, 2, 1})
	}
	var flat []*observed.Node
	for _, switches := range all {
		flat = append(flat, switches...)
	}
	pick := func() *observed.Node { return flat[rng.IntN(len(flat))] }
	for range max(0, rng.IntN(6)-3) {
		b.Hosts(pick(), 1)
	}
	for range max(0, rng.IntN(6)-4) { // a cable where none belongs
		if x, y := pick(), pick(); x != y {
			subnettest.Join(x, y)
		}
	}
	for range rng.IntN(1 + rng.IntN(len(flat)*2)) {
		if s := pick(); len(s.Ports) > 1 {
			if p := &s.Ports[1+rng.IntN(len(s.Ports)-1)]; p.Peer != nil {
				routingtest.Cut(p)
			}
		}
	}
	if rng.IntN(4) == 0 { // a switch that is off
		for i, s := 1, pick(); i < len(s.Ports); i++ {
			if s.Ports[i].Peer != nil {
				routingtest.Cut(&s.Ports[i])
			}
		}
	}
	return b
}

// others makes a random graph that need not be a tree.
func others(seed uint64) *routingtest.Builder {
	rng := rand.New(rand.NewPCG(seed, 4))
	b := routingtest.New(rng)
	switch rng.IntN(4) {
	case 0:
		b.Torus(1+rng.IntN(6), 1+rng.IntN(6), rng.IntN(3))
	case 1:
		b.Dragonfly(2+rng.IntN(5), 1+rng.IntN(4), 1+rng.IntN(3), rng.IntN(3))
	default:
		b.Irregular(rng, 2+rng.IntN(25), rng.IntN(30))
	}
	for _, s := range b.Fabric.Switches() {
		if p := &s.Ports[1+rng.IntN(len(s.Ports)-1)]; rng.IntN(10) == 0 && p.Peer != nil {
			routingtest.Cut(p)
		}
	}
	return b
}

// Whatever is left of a tree stays connected, without a loop or a circle, and a way
// between CAs that is longer than needed is rare. What is no tree is refused, or so routed
// too.
func TestBrokenGraphs(t *testing.T) {
	trees, start := need.Share[uint64](100, 400), uint64(0)
	if need.Soak() {
		trees, start = 10000, rand.Uint64()
	}
	t.Logf("seed %d", start)
	for _, kind := range []struct {
		name  string
		build func(seed uint64) *routingtest.Builder
		// of a hundred; 0: there is no bound
		refused, longer int
	}{{"tree", broken, 5, 5}, {"other graph", others, 0, 0}} {
		refused, further, pairs := 0, 0, 0
		for seed := start; seed != start+trees; seed++ {
			b := kind.build(seed)
			r, err := FatTree(b.Input(t, 1))
			if err != nil {
				if refused++; !strings.HasPrefix(err.Error(), "no fat tree: ") {
					t.Errorf("%s, seed %d: %v", kind.name, seed, err)
				}
				continue
			}
			n, all := longer(t, b, r)
			further, pairs = further+n, pairs+all
			if b.Deadlocks(t, r, 1) {
				t.Errorf("%s, seed %d: links depend on each other in a circle", kind.name, seed)
			}
		}
		t.Logf("%d of kind %s: %d refused; %d of %d pairs of CAs take a longer way than needed", trees, kind.name, refused, further, pairs)
		if kind.refused > 0 && refused*100 > int(trees)*kind.refused || kind.longer > 0 && further*100 > pairs*kind.longer {
			t.Errorf("more than %d%% refused or %d%% longer", kind.refused, kind.longer)
		}
	}
}

// crosses reports whether the way from a switch to a LID takes a cable.
func crosses(t *testing.T, b *routingtest.Builder, r *graph.Routes, from *observed.Node, d graph.Destination, lid ib.LID, p *observed.Port) bool {
	steps, _ := b.Walk(r, from, 0, d, lid)
	for _, s := range steps {
		if q := &s.From.Ports[s.Exit]; q == p || q == p.Peer {
			return true
		}
	}
	return false
}

// When a cable breaks, only routes that took it move.
func TestOtherRoutesStay(t *testing.T) {
	for name, c := range wholeTrees {
		for seed := range uint64(4) {
			rng := rand.New(rand.NewPCG(seed, 5))
			b := routingtest.New(rng)
			made := b.Tree(c.hosts, c.levels...)
			before := route(t, b)
			s := made[rng.IntN(len(made))]
			at := s[rng.IntN(len(s))]
			p := &at.Ports[1+rng.IntN(len(at.Ports)-1)]
			if p.Peer.Node.Switch == nil {
				continue
			}
			type key struct {
				s   *observed.Node
				lid ib.LID
			}
			crossed := map[key]bool{}
			b.EachRoute(t, before, func(from *observed.Node, d graph.Destination, lid ib.LID, _ []routingtest.Step) {
				crossed[key{from, lid}] = crosses(t, b, before, from, d, lid, p)
			})
			routingtest.Cut(p)
			after := route(t, b)
			moved, entries := 0, 0
			b.EachRoute(t, after, func(from *observed.Node, d graph.Destination, lid ib.LID, _ []routingtest.Step) {
				if d.Port.Node.Switch != nil {
					return
				}
				entries++
				if before.Linear[from.Index][lid] != after.Linear[from.Index][lid] {
					moved++
					if !crossed[key{from, lid}] {
						t.Errorf("%s, seed %d, without the cable of %s: %s moves LID %d from port %d to %d", name, seed, p, from.Name(), lid,
							before.Linear[from.Index][lid], after.Linear[from.Index][lid])
					}
				}
			})
			t.Logf("%s, seed %d: %d of %d entries moved", name, seed, moved, entries)
		}
	}
}

func TestRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(b *routingtest.Builder)
		want  string
	}{
		{"torus", func(b *routingtest.Builder) { b.Torus(4, 4, 2) },
			"no fat tree: 32 of 32 cables between switches join switches of one level, and 0 others do not join adjacent levels, for example from switch 0,0 port 3 at level 0 to switch 1,0 port 3 at level 0; at most one in 8 is expected"},
		{"dragonfly", func(b *routingtest.Builder) { b.Dragonfly(5, 3, 2, 3) }, "no fat tree: 10 of 40 cables"},
		{"torus with CAs at every other switch", func(b *routingtest.Builder) {
			b.Spare = 1
			b.Torus(8, 8, 0)
			for i, s := range b.Fabric.Switches() {
				if (i%8+i/8)%2 == 0 {
					b.Hosts(s, 1)
				}
			}
		}, "pairs of switches with CAs have no way up and down again: "},
	} {
		b := routingtest.New(nil)
		c.build(b)
		if _, err := FatTree(b.Input(t, 1)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}

func TestNotes(t *testing.T) {
	b := routingtest.New(nil)
	leaf, _ := b.FatTree2(5, 2, 3, 1)
	routingtest.Cut(&leaf[0].Ports[4])
	routingtest.Cut(&leaf[1].Ports[5])
	subnettest.Join(b.Switch(4, "aside"), b.Switch(4, "beside"))
	got := strings.Join(route(t, b).Notes, "\n")
	want := "fat tree of 2 levels; switches from the lowest up: 7, 2\n" +
		"fat tree: 1 of 9 cables between switches do not join adjacent levels, for example from aside port 1 at level 0 to beside port 1 at level 0\n" +
		"fat tree: 2 of 20 pairs of switches with CAs have no way up and down again, and take a longer one: leaf 0 reaches leaf 1 in 4 hops\n" +
		"fat tree: 2 of 10 cables up that switches of the same place have are missing"
	if got != want {
		t.Errorf("notes:\n%s\nwant:\n%s", got, want)
	}
}

func benchmark(b *testing.B, build func(b *routingtest.Builder), engine func(*graph.Input) (*graph.Routes, error)) {
	made := routingtest.New(nil)
	build(made)
	in := made.Input(b, 1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := engine(in); err != nil {
			b.Fatal(err)
		}
	}
}

func hosts648(b *routingtest.Builder)   { b.Tree(18, level{36, 18, 1}) }
func hosts3456(b *routingtest.Builder)  { b.FatTree3(24) }
func hosts11664(b *routingtest.Builder) { b.FatTree3(36) }
func hosts40960(b *routingtest.Builder) { b.Tree(32, level{32, 32, 1}, level{40, 32, 1}) }

// missing takes one cable in a hundred from a tree.
func missing(build func(b *routingtest.Builder)) func(b *routingtest.Builder) {
	return func(b *routingtest.Builder) {
		build(b)
		rng := rand.New(rand.NewPCG(1, 6))
		for _, s := range b.Fabric.Switches() {
			for i := 1; i < len(s.Ports); i++ {
				if p := &s.Ports[i]; p.Peer != nil && p.Peer.Node.Switch != nil && p.Peer.Node.Index > s.Index && rng.IntN(100) == 0 {
					routingtest.Cut(p)
				}
			}
		}
	}
}

func BenchmarkFatTree648(b *testing.B)         { benchmark(b, hosts648, FatTree) }
func BenchmarkFatTree3456(b *testing.B)        { benchmark(b, hosts3456, FatTree) }
func BenchmarkFatTree11664(b *testing.B)       { benchmark(b, hosts11664, FatTree) }
func BenchmarkFatTree11664Broken(b *testing.B) { benchmark(b, missing(hosts11664), FatTree) }
func BenchmarkFatTree40960(b *testing.B)       { benchmark(b, hosts40960, FatTree) }
func BenchmarkFatTree40960Broken(b *testing.B) { benchmark(b, missing(hosts40960), FatTree) }
func BenchmarkUpDown648(b *testing.B)          { benchmark(b, hosts648, graph.UpDown) }
func BenchmarkUpDown3456(b *testing.B)         { benchmark(b, hosts3456, graph.UpDown) }
func BenchmarkUpDown11664(b *testing.B)        { benchmark(b, hosts11664, graph.UpDown) }
