package fabric_test

import (
	"math/rand/v2"
	"testing"

	"github.com/ibwarden/ibwarden/internal/sim/fabric"
)

// Things taken are different things, stay where they are, and keep their content.
func TestPool(t *testing.T) {
	const limit = 512
	r := rand.New(rand.NewPCG(1, 1))
	var p fabric.PacketPool[int]
	taken := map[int32]*int{}
	value := map[int32]int{}
	for step := range 20_000 {
		if r.IntN(2) == 0 || len(taken) == 0 {
			x, i := p.Take(limit)
			if x == nil {
				if len(taken) != limit || i != -1 {
					t.Fatalf("seed 1: nothing to take with %d of %d taken, index %d", len(taken), limit, i)
				}
				continue
			}
			if taken[i] != nil || p.Get(i) != x {
				t.Fatalf("seed 1: index %d was given twice, or is another thing", i)
			}
			if *x != value[i] {
				t.Fatalf("seed 1: thing %d holds %d, its last use left %d", i, *x, value[i])
			}
			taken[i], *x, value[i] = x, step, step
		} else {
			for i, x := range taken {
				if *x != value[i] || p.Get(i) != x {
					t.Fatalf("seed 1: thing %d holds %d, want %d", i, *x, value[i])
				}
				delete(taken, i)
				p.Put(i)
				break
			}
		}
		if p.InFlight() != len(taken) {
			t.Fatalf("seed 1: %d in flight, want %d", p.InFlight(), len(taken))
		}
	}
	for range limit {
		p.Take(limit)
	}
	if x, i := p.Take(limit); x != nil || i != -1 || p.InFlight() != limit {
		t.Errorf("took %v, %d with %d in flight, limit %d", x, i, p.InFlight(), limit)
	}
}
