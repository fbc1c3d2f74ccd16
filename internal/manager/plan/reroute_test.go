package plan

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/test/routingtest"
)

// rerouted is a fabric that holds the routes of one engine and wants those of another, some
// cables being cut in between.
func rerouted(t testing.TB, seed uint64) (*observed.Fabric, *observed.Desired) {
	rng := rand.New(rand.NewPCG(seed, 18))
	b := routingtest.New(rng)
	switch rng.IntN(3) {
	case 0:
		b.Irregular(rng, 3+rng.IntN(20), rng.IntN(30))
	case 1:
		b.FatTree2(2+rng.IntN(5), 2+rng.IntN(3), 1+rng.IntN(4), 1+rng.IntN(2))
	case 2:
		b.Torus(2+rng.IntN(4), 2+rng.IntN(4), 1)
	}
	engines := []routing.Engine{routing.UpDown, routing.MinHop}
	route := func() *routing.Tables {
		tables, err := routing.Compute(b.Fabric, b.Destinations, engines[rng.IntN(2)], graph.Room{VLs: 1, Layers: 1})
		if err != nil {
			t.Fatal(err)
		}
		return tables
	}
	before := route()
	switches := b.Fabric.Switches()
	for range rng.IntN(4) {
		n := switches[rng.IntN(len(switches))]
		if p := &n.Ports[1+rng.IntN(len(n.Ports)-1)]; p.Peer != nil && p.Peer.Node.Switch != nil {
			routingtest.Cut(p)
		}
	}
	for _, n := range switches {
		n.Switch.InfoRead, n.Switch.Info.LinearFDBCap, n.Switch.Info.LinearFDBTop = true, 1024, before.Top
		blocks := 1 + int(before.Top)/smp.LIDsPerLinearBlock
		n.Switch.LFT, n.Switch.LFTRead = slices.Repeat([]ib.PortNum{ib.PortNone}, blocks*smp.LIDsPerLinearBlock), make([]bool, blocks)
		copy(n.Switch.LFT, before.Linear[n.Index])
		for i := range n.Switch.LFTRead {
			n.Switch.LFTRead[i] = true
		}
	}
	d := observed.NewDesired(b.Fabric)
	if err := route().Enter(b.Fabric, d); err != nil {
		t.Fatal(err)
	}
	return b.Fabric, d
}

// circle is a LID for which the tables of the switches lead in a circle; 0 for none.
func circle(f *observed.Fabric) ib.LID {
	switches := f.Switches()
	for lid := range len(switches[0].Switch.LFT) {
		for _, n := range switches {
			at := n
			for range len(switches) + 1 {
				if at = next(at, at.Switch.LFT[lid]); at == nil {
					break
				}
			}
			if at != nil {
				return ib.LID(lid)
			}
		}
	}
	return 0
}

// While tables change, no packet goes in a circle, in whatever order the writes of a stage
// take hold, and packets are dropped only where the plan says so.
func TestNoCircleOnTheWay(t *testing.T) {
	rounds := uint64(300)
	waited, parts, naive := 0, 0, 0
	for seed := range rounds {
		f, d := rerouted(t, seed)
		rng := rand.New(rand.NewPCG(seed, 19))
		p := Diff(f, d)
		var all []Op
		routed := map[*observed.Node]map[int]bool{}
		for _, n := range f.Switches() {
			routed[n] = map[int]bool{}
			for lid, exit := range n.Switch.LFT {
				routed[n][lid] = exit != ib.PortNone
			}
		}
		forwarding := 0
		for _, s := range p.Stages {
			ops := slices.DeleteFunc(slices.Clone(s.Ops), func(op Op) bool { return op.Attribute != smp.AttrLinearForwardingTable })
			if len(ops) > 0 {
				forwarding++
			}
			rng.Shuffle(len(ops), func(i, j int) { ops[i], ops[j] = ops[j], ops[i] })
			for _, op := range ops {
				if op.Pass == 0 {
					all = append(all, op)
				} else {
					parts++
				}
				carryOut(t, p, op)
				for lid, exit := range op.Port.Node.Switch.LFT {
					if exit == ib.PortNone && routed[op.Port.Node][lid] && leads(d, op.Port.Node, lid) {
						t.Fatalf("seed %d: %s loses its route to LID %d on the way", seed, op.Port, lid)
					}
				}
				if lid := circle(f); lid != 0 {
					t.Fatalf("seed %d: packets for LID %d go in a circle after the write to %s in stage %q", seed, lid, op.Port, s.Name)
				}
			}
		}
		if forwarding > 1 {
			waited++
		}
		for _, n := range f.Switches() {
			if want := d.Nodes[n.Index].LFT; !slices.Equal(n.Switch.LFT[:len(want)], want) {
				t.Fatalf("seed %d: %s has not the table that is wanted", seed, n.Name())
			}
		}
		// The check can fail: the same writes in any order.
		f, d = rerouted(t, seed)
		p = Diff(f, d)
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, op := range all {
			op.Port = &f.Nodes[op.Port.Node.Index].Ports[0]
			carryOut(t, p, op)
			if circle(f) != 0 {
				naive++
				break
			}
		}
	}
	t.Logf("of %d changes %d had to wait, %d writes were parts of a block; without an order %d went in a circle", rounds, waited, parts, naive)
	if naive == 0 || waited == 0 || parts == 0 {
		t.Error("nothing was tried")
	}
}

// leads reports whether a route from a switch to a LID is wanted.
func leads(d *observed.Desired, n *observed.Node, lid int) bool {
	t := d.Nodes[n.Index].LFT
	return lid < len(t) && t[lid] != ib.PortNone
}
