package rmpp

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// pose is a peer of a sender: it can have as many as it likes.
type pose struct {
	lid ib.LID
	qp  int
}

func byLID(p pose) ib.LID { return p.lid }

// firstOf is the first segment of a message of transaction tid.
func firstOf(tid uint64) *[mad.Size]byte {
	m := packetOf(0x14, mad.RMPPData, first, 0, 1, 0)
	binary.BigEndian.PutUint64(m[offTransaction:], tid)
	return m
}

// TestUnfinishedFirstSegments: whatever number of first segments hosts send and
// never finish, as many peers as they pose, another's long message is joined.
func TestUnfinishedFirstSegments(t *testing.T) {
	l := DefaultLimits()
	l.Receivers = 40
	e := NewBy(l, byLID)
	for lid := ib.LID(1); lid <= 15; lid++ { // fifteen senders that never finish
		for n := range 500 {
			e.Receive(0, pose{lid, n}, firstOf(uint64(n)))
		}
		want := min(2*int(lid), 20) // two of each until half is taken, then none: they have some
		want += max(0, int(lid)-10)
		if got := len(e.receivers); got != want {
			t.Errorf("%d senders hold %d transfers, want %d", lid, got, want)
		}
	}
	victim := pose{99, 1}
	for n := range uint32(4) {
		m := packetOf(0x14, mad.RMPPData, map[uint32]mad.RMPPFlags{0: first, 3: last}[n], 0, n+1, map[uint32]uint32{3: 30}[n])
		binary.BigEndian.PutUint64(m[offTransaction:], 7)
		if got := e.Receive(0, victim, m); (got != nil) != (n == 3) {
			t.Fatalf("after segment %d the message is there: %v", n+1, got != nil)
		}
	}
	e.Expire(l.TotalTime)
	if len(e.receivers) != 0 || e.joining != 0 {
		t.Errorf("%d transfers and %d octets after their time", len(e.receivers), e.joining)
	}
	drain(e)
	if len(e.users) != 0 {
		t.Errorf("still counted: %v", e.users)
	}
}

// drain takes what is to leave.
func drain(e *Endpoint[pose]) (n int) {
	var m [mad.Size]byte
	for _, ok := e.Next(0, &m); ok; _, ok = e.Next(0, &m) {
		n++
	}
	return n
}

// TestRepliesToOne: acknowledgements and refusals that one sender asks for leave
// room for those of others.
func TestRepliesToOne(t *testing.T) {
	e := NewBy(DefaultLimits(), byLID)
	for n := range 5000 {
		e.Receive(0, pose{1, n}, packetOf(0x14, mad.RMPPData, first, 0, 0, 0)) // ABORT
	}
	e.Receive(0, pose{2, 1}, packetOf(0x14, mad.RMPPData, first, 0, 1, 0))
	if got := drain(e); got != repliesEach+1 {
		t.Errorf("%d replies, want %d and one", got, repliesEach)
	}
}

// TestUnacknowledgedSends: answers that a few senders never acknowledge leave
// room for those of others, and one sender is sent so much at a time.
func TestUnacknowledgedSends(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	l := DefaultLimits()
	l.SendTotal, l.SenderSendTotal, l.SenderLittle = 1<<20, 100<<10, 10<<10
	e := NewBy(l, byLID)
	send := func(now time.Duration, lid ib.LID, qp, octets int) error {
		return e.Send(now, pose{lid, qp}, message(byte(qp), octets, r))
	}
	for lid := ib.LID(1); lid <= 30; lid++ {
		n := 0
		for qp := range 50 {
			if send(0, lid, qp, 32<<10) == nil {
				n++
			}
		}
		if n > 3 {
			t.Fatalf("LID %d is sent %d messages of 32 KiB, want 3 below 100 KiB", lid, n)
		}
	}
	if e.octets > l.SendTotal/2 {
		t.Errorf("%d octets under way, want half of %d at most", e.octets, l.SendTotal)
	}
	if err := send(0, 99, 1, 10<<10); err != nil {
		t.Errorf("another's message: %v", err)
	}
	if err := send(0, 99, 2, 10<<10); !errors.Is(err, ErrTooMany) {
		t.Errorf("its second: %v, want ErrTooMany while there is so little room", err)
	}
	for now := time.Duration(0); e.Busy() > 0 && now < time.Hour; now += time.Second {
		drain(e)
		e.Expire(now)
	}
	drain(e)
	if e.octets != 0 || len(e.users) != 0 {
		t.Errorf("%d octets and %v left", e.octets, e.users)
	}
}

// TestSegmentsOfOne: the octets of one sender's unfinished messages are bounded.
func TestSegmentsOfOne(t *testing.T) {
	l := DefaultLimits()
	l.SenderReceives, l.ReceiveMax = 100, 1<<20
	e := NewBy(l, byLID)
	for n := range 100 {
		for segment := range uint32(60) {
			m := packetOf(0x14, mad.RMPPData, map[uint32]mad.RMPPFlags{0: first}[segment], 0, segment+1, 0)
			binary.BigEndian.PutUint64(m[offTransaction:], uint64(n))
			e.Receive(0, pose{1, n}, m)
		}
		if e.joining > l.SenderReceiveTotal {
			t.Fatalf("%d octets of one sender, want %d at most", e.joining, l.SenderReceiveTotal)
		}
	}
}
