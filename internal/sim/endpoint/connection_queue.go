package endpoint

// ConnectionQueue holds elements in order. It grows as needed; the caller of Push enforces its
// limit. The zero Queue is empty.
type ConnectionQueue[T any] struct {
	items []T // a power of two of them, or none
	head  int
	n     int
}

// Len is the number of elements.
func (q *ConnectionQueue[T]) Len() int { return q.n }

// At is the element i places behind the oldest; there must be so many.
func (q *ConnectionQueue[T]) At(i int) *T { return &q.items[(q.head+i)&(len(q.items)-1)] }

// Push adds the newest element.
func (q *ConnectionQueue[T]) Push(x T) {
	q.grow()
	q.n++
	*q.At(q.n - 1) = x
}

// Add makes room for the newest element, which is zero, and returns it.
func (q *ConnectionQueue[T]) Add() *T {
	q.grow()
	q.n++
	return q.At(q.n - 1)
}

// Drop takes the oldest element away; there must be one.
func (q *ConnectionQueue[T]) Drop() {
	var zero T
	*q.At(0) = zero
	q.head = (q.head + 1) & (len(q.items) - 1)
	q.n--
}

// PushFront adds an element that is older than all others.
func (q *ConnectionQueue[T]) PushFront(x T) {
	q.grow()
	q.head = (q.head - 1) & (len(q.items) - 1)
	q.n++
	*q.At(0) = x
}

// Pop takes the oldest element; there must be one.
func (q *ConnectionQueue[T]) Pop() T {
	var zero T
	x := *q.At(0)
	*q.At(0) = zero
	q.head = (q.head + 1) & (len(q.items) - 1)
	q.n--
	return x
}

// Keep drops the elements that want does not want.
func (q *ConnectionQueue[T]) Keep(want func(*T) bool) {
	for range q.n {
		if x := q.Pop(); want(&x) {
			q.Push(x)
		}
	}
}

func (q *ConnectionQueue[T]) grow() {
	if q.n < len(q.items) {
		return
	}
	bigger := make([]T, max(4, 2*len(q.items)))
	for i := range q.n {
		bigger[i] = *q.At(i)
	}
	q.items, q.head = bigger, 0
}
