package fabricsim

import "time"

// kind tells what an event does when its time has come.
type kind uint8

const (
	kindArrive kind = iota // a packet is at a node
	kindServe              // an agent has found the time for a packet
	kindTimer              // an agent's own deadline
	kindTrain              // a port looks for a peer to train with
	kindCall               // a function of the caller's

	kindDataArrive // a data packet is at a port
	kindSend       // a port may send its next data packet
	kindAge        // data packets that wait at a port may be too old
	kindDevice     // an end node's retry timers
)

// event is one entry of the queue. What subject means depends on the kind: a
// packet, a node, a port or a function, always by its index.
type event struct {
	at      time.Duration
	order   uint64 // among events of one time: first queued, first served
	subject int32
	kind    kind
}

func (e *event) before(o *event) bool {
	return e.at < o.at || e.at == o.at && e.order < o.order
}

// lane names a first-in first-out part of the queue. Events that always lie
// the same span ahead come in the order of their time, so that they need no
// heap.
type lane uint8

const (
	laneHop   lane = iota // one link ahead
	laneServe             // one agent delay ahead
	laneData              // a link and a packet's length ahead
	laneSend              // a packet's length ahead
	laneCount

	noLane = laneCount // straight to the heap
)

// queue gives events back in the order of their time, and of their arrival
// where that is equal. The zero value is empty.
type queue struct {
	next  uint64
	lanes [laneCount]ring
	heap  []event
}

// push adds an event. The lane is a hint: an event that does not come after
// everything in its lane goes to the heap.
func (q *queue) push(l lane, at time.Duration, k kind, subject int32) {
	e := event{at: at, order: q.next, subject: subject, kind: k}
	q.next++
	if l != noLane {
		if r := &q.lanes[l]; r.count == 0 || r.last().at <= at {
			r.push(e)
			return
		}
	}
	q.heap = append(q.heap, e)
	q.up(len(q.heap) - 1)
}

// head finds the earliest event; from is its lane, or noLane for the heap.
func (q *queue) head() (first *event, from lane) {
	from = noLane
	if len(q.heap) > 0 {
		first = &q.heap[0]
	}
	for l := range q.lanes {
		if r := &q.lanes[l]; r.count > 0 {
			if e := r.first(); first == nil || e.before(first) {
				first, from = e, lane(l)
			}
		}
	}
	return first, from
}

// pop removes the earliest event when it lies no later than limit.
func (q *queue) pop(limit time.Duration) (event, bool) {
	first, from := q.head()
	if first == nil || first.at > limit {
		return event{}, false
	}
	e := *first
	if from != noLane {
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

func (q *queue) up(i int) {
	for i > 0 {
		parent := (i - 1) / heapWidth
		if !q.heap[i].before(&q.heap[parent]) {
			return
		}
		q.heap[i], q.heap[parent] = q.heap[parent], q.heap[i]
		i = parent
	}
}

func (q *queue) down(i int) {
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
	events       []event
	start, count int
}

func (r *ring) first() *event { return &r.events[r.start] }

func (r *ring) last() *event { return &r.events[(r.start+r.count-1)&(len(r.events)-1)] }

func (r *ring) drop() {
	r.start = (r.start + 1) & (len(r.events) - 1)
	r.count--
}

func (r *ring) push(e event) {
	if r.count == len(r.events) {
		grown := make([]event, max(64, 2*len(r.events)))
		n := copy(grown, r.events[r.start:])
		copy(grown[n:], r.events[:r.start])
		r.events, r.start = grown, 0
	}
	r.events[(r.start+r.count)&(len(r.events)-1)] = e
	r.count++
}
