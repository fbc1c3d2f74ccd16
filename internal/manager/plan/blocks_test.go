package plan

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// A block of a forwarding table is written where it was not read, or where an entry of it
// differs, by tables of any length: what is beyond the end of one has no exit.
func TestForwardingBlocks(t *testing.T) {
	const per = smp.LIDsPerLinearBlock
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 31))
		b := subnettest.New()
		n := b.Switch(4, "leaf")
		b.Host(n, "")
		b.Route()
		table := func() []ib.PortNum {
			out := make([]ib.PortNum, rng.IntN(4*per))
			for i := range out {
				out[i] = 1
			}
			for range rng.IntN(3) {
				if len(out) > 0 {
					out[rng.IntN(len(out))] = ib.PortNum(rng.IntN(3))
				}
			}
			return out
		}
		have, want := table(), table()
		n.Switch.LFT, n.Switch.LFTRead = have, make([]bool, rng.IntN(5))
		for i := range n.Switch.LFTRead {
			n.Switch.LFTRead[i] = rng.IntN(4) > 0
		}
		d := observed.NewDesired(b.Fabric)
		d.Nodes[n.Index].LFT = want
		at := func(table []ib.PortNum, i int) ib.PortNum {
			if i < len(table) {
				return table[i]
			}
			return ib.PortNone
		}
		var expect, got []uint32
		for block := 0; block*per < len(want); block++ {
			differs := block >= len(n.Switch.LFTRead) || !n.Switch.LFTRead[block]
			for i := range per {
				differs = differs || at(have, block*per+i) != at(want, block*per+i)
			}
			if differs {
				expect = append(expect, uint32(block))
			}
		}
		for _, s := range Diff(b.Fabric, d).Stages {
			for _, op := range s.Ops {
				if op.Attribute == smp.AttrLinearForwardingTable {
					got = append(got, op.Modifier)
				}
			}
		}
		if slices.Sort(got); !slices.Equal(got, expect) {
			t.Fatalf("seed %d: writes blocks %v, want %v (read %v)", seed, got, expect, n.Switch.LFTRead)
		}
	}
}
