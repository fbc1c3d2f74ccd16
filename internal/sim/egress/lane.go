package egress

import (
	"math"
	"time"

	"github.com/ibwarden/ibwarden/ib"
)

// forever is a limit that is never reached and a time that never comes.
const forever time.Duration = math.MaxInt64

// Sizes of the ring of waiting packets, in packets.
const (
	ringStart = 4
	ringKept  = 256 // a larger ring is given back when its virtual lane runs empty
)

// waiting is a packet in a virtual lane.
type waiting struct {
	firstBit time.Duration
	handle   Handle
	blocks   uint16
}

// virtual lane is one VL's queue, first in first out, in a ring whose size is a power
// of two.
type lane struct {
	ring        []waiting
	first, n    int32
	owed        int32 // blocks sent and not credited
	vl          ib.VL
	drops       uint8         // head-of-queue drops in a row
	since       time.Duration // when the first packet reached the head
	oldest      time.Duration // no packet's first bit is older; packets between may be gone
	stalledTill time.Duration // 0 when never stalled
}

// at is the packet at place i from the head.
func (l *lane) at(i int32) *waiting { return &l.ring[int(l.first+i)&(len(l.ring)-1)] }

func (l *lane) push(now time.Duration, w waiting) {
	if int(l.n) == len(l.ring) {
		ring := make([]waiting, max(ringStart, 2*len(l.ring)))
		for i := range l.n {
			ring[i] = *l.at(i)
		}
		l.ring, l.first = ring, 0
	}
	if l.n == 0 {
		l.since, l.oldest = now, w.firstBit
	}
	l.oldest = min(l.oldest, w.firstBit)
	l.n++
	*l.at(l.n - 1) = w
}

// pop takes the head away; the next packet is at the head from now on.
func (l *lane) pop(now time.Duration) waiting {
	w := *l.at(0)
	l.first = (l.first + 1) & int32(len(l.ring)-1)
	l.n--
	l.since = now
	l.trim()
	return w
}

func (l *lane) trim() {
	if l.n == 0 && len(l.ring) > ringKept {
		l.ring, l.first = nil, 0
	}
}

// dropAll empties the virtual lane, head first.
func (l *lane) dropAll(reason Reason, drop func(Handle, Reason)) {
	for l.n > 0 {
		drop(l.pop(l.since).handle, reason)
	}
}

// dropAged drops every packet that is as old as limit at now, head first, and
// finds the oldest of the others.
func (l *lane) dropAged(now, limit time.Duration, drop func(Handle, Reason)) {
	var kept int32
	l.oldest = forever
	for i := range l.n {
		w := *l.at(i)
		if until(w.firstBit, limit) <= now {
			if i == 0 {
				l.since = max(l.since, now) // it may have come too old
			}
			drop(w.handle, TooOld)
			continue
		}
		l.oldest = min(l.oldest, w.firstBit)
		*l.at(kept) = w
		kept++
	}
	l.n = kept
	l.trim()
}

// until is when limit has passed since start.
func until(start, limit time.Duration) time.Duration {
	if limit == forever {
		return forever
	}
	return start + limit
}
