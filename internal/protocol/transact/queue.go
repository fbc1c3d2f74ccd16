package transact

// queue is a first-in first-out list that gives its memory back.
type queue struct {
	items []pending
	head  int
}

func (q *queue) len() int { return len(q.items) - q.head }

func (q *queue) push(p pending) { q.items = append(q.items, p) }

func (q *queue) pop() pending {
	p := q.items[q.head]
	q.items[q.head] = pending{}
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	} else if q.head > 4096 && q.head*2 > len(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	return p
}
