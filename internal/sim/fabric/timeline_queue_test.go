package fabric

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Whatever lane an event is hinted at, and however pushes and pops mix, events
// come out by time, and in the order of pushing where times are equal.
func TestQueueOrder(t *testing.T) {
	const seed = 7
	r := rand.New(rand.NewPCG(seed, 0))
	for round := range 200 {
		var q TimelineQueue
		var want, got []TimelineEvent
		now := time.Duration(0)
		for range 300 {
			if r.IntN(3) > 0 || len(want) == len(got) {
				at := now + time.Duration(r.IntN(20))
				l := TimelineLane(r.IntN(Lanes))
				want = append(want, TimelineEvent{At: at, order: q.next})
				q.Push(l, at, 0, 0)
				continue
			}
			e, ok := q.Pop(1 << 40)
			if !ok {
				t.Fatalf("seed %d round %d: queue empty, %d events are missing", seed, round, len(want)-len(got))
			}
			now = e.At
			got = append(got, TimelineEvent{At: e.At, order: e.order})
		}
		for {
			e, ok := q.Pop(1 << 40)
			if !ok {
				break
			}
			got = append(got, TimelineEvent{At: e.At, order: e.order})
		}
		slices.SortFunc(want, func(a, b TimelineEvent) int {
			return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.order, b.order))
		})
		// Events pushed after an earlier pop never lie before it, so that the
		// order of the pops is the order of all.
		if !slices.Equal(want, got) {
			t.Fatalf("seed %d round %d: got %v\nwant %v", seed, round, got, want)
		}
	}
}

func TestQueueLimit(t *testing.T) {
	var q TimelineQueue
	q.Push(0, 5, 0, 0)
	if _, ok := q.Pop(4); ok {
		t.Error("an event at 5 came out with limit 4")
	}
	if _, ok := q.Pop(5); !ok {
		t.Error("an event at 5 did not come out with limit 5")
	}
	if first, _ := q.Head(); first != nil {
		t.Errorf("head of an empty queue is %v", first)
	}
}
