package routing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

var engines = []Engine{MinHop, UpDown}

// topologies are connected fabrics of every kind.
func topologies() map[string]func() *builder {
	made := map[string]func() *builder{
		"one switch":     func() *builder { b := newBuilder(nil); b.hosts(b.sw(4, "only"), 4); return b },
		"no CAs":         func() *builder { b := newBuilder(nil); b.torus(3, 3, 0); return b },
		"two-level tree": func() *builder { b := newBuilder(nil); b.fatTree2(6, 4, 4, 1); return b },
		"doubled cables": func() *builder { b := newBuilder(nil); b.fatTree2(4, 2, 4, 2); return b },
		"oversubscribed": func() *builder { b := newBuilder(nil); b.fatTree2(5, 3, 7, 1); return b },
		"radix 6":        func() *builder { b := newBuilder(nil); b.fatTree3(6); return b },
		"radix 8, LMC 1": func() *builder { b := newBuilder(nil); b.lmc = 1; b.fatTree3(8); return b },
		"ring of 5":      func() *builder { b := newBuilder(nil); b.torus(5, 1, 2); return b },
		"torus 4x5":      func() *builder { b := newBuilder(nil); b.torus(4, 5, 2); return b },
		"torus 2x3":      func() *builder { b := newBuilder(nil); b.torus(2, 3, 1); return b },
		"dragonfly":      func() *builder { b := newBuilder(nil); b.dragonfly(5, 3, 2, 3); return b },
		"shuffled tree": func() *builder {
			b := newBuilder(rand.New(rand.NewPCG(7, 7)))
			b.fatTree3(6)
			return b
		},
	}
	for seed := range uint64(25) {
		made[fmt.Sprintf("irregular, seed %d", seed)] = func() *builder {
			rng := rand.New(rand.NewPCG(seed, 1))
			b := newBuilder(rng)
			b.irregular(rng, 2+rng.IntN(30), rng.IntN(40))
			return b
		}
	}
	return made
}

func onEach(t *testing.T, test func(t *testing.T, b *builder)) {
	for name, build := range topologies() {
		t.Run(name, func(t *testing.T) { test(t, build()) })
	}
}

func TestEveryPairIsReached(t *testing.T) {
	onEach(t, func(t *testing.T, b *builder) {
		for _, e := range engines {
			tables := b.compute(t, e)
			eachRoute(t, b, tables, nil)
			if len(tables.Islands) != 1 || len(tables.Islands[0]) != len(b.f.Switches()) || tables.Detached != nil {
				t.Errorf("%s: islands %v, detached %v", e, tables.Islands, tables.Detached)
			}
		}
	})
}

func TestMinHopIsShortest(t *testing.T) {
	onEach(t, func(t *testing.T, b *builder) {
		tables := b.compute(t, MinHop)
		shortest := map[*observed.Node]map[*observed.Node]int{}
		for _, s := range b.f.Switches() {
			shortest[s] = hops(s)
		}
		eachRoute(t, b, tables, func(from *observed.Node, d Destination, lid ib.LID, steps []step) {
			if want := shortest[from][behind(d.Port)]; len(steps) != want {
				t.Errorf("%s to LID %d: %d hops, the shortest way has %d", from.Name(), lid, len(steps), want)
			}
		})
	})
}

func TestUpDownCannotDeadlock(t *testing.T) {
	onEach(t, func(t *testing.T, b *builder) {
		if dependencyCycle(t, b, b.compute(t, UpDown)) {
			t.Error("links depend on each other in a circle")
		}
	})
}

// The check above can fail: shortest paths round a ring do deadlock.
func TestMinHopCanDeadlock(t *testing.T) {
	for _, size := range [][2]int{{5, 1}, {6, 6}} {
		b := newBuilder(nil)
		b.torus(size[0], size[1], 1)
		if !dependencyCycle(t, b, b.compute(t, MinHop)) {
			t.Errorf("torus %v: no circle among the links that minhop uses", size)
		}
	}
}

