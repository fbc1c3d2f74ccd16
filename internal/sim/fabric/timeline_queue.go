// This file orders the events of a simulated fabric.
//
//	Push        an event, with its time
//	Head, Pop   the earliest; of events of one time the one pushed first
//
// Events with a constant delay use a Lane, which needs no heap.

package fabric

import "time"

// TimelineKind tells what an event does when its time has come; the caller's affair.
type TimelineKind uint8

// TimelineEvent is one entry of the queue. What Subject means depends on the kind.
type TimelineEvent struct {
	At      time.Duration
	order   uint64 // among events of one time: first queued, first served
	Subject int32
	Kind    TimelineKind
}

func (e *TimelineEvent) before(o *TimelineEvent) bool {
	return e.At < o.At || e.At == o.At && e.order < o.order
}

// TimelineLane names a first-in first-out part of the queue. Events that always lie
// the same span ahead come in the order of their time, so that they need no
// heap.
type TimelineLane uint8

// Lanes is how many there are; NoLane stands for none of them.
const (
	Lanes               = 4
	NoLane TimelineLane = Lanes
)

// TimelineQueue gives events back in the order of their time, and of their arrival
// where that is equal. The zero value is empty.
type TimelineQueue struct {
	// Now is the time: that of the event that Pop gave last, unless the caller
	// has moved it on.
	Now   time.Duration
	next  uint64
	lanes [Lanes]ring
	heap  []TimelineEvent
}

// Push adds an event. The lane is a hint: an event that does not come after
// everything in its lane goes to the heap.
func (q *TimelineQueue) Push(l TimelineLane, at time.Duration, k TimelineKind, subject int32) {
	e := TimelineEvent{At: at, order: q.next, Subject: subject, Kind: k}
	q.next++
	if l != NoLane {
		if r := &q.lanes[l]; r.count == 0 || r.last().At <= at {
			r.push(e)
			return
		}
	}
	q.heap = append(q.heap, e)
	q.up(len(q.heap) - 1)
}

// Head finds the earliest event; from is its lane, or NoLane for the heap.
func (q *TimelineQueue) Head() (first *TimelineEvent, from TimelineLane) {
	from = NoLane
	if len(q.heap) > 0 {
		first = &q.heap[0]
	}
	for l := range q.lanes {
		if r := &q.lanes[l]; r.count > 0 {
			if e := r.first(); first == nil || e.before(first) {
				first, from = e, TimelineLane(l)
			}
		}
	}
	return first, from
}

// Pop removes the earliest event when it lies no later than limit.
func (q *TimelineQueue) Pop(limit time.Duration) (TimelineEvent, bool) {
	first, from := q.Head()
	if first == nil || first.At > limit {
		return TimelineEvent{}, false
	}
	e := *first
	q.Now = e.At
	if from != NoLane {
		q.lanes[from].drop()
		return e, true
	}
	last := len(q.heap) - 1
	q.heap[0] = q.heap[last]
	q.heap = q.heap[:last]
	q.down(0)
	return e, true
}

// The heap has four children to a node: fewer cache lines than two.
const heapWidth = 4

func (q *TimelineQueue) up(i int) {
	for i > 0 {
		parent := (i - 1) / heapWidth
		if !q.heap[i].before(&q.heap[parent]) {
			return
		}
		q.heap[i], q.heap[parent] = q.heap[parent], q.heap[i]
		i = parent
	}
}

func (q *TimelineQueue) down(i int) {
	for {
		least := i
		for c := heapWidth*i + 1; c <= heapWidth*i+heapWidth && c < len(q.heap); c++ {
			if q.heap[c].before(&q.heap[least]) {
				least = c
			}
		}
		if least == i {
			return
		}
		q.heap[i], q.heap[least] = q.heap[least], q.heap[i]
		i = least
	}
}

// ring is a growing circular buffer; its capacity is a power of two.
type ring struct {
	events       []TimelineEvent
	start, count int
}

func (r *ring) first() *TimelineEvent { return &r.events[r.start] }

func (r *ring) last() *TimelineEvent { return &r.events[(r.start+r.count-1)&(len(r.events)-1)] }

func (r *ring) drop() {
	r.start = (r.start + 1) & (len(r.events) - 1)
	r.count--
}

func (r *ring) push(e TimelineEvent) {
	if r.count == len(r.events) {
		grown := make([]TimelineEvent, max(64, 2*len(r.events)))
		n := copy(grown, r.events[r.start:])
		copy(grown[n:], r.events[:r.start])
		r.events, r.start = grown, 0
	}
	r.events[(r.start+r.count)&(len(r.events)-1)] = e
	r.count++
}
