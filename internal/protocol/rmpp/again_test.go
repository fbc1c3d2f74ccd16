package rmpp

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
)

// A message that was received whole is not received again when its segments
// come again, until it is forgotten; they are acknowledged, since the
// acknowledgement may have been lost.
func TestReceivedOnce(t *testing.T) {
	l := DefaultLimits()
	e := New[int](l)
	one := packetOf(0x14, mad.RMPPData, first|last, 0, 1, 60)
	if e.Receive(0, 3, one) == nil {
		t.Fatal("a message of one segment was not received")
	}
	for now := time.Duration(0); now < l.RememberTime; now += time.Second {
		if e.Receive(now, 3, one) != nil {
			t.Fatalf("after %v it was received again", now)
		}
		if h, _ := replyOf(t, e); h.Type != mad.RMPPAck || h.Data1 != 1 {
			t.Errorf("after %v it is answered with %+v, want an acknowledgement of 1", now, h)
		}
	}
	if e.Receive(0, 4, one) == nil {
		t.Error("another peer's message of the same transaction was not received")
	}
	if e.Receive(l.RememberTime, 3, one) == nil {
		t.Error("it is remembered too long")
	}
	if e.Busy() != 0 {
		t.Errorf("%d transfers under way", e.Busy())
	}
}

// However much comes without anything leaving, what waits to leave and what is
// remembered is bounded, and so is what is being received.
func TestFloodIsBounded(t *testing.T) {
	l := DefaultLimits()
	e := New[int](l)
	for peer := range 20_000 {
		e.Receive(0, peer, packetOf(0x14, mad.RMPPData, first|last, 0, 1, 60))
		e.Receive(0, peer, packetOf(0x12, mad.RMPPData, first, 0, 1, 0))
		e.Receive(0, peer, packetOf(0x13, 9, 0, 0, 1, 0)) // of no type there is: an ABORT
		if e.replies > repliesMax || len(e.ended) > l.Remembered || len(e.order) > l.Remembered || len(e.receivers) > l.Receivers {
			t.Fatalf("after %d peers: %d replies, %d remembered, %d being received", peer+1, e.replies, len(e.ended), len(e.receivers))
		}
	}
	if e.Counts().Dropped == 0 {
		t.Error("nothing was dropped")
	}
}
