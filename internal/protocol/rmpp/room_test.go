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
	binary.BigEndian.PutUint64(m[mad.OffsetTransactionID:], tid)
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
		binary.BigEndian.PutUint64(m[mad.OffsetTransactionID:], 7)
		if got := e.Receive(0, victim, m); (got != nil) != (n == 3) {
			t.Fatalf("after segment %d the message is there: %v", n+1, got != nil)
		}
	}
	e.Expire(l.TotalTime)
	if len(e.receivers) != 0 || e.joining != 0 {
		t.Errorf("%d transfers and %d bytes after their time", len(e.receivers), e.joining)
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
	send := func(now time.Duration, lid ib.LID, qp, bytes int) error {
		return e.Send(now, pose{lid, qp}, message(byte(qp), bytes, r))
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
	if e.bytes > l.SendTotal/2 {
		t.Errorf("%d bytes under way, want half of %d at most", e.bytes, l.SendTotal)
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
	if e.bytes != 0 || len(e.users) != 0 {
		t.Errorf("%d bytes and %v left", e.bytes, e.users)
	}
}

// TestSegmentsOfOne: the bytes of one sender's unfinished messages are bounded.
func TestSegmentsOfOne(t *testing.T) {
	l := DefaultLimits()
	l.SenderReceives, l.ReceiveMax = 100, 1<<20
	e := NewBy(l, byLID)
	for n := range 100 {
		for segment := range uint32(60) {
			m := packetOf(0x14, mad.RMPPData, map[uint32]mad.RMPPFlags{0: first}[segment], 0, segment+1, 0)
			binary.BigEndian.PutUint64(m[mad.OffsetTransactionID:], uint64(n))
			e.Receive(0, pose{1, n}, m)
		}
		if e.joining > l.SenderReceiveTotal {
			t.Fatalf("%d bytes of one sender, want %d at most", e.joining, l.SenderReceiveTotal)
		}
	}
}

// TestSegmentsByTurns: however many messages one sender is sent, another's one
// gets every second segment.
func TestSegmentsByTurns(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	e := NewBy(DefaultLimits(), byLID)
	send := func(p pose, tid uint64) {
		m := message(1, 20_000, r)
		binary.BigEndian.PutUint64(m.Head[mad.OffsetTransactionID:], tid)
		if err := e.Send(0, p, m); err != nil {
			t.Fatal(err)
		}
		ack := packetOf(0x14, mad.RMPPAck, 0, 0, 0, 1000) // all at once
		copy(ack[:offRMPP], m.Head[:offRMPP])
		ack[mad.OffsetMethod] ^= byte(mad.MethodResponse)
		e.Receive(0, p, ack)
	}
	for n := range 8 {
		send(pose{1, n}, uint64(n))
	}
	send(pose{2, 1}, 99)
	mine, all := 0, 0
	var m [mad.Size]byte
	for mine < 100 {
		to, ok := e.Next(0, &m)
		if !ok {
			t.Fatalf("no more after %d segments, %d of them for LID 2", all, mine)
		}
		if all++; to.lid == 2 {
			mine++
		}
	}
	if all > 201 {
		t.Errorf("100 segments to one of two senders took %d, want 200", all)
	}
}

// TestForeignTransactions: who knows another's transaction cannot end its
// transfers, acknowledge for it, or put segments into its message.
func TestForeignTransactions(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	e := NewBy(DefaultLimits(), byLID)
	victim, thief := pose{1, 1}, pose{2, 1}
	if err := e.Send(0, victim, message(9, 3000, r)); err != nil {
		t.Fatal(err)
	}
	first1 := packetOf(0x12, mad.RMPPData, first, 0, 1, 0)
	e.Receive(0, victim, first1)
	for _, kind := range []mad.RMPPType{mad.RMPPStop, mad.RMPPAbort, mad.RMPPAck, mad.RMPPData, 9} {
		for _, method := range []byte{0x12, 0x92, 0x14, 0x94} {
			for _, n := range []uint32{1, 2, 3} {
				for _, flags := range []mad.RMPPFlags{0, last} {
					e.Receive(0, thief, packetOf(method, kind, flags, mad.RMPPResourcesExhausted, n, 40))
				}
			}
		}
	}
	whole := e.Receive(0, victim, packetOf(0x12, mad.RMPPData, last, 0, 2, 30))
	if whole == nil || len(whole.Body) != SegmentSize+10 {
		t.Errorf("the message that was received is %+v", whole)
	}
	if n := len(e.senders); n != 1 {
		t.Errorf("%d messages are being sent, want the one", n)
	}
	for _, s := range e.senders {
		if s.acked != 0 {
			t.Errorf("another acknowledged segment %d", s.acked)
		}
	}
}
