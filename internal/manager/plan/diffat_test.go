package plan

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Looking at the ports where something differs, at more, in any order and more
// than once, gives the plan that looking at everything gives.
func TestDiffAtIsDiff(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 2))
	ops := 0
	for round := range 300 {
		f := star(6, func(i int) bool { return i%3 != round%3 }, smp.PortActive)
		d := observed.NewDesired(f)
		var everything []*observed.Port
		for _, n := range f.Nodes {
			for i := range n.Ports {
				p := &n.Ports[i]
				everything = append(everything, p)
				if n.Switch == nil && i == 0 {
					continue
				}
				want := d.Port(p)
				switch rng.IntN(6) {
				case 0:
					want.PKeys, _ = tables(membership(rng))
				case 1:
					want.Elements, want.Info.LID = observed.ElementLID, ib.LID(rng.IntN(3))
				case 2:
					want.Elements = observed.ElementEnforcement
				case 3:
					want.SLToVL = []*smp.SLToVLMappingTable{&smp.SLToVLMappingTable{}}
				}
			}
		}
		if rng.IntN(2) == 0 {
			d.Nodes[0].LFT = []ib.PortNum{ib.PortNone, 1, 2}
		}
		whole := Diff(f, d)
		var at []*observed.Port
		for _, s := range whole.Stages {
			for _, op := range s.Ops {
				at = append(at, op.Port)
				ops++
			}
		}
		for range 3 {
			at = append(at, everything[rng.IntN(len(everything))])
		}
		for _, ports := range [][]*observed.Port{at, everything} {
			rng.Shuffle(len(ports), func(i, j int) { ports[i], ports[j] = ports[j], ports[i] })
			part := DiffAt(f, d, ports)
			same := slices.EqualFunc(whole.Stages, part.Stages, func(a, b Stage) bool {
				return a.Name == b.Name && slices.Equal(a.Ops, b.Ops)
			})
			if !same {
				t.Fatalf("seed %d, round %d: %v\nwant %v", seed, round, part.Stages, whole.Stages)
			}
		}
	}
	if ops == 0 || DiffAt(observed.NewFabric(), &observed.Desired{}, nil).Len() != 0 {
		t.Error("nothing was to be written, or something at no port")
	}
}
