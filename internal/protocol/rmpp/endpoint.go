package rmpp

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// Endpoint has the transfers of one queue pair with peers whose addresses are
// of type A.
type Endpoint[A comparable] struct {
	limits    Limits
	senders   map[key[A]]*entry[A]
	receivers map[key[A]]*receiver
	ended     map[key[A]]remembered
	sends     map[A]int // transfers under way by peer
	receives  map[A]int
	sender    func(A) ib.LID // nil: who a peer is cannot be told
	users     map[ib.LID]usage
	bytes     int      // of all messages being sent
	joining   int      // bytes of all that are being joined
	turns     []ib.LID // of those with something to be sent, in turn
	lined     map[ib.LID]*line[A]
	replies   int         // that wait to leave
	endings   []Ending[A] // not yet told
	order     []key[A]    // of ended, oldest first
	counts    Counts
	serial    uint64        // of transfers, in the order of their beginning
	bound     time.Duration // nothing is due before it
}

// Counts is what an endpoint has done.
type Counts struct {
	// Sent and Received count whole messages, Aborted transfers that ended
	// before their time.
	Sent, Received, Aborted uint64
	// Dropped counts packets that belonged to nothing, or for which there was
	// no room.
	Dropped uint64
}

// key tells transfers apart. Method is that of the DATA packets.
type key[A comparable] struct {
	peer        A
	transaction uint64
	class       mad.Class
	method      mad.Method
}

type entry[A comparable] struct {
	*sender
	key     key[A]
	serial  uint64
	queued  bool
	over    bool
	user    ib.LID
	counted bool // for user
}

// remembered is a message that was received whole.
type remembered struct {
	last  uint32
	until time.Duration
}

type packet[A comparable] struct {
	to A
	m  [mad.Size]byte
}

// line is what is to leave for one sender: replies first.
type line[A comparable] struct {
	replies []packet[A]
	entries []*entry[A]
}

// Ending is the end of a message that was sent; Err is nil when it came
// through, else an *Abort.
type Ending[A comparable] struct {
	Peer        A
	Transaction uint64
	Err         error
}

// repliesMax bounds the ACK, STOP and ABORT that wait to leave; a peer that asks faster
// than they leave asks again.
const repliesMax = 65_536

// repliesEach bounds those to one sender: more than a whole window can ask for.
const repliesEach = 64

// endingsMax bounds the endings that nobody took.
const endingsMax = 4096

// New returns an endpoint without transfers.
func New[A comparable](l Limits) *Endpoint[A] {
	return &Endpoint[A]{
		limits:    l,
		senders:   make(map[key[A]]*entry[A]),
		receivers: make(map[key[A]]*receiver),
		ended:     make(map[key[A]]remembered),
		sends:     make(map[A]int),
		receives:  make(map[A]int),
		users:     make(map[ib.LID]usage),
		lined:     make(map[ib.LID]*line[A]),
		bound:     never,
	}
}

// Counts is what the endpoint has done.
func (e *Endpoint[A]) Counts() Counts { return e.counts }

// Busy is the number of transfers under way.
func (e *Endpoint[A]) Busy() int { return len(e.senders) + len(e.receivers) }

// never is a time that does not come.
const never = time.Duration(math.MaxInt64)

func keyOf[A comparable](peer A, head []byte, flip bool) key[A] {
	method := mad.Method(head[mad.OffsetMethod])
	if flip {
		method ^= mad.MethodResponse
	}
	return key[A]{peer, binary.BigEndian.Uint64(head[mad.OffsetTransactionID:]), mad.Class(head[1]), method}
}

// Sending reports whether a message with this head is on its way to peer.
func (e *Endpoint[A]) Sending(peer A, head []byte) bool {
	return e.senders[keyOf(peer, head, false)] != nil
}

// Send begins to send a message. The body must not change until it has ended.
// The error is ErrTooLong, ErrTooMany or ErrDuplicate.
func (e *Endpoint[A]) Send(now time.Duration, peer A, m *Message) error {
	k := keyOf(peer, m.Head[:], false)
	l := &e.limits
	switch {
	case e.senders[k] != nil:
		return ErrDuplicate
	case len(m.Body) > l.SendMax:
		return ErrTooLong
	case !e.maySend(peer, len(m.Body)):
		return ErrTooMany
	}
	e.serial++
	s := &entry[A]{sender: newSender(now, m, l), key: k, serial: e.serial}
	if s.user, s.counted = e.userOf(peer); s.counted {
		e.change(s.user, usage{sends: 1, sending: len(m.Body)})
	}
	e.bound = min(e.bound, s.due())
	e.senders[k] = s
	e.sends[peer]++
	e.bytes += len(m.Body)
	e.enqueue(s)
	return nil
}

