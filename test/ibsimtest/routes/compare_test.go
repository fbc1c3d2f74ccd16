package routes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/test/ibsimtest"
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

// TestBesideOpenSM prints a table of what engines of the same name make of the same graphs.
// What it asserts is that in trees and dragonflies no link carries more routes of dfsssp than
// OpenSM's fullest, and nowhere twice as many.
func TestBesideOpenSM(t *testing.T) {
	if !need.Soak() {
		t.Skip("IBWARDEN_SOAK is not set")
	}
	tools, err := ibsimtest.FindTools()
	need.Need(t, err)
	fmt.Println("| graph | CAs | engine | of | lanes | all to all: worst link | mean link | links of a path | shifts: mean, worst | random: mean, worst | time |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|")
	trees := []routing.Engine{routing.FatTree, routing.UpDown, routing.MinHop, routing.DFSSSP}
	tori := []routing.Engine{routing.DOR, routing.UpDown, routing.MinHop, routing.DFSSSP}
	groups := []routing.Engine{routing.Dragonfly, routing.UpDown, routing.MinHop, routing.DFSSSP}
	others := []routing.Engine{routing.UpDown, routing.MinHop, routing.DFSSSP}
	for _, c := range []struct {
		name    string
		even    bool // dfsssp puts no more on a link than OpenSM's on its fullest
		engines []routing.Engine
		build   func(b *routingtest.Builder)
	}{
		{"fat tree, 8 ports", true, trees, func(b *routingtest.Builder) { b.FatTree3(8) }},
		{"fat tree, 24 ports", true, trees, func(b *routingtest.Builder) { b.FatTree3(24) }},
		{"fat tree, 12 ports, 40 links gone", true, trees, func(b *routingtest.Builder) { b.FatTree3(12); breakSome(b, 1, 40) }},
		{"torus 5 x 5", false, tori, func(b *routingtest.Builder) { b.Torus(5, 5, 2) }},
		{"torus 6 x 6, 4 links gone", false, tori, func(b *routingtest.Builder) { b.Torus(6, 6, 2); breakSome(b, 2, 4) }},
		{"torus 8 x 8", false, tori, func(b *routingtest.Builder) { b.Torus(8, 8, 4) }},
		{"dragonfly+, 9 groups", true, groups, func(b *routingtest.Builder) { b.Dragonfly(9, 4, 4, 4) }},
		{"random, 64 switches of 6 links", false, others, func(b *routingtest.Builder) { b.Regular(rand.New(rand.NewPCG(1, 1)), 64, 6, 6) }},
	} {
		b := routingtest.New(nil)
		c.build(b)
		for _, engine := range c.engines {
			row := func(of string, lanes int, l Load, took time.Duration) {
				fmt.Printf("| %s | %d | %s | %s | %d | %d | %.1f | %.3f | %.2f, %d | %.2f, %d | %.3g s |\n", c.name,
					len(b.Destinations)-len(b.Fabric.Switches()), engine, of, lanes, l.Worst, l.Mean, l.Hops,
					l.Shift, l.WorstShift, l.Random, l.WorstRandom, took.Seconds())
			}
			begin := time.Now()
			tables, err := routing.Compute(b.Fabric, b.Destinations, engine, graph.Room{VLs: lanes, Layers: smp.SLCount})
			took := time.Since(begin)
			if err != nil {
				fmt.Printf("| %s | | %s | ibwarden | refuses: %v |\n", c.name, engine, err)
				continue
			}
			needed := 1
			if tables.Lanes != nil {
				needed = tables.Lanes.VLs
			}
			ours := Measure(b, tables.Linear)
			row("ibwarden", needed, ours, took)
			if engine == routing.Dragonfly {
				continue // OpenSM has none
			}
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			r, err := OpenSM(ctx, tools, t.TempDir(), b, string(engine))
			cancel()
			if err != nil {
				fmt.Printf("| %s | | %s | OpenSM | fails: %v |\n", c.name, engine, err)
				continue
			}
			theirs := Measure(b, r.Linear)
			row("OpenSM", r.Lanes, theirs, r.Took)
			if engine == routing.DFSSSP && (c.even && ours.Worst > theirs.Worst || ours.Worst > 2*theirs.Worst) {
				t.Errorf("%s, %s: the fullest link carries %d routes, OpenSM's %d", c.name, engine, ours.Worst, theirs.Worst)
			}
		}
	}
}
