package egress

import (
	"math/bits"
	"time"

	"github.com/ibwarden/ibwarden/ib"
)

// Handle is a packet as its owner knows it.
type Handle int32

// Reason tells why a packet does not leave.
type Reason uint8

// The reasons.
const (
	Accepted   Reason = iota // it waits to leave
	HeadTooOld               // at the head of its virtual lane for the head-of-queue limit
	TooOld                   // as old as the switch lifetime limit
	Stalled                  // its virtual lane is stalled
	LaneClosed               // its virtual lane is not in operation
	LaneFull                 // WaitingLimit packets wait in its virtual lane
)

// String names the reason.
func (r Reason) String() string {
	switch r {
	case Accepted:
		return "accepted"
	case HeadTooOld:
		return "head-of-queue limit"
	case TooOld:
		return "switch lifetime limit"
	case Stalled:
		return "VL stalled"
	case LaneClosed:
		return "VL not in operation"
	case LaneFull:
		return "VL full"
	}
	return "unknown reason"
}

// Port is the sending side of one port. The zero Port has no data virtual lane in
// operation and no lifetimes; it sends VL15. Lanes cost memory from their first
// packet until Reset.
type Port struct {
	arbiter  arbiter
	lanes    []lane    // those that were used, in order of first use
	place    [16]uint8 // of each VL's virtual lane in virtual lanes, from 1; 0: none
	waiting  uint16    // bit v: packets wait in VLv
	open     uint16    // bit v: data virtual lane v is in operation
	stall    uint8
	length   int32
	head     time.Duration // limits; 0 in the zero Port stands for for ever
	age      time.Duration
	announce [DataLanes]uint16
}

// management is VL15's bit.
const management uint16 = 1 << ib.VLManagement

// Configure sets the port's tables and times, at any time. Packets keep
// waiting, credits that are owed stay owed and stalled virtual lanes stay stalled; the
// tables begin with their first entry. What waits in a virtual lane that is no longer
// in operation is due at once, for Expire. A setting out of its range is an
// error and changes nothing.
func (p *Port) Configure(s *Settings) error {
	if err := s.check(); err != nil {
		return err
	}
	p.arbiter.use(s)
	p.open = 1<<s.DataVLs - 1
	p.stall = s.VLStallCount
	p.head, p.age = s.headLimit(), s.ageLimit()
	p.announce = s.Buffer
	return nil
}

// Enqueue puts a packet at the end of a virtual lane: its size in blocks of 64 bytes,
// at least 1 (0 counts as 1), and when its first bit entered the switch. If it
// is not accepted the reason is Stalled, LaneClosed or LaneFull, and the handle
// stays with the caller.
func (p *Port) Enqueue(now time.Duration, h Handle, vl ib.VL, blocks uint16, firstBit time.Duration) (accepted bool, reason Reason) {
	if vl > ib.VLManagement || (p.open|management)>>vl&1 == 0 {
		return false, LaneClosed
	}
	l := p.lane(vl)
	if l == nil {
		p.lanes = append(p.lanes, lane{vl: vl})
		p.place[vl] = uint8(len(p.lanes))
		l = &p.lanes[len(p.lanes)-1]
	}
	switch {
	case now < l.stalledTill:
		return false, Stalled
	case l.n == WaitingLimit:
		return false, LaneFull
	}
	l.push(now, waiting{firstBit: firstBit, handle: h, blocks: max(1, blocks)})
	p.waiting |= 1 << vl
	p.length++
	return true, Accepted
}

// Pass is Enqueue and Next in one for a packet that may leave at once because
// nothing waits: the wire must be idle. If it may not, Pass reports false and the
// packet has to be enqueued.
func (p *Port) Pass(now time.Duration, vl ib.VL, blocks uint16, firstBit time.Duration) bool {
	l := p.lane(vl)
	_, age := p.limits()
	if l == nil || p.length != 0 || (p.open|management)>>vl&1 == 0 || now < l.stalledTill || until(firstBit, age) <= now {
		return false
	}
	blocks = max(1, blocks)
	if vl != ib.VLManagement {
		if int32(blocks) > p.free(l) {
			return false
		}
		c, ok := p.arbiter.pick(1 << vl)
		if !ok {
			return false
		}
		p.arbiter.serve(c, blocks)
		l.owed += int32(blocks)
	}
	l.drops = 0
	return true
}

// Next takes out the packet that begins to leave now: it is to be called when
// the wire is idle. Its blocks are owed by the other end until Credit returns
// them. There is none if nothing waits or no virtual lane in turn has the credits.
func (p *Port) Next(now time.Duration) (h Handle, vl ib.VL, ok bool) {
	ready := p.ready(now)
	if ready&management != 0 {
		l := p.lane(ib.VLManagement)
		return p.leave(now, l).handle, l.vl, true
	}
	c, ok := p.arbiter.pick(ready)
	if !ok {
		return 0, 0, false
	}
	l := p.lane(c.vl)
	w := p.leave(now, l)
	p.arbiter.serve(c, w.blocks)
	l.owed += int32(w.blocks)
	return w.handle, c.vl, true
}

// leave takes the head of a virtual lane out to be sent.
func (p *Port) leave(now time.Duration, l *lane) waiting {
	w := l.pop(now)
	l.drops = 0
	p.length--
	p.note(l)
	return w
}