func (e *Endpoint[A]) enqueue(s *entry[A]) {
	if s.queued || !s.ready() {
		return
	}
	s.queued = true
	l := e.lineOf(s.user)
	l.entries = append(l.entries, s)
}

// lineOf is the line of a sender, who gets turns from now on.
func (e *Endpoint[A]) lineOf(user ib.LID) *line[A] {
	l := e.lined[user]
	if l == nil {
		l = new(line[A])
		e.lined[user] = l
		e.turns = append(e.turns, user)
	}
	return l
}

// Next fills m with the next packet to send: one for each sender in turn, replies
// before segments, and of its transfers in turn.
func (e *Endpoint[A]) Next(now time.Duration, m *[mad.Size]byte) (to A, ok bool) {
	for len(e.turns) > 0 {
		user := e.turns[0]
		e.turns = e.turns[1:]
		l := e.lined[user]
		if len(l.replies) > 0 {
			*m, to, ok = l.replies[0].m, l.replies[0].to, true
			l.replies = l.replies[1:]
			e.replies--
		} else {
			s := l.entries[0]
			l.entries[0] = nil
			l.entries = l.entries[1:]
			s.queued = false
			if ok = !s.over && s.ready(); ok {
				s.segment(now, m, &e.limits)
				to = s.key.peer
				e.enqueue(s)
				e.bound = min(e.bound, s.due())
			}
		}
		if len(l.replies)+len(l.entries) > 0 {
			e.turns = append(e.turns, user)
		} else {
			delete(e.lined, user)
		}
		if ok {
			return to, true
		}
	}
	return to, false
}

// Receive takes an RMPP packet (IsActive). When it completes a message, that is
// returned; its header may still be anything of the class.
func (e *Endpoint[A]) Receive(now time.Duration, peer A, m *[mad.Size]byte) *Message {
	var h mad.RMPP
	if h.UnmarshalBinary(m[offRMPP:]) != nil {
		return nil // not with so many bytes
	}
	own, other := keyOf(peer, m[:], false), keyOf(peer, m[:], true)
	switch h.Type {
	case mad.RMPPStop, mad.RMPPAbort:
		e.stopped(own, other, &h)
		return nil
	}
	if h.Version != mad.RMPPVersion {
		e.refuse(own, other, peer, m, mad.RMPPUnsupportedVersion)
		return nil
	}
	switch h.Type {
	case mad.RMPPAck:
		e.acknowledged(now, other, m, &h)
		return nil
	case mad.RMPPData:
		return e.segment(now, own, m, &h)
	}
	e.refuse(own, other, peer, m, mad.RMPPBadType)
	return nil
}

// refuse ends whatever the packet can belong to.
func (e *Endpoint[A]) refuse(own, other key[A], peer A, m *[mad.Size]byte, status mad.RMPPStatus) {
	if e.receivers[own] != nil {
		e.forget(own)
		e.counts.Aborted++
	}
	if s := e.senders[other]; s != nil {
		e.finish(s, &Abort{Status: status})
	}
	e.reply(peer, (*[HeadSize]byte)(m[:]), mad.RMPPAbort, status, 0, 0)
}

// stopped takes a STOP or ABORT of the other side.
func (e *Endpoint[A]) stopped(own, other key[A], h *mad.RMPP) {
	if e.receivers[own] != nil {
		e.forget(own)
		e.counts.Aborted++
		return
	}
	if s := e.senders[other]; s != nil {
		e.finish(s, &Abort{Status: h.Status, Remote: true})
		return
	}
	e.counts.Dropped++
}

func (e *Endpoint[A]) acknowledged(now time.Duration, k key[A], m *[mad.Size]byte, h *mad.RMPP) {
	s := e.senders[k]
	if s == nil {
		e.counts.Dropped++
		return
	}
	done, abort := s.ack(now, h, &e.limits)
	switch {
	case abort != mad.RMPPOK:
		e.reply(k.peer, (*[HeadSize]byte)(m[:]), mad.RMPPAbort, abort, 0, 0)
		e.finish(s, &Abort{Status: abort})
	case done:
		e.finish(s, nil)
	default:
		e.enqueue(s)
		e.bound = min(e.bound, s.due())
	}
}

