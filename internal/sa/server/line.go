package server

import (
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/protocol/rmpp"
)

// lines hold what ports asked for and did not get yet, a line for each of them.
// They get turns one after the other, and a turn is short: whatever one port
// asks for, another waits for one turn of it and no more.
type lines struct {
	ring    []*requester // with something to do; the first has the next turn
	first   int
	waiting int  // requests in all lines
	cut     bool // Next ended before they had all they wanted
}

// arrival is a request that waits.
type arrival struct {
	from mad.Address
	head [rmpp.HeadSize]byte
	// data is that of one datagram; body that of a long request, else nil.
	data [rmpp.SegmentSize]byte
	body []byte
	busy bool // to be answered with BUSY
}

func (a *arrival) bytes() []byte {
	if a.body != nil {
		return a.body
	}
	return a.data[:]
}

// job is a query that takes more than one turn.
type job struct {
	q    request
	head [rmpp.HeadSize]byte
	t    table
	w    walker
	view *View // in which it was begun
}

// walker is a query that can be answered in turns. What is left of its budget
// comes back.
type walker interface {
	turn(s *Server, t *table) (status mad.Status, left int, more bool)
}

// turnsMax bounds the turns of one call of Next that send nothing: the caller has other
// things to do.
const turnsMax = 64

// hasWork reports whether a port has anything to do in its next turn.
func (r *requester) hasWork() bool {
	return len(r.tellings) > 0 || r.job != nil || r.first < len(r.line)
}

// enter has a port get turns as long as it has something to do. One for whom too
// many answers wait to be kept rests until they are.
func (s *Server) enter(r *requester) {
	if !r.listed && r.hasWork() && r.unkept < s.config.Limits.UnkeptEach {
		r.listed = true
		s.lines.ring = append(s.lines.ring, r)
	}
}

// isIdle reports whether nobody waits for a turn, or an answer to leave.
func (s *Server) isIdle() bool {
	return s.lines.first == len(s.lines.ring) && s.out.len() == 0
}

// enqueue has a request wait. Beyond so many the port gets BUSY, and when it does
// not wait for that either, nothing.
func (s *Server) enqueue(r *requester, a *arrival) {
	l, mine := &s.config.Limits, len(r.line)-r.first
	if !room(s.lines.waiting, l.Waiting, mine-r.busy, l.WaitingEach) {
		a.busy = true
	}
	if a.busy && (r.busy >= l.WaitingBusy || s.lines.waiting >= 2*l.Waiting) {
		s.counts.Dropped++
		return
	}
	if a.busy {
		r.busy++
		a.body = nil
	}
	if r.first > 0 && len(r.line) == cap(r.line) {
		n := copy(r.line, r.line[r.first:])
		clear(r.line[n:])
		r.line, r.first = r.line[:n], 0
	}
	r.line = append(r.line, *a)
	s.lines.waiting++
	s.enter(r)
}

// serve gives the next port its turn, and reports whether there was one.
func (s *Server) serve(now time.Duration) bool {
	l := &s.lines
	if l.first == len(l.ring) {
		return false
	}
	r := l.ring[l.first]
	l.ring[l.first] = nil
	if l.first++; l.first == len(l.ring) {
		l.ring, l.first = l.ring[:0], 0
	}
	r.listed = false
	s.counts.Turns++
	switch {
	case len(r.tellings) > 0:
		if s.tellSome(now, &r.tellings[0], s.config.Limits.Turn) {
			r.tellings = r.tellings[1:]
		}
	case r.job != nil:
		s.goOn(now, r)
	default:
		a := &r.line[r.first]
		if r.first++; a.busy {
			r.busy--
		}
		l.waiting--
		s.begin(now, r, a.from, &a.head, a.bytes(), a.busy)
		*a = arrival{}
		if r.first == len(r.line) {
			r.line, r.first = r.line[:0], 0
		}
		if cap(r.line) > lineKept && len(r.line) == 0 {
			r.line = nil
		}
	}
	s.enter(r)
	return true
}

// lineKept is how many requests a line that is empty keeps room for.
const lineKept = 64

// inTurns answers a query with what a walker finds: now, or in later turns.
func (s *Server) inTurns(q *request, t *table, w walker) {
	status, left, more := w.turn(s, t)
	s.counts.Looked += uint64(q.budget - left)
	q.budget = left
	if !more || status != mad.StatusOK {
		s.finish(q, t, status)
		return
	}
	j := &job{q: *q, head: *q.head, t: *t, w: w, view: s.view}
	j.q.head, j.q.data = &j.head, append([]byte(nil), q.data...)
	j.t.body = append([]byte(nil), t.body...)
	q.asker.job = j
}

// goOn gives a port's query its next turn. In another subnet it begins again.
func (s *Server) goOn(now time.Duration, r *requester) {
	j := r.job
	if s.view != j.view {
		r.job = nil
		s.begin(now, r, j.q.from, &j.head, j.q.data, false)
		return
	}
	status, left, more := j.w.turn(s, &j.t)
	s.counts.Looked += uint64(j.q.budget - left)
	if r.spend(&s.config.Limits, j.q.budget-left); more && status == mad.StatusOK {
		j.q.budget = left
		return
	}
	r.job = nil
	j.q.now = now
	s.finish(&j.q, &j.t, status)
}

// room reports whether there is room for one more, where each may have so many
// and all together most. Half of the room is for those with next to nothing, so
// that a few cannot take it all.
func room(all, most, mine, each int) bool {
	const little = 2
	return mine < each && (all < most/2 || all < most && mine < little)
}