// longerThanNeeded counts the pairs of CAs whose packets take a longer way
// than the shortest, and all pairs.
func longerThanNeeded(t *testing.T, b *builder, tables *Tables) (longer, pairs int) {
	t.Helper()
	for _, from := range b.dests {
		if from.Port.Node.Switch != nil {
			continue
		}
		shortest := hops(behind(from.Port))
		for _, d := range b.dests {
			if d.Port.Node.Switch != nil {
				continue
			}
			steps, ok := walk(b, tables, behind(from.Port), d, d.LID)
			if !ok {
				t.Fatalf("no way from %s to %s", from.Port, d.Port)
			}
			pairs++
			if len(steps) != shortest[behind(d.Port)] {
				longer++
			}
		}
	}
	return longer, pairs
}

// In trees up*/down* takes nobody a longer way from CA to CA than necessary.
func TestUpDownIsShortestInTrees(t *testing.T) {
	for _, name := range []string{"two-level tree", "doubled cables", "oversubscribed", "radix 6", "radix 8, LMC 1", "shuffled tree"} {
		b := topologies()[name]()
		if n, _ := longerThanNeeded(t, b, b.compute(t, UpDown)); n != 0 {
			t.Errorf("%s: %d pairs of CAs take a longer way than needed", name, n)
		}
	}
}

// flows counts the routes from CA to CA that cross each link between switches.
func flows(t *testing.T, b *builder, tables *Tables) map[step]int {
	t.Helper()
	out := map[step]int{}
	for _, from := range b.dests {
		if from.Port.Node.Switch != nil {
			continue
		}
		for _, d := range b.dests {
			if d.Port.Node.Switch != nil || d.Port == from.Port {
				continue
			}
			for l := range d.LMC.Count() {
				steps, ok := walk(b, tables, behind(from.Port), d, d.LID+ib.LID(l))
				if !ok {
					t.Fatalf("no way from %s to %s", from.Port, d.Port)
				}
				for _, s := range steps {
					out[s]++
				}
			}
		}
	}
	return out
}

// spread is the smallest, the largest and the mean load of the links between
// switches whose names begin with from and to.
func spread(b *builder, load map[step]int, from, to string) (least, most, mean int) {
	least = -1
	total, links := 0, 0
	for _, s := range b.f.Switches() {
		for i := 1; i < len(s.Ports); i++ {
			p := &s.Ports[i]
			if !strings.HasPrefix(s.Description, from) || p.Peer == nil || !p.IsUp() || !strings.HasPrefix(p.Peer.Node.Description, to) {
				continue
			}
			n := load[step{s, p.Num}]
			if least < 0 || n < least {
				least = n
			}
			most = max(most, n)
			total += n
			links++
		}
	}
	return least, most, total / links
}

// In a full fat tree every link of a level carries the same number of routes,
// in either direction, and every switch has as many LIDs on each of its ports
// up, but for one.
func TestFatTreesAreBalanced(t *testing.T) {
	for _, c := range []struct {
		name   string
		levels []string
		build  func(b *builder)
	}{
		{"two levels", []string{"leaf", "spine"}, func(b *builder) { b.fatTree2(8, 4, 4, 1) }},
		{"two cables", []string{"leaf", "spine"}, func(b *builder) { b.fatTree2(6, 3, 6, 2) }},
		{"three levels", []string{"edge", "middle", "core"}, func(b *builder) { b.fatTree3(8) }},
	} {
		for _, e := range engines {
			for seed := range uint64(4) {
				t.Run(fmt.Sprintf("%s, %s, seed %d", c.name, e, seed), func(t *testing.T) {
					var rng *rand.Rand // seed 0: GUIDs in order
					if seed > 0 {
						rng = rand.New(rand.NewPCG(seed, 2))
					}
					b := newBuilder(rng)
					c.build(b)
					tables := b.compute(t, e)
					load := flows(t, b, tables)
					for i := 1; i < len(c.levels); i++ {
						low, high := c.levels[i-1], c.levels[i]
						for _, way := range [][2]string{{low, high}, {high, low}} {
							if least, most, _ := spread(b, load, way[0], way[1]); least != most || most == 0 {
								t.Errorf("links from %s to %s carry %d to %d routes", way[0], way[1], least, most)
							}
						}
						checkLIDCounts(t, b, tables, low, high)
					}
				})
			}
		}
	}
}

