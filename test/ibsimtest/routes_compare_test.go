package ibsimtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
	"github.com/ibwarden/ibwarden/test/routingtest"
)

// limit is how long an OpenSM may take, lanes the number of data lanes of ibsim's ports.
const (
	limit = 5 * time.Minute
	lanes = 8
)

// breakSome takes down a number of links between switches.
func breakSome(b *routingtest.Builder, seed uint64, count int) {
	rng := rand.New(rand.NewPCG(seed, 0))
	switches := b.Fabric.Switches()
	for count > 0 {
		s := switches[rng.IntN(len(switches))]
		if p := &s.Ports[1+rng.IntN(len(s.Ports)-1)]; p.IsTrained() && p.Peer.Node.Switch != nil {
			routingtest.Cut(p)
			count--
		}
	}
}

// summit has the shape that a simulator's configuration gives the machine of that name:
// 11 pods of 18 leaves and 18 switches above them, of which three in turn share 18 cores.
func summit(b *routingtest.Builder) {
	const pods, width, sharing = 11, 18, 3
	var cores []*observed.Node
	for i := range width * width / sharing {
		cores = append(cores, b.Switch(36, "core %d", i))
	}
	for pod := range pods {
		var middle []*observed.Node
		for i := range width {
			middle = append(middle, b.Switch(36, "middle %d.%d", pod, i))
		}
		for i := range width {
			leaf := b.Switch(36, "leaf %d.%d", pod, i)
			b.Hosts(leaf, width)
			for _, m := range middle {
				subnettest.Join(leaf, m)
			}
		}
		for i, m := range middle {
			for _, core := range cores[i/sharing*width : (i/sharing+1)*width] {
				subnettest.Join(m, core)
			}
		}
	}
}

// An opponent is an engine of OpenSM, with the options that it needs for a graph.
type opponent struct {
	name    string
	options func(t *testing.T) []string
}

// A match is an engine of ours and those of OpenSM that it is set beside.
type match struct {
	engine    routing.Engine
	opponents []opponent
}

// sameName is a match with OpenSM's engine of that name, and others.
func sameName(e routing.Engine, others ...opponent) match {
	return match{e, append([]opponent{{string(e), nil}}, others...)}
}

// torus2QoS is OpenSM's engine for a torus of routingtest whose switches are the first nodes,
// in rows of x.
func torus2QoS(b **routingtest.Builder, x, y int) opponent {
	return opponent{"torus-2QoS", func(t *testing.T) []string {
		all := (*b).Fabric.Switches()
		origin := all[0].GUID()
		text := fmt.Sprintf("torus %d %d 1\nxp_link %v %v\nxm_link %v %v\nyp_link %v %v\nym_link %v %v\n", x, y,
			origin, all[1].GUID(), origin, all[x-1].GUID(), origin, all[x].GUID(), origin, all[(y-1)*x].GUID())
		file := filepath.Join(t.TempDir(), "torus-2QoS.conf")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{"--torus_config", file}
	}}
}

