package kernel

import (
	"container/heap"
	"slices"
	"testing"
	"time"
)

// TestTimersSoonestFirst: sends whose time comes together end in the order in which they were made, so that a
// run repeats.
func TestTimersSoonestFirst(t *testing.T) {
	var l timers
	for _, s := range []send{{due: 2, serial: 1}, {due: 1, serial: 4}, {due: 2, serial: 0}, {due: 1, serial: 3}, {due: 1, serial: 5}} {
		heap.Push(&l, &s)
	}
	type key struct {
		due    time.Duration
		serial uint64
	}
	var got []key
	for len(l) > 0 {
		s := heap.Pop(&l).(*send)
		got = append(got, key{s.due, s.serial})
	}
	if want := []key{{1, 3}, {1, 4}, {1, 5}, {2, 0}, {2, 1}}; !slices.Equal(got, want) {
		t.Errorf("they end in the order %v, want %v", got, want)
	}
}
