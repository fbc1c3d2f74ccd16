package dfsssp

import (
	"math/rand/v2"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/test/routingtest"
)

// fullest is the number of packets on the fullest link when every CA sends one to every other.
func fullest(t *testing.T, b *routingtest.Builder, r *graph.Routes) (most int) {
	cas := map[*observed.Node]int{}
	for _, d := range b.Destinations {
		if s := routingtest.Behind(d.Port); s != nil && s != d.Port.Node {
			cas[s]++
		}
	}
	type link struct {
		from *observed.Node
		exit ib.PortNum
	}
	load := map[link]int{}
	b.EachRoute(t, r, func(from *observed.Node, d graph.Destination, _ ib.LID, steps []routingtest.Step) {
		for _, s := range steps {
			if d.Port.Node.Switch == nil {
				load[link{s.From, s.Exit}] += cas[from]
				most = max(most, load[link{s.From, s.Exit}])
			}
		}
	})
	return most
}

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

// No link carries more than what OpenSM 3.3.23 puts on its fullest one on the same graph,
// and no more lanes are needed.
func TestLoadAndLanes(t *testing.T) {
	for _, c := range []struct {
		name         string
		lanes, worst int
		build        func(b *routingtest.Builder)
	}{
		{"torus 5 x 5", 5, 76, func(b *routingtest.Builder) { b.Torus(5, 5, 2) }},
		{"torus 6 x 6, 4 links gone", 7, 148, func(b *routingtest.Builder) { b.Torus(6, 6, 2); breakSome(b, 2, 4) }},
		{"torus 7 x 6, 3 links gone", 7, 426, func(b *routingtest.Builder) { b.Torus(7, 6, 3); breakSome(b, 3, 3) }},
		{"random, 64 switches", 6, 1680, func(b *routingtest.Builder) { b.Regular(rand.New(rand.NewPCG(1, 1)), 64, 6, 6) }},
		{"fat tree, 8 ports", 1, 192, func(b *routingtest.Builder) { b.FatTree3(8) }},
		{"dragonfly+, 9 groups", 2, 256, func(b *routingtest.Builder) { b.Dragonfly(9, 4, 4, 4) }},
	} {
		b := routingtest.New(nil)
		c.build(b)
		r, err := DFSSSP(b.Input(t, 8))
		if err != nil {
			t.Fatal(err)
		}
		lanes := 1
		if r.Lanes != nil {
			lanes = r.Lanes.VLs
		}
		worst := fullest(t, b, r)
		t.Logf("%s: %d lanes, the fullest link carries %d packets", c.name, lanes, worst)
		if lanes > c.lanes || worst > c.worst {
			t.Errorf("%s: %d lanes and %d packets on the fullest link, want at most %d and %d", c.name, lanes, worst, c.lanes, c.worst)
		}
	}
}
