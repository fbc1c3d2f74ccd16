package transact

import (
	"errors"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// Writes leave within the bounds only, first tries, tries again and copies; all else at any
// time. What waits leaves in order once it may, and asks for no attention meanwhile.
func TestWriteBetween(t *testing.T) {
	limit := limits()
	limit.Tries = 100
	w := NewWindow(limit)
	w.loss = 1 // copies are sent
	ended := map[uint32]error{}
	set := func(n uint32) {
		w.Do(Request{LID: 7, Method: mad.MethodSet, Attribute: smp.AttrPKeyTable, Modifier: n}, func(r Reply) { ended[n] = r.Err })
	}
	const from, until = 10 * time.Millisecond, 20 * time.Millisecond
	w.WriteBetween(from, until)
	sets := func(now time.Duration) (list []uint32) {
		w.Expire(now)
		for _, p := range drain(w, now) {
			if p.Method == mad.MethodSet && p.AttributeID != smp.AttrSMInfo {
				list = append(list, p.AttributeModifier)
			}
		}
		return list
	}
	set(1)
	set(2)
	w.Do(Request{LID: 7, Method: mad.MethodSet, Attribute: smp.AttrSMInfo}, func(Reply) {})
	w.Do(Request{LID: 7, Method: mad.MethodGet, Attribute: smp.AttrPKeyTable}, func(Reply) {})
	if got := drain(w, from-1); len(got) == 0 || got[0].AttributeID != smp.AttrSMInfo {
		t.Fatalf("before the bounds: %v, want SMInfo and the read", got)
	}
	if w.Idle() {
		t.Error("it is idle while writes wait")
	}
	if got := sets(from); len(got) < 2 || got[0] != 1 || got[1] != 2 {
		t.Errorf("at the first moment: %v, want 1 and 2", got)
	}
	set(3)
	if got := sets(until - 1); len(got) == 0 {
		t.Error("the last moment: nothing")
	}
	set(4)
	for now := until; now < time.Minute; now += 10 * time.Millisecond {
		if got := sets(now); len(got) > 0 {
			t.Fatalf("%v leave at %v, %v after the end", got, now, now-until)
		}
	}
	if at, some := w.Deadline(); some {
		t.Errorf("it wants to be called at %v, though nothing can happen", at)
	}
	if len(ended) > 0 {
		t.Errorf("ended: %v", ended)
	}
	w.WriteBetween(from, 2*time.Minute)
	again := map[uint32]bool{}
	for _, n := range sets(time.Minute) {
		again[n] = true
	}
	if len(again) != 4 {
		t.Errorf("%v leave when they may, want all 4", again)
	}
	w.WriteBetween(0, 0)
	set(5)
	sets(90 * time.Second)
	w.ReadOnly(true)
	for now := 90 * time.Second; now < 2*time.Minute; now += time.Second {
		if got := sets(now); len(got) > 0 {
			t.Fatalf("%v leave of a window that is read-only", got)
		}
	}
	for n := uint32(1); n <= 5; n++ {
		if !errors.Is(ended[n], ErrReadOnly) {
			t.Errorf("write %d ended with %v, want %v", n, ended[n], ErrReadOnly)
		}
	}
	if !w.Idle() {
		t.Error("it is not idle")
	}
}

// Forget forgets what waits for the bounds too.
func TestForgetWhatWaits(t *testing.T) {
	w := NewWindow(limits())
	w.WriteBetween(0, 0)
	w.Do(Request{LID: 7, Method: mad.MethodSet, Attribute: smp.AttrPKeyTable}, func(Reply) { t.Error("it was called back") })
	drain(w, 0)
	w.Forget()
	w.WriteBetween(0, time.Hour)
	if got := drain(w, 1); !w.Idle() || len(got) > 0 {
		t.Errorf("%d packets, want none", len(got))
	}
}