// updnFrom is OpenSM's up*/down* with the root that ours takes: in what is no tree it finds
// none.
func updnFrom(b **routingtest.Builder) match {
	return match{routing.UpDown, []opponent{{"updn", func(t *testing.T) []string {
		in := (*b).Input(t, 1)
		file := filepath.Join(t.TempDir(), "roots")
		if err := os.WriteFile(file, fmt.Appendln(nil, in.Nodes[graph.Order(in.Graph)[0]].GUID()), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{"--root_guid_file", file}
	}}}}
}

// matches are those of graphs of a kind.
func matches(kind routing.Engine, b **routingtest.Builder, others ...opponent) []match {
	out := []match{sameName(kind, others...)}
	upDown := updnFrom(b)
	if kind == routing.FatTree {
		upDown = sameName(routing.UpDown)
	}
	if kind == routing.Dragonfly {
		out = []match{{kind, nil}} // OpenSM has none
	}
	if kind == routing.DFSSSP {
		out = nil
	}
	return append(out, upDown, sameName(routing.MinHop), sameName(routing.DFSSSP, opponent{"lash", nil}))
}

// row prints one.
func row(graph string, cas int, engine, of string, lanes int, l Load, took time.Duration) {
	lost := ""
	if l.Lost > 0 {
		lost = fmt.Sprintf(" (%d lost)", l.Lost)
	}
	fmt.Printf("| %s | %d | %s | %s | %d | %d | %.1f | %.3f | %.2f, %d | %.2f, %d%s | %.3g s |\n", graph, cas, engine, of, lanes,
		l.Worst, l.Mean, l.Hops, l.Shift, l.WorstShift, l.Random, l.WorstRandom, lost, took.Seconds())
}

func header() {
	fmt.Println("| graph | CAs | engine | of | lanes | all to all: worst link | mean link | links of a path | shifts: mean, worst | random: mean, worst | time |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|")
}

// ours routes a graph, and reports whether the engine takes it.
func ours(name string, b *routingtest.Builder, engine routing.Engine) (Load, bool) {
	begin := time.Now()
	tables, err := routing.Compute(b.Fabric, b.Destinations, engine, graph.Room{VLs: lanes, Layers: smp.SLCount})
	took := time.Since(begin)
	if err != nil {
		fmt.Printf("| %s | | %s | ibwarden | refuses: %v |\n", name, engine, err)
		return Load{}, false
	}
	needed := 1
	if tables.Lanes != nil {
		needed = tables.Lanes.VLs
	}
	l := Measure(b, tables.Linear)
	row(name, b.CAs(), string(engine), "ibwarden", needed, l, took)
	return l, true
}

// theirs routes a graph by OpenSM, and reports whether its engine takes it.
func theirs(t *testing.T, tools *Tools, name string, b *routingtest.Builder, o opponent) (Load, bool) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var options []string
	if o.options != nil {
		options = o.options(t)
	}
	r, err := OpenSM(ctx, tools, t.TempDir(), b, o.name, options...)
	if err != nil {
		fmt.Printf("| %s | | %s | OpenSM | fails: %v |\n", name, o.name, err)
		return Load{}, false
	}
	l := Measure(b, r.Linear)
	row(name, b.CAs(), o.name, "OpenSM", r.Lanes, l, r.Took)
	return l, true
}

