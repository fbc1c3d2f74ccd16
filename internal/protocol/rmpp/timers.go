package rmpp

import (
	"cmp"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
)

// Deadline is when Expire wants to be called, or sooner; false for never.
func (e *Endpoint[A]) Deadline() (time.Duration, bool) {
	if e.Busy() == 0 {
		e.bound = never
	}
	return e.bound, e.bound != never
}

// Expire reports whether time has passed: what was not acknowledged is sent again,
// and what has taken too long is aborted.
func (e *Endpoint[A]) Expire(now time.Duration) {
	if now < e.bound {
		return
	}
	var late []*entry[A]
	for _, s := range e.senders {
		if now >= s.due() {
			late = append(late, s)
		}
	}
	// The order of a map is no order: what leaves must not depend on it.
	slices.SortFunc(late, func(a, b *entry[A]) int {
		return cmp.Compare(a.serial, b.serial)
	})
	for _, s := range late {
		if abort := s.expire(now, &e.limits); abort != mad.RMPPOK {
			if !s.isMute(&e.limits) {
				e.abort(s.key.peer, s.head, abort)
			}
			e.finish(s, &Abort{Status: abort})
			continue
		}
		e.enqueue(s)
	}
	var over []key[A]
	for k, r := range e.receivers {
		if now >= r.end {
			over = append(over, k)
		}
	}
	slices.SortFunc(over, func(a, b key[A]) int { return cmp.Compare(e.receivers[a].serial, e.receivers[b].serial) })
	for _, k := range over {
		head := e.receivers[k].head
		e.forget(k)
		e.counts.Aborted++
		e.reply(k.peer, &head, mad.RMPPAbort, mad.RMPPTotalTimeTooLong, 0, 0)
	}
	e.bound = never
	for _, s := range e.senders {
		e.bound = min(e.bound, s.due())
	}
	for _, r := range e.receivers {
		e.bound = min(e.bound, r.end)
	}
}

// abort tells the receiver of a message that no more of it will come. The
// packet goes the way of the message, so that its method stays.
func (e *Endpoint[A]) abort(peer A, head [HeadSize]byte, status mad.RMPPStatus) {
	head[mad.OffsetMethod] ^= byte(mad.MethodResponse) // reply turns it back
	e.reply(peer, &head, mad.RMPPAbort, status, 0, 0)
}
