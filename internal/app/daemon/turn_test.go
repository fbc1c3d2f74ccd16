package daemon

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/sa/server"
)

// TestLaterPolicy: a policy that another manager wrote after the engine was made with an older
// one, and before that was told, is given to the engine; one that is no newer is not.
func TestLaterPolicy(t *testing.T) {
	for _, x := range []struct{ made, came uint64 }{{1, 2}, {2, 2}, {2, 1}} {
		s := NewServed("test")
		made, came := &policy.Policy{}, &policy.Policy{}
		s.FollowPolicy(x.came, came)
		s.Begin(nil, nil, x.made, made)
		if got := s.inbox.take(time.Unix(1000, 0)); (got == came) != (x.came > x.made) || got == made {
			t.Errorf("made with revision %d, then came %d: given %p", x.made, x.came, got)
		}
		if n, known := s.done(made); n != x.made || !known {
			t.Errorf("the policy of revision %d is known as that of %d", x.made, n)
		}
	}
}

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
	if got := s.inbox.take(now); got != first {
		t.Fatal("an engine that has nothing to do is not given a policy at once")
	}
	var waits []time.Duration
	for last := now; len(waits) < 6; now = now.Add(time.Millisecond) {
		newest := give() // a thousand a second
		switch got := s.inbox.take(now); got {
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
	s.inbox.rested()
	if got := s.inbox.take(now); got != newest {
		t.Error("an engine that is done is not given the newest policy at once")
	}
	if got := s.inbox.take(now.Add(time.Hour)); got != nil {
		t.Error("the engine is given a policy twice")
	}
	newest = give()
	if s.inbox.take(now.Add(turnLeast-1)) != nil || s.inbox.take(now.Add(turnLeast)) != newest {
		t.Errorf("after a policy was carried out the next does not have %v again", turnLeast)
	}
}

// TestFollowedPoliciesTakeNoTurn: what another manager writes gives the engine nothing to do, so
// that a later policy does not wait for it, however many came: a new master writes nothing before
// it has the newest.
func TestFollowedPoliciesTakeNoTurn(t *testing.T) {
	s := NewServed("test")
	now := time.Unix(1000, 0)
	for n := range uint64(20) {
		p := &policy.Policy{}
		s.FollowPolicy(n, p)
		if s.inbox.take(now) != p || !s.inbox.following {
			t.Fatalf("policy %d of another manager is not given at once, to follow", n)
		}
	}
	p := &policy.Policy{}
	s.SetPolicy(20, p)
	if s.inbox.take(now) != p || s.inbox.following {
		t.Fatal("the first policy of its own waits for those that were followed")
	}
	p = &policy.Policy{}
	s.FollowPolicy(21, p)
	if s.inbox.take(now.Add(turnLeast-1)) != nil || s.inbox.take(now.Add(turnLeast)) != p {
		t.Errorf("a policy of its own does not have %v before one of another manager comes", turnLeast)
	}
}

// TestHeldBack: why ports are given nothing new is told at once, and that it ends when the engine has the
// newest policy; each is told once.
func TestHeldBack(t *testing.T) {
	s := NewServed("test")
	if s.inbox.takeHeldBack(false) != nil || s.inbox.takeHeldBack(true) != nil {
		t.Error("something is told that nobody said")
	}
	s.HoldBack("the store went back", true)
	if s.inbox.takeHeldBack(true) != nil {
		t.Error("a reason is taken for its end")
	}
	if h := s.inbox.takeHeldBack(false); h == nil || *h != (heldBack{"the store went back", true}) || s.inbox.takeHeldBack(false) != nil {
		t.Errorf("told %+v", h)
	}
	s.HoldBack("", false)
	p := &policy.Policy{}
	s.SetPolicy(3, p)
	if s.inbox.takeHeldBack(false) != nil || s.inbox.takeHeldBack(true) != nil {
		t.Error("the end is told before the newest policy")
	}
	if s.inbox.take(time.Unix(1000, 0)) != p {
		t.Fatal("the policy is not given")
	}
	if h := s.inbox.takeHeldBack(true); h == nil || *h != (heldBack{}) || s.inbox.takeHeldBack(true) != nil {
		t.Errorf("told %+v", h)
	}
	var heard hears
	r := NewRunner(broughtUp(t, 0).link, engine.Config{}, server.Config{}, p, &heard)
	s.HoldBack("the store went back", false)
	if s.Begin(r, nil, 4, &policy.Policy{}); len(heard) != 1 || s.inbox.takeHeldBack(false) != nil {
		t.Errorf("an engine that begins is told %q", heard)
	}
}
