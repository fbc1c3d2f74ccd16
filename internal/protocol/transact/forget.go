package transact

import (
	"errors"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// ErrReadOnly ends a write that was not sent, or not sent again, since its window is
// read-only.
var ErrReadOnly = errors.New("not written: this manager is not master any more")

// ReadOnly has the window send no Set but those of SMInfo, and send none again: a write
// that waits, or whose answer is overdue, ends with ErrReadOnly. What was sent may still be
// under way.
func (w *Window) ReadOnly(on bool) { w.readOnly = on }

func (w *Window) withholds(r *Request) bool {
	return w.readOnly && r.Method == mad.MethodSet && r.Attribute != smp.AttrSMInfo
}

// Owns reports whether a packet belongs to a request of this window that has
// not ended, be it one that Next gave out or an answer.
func (w *Window) Owns(p *mad.SMP) bool { return w.find(p) != nil }

// Forget ends every request at once, whether it was sent or not, without calling the
// callbacks. Answers that still arrive are counted as unmatched. Of writes that are Once
// the window remembers for Limits.Lifetime, as ever, that a copy may be in flight.
func (w *Window) Forget() {
	for i := range w.slots {
		if s := &w.slots[i]; s.active {
			w.drop(s)
		}
	}
	w.again, w.spare, w.held, w.parked = nil, nil, nil, nil
	w.waiting = queue{}
	w.nextDue = 0
}