// checkLIDCounts compares, for each switch of a level, the LIDs of CAs on its
// ports to the next level up.
func checkLIDCounts(t *testing.T, b *builder, tables *Tables, low, high string) {
	t.Helper()
	for _, s := range b.f.Switches() {
		if !strings.HasPrefix(s.Description, low) {
			continue
		}
		var counts []int
		for i := 1; i < len(s.Ports); i++ {
			if p := &s.Ports[i]; p.Peer != nil && strings.HasPrefix(p.Peer.Node.Description, high) {
				n := 0
				for _, d := range b.dests {
					for l := range d.LMC.Count() {
						if d.Port.Node.Switch == nil && tables.Linear[s.Index][int(d.LID)+l] == p.Num {
							n++
						}
					}
				}
				counts = append(counts, n)
			}
		}
		if slices.Max(counts)-slices.Min(counts) > 1 {
			t.Errorf("%s has %v LIDs on its ports to %ss", s.Name(), counts, high)
		}
	}
}

// What is left of a broken tree is used to the full: ways stay as short as
// they can be, for up*/down* but for one in a hundred, and no link between
// switches falls idle or takes it all.
func TestBrokenTrees(t *testing.T) {
	for _, c := range []struct {
		name  string
		links [][2]string
		build func(b *builder, rng *rand.Rand)
	}{
		{"two levels, each leaf without a link, a CA on a spine", [][2]string{{"leaf", "spine"}}, func(b *builder, rng *rand.Rand) {
			leaf, spine := b.fatTree2(8, 4, 4, 1)
			for i, l := range leaf {
				cut(&l.Ports[5+i%4])
			}
			b.hosts(spine[rng.IntN(4)], 1)
		}},
		{"three levels without 20 links", [][2]string{{"edge", "middle"}, {"middle", "core"}}, func(b *builder, rng *rand.Rand) {
			edge, middle, core := b.fatTree3(8)
			all := slices.Concat(edge, middle, core)
			for range 20 {
				if p := &all[rng.IntN(len(all))].Ports[1+rng.IntN(8)]; p.Peer.Node.Switch != nil {
					cut(p)
				}
			}
		}},
	} {
		for seed := range uint64(5) {
			for _, e := range engines {
				rng := rand.New(rand.NewPCG(seed, 3))
				b := newBuilder(rng)
				c.build(b, rng)
				tables := b.compute(t, e)
				eachRoute(t, b, tables, nil)
				longer, pairs := longerThanNeeded(t, b, tables)
				if longer > 0 && (e == MinHop || longer > pairs/100) {
					t.Errorf("%s, %s, seed %d: %d of %d pairs of CAs take a longer way than needed", c.name, e, seed, longer, pairs)
				}
				if e == UpDown && dependencyCycle(t, b, tables) {
					t.Errorf("%s, seed %d: links depend on each other in a circle", c.name, seed)
				}
				load := flows(t, b, tables)
				for _, l := range c.links {
					for _, way := range [][2]string{l, {l[1], l[0]}} {
						if least, most, mean := spread(b, load, way[0], way[1]); least == 0 || most > 3*mean {
							t.Errorf("%s, %s, seed %d: links from %s to %s carry %d to %d routes, %d on average",
								c.name, e, seed, way[0], way[1], least, most, mean)
						}
					}
				}
			}
		}
	}
}

func TestLIDsOfOnePortTakeDifferentPaths(t *testing.T) {
	for _, e := range engines {
		b := newBuilder(nil)
		b.lmc = 2
		leaf, _ := b.fatTree2(4, 4, 3, 1)
		tables := b.compute(t, e)
		eachRoute(t, b, tables, nil)
		for _, d := range b.dests {
			for _, l := range leaf {
				if d.Port.Node.Switch != nil || behind(d.Port) == l {
					continue
				}
				exits := map[ib.PortNum]bool{}
				for i := range d.LMC.Count() {
					exits[tables.Linear[l.Index][int(d.LID)+i]] = true
				}
				if len(exits) != 4 {
					t.Errorf("%s: %s sends the 4 LIDs of %s by %d of its 4 ports", e, l.Name(), d.Port, len(exits))
				}
			}
		}
	}
}

