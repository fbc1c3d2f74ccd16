package transact

// queue is a first-in first-out list that gives its memory back.
type queue struct {
	items []pending
	head  int
}

// keptItems is the number of items for which memory is kept while there are none, and what
// has to be given out before memory is given back while there are.
const keptItems = 4096

func (q *queue) len() int { return len(q.items) - q.head }

func (q *queue) push(p pending) { q.items = append(q.items, p) }

func (q *queue) pop() pending {
	p := q.items[q.head]
	q.items[q.head] = pending{}
	q.head++
	if q.head == len(q.items) {
		if q.head = 0; cap(q.items) > keptItems {
			q.items = nil
		}
		q.items = q.items[:0]
	} else if q.head > keptItems && q.head*2 > len(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	return p
}
