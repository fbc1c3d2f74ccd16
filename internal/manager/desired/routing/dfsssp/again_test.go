package dfsssp

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/test/need"
	"github.com/ibwarden/ibwarden/test/routingtest"
)

// routedAfter routes a fabric as it is now, after what was routed last.
func routedAfter(t *testing.T, b *routingtest.Builder, vls int, last *graph.Last) *graph.Last {
	t.Helper()
	in := b.Input(t, vls)
	in.Last = last
	r, err := DFSSSP(in)
	if err != nil {
		t.Fatal(err)
	}
	return &graph.Last{Graph: in.Graph, Routes: r}
}

// cable is a random trained cable between switches, or with hosts, of any switch.
func cable(rng *rand.Rand, b *routingtest.Builder, hosts bool) *observed.Port {
	switches := b.Fabric.Switches()
	for {
		s := switches[rng.IntN(len(switches))]
		if p := &s.Ports[1+rng.IntN(len(s.Ports)-1)]; p.IsTrained() && p.Peer.Node != s && (hosts || p.Peer.Node.Switch != nil) {
			return p
		}
	}
}

// difference is how far routes differ: entries of tables, of all, and those of them whose exit
// is gone or no longer on a shortest path; and pairs of switches whose layer is another one, of all.
type difference struct{ entries, all, lost, layers, pairs int }

func (d *difference) add(before, after *graph.Last) {
	dist := make([][]uint16, len(after.Nodes))
	at := make([]int, int(after.Top)+1)
	for _, e := range after.Ends {
		dist[e.At] = make([]uint16, len(after.Nodes))
		after.Distances(dist[e.At], nil, e.At)
		for i := range e.LMC.Count() {
			at[int(e.LID)+i] = int(e.At)
		}
	}
	for s, n := range before.Nodes {
		for lid, exit := range before.Routes.Linear[n.Index] {
			if exit == ib.PortNone || exit == 0 {
				continue
			}
			d.all++
			if after.Routes.Linear[n.Index][lid] != exit {
				d.entries++
			}
			if p := &n.Ports[exit]; !p.IsTrained() || p.Peer.Node.Switch != nil && dist[at[lid]][after.Index[p.Peer.Node.Index]]+1 != dist[at[lid]][s] {
				d.lost++
			}
		}
		for r := range s {
			d.pairs++
			if before.Routes.Lanes.LayerOf(uint16(s), uint16(r)) != after.Routes.Lanes.LayerOf(uint16(s), uint16(r)) {
				d.layers++
			}
		}
	}
}

// When a cable breaks, hardly more routes move than those that led over it, and few pairs
// of switches change their layer.
func TestOneCableAfterLast(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(b *routingtest.Builder)
	}{
		{"torus 6 x 6", func(b *routingtest.Builder) { b.Torus(6, 6, 2) }},
		{"random, 40 switches of 6 links", func(b *routingtest.Builder) { b.Regular(rand.New(rand.NewPCG(1, 1)), 40, 6, 4) }},
		{"dragonfly, 9 groups", func(b *routingtest.Builder) { b.FullDragonfly(9, 4, 2, 4) }},
		{"fat tree, 6 ports", func(b *routingtest.Builder) { b.FatTree3(6) }},
	} {
		var kept, fresh difference
		for seed := range uint64(3) {
			b := routingtest.New(nil)
			c.build(b)
			before := routedAfter(t, b, 8, nil)
			routingtest.Cut(cable(rand.New(rand.NewPCG(seed, 9)), b, false))
			after := routedAfter(t, b, 8, before)
			if seed == 0 {
				b.Sound(t, after.Routes, 8)
			}
			kept.add(before, after)
			if seed == 0 {
				fresh.add(before, routedAfter(t, b, 8, nil))
			}
		}
		t.Logf("%s: %+v, without the last routes %+v", c.name, kept, fresh)
		if kept.entries > kept.lost*3/2 || kept.layers > kept.pairs/20 {
			t.Errorf("%s: %d of %d routes moved, %d led over what is gone; %d of %d pairs changed their layer", c.name,
				kept.entries, kept.all, kept.lost, kept.layers, kept.pairs)
		}
	}
}

// Cables break and come back, hosts' too, one after the other, and each time the routes follow from the
// last ones: what is connected stays connected, and links do not wait for each other in a
// circle. In the end no link carries much more than by routes that follow from none.
func TestManyAfterLast(t *testing.T) {
	count, seed := 20, uint64(18)
	if need.Soak() {
		count, seed = 1000, rand.Uint64()
	}
	t.Logf("seed %d", seed)
	worst, fresh := 0, 0
	for i := range count {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		b := random(rng)
		vls := []int{1, 2, 3, 8, 15}[rng.IntN(5)]
		var last *graph.Last
		var down []*observed.Port
		for range 12 {
			if rng.IntN(2) == 0 && len(down) > 0 {
				subnettest.SetLink(down[0], smp.PortActive, smp.PhysLinkUp)
				down = down[1:]
			} else if links := len(b.Input(t, vls).To); links > 0 {
				p := cable(rng, b, rng.IntN(4) == 0)
				down = append(down, p)
				routingtest.Cut(p)
			}
			last = routedAfter(t, b, vls, last)
			if b.Sound(t, last.Routes, vls); t.Failed() {
				t.Fatalf("seed %d, graph %d, %d lanes", seed, i, vls)
			}
		}
		worst += fullest(t, b, last.Routes)
		fresh += fullest(t, b, routedAfter(t, b, vls, nil).Routes)
	}
	t.Logf("the fullest links carry %d packets, by routes that follow from none %d", worst, fresh)
	if worst > fresh*5/4 {
		t.Errorf("the fullest links carry %d packets, by routes that follow from none %d", worst, fresh)
	}
}

// Last routes that are nonsense do no harm.
func TestNonsenseLast(t *testing.T) {
	for i := range uint64(60) {
		rng := rand.New(rand.NewPCG(7, i))
		b := random(rng)
		last := routedAfter(t, b, 8, nil)
		for _, row := range last.Routes.Linear {
			for lid := range row {
				if rng.IntN(4) == 0 {
					row[lid] = ib.PortNum(rng.IntN(256))
				}
			}
		}
		switch rng.IntN(3) {
		case 0:
			last.Routes.Linear = slices.Clone(last.Routes.Linear)
			for n, row := range last.Routes.Linear {
				last.Routes.Linear[n] = row[:len(row)/2]
			}
		case 1:
			rng.Shuffle(len(last.Routes.Order), func(i, j int) {
				last.Routes.Order[i], last.Routes.Order[j] = last.Routes.Order[j], last.Routes.Order[i]
			})
		}
		if lanes := last.Routes.Lanes; lanes != nil {
			for s := range lanes.Layer {
				for r := range s {
					layer := uint8(rng.IntN(lanes.Layers))
					lanes.Layer[s][r], lanes.Layer[r][s] = layer, layer
				}
			}
		}
		if b.Sound(t, routedAfter(t, b, 8, last).Routes, 8); t.Failed() {
			t.Fatalf("graph %d", i)
		}
	}
}