// They do so too where one of the paths is loaded with more than the other.
func TestLIDsOfOnePortTakeLoadedPathsToo(t *testing.T) {
	b := newBuilder(nil)
	b.lmc = 1
	first, second := b.sw(9, "spine 0"), b.sw(9, "spine 1")
	from, far, near := b.sw(9, "from"), b.sw(40, "far"), b.sw(9, "near")
	for _, l := range []*observed.Node{from, near} {
		subnettest.Join(l, first)
		subnettest.Join(l, second)
	}
	subnettest.Join(far, first) // what lies here is reached by spine 0 only
	b.hosts(from, 2)
	b.hosts(far, 30)
	b.hosts(near, 2)
	for _, e := range engines {
		table := b.compute(t, e).Linear[from.Index]
		for _, d := range b.dests {
			if d.Port.Node.Switch == nil && behind(d.Port) == near && table[d.LID] == table[d.LID+1] {
				t.Errorf("%s: both LIDs of %s leave by port %d", e, d.Port, table[d.LID])
			}
		}
	}
}

// The order in which a fabric was discovered changes nothing.
func TestSameTablesWhateverTheDiscovery(t *testing.T) {
	for _, e := range engines {
		tables := func(reversed bool) map[string][]ib.PortNum {
			b := newBuilder(rand.New(rand.NewPCG(5, 5)))
			b.fatTree3(6)
			if reversed {
				slices.Reverse(b.f.Nodes)
				slices.Reverse(b.dests)
				for i, n := range b.f.Nodes {
					n.Index = i
				}
			}
			computed := b.compute(t, e)
			out := map[string][]ib.PortNum{}
			for _, s := range b.f.Switches() {
				out[s.Name()] = computed.Linear[s.Index]
			}
			return out
		}
		if d := cmp.Diff(tables(false), tables(true)); d != "" {
			t.Errorf("%s: tables differ:\n%s", e, d)
		}
	}
}

func TestSplitFabric(t *testing.T) {
	for _, e := range engines {
		b := newBuilder(nil)
		left, right := b.sw(3, "left"), b.sw(3, "right")
		b.hosts(left, 1)
		b.hosts(right, 2)
		subnettest.Join(left, right)
		bridge := &left.Ports[2]
		for _, state := range []string{"up", "down", "down at the far end", "unread"} {
			subnettest.SetLink(bridge, 4, 5)
			bridge.Peer.InfoRead = true
			switch state {
			case "down":
				cut(bridge)
			case "down at the far end":
				bridge.Peer.Info.PortState = 1
			case "unread":
				bridge.Peer.InfoRead = false
			}
			tables := b.compute(t, e)
			across := ib.PortNum(2)
			islands := [][]*observed.Node{{left, right}}
			if state != "up" {
				across, islands = ib.PortNone, [][]*observed.Node{{left}, {right}}
			}
			// LIDs: 1 left, 2 right, 3 on left, 4 and 5 on right.
			none := ib.PortNone
			if got, want := tables.Linear[left.Index], []ib.PortNum{none, 0, across, 1, across, across}; !slices.Equal(got, want) {
				t.Errorf("%s, %s: table %v, want %v", e, state, got, want)
			}
			if !slices.EqualFunc(tables.Islands, islands, slices.Equal) {
				t.Errorf("%s, %s: islands %v, want %v", e, state, tables.Islands, islands)
			}
		}
	}
}

func TestDetachedEndPorts(t *testing.T) {
	b := newBuilder(nil)
	s := b.sw(3, "only")
	b.hosts(s, 3)
	cut(&s.Ports[2])
	tables := b.compute(t, UpDown)
	if got, want := tables.Linear[s.Index], []ib.PortNum{255, 0, 1, 255, 3}; !slices.Equal(got, want) {
		t.Errorf("table %v, want %v", got, want)
	}
	if len(tables.Detached) != 1 || tables.Detached[0] != s.Ports[2].Peer {
		t.Errorf("detached %v", tables.Detached)
	}
}

