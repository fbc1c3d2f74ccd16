package rmpp

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// receiver joins one message.
type receiver struct {
	serial    uint64
	head      [HeadSize]byte // of the first segment
	body      []byte
	got       []bool // by segment from 1, as far as the window goes
	inOrder   uint32 // highest segment received in order
	window    uint32 // highest segment that is taken: 1 until the first acknowledgement
	last      uint32 // number of the last segment, 0 until it is known
	tail      int    // bytes of the message in the last segment
	announced uint32 // segments by the first one's PayloadLength, 0 for unknown
	end       time.Duration
	maximum   uint32 // segments of the longest message that is taken
	user      ib.LID
	counted   bool // for user
}

func newReceiver(now time.Duration, m *[mad.Size]byte, l *Limits) *receiver {
	r := &receiver{
		window: 1, end: now + l.TotalTime,
		maximum: uint32(l.ReceiveMax / SegmentSize),
	}
	copy(r.head[:], m[:])
	return r
}

// outcome is the result of a segment.
type outcome struct {
	ack   bool           // an ACK is due
	done  bool           // the message is complete
	abort mad.RMPPStatus // the transfer ends; STOP for resources exhausted
}

// data takes a segment, if there is room for it.
func (r *receiver) data(m *[mad.Size]byte, h *mad.RMPP, l *Limits, room func(*receiver, uint32) bool) outcome {
	if abort := r.judge(h); abort != mad.RMPPOK {
		return outcome{abort: abort}
	}
	n := h.Data1
	switch {
	case n <= r.inOrder:
		return outcome{ack: true} // the acknowledgement was lost
	case n > r.maximum:
		return outcome{abort: mad.RMPPResourcesExhausted}
	case n > r.window:
		return outcome{}
	case !room(r, n):
		return outcome{abort: mad.RMPPResourcesExhausted}
	}
	r.store(n, m)
	before := r.inOrder
	for int(r.inOrder) < len(r.got) && r.got[r.inOrder] {
		r.inOrder++
	}
	switch {
	case r.last != 0 && r.inOrder == r.last:
		return outcome{ack: true, done: true}
	case r.inOrder > before && r.inOrder == r.window:
		r.window = r.inOrder + uint32(l.Window)
		return outcome{ack: true}
	case h.Flags.Has(mad.RMPPLast):
		return outcome{ack: true} // tells what is missing
	}
	return outcome{}
}

// judge holds the header of a segment against the rules and what is known of
// the message.
func (r *receiver) judge(h *mad.RMPP) mad.RMPPStatus {
	n, length := h.Data1, h.Data2
	isLast := h.Flags.Has(mad.RMPPLast)
	switch {
	case h.Status != mad.RMPPOK:
		return mad.RMPPIllegalStatus
	case n == 0 || h.Flags.Has(mad.RMPPFirst) != (n == 1):
		return mad.RMPPInconsistentFirst
	case isLast && (length < classHead || length > payloadMax):
		return mad.RMPPInconsistentLast
	case r.last != 0 && (n > r.last || isLast != (n == r.last)):
		return mad.RMPPInconsistentLast
	case isLast && n < r.highest():
		return mad.RMPPInconsistentLast
	}
	if n == 1 && !isLast && length != 0 {
		r.announced = (length-1)/payloadMax + 1 // any 32 bits may come
		switch {
		case r.announced > r.maximum:
			return mad.RMPPResourcesExhausted
		case r.last != 0 && r.announced != r.last:
			return mad.RMPPInconsistentLast
		}
	}
	if r.announced != 0 && (isLast && n != r.announced || n > r.announced) {
		return mad.RMPPInconsistentLast
	}
	if isLast {
		r.last, r.tail = n, int(length)-classHead
	}
	return mad.RMPPOK
}

// highest is the highest segment that was received.
func (r *receiver) highest() uint32 { return uint32(len(r.got)) }

func (r *receiver) store(n uint32, m *[mad.Size]byte) {
	for r.highest() < n {
		r.got = append(r.got, false)
		r.body = append(r.body, make([]byte, SegmentSize)...)
	}
	if !r.got[n-1] {
		r.got[n-1] = true
		copy(r.body[int(n-1)*SegmentSize:], m[HeadSize:])
	}
}

// message is the whole of a complete one.
func (r *receiver) message() *Message {
	return &Message{Head: r.head, Body: r.body[:int(r.last-1)*SegmentSize+r.tail]}
}
