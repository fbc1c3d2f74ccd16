package dfsssp

import (
	"math/rand/v2"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/test/need"
	"github.com/ibwarden/ibwarden/test/routingtest"
)

// random makes a broken graph of any kind.
func random(rng *rand.Rand) *routingtest.Builder {
	b := routingtest.New(rng)
	b.LMC = ib.LMC(max(0, rng.IntN(5)-2))
	switch rng.IntN(8) {
	case 0:
		b.FatTree2(2+rng.IntN(7), 1+rng.IntN(5), rng.IntN(3), 1+rng.IntN(2))
	case 1:
		b.FatTree3(4 + 2*rng.IntN(2))
	case 2:
		b.Torus(3+rng.IntN(4), 1+rng.IntN(5), rng.IntN(3))
	case 3:
		b.Dragonfly(2+rng.IntN(4), 1+rng.IntN(3), 1+rng.IntN(3), rng.IntN(3))
	case 4:
		n := 4 + rng.IntN(20)
		b.Regular(rng, n, 2+rng.IntN(4), rng.IntN(3))
	default:
		n := 2 + rng.IntN(24)
		b.Irregular(rng, n, rng.IntN(2*n))
	}
	switches := b.Fabric.Switches()
	for range rng.IntN(1 + len(switches)) {
		s := switches[rng.IntN(len(switches))]
		p := &s.Ports[1+rng.IntN(len(s.Ports)-1)]
		if rng.IntN(8) == 0 { // the whole switch
			for i := 1; i < len(s.Ports); i++ {
				if s.Ports[i].Peer != nil {
					routingtest.Cut(&s.Ports[i])
				}
			}
		} else if p.Peer != nil {
			routingtest.Cut(p)
		}
	}
	return b
}

// Whatever the graph and however few the lanes, what is connected stays connected, no path
// goes round, and the links and lanes do not wait for each other in a circle.
func TestRandomGraphs(t *testing.T) {
	count, seed := 300, uint64(18)
	if need.Soak() {
		count, seed = 10_000, rand.Uint64()
	}
	t.Logf("seed %d", seed)
	for i := range count {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		b := random(rng)
		vls := []int{1, 2, 3, 8, 15}[rng.IntN(5)]
		r, err := DFSSSP(b.Input(t, vls))
		if err != nil {
			t.Fatal(err)
		}
		if b.Sound(t, r, vls); t.Failed() {
			t.Fatalf("seed %d, graph %d, %d lanes", seed, i, vls)
		}
	}
}

// When a cable breaks in a tree, few routes move that need not: in the mean of five cables no
// more than one in ten. By the load alone it would be four.
func TestOneCable(t *testing.T) {
	moved, all := 0, 0
	for seed := range uint64(5) {
		b := routingtest.New(nil)
		b.FatTree3(8)
		before, err := DFSSSP(b.Input(t, 1))
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(seed, 9))
		switches := b.Fabric.Switches()
		var cut *observed.Port
		for cut == nil || !cut.IsTrained() || cut.Peer.Node.Switch == nil {
			s := switches[rng.IntN(len(switches))]
			cut = &s.Ports[1+rng.IntN(len(s.Ports)-1)]
		}
		routingtest.Cut(cut)
		after, err := DFSSSP(b.Input(t, 1))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range switches {
			for lid, exit := range before.Linear[s.Index] {
				all++
				if after.Linear[s.Index][lid] != exit {
					moved++
				}
			}
		}
	}
	t.Logf("%d of %d routes moved", moved, all)
	if moved > all/10 {
		t.Errorf("%d of %d routes moved", moved, all)
	}
}

// No path of the first layer goes up, in the order of up*/down*, after it went down: others
// build on it.
func TestHomeLayer(t *testing.T) {
	for i := range uint64(60) {
		rng := rand.New(rand.NewPCG(5, i))
		b := random(rng)
		in := b.Input(t, 8)
		r, err := DFSSSP(in)
		if err != nil {
			t.Fatal(err)
		}
		height := map[*observed.Node]int{}
		for i, s := range graph.Order(in.Graph) {
			height[in.Nodes[s]] = i
		}
		b.EachRoute(t, r, func(from *observed.Node, d graph.Destination, lid ib.LID, steps []routingtest.Step) {
			down := false
			for _, s := range steps {
				up := height[s.From.Ports[s.Exit].Peer.Node] < height[s.From]
				if up && down && s.VL == home {
					t.Fatalf("graph %d: from %s to LID %d of %s: up after down", i, from.Name(), lid, d.Port)
				}
				down = down || !up
			}
		})
	}
}
