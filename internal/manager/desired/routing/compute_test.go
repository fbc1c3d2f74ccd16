package routing

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
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/test/need"
	"github.com/ibwarden/ibwarden/test/routingtest"
)

var tested = []Engine{MinHop, UpDown, DFSSSP, Auto}

// inTrees are those that route trees.
var inTrees = append(slices.Clone(tested), FatTree)

func compute(t testing.TB, b *routingtest.Builder, e Engine) *Tables {
	t.Helper()
	tables, err := Compute(b.Fabric, b.Destinations, e, graph.Room{VLs: 1, Layers: 1})
	if err != nil {
		t.Fatal(err)
	}
	return tables
}

// topologies are connected fabrics of every kind.
func topologies() map[string]func() *routingtest.Builder {
	made := map[string]func() *routingtest.Builder{
		"one switch":     func() *routingtest.Builder { b := routingtest.New(nil); b.Hosts(b.Switch(4, "only"), 4); return b },
		"no CAs":         func() *routingtest.Builder { b := routingtest.New(nil); b.Torus(3, 3, 0); return b },
		"two-level tree": func() *routingtest.Builder { b := routingtest.New(nil); b.FatTree2(6, 4, 4, 1); return b },
		"doubled cables": func() *routingtest.Builder { b := routingtest.New(nil); b.FatTree2(4, 2, 4, 2); return b },
		"oversubscribed": func() *routingtest.Builder { b := routingtest.New(nil); b.FatTree2(5, 3, 7, 1); return b },
		"radix 6":        func() *routingtest.Builder { b := routingtest.New(nil); b.FatTree3(6); return b },
		"radix 8, LMC 1": func() *routingtest.Builder { b := routingtest.New(nil); b.LMC = 1; b.FatTree3(8); return b },
		"ring of 5":      func() *routingtest.Builder { b := routingtest.New(nil); b.Torus(5, 1, 2); return b },
		"torus 4x5":      func() *routingtest.Builder { b := routingtest.New(nil); b.Torus(4, 5, 2); return b },
		"torus 2x3":      func() *routingtest.Builder { b := routingtest.New(nil); b.Torus(2, 3, 1); return b },
		"dragonfly":      func() *routingtest.Builder { b := routingtest.New(nil); b.Dragonfly(5, 3, 2, 3); return b },
		"shuffled tree": func() *routingtest.Builder {
			b := routingtest.New(rand.New(rand.NewPCG(7, 7)))
			b.FatTree3(6)
			return b
		},
	}
	for seed := range uint64(25) {
		made[fmt.Sprintf("irregular, seed %d", seed)] = func() *routingtest.Builder {
			rng := rand.New(rand.NewPCG(seed, 1))
			b := routingtest.New(rng)
			b.Irregular(rng, 2+rng.IntN(30), rng.IntN(40))
			return b
		}
	}
	return made
}

func onEach(t *testing.T, test func(t *testing.T, b *routingtest.Builder)) {
	for name, build := range topologies() {
		t.Run(name, func(t *testing.T) { test(t, build()) })
	}
}

func TestEveryPairIsReached(t *testing.T) {
	onEach(t, func(t *testing.T, b *routingtest.Builder) {
		for _, e := range tested {
			tables := compute(t, b, e)
			b.EachRoute(t, &tables.Routes, nil)
			if len(tables.Islands) != 1 || len(tables.Islands[0]) != len(b.Fabric.Switches()) || tables.Detached != nil {
				t.Errorf("%s: islands %v, detached %v", e, tables.Islands, tables.Detached)
			}
		}
	})
}

func TestMinHopIsShortest(t *testing.T) {
	onEach(t, func(t *testing.T, b *routingtest.Builder) {
		tables := compute(t, b, MinHop)
		shortest := map[*observed.Node]map[*observed.Node]int{}
		for _, s := range b.Fabric.Switches() {
			shortest[s] = routingtest.Hops(s)
		}
		b.EachRoute(t, &tables.Routes, func(from *observed.Node, d graph.Destination, lid ib.LID, steps []routingtest.Step) {
			if want := shortest[from][routingtest.Behind(d.Port)]; len(steps) != want {
				t.Errorf("%s to LID %d: %d hops, the shortest way has %d", from.Name(), lid, len(steps), want)
			}
		})
	})
}