func (e *Endpoint[A]) segment(now time.Duration, k key[A], m *[mad.Size]byte, h *mad.RMPP) *Message {
	head := (*[HeadSize]byte)(m[:])
	if old, ok := e.ended[k]; ok && now < old.until {
		e.reply(k.peer, head, mad.RMPPAck, mad.RMPPOK, old.last, old.last+1)
		return nil
	}
	r := e.receivers[k]
	if r == nil {
		fresh := newReceiver(now, m, &e.limits)
		if h.Data1 != 1 && fresh.judge(h) == mad.RMPPOK {
			e.counts.Dropped++ // its beginning was lost, and will be sent again
			return nil
		}
		if !e.mayReceive(k.peer) {
			e.reply(k.peer, head, mad.RMPPStop, mad.RMPPResourcesExhausted, 0, 0)
			e.counts.Dropped++
			return nil
		}
		r = newReceiver(now, m, &e.limits)
		e.serial++
		r.serial = e.serial
		e.receivers[k] = r
		e.bound = min(e.bound, r.end)
		e.receives[k.peer]++
		if r.user, r.counted = e.userOf(k.peer); r.counted {
			e.change(r.user, usage{receives: 1})
		}
	}
	before := len(r.body)
	o := r.data(m, h, &e.limits, e.mayGrow)
	e.grown(r, before)
	switch {
	case o.abort == mad.RMPPResourcesExhausted:
		e.forget(k)
		e.counts.Aborted++
		e.reply(k.peer, head, mad.RMPPStop, o.abort, 0, 0)
	case o.abort != mad.RMPPOK:
		e.forget(k)
		e.counts.Aborted++
		e.reply(k.peer, head, mad.RMPPAbort, o.abort, 0, 0)
	case o.ack:
		e.reply(k.peer, head, mad.RMPPAck, mad.RMPPOK, r.inOrder, r.window)
	}
	if !o.done {
		return nil
	}
	e.forget(k)
	e.remember(now, k, r.last)
	e.counts.Received++
	return r.message()
}

func (e *Endpoint[A]) remember(now time.Duration, k key[A], last uint32) {
	for len(e.order) > 0 && (len(e.order) >= e.limits.Remembered || now >= e.ended[e.order[0]].until) {
		delete(e.ended, e.order[0])
		e.order = e.order[1:]
	}
	// A transaction that is remembered still cannot have ended again before:
	// its segments were answered from memory. One of which the time has passed
	// takes its old place.
	if _, known := e.ended[k]; !known {
		e.order = append(e.order, k)
	}
	e.ended[k] = remembered{last, now + e.limits.RememberTime}
}

// forget ends a reception.
func (e *Endpoint[A]) forget(k key[A]) {
	r := e.receivers[k]
	e.joining -= len(r.body)
	if r.counted {
		e.change(r.user, usage{receives: -1, receiving: -len(r.body)})
	}
	delete(e.receivers, k)
	if e.receives[k.peer]--; e.receives[k.peer] == 0 {
		delete(e.receives, k.peer)
	}
}

// finish ends a sender.
func (e *Endpoint[A]) finish(s *entry[A], err error) {
	delete(e.senders, s.key)
	if e.sends[s.key.peer]--; e.sends[s.key.peer] == 0 {
		delete(e.sends, s.key.peer)
	}
	e.bytes -= len(s.body)
	if s.counted {
		e.change(s.user, usage{sends: -1, sending: -len(s.body)})
	}
	s.over, s.body = true, nil
	if err == nil {
		e.counts.Sent++
	} else {
		e.counts.Aborted++
	}
	if len(e.endings) < endingsMax {
		e.endings = append(e.endings, Ending[A]{s.key.peer, s.key.transaction, err})
	}
}

// Ended takes the endings since the last call.
func (e *Endpoint[A]) Ended() []Ending[A] {
	out := e.endings
	e.endings = nil
	return out
}

func (e *Endpoint[A]) reply(peer A, head *[HeadSize]byte, kind mad.RMPPType, status mad.RMPPStatus, data1, data2 uint32) {
	user, known := e.userOf(peer)
	if l := e.lined[user]; e.replies >= repliesMax || known && l != nil && len(l.replies) >= repliesEach {
		e.counts.Dropped++
		return
	}
	p := packet[A]{to: peer}
	reply(&p.m, head, kind, status, data1, data2)
	l := e.lineOf(user)
	l.replies = append(l.replies, p)
	e.replies++
}
