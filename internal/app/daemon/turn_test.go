package daemon

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/policy"
)

// TestTurns: the engine has time for a policy before a newer one interrupts it, and more
// with each interruption, however many come; when it is done it gets the newest at once.
func TestTurns(t *testing.T) {
	s := NewServed("test")
	began := time.Unix(1000, 0)
	now, revision := began, uint64(0)
	give := func() *policy.Policy {
		revision++
		p := &policy.Policy{}
		s.SetPolicy(revision, p)
		return p
	}
	first := give()
	if got := s.take(now); got != first {
		t.Fatal("an engine that has nothing to do is not given a policy at once")
	}
	var waits []time.Duration
	for last := now; len(waits) < 6; now = now.Add(time.Millisecond) {
		newest := give() // a thousand a second
		switch got := s.take(now); got {
		case nil:
		case newest:
			waits, last = append(waits, now.Sub(last)), now
		default:
			t.Fatal("the engine was given a policy that is not the newest")
		}
	}
	for i, want := range []time.Duration{turnLeast, 2 * turnLeast, 4 * turnLeast, 8 * turnLeast, turnMost, turnMost} {
		if waits[i] != want {
			t.Errorf("interruption %d came after %v: want %v", i+1, waits[i], want)
		}
	}
	newest := give()
	s.rested()
	if got := s.take(now); got != newest {
		t.Error("an engine that is done is not given the newest policy at once")
	}
	if got := s.take(now.Add(time.Hour)); got != nil {
		t.Error("the engine is given a policy twice")
	}
	newest = give()
	if s.take(now.Add(turnLeast-1)) != nil || s.take(now.Add(turnLeast)) != newest {
		t.Errorf("after a policy was carried out the next does not have %v again", turnLeast)
	}
}