func TestUpDownCannotDeadlock(t *testing.T) {
	onEach(t, func(t *testing.T, b *routingtest.Builder) {
		if b.Deadlocks(t, &compute(t, b, UpDown).Routes, 1) {
			t.Error("links depend on each other in a circle")
		}
	})
}

// The judge of routes, which shares nothing with engines, is of the same opinion.
func TestJudgeAgrees(t *testing.T) {
	onEach(t, func(t *testing.T, b *routingtest.Builder) {
		for _, e := range tested {
			tables := compute(t, b, e)
			got := b.Judge(&tables.Routes, 1)
			if want := b.Deadlocks(t, &tables.Routes, 1); !got.Arrives() || got.Apart > 0 || want != (got.Deadlock != nil) {
				t.Errorf("%s: deadlocks %v, the judge says %v", e, want, got.Reasons())
			}
		}
	})
}

// Auto says which engine it takes and why.
func TestAuto(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(b *routingtest.Builder)
		vls   int
		want  Engine
		notes []string // what some of them begin with, in this order
	}{
		{"tree", func(b *routingtest.Builder) { b.FatTree2(4, 2, 3, 1) }, 1, FatTree,
			[]string{"fat tree of 2 levels; switches from the lowest up: 4, 2"}},
		{"torus", func(b *routingtest.Builder) { b.Torus(5, 5, 2) }, 8, DOR,
			[]string{"routing engine auto: not ftree: no fat tree: 50 of 50 cables between switches join switches of one level, "}},
		{"torus without lanes", func(b *routingtest.Builder) { b.Torus(5, 5, 2) }, 1, UpDown,
			[]string{"routing engine auto: not ftree: ", "routing engine auto: not dor: ", "routing engine auto: not dragonfly: "}},
		{"dragonfly", func(b *routingtest.Builder) { b.Dragonfly(9, 4, 4, 2) }, 8, Dragonfly,
			[]string{"routing engine auto: not ftree: ", "routing engine auto: not dor: "}},
		{"anything", func(b *routingtest.Builder) { b.Irregular(rand.New(rand.NewPCG(3, 3)), 20, 30) }, 8, DFSSSP,
			[]string{"routing engine auto: not ftree: ", "routing engine auto: not dor: ", "routing engine auto: not dragonfly: "}},
		{"anything without lanes", func(b *routingtest.Builder) { b.Irregular(rand.New(rand.NewPCG(3, 3)), 20, 30) }, 1, UpDown, nil},
	} {
		b := routingtest.New(nil)
		c.build(b)
		tables, err := Compute(b.Fabric, b.Destinations, Auto, graph.Room{VLs: c.vls, Layers: 16})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if b.Deadlocks(t, &tables.Routes, c.vls) {
			t.Errorf("%s: links depend on each other in a circle", c.name)
		}
		rest := tables.Notes
		for _, want := range append([]string{"routing engine auto takes " + string(c.want)}, c.notes...) {
			at := slices.IndexFunc(rest, func(note string) bool { return strings.HasPrefix(note, want) })
			if at < 0 {
				t.Fatalf("%s: notes %q lack %q", c.name, tables.Notes, want)
			}
			rest = rest[at+1:]
		}
	}
}

// The check above can fail: shortest paths round a ring do deadlock.
func TestMinHopCanDeadlock(t *testing.T) {
	for _, size := range [][2]int{{5, 1}, {6, 6}} {
		b := routingtest.New(nil)
		b.Torus(size[0], size[1], 1)
		if !b.Deadlocks(t, &compute(t, b, MinHop).Routes, 1) {
			t.Errorf("torus %v: no circle among the links that minhop uses", size)
		}
	}
}

