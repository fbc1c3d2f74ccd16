package master_test

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/sa/server"
)

// TestSharedBeforeAnswered: a host is told that it is registered when the store that managers
// share has it, or a second later when the store does not take it; from then on nobody waits
// until the store answers again. Where nobody is going to store it nobody waits.
func TestSharedBeforeAnswered(t *testing.T) {
	const late, again = "has not taken what hosts register", "has what hosts register again"
	r := newRig(t, engine.Config{}, server.Config{Keep: true})
	if err := r.Keep(server.State{}, func(server.State) error { return nil }); err != nil {
		t.Fatal(err)
	}
	gives, given := true, 0
	r.Share(func() bool { given++; return gives })
	r.drive(r.Settled)
	registered, keys := r.Versions()
	r.Stored(registered, keys)
	now := r.fabric.Now()
	names := []string{"red-1", "red-2", "red-3", "red-4", "red-5", "red-6"}
	joins := func(i int) {
		t.Helper()
		p, was := r.port(names[i%2]), given
		m := join(t, p, red)
		m[15] = byte(i) // another request, not one that is sent again
		r.ReceiveGeneral(now, m, mad.Address{LID: p.Info.LID, QP: 1})
		for n := 0; given == was && n < 200; n++ { // it is kept here first
			now += 10 * time.Millisecond
			r.Expire(now)
		}
	}
	leaves := func(i int) {
		t.Helper()
		m := join(t, r.port(names[i%2]), red)
		m[3], m[15] = byte(0x15), byte(0x40+i)
		r.ReceiveGeneral(now, m, mad.Address{LID: r.port(names[i%2]).Info.LID, QP: 1})
		r.Expire(now)
		for _, some := r.answerAt(now); some; _, some = r.answerAt(now) {
		}
	}
	answered := func(want bool, what string) {
		t.Helper()
		status, some := r.answerAt(now)
		if some != want || some && status != mad.StatusOK {
			t.Errorf("%s: answered %v (%v), want %v", what, some, status, want)
		}
	}
	warned := func(what string, n, back int) {
		t.Helper()
		if r.warned(late) != n || r.warned(again) != back {
			t.Errorf("%s: %d warnings that it is lost, %d that it is back; want %d and %d", what, r.warned(late), r.warned(again), n, back)
		}
	}

	joins(0)
	answered(false, "before it is stored")
	if at, some := r.Deadline(); !some || at > now+time.Second {
		t.Errorf("due at %v, %v, and it is %v", at, some, now)
	}
	v, k := r.Versions()
	if v == registered {
		t.Fatal("a host has joined, and there is nothing new to share")
	}
	r.Stored(v-1, k)
	answered(false, "an older state is stored")
	r.Stored(v, k)
	answered(true, "it is stored")
	warned("stored in time", 0, 0)

	joins(1)
	began := now
	now = began + time.Second - 1
	r.Expire(now)
	answered(false, "just before it is late")
	warned("just before it is late", 0, 0)
	now = began + time.Second
	r.Expire(now)
	answered(true, "late")
	warned("late", 1, 0)
	leaves(0)
	joins(0)
	answered(true, "while the store does not answer")
	warned("while the store does not answer", 1, 0)
	v, k = r.Versions()
	r.Stored(v, k)
	warned("it answers again", 1, 1)
	r.Stored(v, k)
	warned("it answers still", 1, 1)

	gives = false
	leaves(1)
	joins(1)
	answered(true, "nobody stores it")
}
