package apply

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// TestSpread: every operation goes out once, those of a device in their order, and none
// follows another of its device while one of the devices that are being written has fewer
// behind it.
func TestSpread(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		over, devices := 1+r.IntN(6), 1+r.IntN(9)
		var ops []plan.Op
		ports := make([]observed.Port, devices)
		for i := range ports {
			ports[i].Node = &observed.Node{}
			for block := range r.IntN(7) {
				ops = append(ops, plan.Op{Port: &ports[i], Modifier: uint32(block)})
			}
		}
		before := slices.Clone(ops)
		got := spread(ops, over)
		if !slices.Equal(ops, before) {
			t.Fatal("the plan itself is changed")
		}
		next := make(map[*observed.Port]uint32)
		rest := make(map[*observed.Port]int)
		for _, op := range ops {
			rest[op.Port]++
		}
		total := make(map[*observed.Port]int)
		for p, n := range rest {
			total[p] = n
		}
		for i, op := range got {
			if op.Modifier != next[op.Port] {
				t.Fatalf("over %d: operation %d is block %d, want %d", over, i, op.Modifier, next[op.Port])
			}
			next[op.Port]++
			rest[op.Port]--
			begun, least := 0, uint32(1<<31)
			for p, n := range rest {
				if n > 0 && n < total[p] {
					begun++
					least = min(least, next[p])
				}
			}
			if begun > over {
				t.Fatalf("over %d: %d devices are written at the same time", over, begun)
			}
			if begun > 0 && rest[op.Port] >= 0 && next[op.Port] > least+1 {
				t.Fatalf("over %d: a device is at block %d while another that is written is at %d", over, next[op.Port], least)
			}
		}
		if len(got) != len(ops) {
			t.Fatalf("%d operations of %d", len(got), len(ops))
		}
	}
}
