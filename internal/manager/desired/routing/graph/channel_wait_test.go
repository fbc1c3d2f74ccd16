package graph_test

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/test/routingtest"
)

// The check by which paths get their layers finds a circle.
func TestWaits(t *testing.T) {
	b := routingtest.New(nil)
	b.Grid([]int{3}, true, 1, 0)
	n := graph.NewChannels(b.Input(t, 1).Graph)
	w := graph.NewWaits(n, make([]uint8, len(n.To)), [][][]ib.VL{{{0, 1}}}, 2)
	ring := func(a, b, c uint16) []int32 { return []int32{n.Between(a, b), n.Between(b, c)} }
	if !w.Take(0, ring(0, 1, 2), ring(1, 2, 0)) {
		t.Error("two paths are no circle")
	}
	for range 2 {
		if w.Take(0, ring(2, 1, 0), ring(2, 0, 1)) {
			t.Error("three paths in one layer close a circle")
		}
	}
	if !w.Take(0, ring(1, 0, 2), ring(0, 2, 1)) || !w.Take(1, ring(2, 0, 1)) {
		t.Error("other paths and another layer are free")
	}
	if w.Take(0, ring(2, 1, 0)) {
		t.Error("a path that was refused with another is still there")
	}
}
