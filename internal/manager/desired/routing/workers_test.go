package routing

import (
	"slices"
	"sync"
	"testing"

	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/test/routingtest"
)

// Workers have no say in the result, however many there are, and however few switches.
func TestWorkers(t *testing.T) {
	ran := 0
	run := func(n int, do func(i int)) {
		ran++
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() { do(n - 1 - i) })
		}
		all.Wait()
	}
	for _, radix := range []int{4, 8} {
		b := routingtest.New(nil)
		b.FatTree3(radix)
		for _, engine := range []Engine{FatTree, UpDown, DFSSSP} {
			room := graph.Room{VLs: 8, Layers: 8}
			want, err := Compute(b.Fabric, b.Destinations, engine, room)
			if err != nil {
				t.Fatal(err)
			}
			for _, count := range []int{1, 2, 3, 7, 1000} {
				got, err := Request{Engine: engine, Room: room, Workers: graph.Workers{Count: count, Run: run}}.Compute(b.Fabric, b.Destinations)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.EqualFunc(got.Linear, want.Linear, slices.Equal) || !slices.Equal(got.Notes, want.Notes) {
					t.Errorf("%s, radix %d, %d workers: another result", engine, radix, count)
				}
			}
		}
	}
	if ran == 0 {
		t.Error("nothing was divided")
	}
}
