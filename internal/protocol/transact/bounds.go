package transact

import (
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// bounds are the time in which writes may leave.
type bounds struct {
	on          bool
	from, until time.Duration
}

// WriteBetween has Sets, but those of SMInfo, leave only from one time on and before
// another, by the time that Next is told. Others wait until a later call allows them: first
// tries, tries again and copies. A window that is read-only ends them all the same.
func (w *Window) WriteBetween(from, until time.Duration) { w.bounds = bounds{true, from, until} }

// mustPark reports whether a request is a write that may not leave now.
func (w *Window) mustPark(now time.Duration, r *Request) bool {
	b := &w.bounds
	return b.on && (now < b.from || now >= b.until) && !w.readOnly && r.Method == mad.MethodSet && r.Attribute != smp.AttrSMInfo
}

// park takes the next request out of the queue if it may not leave now.
func (w *Window) park(now time.Duration) bool {
	if !w.mustPark(now, &w.waiting.items[w.waiting.head].request) {
		return false
	}
	w.parked = append(w.parked, w.waiting.pop())
	return true
}

// unpark puts the requests back that may leave, or end, by now.
func (w *Window) unpark(now time.Duration) {
	if len(w.parked) == 0 || w.mustPark(now, &w.parked[0].request) {
		return
	}
	for _, p := range w.parked {
		w.waiting.push(p)
	}
	w.parked = nil
}
