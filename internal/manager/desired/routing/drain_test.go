package routing

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/test/routingtest"
)

// No packet passes a drained switch that is not for it or for what is behind it, everybody
// still reaches everybody, and where that cannot be the switch is not drained.
func TestDrainedSwitchesCarryNothing(t *testing.T) {
	drains, refused := 0, 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 20))
		b := routingtest.New(rng)
		switch rng.IntN(3) {
		case 0:
			b.Irregular(rng, 2+rng.IntN(20), rng.IntN(30))
		case 1:
			b.FatTree2(2+rng.IntN(5), 2+rng.IntN(3), 1+rng.IntN(4), 1+rng.IntN(2))
		case 2:
			b.Torus(2+rng.IntN(4), 2+rng.IntN(4), 1)
		}
		switches := b.Fabric.Switches()
		rng.Shuffle(len(switches), func(i, j int) { switches[i], switches[j] = switches[j], switches[i] })
		drained := switches[:1+rng.IntN(min(3, len(switches)))]
		for _, e := range tested {
			room := graph.Room{VLs: 8, Layers: 16}
			before, err := Compute(b.Fabric, b.Destinations, e, room)
			if err != nil {
				t.Fatalf("seed %d, %s: %v", seed, e, err)
			}
			tables, err := Request{Engine: e, Room: room, Drained: drained, Last: before}.Compute(b.Fabric, b.Destinations)
			if err != nil {
				t.Fatalf("seed %d, %s: %v", seed, e, err)
			}
			isDrained := func(n *observed.Node) bool {
				return slices.Contains(drained, n) && !slices.ContainsFunc(tables.Warnings, func(note string) bool {
					return strings.HasPrefix(note, n.Name()+" is not drained")
				})
			}
			for _, n := range drained {
				if isDrained(n) {
					drains++
				} else {
					refused++
				}
			}
			b.EachRoute(t, &tables.Routes, func(from *observed.Node, d graph.Destination, lid ib.LID, steps []routingtest.Step) {
				for i, s := range steps {
					if isDrained(s.From) && i > 0 && !isDrained(from) && !isDrained(routingtest.Behind(d.Port)) {
						t.Fatalf("seed %d, %s: the way from %s to LID %d passes %s, which is drained", seed, e, from.Name(), lid, s.From.Name())
					}
					if tables.Idle[&s.From.Ports[s.Exit]] {
						t.Fatalf("seed %d, %s: the way from %s to LID %d takes a link of a drained switch that is said to be idle", seed, e, from.Name(), lid)
					}
				}
			})
			if e != MinHop && b.Deadlocks(t, &tables.Routes, room.VLs) {
				t.Errorf("seed %d, %s: links depend on each other in a circle", seed, e)
			}
			back, err := Request{Engine: e, Room: room, Last: tables}.Compute(b.Fabric, b.Destinations)
			if err != nil {
				t.Fatalf("seed %d, %s: %v", seed, e, err)
			}
			b.EachRoute(t, &back.Routes, nil)
			if e != MinHop && b.Deadlocks(t, &back.Routes, room.VLs) {
				t.Errorf("seed %d, %s: links depend on each other in a circle when nothing is drained any more", seed, e)
			}
		}
	}
	if drains == 0 || refused == 0 {
		t.Errorf("%d switches drained, %d refused: both should have been tried", drains, refused)
	}
}

// When a spine of a whole fat tree is drained, only routes that led over it move.
func TestDrainMovesNoOtherRoutes(t *testing.T) {
	b := routingtest.New(rand.New(rand.NewPCG(1, 21)))
	_, middle, core := b.FatTree3(6)
	room := graph.Room{VLs: 1, Layers: 1}
	before, err := Compute(b.Fabric, b.Destinations, FatTree, room)
	if err != nil {
		t.Fatal(err)
	}
	for _, drained := range append(middle, core...) {
		after, err := Compute(b.Fabric, b.Destinations, FatTree, room, drained)
		if err != nil || len(after.Warnings) > 0 {
			t.Fatal(err, after.Warnings)
		}
		moved := 0
		b.EachRoute(t, &before.Routes, func(from *observed.Node, d graph.Destination, lid ib.LID, steps []routingtest.Step) {
			if d.Port.Node.Switch != nil || from == drained || after.Linear[from.Index][lid] == before.Linear[from.Index][lid] {
				return
			}
			moved++
			if !slices.ContainsFunc(steps, func(s routingtest.Step) bool { return s.From == drained }) {
				t.Errorf("without %s, %s moves LID %d, whose way did not pass it", drained.Name(), from.Name(), lid)
			}
		})
		if moved == 0 {
			t.Errorf("no route moves from %s", drained.Name())
		}
	}
}