// ready tells which virtual lanes have a packet that may leave now; the arbiter has no
// entry for virtual lanes that are not in operation.
func (p *Port) ready(now time.Duration) uint16 {
	var ready uint16
	head, age := p.limits()
	for rest := p.waiting; rest != 0; rest &= rest - 1 {
		vl := ib.VL(bits.TrailingZeros16(rest))
		l := p.lane(vl)
		w := l.at(0)
		if until(l.since, head) <= now || until(w.firstBit, age) <= now {
			continue
		}
		if vl == ib.VLManagement || int32(w.blocks) <= p.free(l) {
			ready |= 1 << vl
		}
	}
	return ready
}

// Credit returns blocks to a virtual lane: the other end has passed them on. It reports
// false if that is more than is owed, which means that the two ends disagree;
// then nothing is owed any more. VL15 has no credits and owes nothing.
func (p *Port) Credit(vl ib.VL, blocks uint16) bool {
	if vl >= ib.VLManagement {
		return vl == ib.VLManagement
	}
	l := p.lane(vl)
	if l == nil {
		return blocks == 0
	}
	l.owed -= int32(blocks)
	if l.owed < 0 {
		l.owed = 0
		return false
	}
	return true
}

// Deadline is when Expire has to be called next; ok is false if nothing that
// waits ever grows too old. No packet is due before. With packets that did not
// arrive in the order of their first bits it may come early, once, with nothing
// to drop.
func (p *Port) Deadline() (at time.Duration, ok bool) {
	at = forever
	for rest := p.waiting; rest != 0; rest &= rest - 1 {
		at = min(at, p.due(p.lane(ib.VL(bits.TrailingZeros16(rest)))))
	}
	return at, at != forever
}

// due is when something in a virtual lane with packets may have to go.
func (p *Port) due(l *lane) time.Duration {
	if (p.open|management)>>l.vl&1 == 0 {
		return 0
	}
	head, age := p.limits()
	return min(until(l.since, head), until(l.oldest, age))
}

// Expire drops every packet whose time is up at now, virtual lane by virtual lane from VL0, in
// the order in which their times came. The reason is HeadTooOld, TooOld,
// Stalled or LaneClosed. drop must not call the Port.
func (p *Port) Expire(now time.Duration, drop func(Handle, Reason)) {
	for rest := p.waiting; rest != 0; rest &= rest - 1 {
		l := p.lane(ib.VL(bits.TrailingZeros16(rest)))
		before := l.n
		for l.n > 0 && p.due(l) <= now {
			p.expire(l, drop)
		}
		p.length -= before - l.n
		p.note(l)
	}
}

// expire does what is due first in a virtual lane.
func (p *Port) expire(l *lane, drop func(Handle, Reason)) {
	if (p.open|management)>>l.vl&1 == 0 {
		l.dropAll(LaneClosed, drop)
		return
	}
	headLimit, ageLimit := p.limits()
	head, age := until(l.since, headLimit), until(l.oldest, ageLimit)
	if age <= head {
		l.dropAged(age, ageLimit, drop)
		return
	}
	drop(l.pop(head).handle, HeadTooOld)
	if p.stall == 0 {
		return
	}
	if l.drops++; l.drops >= p.stall {
		l.drops = 0
		l.stalledTill = head + StallLimits*headLimit
		l.dropAll(Stalled, drop)
	}
}

// Reset is for a link that went down: every packet comes out, virtual lane by virtual lane from
// VL0 and first in first out, nothing is owed, no virtual lane is stalled, and the
// tables begin again. The settings stay. drop must not call the Port.
func (p *Port) Reset(drop func(Handle)) {
	for rest := p.waiting; rest != 0; rest &= rest - 1 {
		p.lane(ib.VL(bits.TrailingZeros16(rest))).dropAll(Accepted, func(h Handle, _ Reason) { drop(h) })
	}
	p.lanes, p.place, p.waiting, p.length = nil, [16]uint8{}, 0, 0
	p.arbiter.restart()
}

// Len is how many packets wait.
func (p *Port) Len() int { return int(p.length) }

// WaitingLanes is the set of virtual lanes in which packets wait, bit v for VLv.
func (p *Port) WaitingLanes() uint16 { return p.waiting }

// Waiting is how many packets wait in one virtual lane.
func (p *Port) Waiting(vl ib.VL) int {
	if l := p.lane(vl); l != nil {
		return int(l.n)
	}
	return 0
}

// Free is how many blocks of the other end's buffer a data virtual lane may still fill,
// below 0 if the buffer was announced smaller than what is owed.
func (p *Port) Free(vl ib.VL) int {
	if vl >= ib.VLManagement {
		return 0
	}
	if l := p.lane(vl); l != nil {
		return int(p.free(l))
	}
	return int(p.announce[vl])
}

func (p *Port) free(l *lane) int32 { return int32(p.announce[l.vl]) - l.owed }

// virtual lane is a VL's virtual lane, nil if it was never used.
func (p *Port) lane(vl ib.VL) *lane {
	if vl > ib.VLManagement || p.place[vl] == 0 {
		return nil
	}
	return &p.lanes[p.place[vl]-1]
}

// note keeps the bit that reports whether packets wait in a virtual lane.
func (p *Port) note(l *lane) {
	if l.n == 0 {
		p.waiting &^= 1 << l.vl
	}
}

// limits are the head-of-queue limit and the age limit.
func (p *Port) limits() (head, age time.Duration) {
	if p.head == 0 {
		return forever, forever // never configured
	}
	return p.head, p.age
}