func TestBackToBack(t *testing.T) {
	b := newBuilder(nil)
	x, y := b.node(ib.NodeCA, 1, "x"), b.node(ib.NodeCA, 1, "y")
	subnettest.Join(x, y)
	b.own(&x.Ports[1])
	b.own(&y.Ports[1])
	tables := b.compute(t, UpDown)
	if tables.Islands != nil || tables.Detached != nil || tables.Top != 2 {
		t.Errorf("tables %+v", tables)
	}
}

func TestTableLength(t *testing.T) {
	b := newBuilder(nil)
	s := b.sw(1, "only")
	b.dests[0].LID = 700
	tables := b.compute(t, MinHop)
	if len(tables.Linear[s.Index]) != 701 || tables.Top != 700 || tables.Linear[s.Index][700] != 0 {
		t.Errorf("top %d, table of %d entries", tables.Top, len(tables.Linear[s.Index]))
	}
}

func TestBadInput(t *testing.T) {
	stranger := newBuilder(nil)
	other := stranger.sw(1, "elsewhere")
	for _, c := range []struct {
		name   string
		change func(b *builder)
		engine Engine
		want   string
	}{
		{"engine", func(*builder) {}, "ftree", `routing engine "ftree": want updn or minhop`},
		{"LID twice", func(b *builder) { b.dests[1].LID = 1 }, MinHop, "LID 1 belongs to sw:0 and to host 0 of sw"},
		{"ranges overlap", func(b *builder) { b.dests[1].LID, b.dests[1].LMC, b.dests[0].LID = 4, 2, 7 }, MinHop, "LID 7 belongs to"},
		{"LID 0", func(b *builder) { b.dests[1].LID = 0 }, MinHop, "host 0 of sw: LID 0 with LMC 0 is no unicast range"},
		{"multicast", func(b *builder) { b.dests[1].LID = 0xC000 }, MinHop, "LID 49152 with LMC 0"},
		{"range into multicast", func(b *builder) { b.dests[1].LID, b.dests[1].LMC = 0xBFFE, 2 }, MinHop, "LID 49150 with LMC 2"},
		{"misaligned", func(b *builder) { b.dests[1].LID, b.dests[1].LMC = 6, 2 }, MinHop, "LID 6 with LMC 2"},
		{"LMC", func(b *builder) { b.dests[1].LMC = 8 }, MinHop, "LMC 8, want 0 to 7"},
		{"external port", func(b *builder) { b.dests[0].Port = &b.f.Nodes[0].Ports[1] }, MinHop, "no end port of the fabric"},
		{"no port", func(b *builder) { b.dests[0].Port = nil }, MinHop, "LID 1 belongs to no port"},
		{"another fabric", func(b *builder) { b.dests[0].Port = &other.Ports[0] }, MinHop, "no end port of the fabric"},
	} {
		b := newBuilder(nil)
		b.hosts(b.sw(2, "sw"), 1)
		c.change(b)
		if _, err := Compute(b.f, b.dests, c.engine); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}

func benchmark(b *testing.B, radix int, e Engine, lmc ib.LMC) {
	made := newBuilder(nil)
	made.lmc = lmc
	made.fatTree3(radix)
	b.ReportAllocs()
	for b.Loop() {
		made.compute(b, e)
	}
}

func BenchmarkMinHop3456(b *testing.B)     { benchmark(b, 24, MinHop, 0) }
func BenchmarkUpDown3456(b *testing.B)     { benchmark(b, 24, UpDown, 0) }
func BenchmarkUpDown3456LMC2(b *testing.B) { benchmark(b, 24, UpDown, 2) }
func BenchmarkMinHop11664(b *testing.B)    { benchmark(b, 36, MinHop, 0) }
func BenchmarkUpDown11664(b *testing.B)    { benchmark(b, 36, UpDown, 0) }
