package watch

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/smp"
)

func TestHeard(t *testing.T) {
	var h Heard
	a := Trap{From: 5, Transaction: 9, Notice: smp.Notice{TrapNumber: smp.TrapLocalChange}}
	if h.Again(0, a) {
		t.Error("heard before it was sent")
	}
	for i, x := range []Trap{{6, 9, a.Notice}, {5, 10, a.Notice}, {5, 9, smp.Notice{}}} {
		if h.Again(0, x) {
			t.Errorf("%d: taken for another", i)
		}
	}
	now := time.Duration(0)
	for range 10 { // as long as it is sent, it is known
		if now += memory - time.Second; !h.Again(now, a) {
			t.Errorf("not known at %v", now)
		}
	}
	if h.Again(now+memory+1, a) {
		t.Error("known long after it was heard last")
	}
	now += 3 * memory
	for i := range uint64(3 * most) {
		if h.Again(now, Trap{From: 7, Transaction: i}) {
			t.Fatalf("%d: heard before", i)
		}
	}
	if len(h.until) > most {
		t.Errorf("%d remembered", len(h.until))
	}
	if h.Again(now+2*memory, Trap{From: 8}) || !h.Again(now+2*memory, Trap{From: 8}) || len(h.until) != 1 {
		t.Errorf("%d remembered when they are over", len(h.until))
	}
}
