package daemon

import (
	"sync"
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// inbox is what others want the engine to be told. It is told between two turns.
type inbox struct {
	mu sync.Mutex
	// next is the policy that the engine has not been given yet; only the newest
	// counts.
	next     *policy.Policy
	followed bool // next was set by another manager
	// following reports whether of what take gave last, for the goroutine of Run.
	following bool
	// given is when the engine was given one to carry out, atWork that it has not done so
	// yet, and turn how long it has for that. One that it follows gives it nothing to do.
	given  time.Time
	atWork bool
	turn   time.Duration
	// confirmed is what Confirm was told last; nil when the engine knows.
	confirmed *bool
	// heldBack is what HoldBack was told last; nil when the engine knows.
	heldBack *heldBack
	// revisions are those of the policies that the engine was given, and of next.
	revisions map[*policy.Policy]uint64
}

func newInbox() inbox { return inbox{revisions: map[*policy.Policy]uint64{}} }

// heldBack is why ports are given nothing new; "" for no reason.
type heldBack struct {
	why   string
	older bool
}

// begin enters the policy that the engine was made with. A later one, which another manager has
// written since, stays.
func (s *inbox) begin(revision uint64, p *policy.Policy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next != nil && s.revisions[s.next] <= revision {
		delete(s.revisions, s.next)
		s.next = nil
	}
	s.revisions[p] = revision
}

func (s *inbox) have(revision uint64, p *policy.Policy, followed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.revisions, s.next)
	s.next, s.followed, s.revisions[p] = p, followed, revision
}

func (s *inbox) holdBack(why string, older bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heldBack = &heldBack{why, older}
}

func (s *inbox) confirm(changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.confirmed = &changed
}

func (s *inbox) pending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next != nil
}

func (s *inbox) revision(p *policy.Policy) (uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	revision, known := s.revisions[p]
	return revision, known
}

// done is the revision of a policy that the engine is done with. Older ones are forgotten.
func (s *inbox) done(p *policy.Policy) (uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	revision, known := s.revisions[p]
	for other, n := range s.revisions {
		if known && n < revision {
			delete(s.revisions, other)
		}
	}
	return revision, known
}

// takeHeldBack is what the engine is to be told by HoldBack; nil for nothing. That it ends waits
// until the engine has the newest policy: the one before may be that of the store which was
// rolled back.
func (s *inbox) takeHeldBack(ends bool) *heldBack {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.heldBack
	if h == nil || (h.why == "") != ends || ends && s.next != nil {
		return nil
	}
	s.heldBack = nil
	return h
}

// empty gives the engine what there is for it: the newest policy, if there is one that it has not and it
// has had time for the last. It reports whether it gave one.
func (s *inbox) empty(e *engine.Engine, now time.Time) (given bool) {
	confirmed := s.takeConfirmed()
	if h := s.takeHeldBack(false); h != nil { // before the policy, which may widen
		e.HoldBack(h.why, h.older)
	}
	p := s.take(now)
	switch {
	case p == nil:
	case s.following:
		e.FollowPolicy(p)
	default:
		e.SetPolicy(p)
	}
	if h := s.takeHeldBack(true); h != nil {
		e.HoldBack("", false)
	}
	if confirmed != nil {
		e.Confirm(*confirmed)
	}
	return p != nil
}

// takeConfirmed is what the engine is to be told by Confirm; nil for nothing. The newest
// policy does not wait then.
func (s *inbox) takeConfirmed() *bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.confirmed
	if s.confirmed = nil; c != nil {
		s.atWork = false
	}
	return c
}

const (
	// turnLeast is how long the engine has for a policy before a newer one interrupts it:
	// what is revoked waits that long at most. It doubles with each interruption, up to
	// turnMost, until a policy is carried out, so that who makes changes without an end
	// does not keep the engine from carrying out any.
	turnLeast = 100 * time.Millisecond
	turnMost  = time.Second
)

// take is the policy that the engine is to be given now; nil for none.
func (s *inbox) take(now time.Time) *policy.Policy {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.next
	switch {
	case p == nil, s.atWork && now.Sub(s.given) < s.turn:
		return nil
	case s.atWork:
		s.turn = min(2*s.turn, turnMost)
	default:
		s.turn = turnLeast
	}
	s.next, s.given, s.atWork, s.following = nil, now, !s.followed, s.followed
	return p
}

// rested notes that the engine has carried out a policy, or could not.
func (s *inbox) rested() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.atWork = false
}
