package rmpp

import (
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
)

// sender cuts one message.
type sender struct {
	head     [HeadSize]byte
	body     []byte
	count    uint32 // segments
	next     uint32 // segment to send next
	top      uint32 // highest segment that was sent
	acked    uint32 // highest segment acknowledged
	window   uint32 // highest segment that may be sent
	tries    int    // left
	deadline time.Duration
	end      time.Duration // of the whole transfer
}

func newSender(now time.Duration, m *Message, l *Limits) *sender {
	return &sender{
		head: m.Head, body: m.Body, count: uint32(segments(len(m.Body))),
		next: 1, window: 1, tries: l.Tries,
		deadline: now + l.ResponseTime, end: now + l.TotalTime,
	}
}

// ready reports whether a segment may leave.
func (s *sender) ready() bool { return s.next <= min(s.window, s.count) }

// segment fills m with the segment that is due.
func (s *sender) segment(now time.Duration, m *[mad.Size]byte, l *Limits) {
	n := s.next
	s.next++
	s.top = max(s.top, n)
	*m = [mad.Size]byte{}
	copy(m[:], s.head[:])
	from := int(n-1) * SegmentSize
	rest := copy(m[HeadSize:], s.body[min(from, len(s.body)):])
	flags, length := mad.RMPPActive, uint32(0)
	if n == 1 {
		flags |= mad.RMPPFirst
		length = uint32(int(s.count)*classHead + len(s.body))
	}
	if n == s.count {
		flags |= mad.RMPPLast
		length = uint32(classHead + rest)
	}
	putRMPP(m, mad.RMPPData, flags, mad.RMPPOK, n, length)
	s.deadline = now + l.ResponseTime
}

// ack takes an ACK and reports whether the message is through, or the status to
// abort with.
func (s *sender) ack(now time.Duration, h *mad.RMPP, l *Limits) (done bool, abort mad.RMPPStatus) {
	segment, window := h.Data1, h.Data2
	switch {
	case h.Status != mad.RMPPOK:
		return false, mad.RMPPIllegalStatus
	case window < segment:
		return false, mad.RMPPNewWindowLastTooSmall
	case segment > s.top:
		return false, mad.RMPPSegmentNumberTooBig // never sent
	}
	if segment < s.acked || window < s.window {
		return false, mad.RMPPOK // an old one
	}
	if segment > s.acked {
		s.acked, s.tries = segment, l.Tries
		s.deadline = now + l.ResponseTime
	}
	s.window = window
	s.next = max(s.next, segment+1)
	return s.acked == s.count, mad.RMPPOK
}

// expire goes back to the first segment that was not acknowledged, or gives up.
func (s *sender) expire(now time.Duration, l *Limits) (abort mad.RMPPStatus) {
	switch {
	case now >= s.end:
		return mad.RMPPTotalTimeTooLong
	case now < s.deadline || s.ready():
		return mad.RMPPOK
	}
	if s.tries--; s.tries <= 0 || s.isMute(l) {
		return mad.RMPPTooManyRetries
	}
	s.next = s.acked + 1
	s.deadline = now + l.ResponseTime
	return mad.RMPPOK
}

// isMute reports whether the peer is one that acknowledges nothing.
func (s *sender) isMute(l *Limits) bool { return l.Once && s.acked == 0 }

// due is when expire has something to do.
func (s *sender) due() time.Duration {
	if s.ready() {
		return s.end
	}
	return min(s.deadline, s.end)
}
