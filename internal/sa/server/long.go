package server

import (
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/protocol/rmpp"
)

// long holds the long answers of a server whose link cuts and joins messages
// itself. Such a link holds a message until it has come through and does not
// tell when that was, so what it may hold is guessed: of a port that
// acknowledges, what it got in the last longTime; of one that did not, what it
// got in the last TotalTime.
type long struct {
	waiting []longMessage            // to leave
	held    []heldMessage            // by the link, as far as is known
	bytes   int                      // of both
	each    map[ib.LID]inFlight      // by the LID that stands for all of a port's
	silent  map[ib.LID]time.Duration // that did not acknowledge, and until when that counts
}

// inFlight is what is on its way to a port.
type inFlight struct{ messages, bytes int }

type longMessage struct {
	to mad.Address
	m  rmpp.Message
}

type heldMessage struct {
	to    ib.LID
	bytes int
	until time.Duration
}

const (
	// longTime is how long a message to a port that acknowledges is taken to be
	// on its way.
	longTime = time.Second
	// longEach bounds the bytes on their way to one port that has more than
	// one message on its way.
	longEach = 4 << 20
	// longSilent is the same for a port that did not acknowledge.
	longSilent = 64 << 10
	// longSilents bounds the ports of which that is remembered.
	longSilents = 65_536
	// longOverhead is what a message takes besides its bytes.
	longOverhead = 1 << 10
)

func newLong() long {
	return long{each: make(map[ib.LID]inFlight), silent: make(map[ib.LID]time.Duration)}
}

// send takes a message to a port, and reports whether there was room for it.
func (l *long) send(now time.Duration, limits *rmpp.Limits, port ib.LID, to mad.Address, m rmpp.Message) bool {
	size := len(m.Body) + longOverhead
	most, time := longEach, longTime
	if until, is := l.silent[port]; is && now < until {
		most, time = longSilent, limits.TotalTime
	}
	if !l.fits(limits, port, size, most) {
		l.forget(now)
		if !l.fits(limits, port, size, most) {
			return false
		}
	}
	l.waiting = append(l.waiting, longMessage{to, m})
	l.held = append(l.held, heldMessage{port, size, now + time})
	l.bytes += size
	each := l.each[port]
	l.each[port] = inFlight{each.messages + 1, each.bytes + size}
	return true
}

// fits reports whether there is room. The second half of it is for ports that
// have nothing on its way and want little.
func (l *long) fits(limits *rmpp.Limits, port ib.LID, size, most int) bool {
	each := l.each[port]
	switch {
	case l.bytes+size > limits.SendTotal:
		return false
	case each.messages == 0:
		return l.bytes+size <= limits.SendTotal/2 || size <= limits.SenderLittle+longOverhead
	}
	return l.bytes+size <= limits.SendTotal/2 && each.bytes+size <= most
}

// forget drops what has gone by now.
func (l *long) forget(now time.Duration) {
	l.held = slices.DeleteFunc(l.held, func(h heldMessage) bool {
		if now < h.until {
			return false
		}
		l.bytes -= h.bytes
		each := l.each[h.to]
		if l.each[h.to] = (inFlight{each.messages - 1, each.bytes - h.bytes}); each.messages == 1 {
			delete(l.each, h.to)
		}
		return true
	})
	for lid, until := range l.silent {
		if now >= until {
			delete(l.silent, lid)
		}
	}
}

// next is the next message to leave.
func (l *long) next() (to mad.Address, m rmpp.Message, ok bool) {
	if len(l.waiting) == 0 {
		return to, m, false
	}
	x := l.waiting[0]
	l.waiting[0] = longMessage{}
	if l.waiting = l.waiting[1:]; len(l.waiting) == 0 {
		l.waiting = nil
	}
	return x.to, x.m, true
}

// NextLong hands out the next long answer, where the link cuts them
// (Config.LongByLink).
func (s *Server) NextLong() (to mad.Address, m rmpp.Message, ok bool) { return s.long.next() }

// ReceiveLong takes a request that the link has joined.
func (s *Server) ReceiveLong(now time.Duration, m *rmpp.Message, from mad.Address) {
	if mad.Class(m.Head[1]) != mad.ClassSubnAdm || mad.Method(m.Head[mad.OffsetMethod]).IsResponse() || len(m.Body) > s.config.Limits.RMPP.ReceiveMax {
		s.counts.Malformed++
		return
	}
	s.request(now, from, &m.Head, m.Body)
}

// LostLong reports whether a long answer was not acknowledged.
func (s *Server) LostLong(now time.Duration, to mad.Address) {
	if len(s.long.silent) < longSilents {
		s.long.silent[s.senderOf(to)] = now + s.config.Limits.RMPP.TotalTime
	}
}