// TestBesideOpenSM prints a table of what engines of the same name make of the same graphs;
// -run TestBesideOpenSM/GRAPH/ENGINE for some of them. It asserts how much more than OpenSM's
// fullest link ours carries.
func TestBesideOpenSM(t *testing.T) {
	if !need.Soak() {
		t.Skip("IBWARDEN_SOAK is not set")
	}
	tools, err := FindTools()
	need.Need(t, err)
	header()
	var b *routingtest.Builder
	trees, groups, others := matches(routing.FatTree, &b), matches(routing.Dragonfly, &b), matches(routing.DFSSSP, &b)
	tori := func(x, y int) []match { return matches(routing.DOR, &b, torus2QoS(&b, x, y)) }
	for _, c := range []struct {
		name    string
		even    bool // no link carries more routes than OpenSM's fullest, elsewhere twice as many
		matches []match
		build   func(b *routingtest.Builder)
	}{
		{"fat tree, 8 ports", true, trees, func(b *routingtest.Builder) { b.FatTree3(8) }},
		{"fat tree, 24 ports", true, trees, func(b *routingtest.Builder) { b.FatTree3(24) }},
		{"fat tree, 2 levels of 36 ports", true, trees, func(b *routingtest.Builder) { b.FatTree2(36, 18, 18, 1) }},
		{"fat tree, 2 levels, 2 cables each", true, trees, func(b *routingtest.Builder) { b.FatTree2(18, 9, 18, 2) }},
		{"fat tree, 2 levels, twice the hosts", true, trees, func(b *routingtest.Builder) { b.FatTree2(18, 6, 12, 1) }},
		{"fat tree, 12 ports, 40 links gone", true, trees, func(b *routingtest.Builder) { b.FatTree3(12); breakSome(b, 1, 40) }},
		{"fat tree, 24 ports, 70 links gone", true, trees, func(b *routingtest.Builder) { b.FatTree3(24); breakSome(b, 4, 70) }},
		{"fat tree, 2 levels of 36 ports, 20 links gone", true, trees, func(b *routingtest.Builder) { b.FatTree2(36, 18, 18, 1); breakSome(b, 5, 20) }},
		{"fat tree, 2 levels of 12 ports, 5 links gone", true, trees, func(b *routingtest.Builder) { b.FatTree2(12, 6, 6, 1); breakSome(b, 6, 5) }},
		{"fat tree, 2 levels of 8 ports, 3 links gone", true, trees, func(b *routingtest.Builder) { b.FatTree2(8, 4, 4, 1); breakSome(b, 7, 3) }},
		{"fat tree, 2 levels of 36 ports, a spine gone", true, trees, func(b *routingtest.Builder) {
			_, spine := b.FatTree2(36, 18, 18, 1)
			for i := 1; i <= 36; i++ {
				routingtest.Cut(&spine[7].Ports[i])
			}
		}},
		{"Summit's shape", true, trees, summit},
		{"Summit's shape, 60 links gone", true, trees, func(b *routingtest.Builder) { summit(b); breakSome(b, 9, 60) }},
		{"torus 5 x 5", false, tori(5, 5), func(b *routingtest.Builder) { b.Torus(5, 5, 2) }},
		{"torus 6 x 6, 4 links gone", false, tori(6, 6), func(b *routingtest.Builder) { b.Torus(6, 6, 2); breakSome(b, 2, 4) }},
		{"torus 8 x 8", false, tori(8, 8), func(b *routingtest.Builder) { b.Torus(8, 8, 4) }},
		{"torus 8 x 8, 3 links gone", false, tori(8, 8), func(b *routingtest.Builder) { b.Torus(8, 8, 4); breakSome(b, 3, 3) }},
		{"dragonfly, 9 groups", true, groups, func(b *routingtest.Builder) { b.FullDragonfly(9, 4, 1, 2) }},
		{"dragonfly+, 9 groups", true, groups, func(b *routingtest.Builder) { b.Dragonfly(9, 4, 4, 4) }},
		{"dragonfly+, 9 groups, 8 links gone", true, groups, func(b *routingtest.Builder) { b.Dragonfly(9, 4, 4, 4); breakSome(b, 8, 8) }},
		{"random, 64 switches of 6 links", false, others, func(b *routingtest.Builder) { b.Regular(rand.New(rand.NewPCG(1, 1)), 64, 6, 6) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			b = routingtest.New(nil)
			c.build(b)
			for _, m := range c.matches {
				t.Run(string(m.engine), func(t *testing.T) {
					mine, taken := ours(c.name, b, m.engine)
					for _, o := range m.opponents {
						other, routed := theirs(t, tools, c.name, b, o)
						if !taken || !routed || o.name != string(m.engine) {
							continue
						}
						if c.even && mine.Worst > other.Worst || mine.Worst > 2*other.Worst {
							t.Errorf("the fullest link carries %d routes, OpenSM's %d", mine.Worst, other.Worst)
						}
						if c.even && mine.WorstShift > other.WorstShift {
							t.Errorf("the fullest link carries %d flows of a shift, OpenSM's %d", mine.WorstShift, other.WorstShift)
						}
					}
				})
			}
		})
	}
}

// netlistsVariable lists netlists, of ibsim or ibnetdiscover, as a path is listed. Beside one
// may be the tables that were in use, in the form of opensm-lfts.dump, in FILE.lfts.
const netlistsVariable = "IBWARDEN_NETLISTS"

// TestNetlists prints the table for fabrics that are in files; a small one if none is named.
func TestNetlists(t *testing.T) {
	files := filepath.SplitList(os.Getenv(netlistsVariable))
	if len(files) == 0 {
		files = []string{filepath.Join("..", "..", "internal", "topology", "testdata", "fattree-2-4.net")}
	}
	tools, err := FindTools()
	need.Need(t, err)
	header()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		l, _, err := topology.Read(text, file, nil)
		if err != nil {
			t.Fatal(err)
		}
		b, name := Builder(l), strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		if dump, err := os.ReadFile(file + ".lfts"); err == nil {
			var r Theirs
			if err := r.readTables(b, dump); err != nil {
				t.Fatal(err)
			}
			row(name, b.CAs(), "in use", "", 0, Measure(b, r.Linear), 0)
		}
		for _, m := range matches(routing.FatTree, &b) {
			t.Run(name+"/"+string(m.engine), func(t *testing.T) {
				ours(name, b, m.engine)
				for _, o := range m.opponents {
					theirs(t, tools, name, b, o)
				}
			})
		}
	}
}