// longerThanNeeded counts the pairs of CAs whose packets take a longer way
// than the shortest, and all pairs.
func longerThanNeeded(t *testing.T, b *routingtest.Builder, tables *Tables) (longer, pairs int) {
	t.Helper()
	for _, from := range b.Destinations {
		if from.Port.Node.Switch != nil {
			continue
		}
		shortest := routingtest.Hops(routingtest.Behind(from.Port))
		for _, d := range b.Destinations {
			if d.Port.Node.Switch != nil {
				continue
			}
			steps, ok := b.Walk(&tables.Routes, routingtest.Behind(from.Port), 0, d, d.LID)
			if !ok {
				t.Fatalf("no way from %s to %s", from.Port, d.Port)
			}
			pairs++
			if len(steps) != shortest[routingtest.Behind(d.Port)] {
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
		if n, _ := longerThanNeeded(t, b, compute(t, b, UpDown)); n != 0 {
			t.Errorf("%s: %d pairs of CAs take a longer way than needed", name, n)
		}
	}
}

// flows counts the routes from CA to CA that cross each link between switches.
func flows(t *testing.T, b *routingtest.Builder, tables *Tables) map[routingtest.Step]int {
	t.Helper()
	out := map[routingtest.Step]int{}
	for _, from := range b.Destinations {
		if from.Port.Node.Switch != nil {
			continue
		}
		for _, d := range b.Destinations {
			if d.Port.Node.Switch != nil || d.Port == from.Port {
				continue
			}
			for l := range d.LMC.Count() {
				steps, ok := b.Walk(&tables.Routes, routingtest.Behind(from.Port), 0, d, d.LID+ib.LID(l))
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
func spread(b *routingtest.Builder, load map[routingtest.Step]int, from, to string) (least, most, mean int) {
	least = -1
	total, links := 0, 0
	for _, s := range b.Fabric.Switches() {
		for i := 1; i < len(s.Ports); i++ {
			p := &s.Ports[i]
			if !strings.HasPrefix(s.Description, from) || p.Peer == nil || !p.IsUp() || !strings.HasPrefix(p.Peer.Node.Description, to) {
				continue
			}
			n := load[routingtest.Step{From: s, Exit: p.Num}]
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
		build  func(b *routingtest.Builder)
	}{
		{"two levels", []string{"leaf", "spine"}, func(b *routingtest.Builder) { b.FatTree2(8, 4, 4, 1) }},
		{"two cables", []string{"leaf", "spine"}, func(b *routingtest.Builder) { b.FatTree2(6, 3, 6, 2) }},
		{"three levels", []string{"edge", "middle", "core"}, func(b *routingtest.Builder) { b.FatTree3(8) }},
	} {
		for _, e := range inTrees {
			for seed := range uint64(4) {
				t.Run(fmt.Sprintf("%s, %s, seed %d", c.name, e, seed), func(t *testing.T) {
					var rng *rand.Rand // seed 0: GUIDs in order
					if seed > 0 {
						rng = rand.New(rand.NewPCG(seed, 2))
					}
					b := routingtest.New(rng)
					c.build(b)
					tables := compute(t, b, e)
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
func checkLIDCounts(t *testing.T, b *routingtest.Builder, tables *Tables, low, high string) {
	t.Helper()
	for _, s := range b.Fabric.Switches() {
		if !strings.HasPrefix(s.Description, low) {
			continue
		}
		var counts []int
		for i := 1; i < len(s.Ports); i++ {
			if p := &s.Ports[i]; p.Peer != nil && strings.HasPrefix(p.Peer.Node.Description, high) {
				n := 0
				for _, d := range b.Destinations {
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
// switches takes it all, or falls idle where routes are balanced by counting: in closed
// form they stay where they are, though what used the other end of a link has gone.
func TestBrokenTrees(t *testing.T) {
	for _, c := range []struct {
		name  string
		links [][2]string
		build func(b *routingtest.Builder, rng *rand.Rand)
	}{
		{"two levels, each leaf without a link, a CA on a spine", [][2]string{{"leaf", "spine"}}, func(b *routingtest.Builder, rng *rand.Rand) {
			leaf, spine := b.FatTree2(8, 4, 4, 1)
			for i, l := range leaf {
				routingtest.Cut(&l.Ports[5+i%4])
			}
			b.Hosts(spine[rng.IntN(4)], 1)
		}},
		{"three levels without 20 links", [][2]string{{"edge", "middle"}, {"middle", "core"}}, func(b *routingtest.Builder, rng *rand.Rand) {
			edge, middle, core := b.FatTree3(8)
			all := slices.Concat(edge, middle, core)
			for range 20 {
				if p := &all[rng.IntN(len(all))].Ports[1+rng.IntN(8)]; p.Peer.Node.Switch != nil {
					routingtest.Cut(p)
				}
			}
		}},
	} {
		for seed := range need.Share[uint64](2, 5) {
			for _, e := range inTrees {
				rng := rand.New(rand.NewPCG(seed, 3))
				b := routingtest.New(rng)
				c.build(b, rng)
				tables := compute(t, b, e)
				b.EachRoute(t, &tables.Routes, nil)
				longer, pairs := longerThanNeeded(t, b, tables)
				if longer > 0 && (e == MinHop || longer > pairs/100) {
					t.Errorf("%s, %s, seed %d: %d of %d pairs of CAs take a longer way than needed", c.name, e, seed, longer, pairs)
				}
				if e != MinHop && b.Deadlocks(t, &tables.Routes, 1) {
					t.Errorf("%s, seed %d: links depend on each other in a circle", c.name, seed)
				}
				load := flows(t, b, tables)
				for _, l := range c.links {
					for _, way := range [][2]string{l, {l[1], l[0]}} {
						if least, most, mean := spread(b, load, way[0], way[1]); least == 0 && (e == MinHop || e == UpDown) || most > 3*mean {
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
	for _, e := range inTrees {
		b := routingtest.New(nil)
		b.LMC = 2
		leaf, _ := b.FatTree2(4, 4, 3, 1)
		tables := compute(t, b, e)
		b.EachRoute(t, &tables.Routes, nil)
		for _, d := range b.Destinations {
			for _, l := range leaf {
				if d.Port.Node.Switch != nil || routingtest.Behind(d.Port) == l {
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
	b := routingtest.New(nil)
	b.LMC = 1
	first, second := b.Switch(9, "spine 0"), b.Switch(9, "spine 1")
	from, far, near := b.Switch(9, "from"), b.Switch(40, "far"), b.Switch(9, "near")
	for _, l := range []*observed.Node{from, near} {
		subnettest.Join(l, first)
		subnettest.Join(l, second)
	}
	subnettest.Join(far, first) // what lies here is reached by spine 0 only
	b.Hosts(from, 2)
	b.Hosts(far, 30)
	b.Hosts(near, 2)
	for _, e := range inTrees {
		table := compute(t, b, e).Linear[from.Index]
		for _, d := range b.Destinations {
			if d.Port.Node.Switch == nil && routingtest.Behind(d.Port) == near && table[d.LID] == table[d.LID+1] {
				t.Errorf("%s: both LIDs of %s leave by port %d", e, d.Port, table[d.LID])
			}
		}
	}
}

// The order in which a fabric was discovered changes nothing.
func TestSameTablesWhateverTheDiscovery(t *testing.T) {
	for _, e := range inTrees {
		tables := func(reversed bool) map[string][]ib.PortNum {
			b := routingtest.New(rand.New(rand.NewPCG(5, 5)))
			b.FatTree3(6)
			if reversed {
				slices.Reverse(b.Fabric.Nodes)
				slices.Reverse(b.Destinations)
				for i, n := range b.Fabric.Nodes {
					n.Index = i
				}
			}
			computed := compute(t, b, e)
			out := map[string][]ib.PortNum{}
			for _, s := range b.Fabric.Switches() {
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
	for _, e := range inTrees {
		b := routingtest.New(nil)
		left, right := b.Switch(3, "left"), b.Switch(3, "right")
		b.Hosts(left, 1)
		b.Hosts(right, 2)
		subnettest.Join(left, right)
		bridge := &left.Ports[2]
		for _, state := range []string{"up", "down", "down at the far end", "unread"} {
			subnettest.SetLink(bridge, 4, 5)
			bridge.Peer.InfoRead = true
			switch state {
			case "down":
				routingtest.Cut(bridge)
			case "down at the far end":
				bridge.Peer.Info.PortState = 1
			case "unread":
				bridge.Peer.InfoRead = false
			}
			tables := compute(t, b, e)
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
	b := routingtest.New(nil)
	s := b.Switch(3, "only")
	b.Hosts(s, 3)
	routingtest.Cut(&s.Ports[2])
	tables := compute(t, b, UpDown)
	if got, want := tables.Linear[s.Index], []ib.PortNum{255, 0, 1, 255, 3}; !slices.Equal(got, want) {
		t.Errorf("table %v, want %v", got, want)
	}
	if len(tables.Detached) != 1 || tables.Detached[0] != s.Ports[2].Peer {
		t.Errorf("detached %v", tables.Detached)
	}
}

func TestBackToBack(t *testing.T) {
	b := routingtest.New(nil)
	x, y := b.Node(ib.NodeCA, 1, "x"), b.Node(ib.NodeCA, 1, "y")
	subnettest.Join(x, y)
	b.Own(&x.Ports[1])
	b.Own(&y.Ports[1])
	tables := compute(t, b, UpDown)
	if tables.Islands != nil || tables.Detached != nil || tables.Top != 2 {
		t.Errorf("tables %+v", tables)
	}
}

func TestTableLength(t *testing.T) {
	b := routingtest.New(nil)
	s := b.Switch(1, "only")
	b.Destinations[0].LID = 700
	tables := compute(t, b, MinHop)
	if len(tables.Linear[s.Index]) != 701 || tables.Top != 700 || tables.Linear[s.Index][700] != 0 {
		t.Errorf("top %d, table of %d entries", tables.Top, len(tables.Linear[s.Index]))
	}
}

func TestBadInput(t *testing.T) {
	stranger := routingtest.New(nil)
	other := stranger.Switch(1, "elsewhere")
	for _, c := range []struct {
		name   string
		change func(b *routingtest.Builder)
		engine Engine
		want   string
	}{
		{"engine", func(*routingtest.Builder) {}, "nosuch", `routing engine "nosuch": want one of updn, `},
		{"LID twice", func(b *routingtest.Builder) { b.Destinations[1].LID = 1 }, MinHop, "LID 1 belongs to sw:0 and to host 0 of sw"},
		{"ranges overlap", func(b *routingtest.Builder) {
			b.Destinations[1].LID, b.Destinations[1].LMC, b.Destinations[0].LID = 4, 2, 7
		}, MinHop, "LID 7 belongs to"},
		{"LID 0", func(b *routingtest.Builder) { b.Destinations[1].LID = 0 }, MinHop, "host 0 of sw: LID 0 with LMC 0 is no unicast range"},
		{"multicast", func(b *routingtest.Builder) { b.Destinations[1].LID = 0xC000 }, MinHop, "LID 49152 with LMC 0"},
		{"range into multicast", func(b *routingtest.Builder) { b.Destinations[1].LID, b.Destinations[1].LMC = 0xBFFE, 2 }, MinHop, "LID 49150 with LMC 2"},
		{"misaligned", func(b *routingtest.Builder) { b.Destinations[1].LID, b.Destinations[1].LMC = 6, 2 }, MinHop, "LID 6 with LMC 2"},
		{"LMC", func(b *routingtest.Builder) { b.Destinations[1].LMC = 8 }, MinHop, "LMC 8, want 0 to 7"},
		{"external port", func(b *routingtest.Builder) { b.Destinations[0].Port = &b.Fabric.Nodes[0].Ports[1] }, MinHop, "no end port of the fabric"},
		{"no port", func(b *routingtest.Builder) { b.Destinations[0].Port = nil }, MinHop, "LID 1 belongs to no port"},
		{"another fabric", func(b *routingtest.Builder) { b.Destinations[0].Port = &other.Ports[0] }, MinHop, "no end port of the fabric"},
	} {
		b := routingtest.New(nil)
		b.Hosts(b.Switch(2, "sw"), 1)
		c.change(b)
		if _, err := Compute(b.Fabric, b.Destinations, c.engine, graph.Room{VLs: 1, Layers: 1}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}

func benchmark(b *testing.B, radix int, e Engine, lmc ib.LMC) {
	made := routingtest.New(nil)
	made.LMC = lmc
	made.FatTree3(radix)
	b.ReportAllocs()
	for b.Loop() {
		compute(b, made, e)
	}
}

func BenchmarkMinHop3456(b *testing.B)     { benchmark(b, 24, MinHop, 0) }
func BenchmarkUpDown3456(b *testing.B)     { benchmark(b, 24, UpDown, 0) }
func BenchmarkUpDown3456LMC2(b *testing.B) { benchmark(b, 24, UpDown, 2) }
func BenchmarkDFSSSP3456(b *testing.B)     { benchmark(b, 24, DFSSSP, 0) }
func BenchmarkMinHop11664(b *testing.B)    { benchmark(b, 36, MinHop, 0) }
func BenchmarkUpDown11664(b *testing.B)    { benchmark(b, 36, UpDown, 0) }
func BenchmarkDFSSSP11664(b *testing.B)    { benchmark(b, 36, DFSSSP, 0) }
func BenchmarkFatTree11664(b *testing.B)   { benchmark(b, 36, FatTree, 0) }
