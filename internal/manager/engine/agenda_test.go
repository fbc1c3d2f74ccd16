package engine

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// The first reason counts, and a sweep takes out what it finds anyway.
func TestAgendaSweep(t *testing.T) {
	a := newAgenda()
	if at, some := a.sweepsAt(); some {
		t.Errorf("nothing is wanted, and is due at %v", at)
	}
	a.retryAt = 7
	if at, some := a.sweepsAt(); !some || at != 7 {
		t.Errorf("to be tried again at 7, due at %v, %v", at, some)
	}
	a.wantSweep("first")
	a.wantSweep("second")
	a.wantLook(observed.Place{Port: 1}, false)
	if at, some := a.sweepsAt(); a.sweep != "first" || !some || at != 0 {
		t.Errorf("%q, due at %v, %v", a.sweep, at, some)
	}
	a.wantSweepAt(5, "third")
	if at, _ := a.sweepsAt(); a.sweep != "first" || at != 5 {
		t.Errorf("%q, due at %v", a.sweep, at)
	}
	a.sweeping()
	if at, some := a.sweepsAt(); some || len(a.looks) > 0 {
		t.Errorf("it has begun, and %d looks are due, another at %v", len(a.looks), at)
	}
}

// Looks come in order, each once, and not at nodes that are looked at; one that was ended after it
// cleared PortStateChange reads all ports when it begins again.
func TestAgendaLooks(t *testing.T) {
	a := newAgenda()
	one, two, busy := observed.Place{Node: 1}, observed.Place{Node: 2}, observed.Place{Node: 3}
	a.wantLook(two, true)
	a.wantLook(two, false)
	a.wantLook(one, false)
	a.wantLook(busy, false)
	var got []observed.Place
	a.takeLooks(map[observed.Place]bool{busy: false}, func(at observed.Place, cleared bool) {
		if got = append(got, at); cleared != (at == two) {
			t.Errorf("%v: cleared %v", at, cleared)
		}
	})
	if len(got) != 2 || got[0] != one || got[1] != two || len(a.looks) != 1 {
		t.Errorf("looks at %v, %d left", got, len(a.looks))
	}
}

// A policy waits for a look at a switch for lookPatience. When nothing waits any more, nothing is due.
func TestAgendaWaits(t *testing.T) {
	a := newAgenda()
	a.policy = &policy.Policy{}
	if a.waitsForLook(10, false) {
		t.Error("it waits for nothing")
	}
	if !a.waitsForLook(10, true) || !a.waitsForLook(10+lookPatience-1, true) {
		t.Error("it does not wait")
	}
	if at, some := a.due(); !some || at != 10+lookPatience {
		t.Errorf("due at %v, %v", at, some)
	}
	if a.policy = nil; a.waits {
		if at, some := a.due(); some {
			t.Errorf("nothing waits, and is due at %v", at)
		}
	}
	a.policy = &policy.Policy{}
	if a.waitsForLook(10+lookPatience, true) {
		t.Error("it waits for too long")
	}
}

// What is due, and when.
func TestAgendaDue(t *testing.T) {
	for _, x := range []struct {
		name string
		want func(*agenda)
		at   time.Duration
		some bool
	}{
		{"nothing", func(*agenda) {}, 0, false},
		{"a foreign value", func(a *agenda) { a.repairs[nil] = true }, 0, true},
		{"an election", func(a *agenda) { a.wantElection("somebody") }, 0, true},
		{"a comparison", func(a *agenda) { a.compare = true }, 0, true},
		{"another plan", func(a *agenda) { a.replan, a.sweepFrom = true, 9 }, 9, true},
		{"a proof", func(a *agenda) { a.restate = true }, 0, false},
		{"what a comparison finds", func(a *agenda) { a.repairs[nil], a.compare = true, true; a.comparing() }, 0, false},
		{"what was taken out", func(a *agenda) { a.repairs[nil] = true; a.takeRepairs() }, 0, false},
		{"what a pass is for", func(a *agenda) { a.replan, a.policy = true, &policy.Policy{}; a.planning() }, 0, false},
	} {
		a := newAgenda()
		x.want(&a)
		if at, some := a.due(); at != x.at || some != x.some {
			t.Errorf("%s: due at %v, %v", x.name, at, some)
		}
	}
}
