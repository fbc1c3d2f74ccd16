package server

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/protocol/rmpp"
)

// requester is what is kept about a port that asks.
type requester struct {
	tokens   float64
	refilled time.Duration
	window   time.Duration // when the present one began
	asked    int           // requests since
	changed  int           // those of them that were to change something
	recent   [recentMax]recent
	next     int

	line     []arrival // what it waits for, from first on
	first    int
	busy     int // of line
	job      *job
	tellings []telling // of what it did
	unkept   int       // answers that wait to be kept
	listed   bool      // in lines.ring
}

// recentMax is how many such requests of a port are remembered, and
// recentTime for how long.
const (
	recentMax  = 8
	recentTime = 10 * time.Second
)

// Window is the time in which Limits.QueriesPerWindow counts.
const Window = 100 * time.Millisecond

// recent is a request for something of the server's choosing, and its answer:
// when the answer was lost, the request must not get another.
type recent struct {
	transaction uint64
	until       time.Duration
	head        [rmpp.HeadSize]byte
	data        [rmpp.SegmentSize]byte
	answer      *[mad.Size]byte
}

// requesterAt is what is kept about the port with a LID. All of those who are
// nobody count as one.
func (s *Server) requesterAt(now time.Duration, lid ib.LID) *requester {
	if s.view == nil {
		return &s.nobody
	}
	p := s.view.At(lid)
	if p == nil {
		return &s.nobody
	}
	return s.requester(now, p)
}

func (s *Server) requester(now time.Duration, p *Port) *requester {
	r := s.byPort[p.Index]
	if r == nil {
		r = s.askers[p.GUID]
		if r == nil {
			r = &requester{tokens: float64(s.config.Limits.QueriesBurst), refilled: now}
			s.askers[p.GUID] = r
		}
		s.byPort[p.Index] = r
	}
	return r
}

// take takes a token, and reports whether there was one and the port has asked
// no more than it may in the present window.
func (r *requester) take(now time.Duration, l *Limits, changes bool) bool {
	if now-r.window >= Window {
		r.window, r.asked, r.changed = now, 0, 0
	}
	if changes {
		r.changed++
	}
	if r.asked++; r.asked > l.QueriesPerWindow || changes && r.changed > l.ChangesPerWindow {
		return false
	}
	if gone := now - r.refilled; gone > 0 {
		r.tokens = min(r.tokens+gone.Seconds()*float64(l.QueriesPerSecond), float64(l.QueriesBurst))
		r.refilled = now
	}
	if r.tokens < 1 {
		return false
	}
	r.tokens--
	return true
}

// spend takes tokens for records that were looked at.
func (r *requester) spend(l *Limits, looked int) {
	r.tokens -= float64(looked / max(l.WorkPerQuery, 1))
}

// recall is the answer that a request had, when it is one that came before.
func (r *requester) recall(now time.Duration, head *[rmpp.HeadSize]byte, data []byte) *[mad.Size]byte {
	tid := binary.BigEndian.Uint64(head[mad.OffsetTransactionID:])
	for i := range r.recent {
		if x := &r.recent[i]; x.answer != nil && x.transaction == tid && now < x.until && x.head == *head && bytes.Equal(x.data[:], data) {
			return x.answer
		}
	}
	return nil
}

func (r *requester) remember(now time.Duration, head *[rmpp.HeadSize]byte, data []byte, answer *[mad.Size]byte) {
	copied := *answer
	x := &r.recent[r.next]
	*x = recent{transaction: binary.BigEndian.Uint64(head[mad.OffsetTransactionID:]), until: now + recentTime, head: *head, answer: &copied}
	copy(x.data[:], data)
	r.next = (r.next + 1) % recentMax
}
