package server

import (
	"encoding/binary"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
)

// A host asks to join its groups as soon as it has its new P_Key, or its port is active, and that is
// before the manager has read the change back. Refused then, Linux's IPoIB waits 2 s, then 4 and 8,
// before it asks again. So such a request waits, unanswered, until the change ends.
const (
	// holdTime is how long a join waits at most: less than the 3 s after which Linux gives up on it.
	holdTime = 2500 * time.Millisecond
	// holdEach and holdMax bound the joins of one LID and of all that wait. Others are refused at once.
	holdEach, holdMax = 32, 16_384
)

// heldJoins are the joins that wait.
type heldJoins struct {
	changing bool
	list     []heldJoin // the longest wait first
	each     map[ib.LID]int
	known    map[heldKey]bool
	until    time.Duration // of the one that is asked again, while it is
}

// heldKey tells a request from others: what a host sends again has the same.
type heldKey struct {
	from        ib.LID
	transaction uint64
}

type heldJoin struct {
	arrival
	until time.Duration
}

// SetChanging says whether the manager changes the subnet, or reads it: joins wait for the end of it
// that would be refused by what is known so far.
func (s *Server) SetChanging(now time.Duration, changing bool) {
	if s.held.changing == changing {
		return
	}
	s.held.changing = changing
	if !changing {
		s.retry(now)
	}
}

// hold has a request that would be refused wait, if it is a join that the change under way may make
// right, and reports whether it does.
func (s *Server) hold(q *request) bool {
	h := &s.held
	join := q.id == sa.AttrMCMemberRecord && q.method == mad.MethodSet && len(q.data) <= len(arrival{}.data)
	until := q.now + holdTime
	if h.until != 0 {
		until = h.until
	}
	if !join || !h.changing || q.now >= until {
		return false
	}
	key := heldKey{q.from.LID, binary.BigEndian.Uint64(q.head[mad.OffsetTransactionID:])}
	switch {
	case h.known[key]:
		s.counts.Dropped++ // sent again meanwhile
		return true
	case len(h.list) >= holdMax || h.each[key.from] >= holdEach:
		return false
	case h.each == nil:
		h.each, h.known = make(map[ib.LID]int), make(map[heldKey]bool)
	}
	h.each[key.from]++
	h.known[key] = true
	x := heldJoin{arrival: arrival{from: q.from, head: *q.head}, until: until}
	copy(x.data[:], q.data)
	h.list = append(h.list, x)
	return true
}

// retry asks again what waits: it is answered now, or waits on for the rest of its time.
func (s *Server) retry(now time.Duration) {
	h := &s.held
	list := h.list
	h.list = nil
	clear(h.each)
	clear(h.known)
	for i := range list {
		x := &list[i]
		h.until = x.until
		s.begin(now, s.requesterAt(now, x.from.LID), x.from, &x.head, x.data[:], false)
	}
	h.until = 0
}

// expireHeld answers what has waited too long.
func (s *Server) expireHeld(now time.Duration) {
	if at, some := s.held.deadline(); some && now >= at {
		s.retry(now)
	}
}

// deadline is when the first of them has waited too long.
func (h *heldJoins) deadline() (time.Duration, bool) {
	if len(h.list) == 0 {
		return 0, false
	}
	return h.list[0].until, true
}
