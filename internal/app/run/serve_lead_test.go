package run

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/test/need"
)

// slow is a store that is taken over only when that is allowed.
type slow struct {
	store.Store
	asked   chan struct{}
	allowed chan struct{}
}

func (s *slow) Acquire(ctx context.Context, owner string) (store.Epoch, error) {
	s.asked <- struct{}{}
	select {
	case <-s.allowed:
		return s.Store.Acquire(ctx, owner)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// leading is a service on a store that others share.
func leading(t *testing.T) *Service {
	t.Helper()
	s, _ := aged(t, true)
	s.beginLead()
	return s
}

func (s *Service) epoch(t *testing.T) store.Epoch {
	t.Helper()
	c, err := s.store.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c.Epoch
}

func (s *Service) eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	need.Eventually(t, need.Patience, what, is)
}

func (s *Service) writes() bool { return s.Read(func(*resource.State) {}) == nil }

// change makes one as the provider.
func (s *Service) change(t *testing.T, name string) error {
	t.Helper()
	_, err := s.Do(t.Context(), service.Request{
		Change: resource.PutTenant{Tenant: resource.Tenant{Name: name}}, By: fileCaller, Seen: resource.Unseen,
	})
	return err
}

// rest waits until lead has looked at all that it was told.
func (s *Service) rest(t *testing.T) {
	t.Helper()
	s.eventually(t, "lead has looked", func() bool { return len(s.masters) == 0 })
	time.Sleep(20 * time.Millisecond)
}

// TestAFencedMasterRegainsTheStore: after a round of questions that showed no other master,
// and not before; one that is not master never takes it.
func TestAFencedMasterRegainsTheStore(t *testing.T) {
	s := leading(t)
	s.asked(true) // of an election, before anything is proved
	s.rest(t)
	if n := s.epoch(t); n != 0 {
		t.Fatalf("epoch %d: taken over before there is a verdict", n)
	}
	s.isMaster(true)
	s.eventually(t, "it leads, and the round has been looked at", func() bool { return s.writes() && !s.alone.Load() })
	s.rest(t)
	if err := s.change(t, "red"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.store.Acquire(t.Context(), "another"); err != nil {
		t.Fatal(err)
	}
	if err := s.change(t, "blue"); !errors.Is(err, store.ErrFenced) {
		t.Fatalf("%v: want ErrFenced", err)
	}
	s.isMaster(true) // another verdict says nothing of other managers
	s.asked(false)
	s.rest(t)
	if n := s.epoch(t); n != 2 {
		t.Fatalf("epoch %d: taken over beside another master", n)
	}
	s.asked(true)
	s.eventually(t, "it leads again", s.writes)
	if err := s.change(t, "blue"); err != nil || s.epoch(t) != 3 {
		t.Fatalf("%v, epoch %d", err, s.epoch(t))
	}
	s.asked(true) // nobody has taken it
	s.rest(t)
	if n := s.epoch(t); n != 3 {
		t.Errorf("epoch %d: taken over from itself", n)
	}
	if _, err := s.store.Acquire(t.Context(), "another"); err != nil {
		t.Fatal(err)
	}
	s.isMaster(false)
	s.asked(true)
	s.rest(t)
	if n := s.epoch(t); n != 4 || s.leads() {
		t.Errorf("epoch %d: a standby took the store over", n)
	}
	s.isMaster(true)
	s.eventually(t, "it leads", s.writes)
	if n := s.epoch(t); n != 5 {
		t.Errorf("epoch %d", n)
	}
}

// TestATakeoverEndsWithMastership: one that waits for the store when another manager becomes
// master does not take it later.
func TestATakeoverEndsWithMastership(t *testing.T) {
	late := &slow{asked: make(chan struct{}), allowed: make(chan struct{})}
	s, _ := agedOn(t, true, func(db store.Store) store.Store {
		late.Store = db
		return late
	})
	s.beginLead()
	s.isMaster(true)
	<-late.asked
	s.isMaster(false)
	s.rest(t)
	close(late.allowed)
	s.rest(t)
	if n := s.epoch(t); n != 0 {
		t.Errorf("epoch %d: taken over by a standby", n)
	}
}

// TestAFencedMasterAsks: it asks who is master as soon as it knows, and not again soon.
func TestAFencedMasterAsks(t *testing.T) {
	s := leading(t)
	s.isMaster(true)
	s.eventually(t, "it leads", s.writes)
	if _, err := s.store.Acquire(t.Context(), "another"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := s.change(t, "red"); !errors.Is(err, store.ErrFenced) {
			t.Fatal(err)
		}
	}
	s.mu.Lock()
	first := s.begun
	s.mu.Unlock()
	if first.IsZero() {
		t.Fatal("nobody is asked")
	}
	s.asked(true)
	s.eventually(t, "it leads again", s.writes)
	if _, err := s.store.Acquire(t.Context(), "another"); err != nil {
		t.Fatal(err)
	}
	if err := s.change(t, "red"); !errors.Is(err, store.ErrFenced) {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun != first {
		t.Errorf("asked again after %v", s.begun.Sub(first))
	}
}

// TestRoundsOfTheManagerAreHeard: the service is told of them by the manager's events.
func TestRoundsOfTheManagerAreHeard(t *testing.T) {
	s := leading(t)
	s.isMaster(true)
	s.eventually(t, "it leads", s.writes)
	if _, err := s.store.Acquire(t.Context(), "another"); err != nil {
		t.Fatal(err)
	}
	s.Event(event.Asked{Alone: true})
	s.eventually(t, "it has taken the store back", func() bool { return s.epoch(t) == 3 })
}

// refusing is a store that is taken over only once that is allowed.
type refusing struct {
	store.Store
	tries   atomic.Int32
	allowed atomic.Bool
}

func (r *refusing) Acquire(ctx context.Context, owner string) (store.Epoch, error) {
	if r.tries.Add(1); !r.allowed.Load() {
		return 0, store.ErrUnavailable
	}
	return r.Store.Acquire(ctx, owner)
}

// TestATakeoverThatFailsIsTriedAgain: until it succeeds, the manager is not master any more, or
// the service ends; and a manager that becomes master again takes the store over then.
func TestATakeoverThatFailsIsTriedAgain(t *testing.T) {
	r := new(refusing)
	s, _ := agedOn(t, true, func(db store.Store) store.Store { r.Store = db; return r })
	s.beginLead()
	s.isMaster(true)
	s.eventually(t, "it tries again", func() bool { return r.tries.Load() >= 2 })
	s.isMaster(false)
	s.rest(t)
	tried := r.tries.Load()
	r.allowed.Store(true)
	s.isMaster(true)
	s.eventually(t, "it leads", s.writes)
	if n := r.tries.Load(); n != tried+1 {
		t.Errorf("%d tries after the one that it had given up, want 1", n-tried)
	}
	ending := new(refusing)
	other, _ := agedOn(t, true, func(db store.Store) store.Store { ending.Store = db; return ending })
	other.beginLead()
	other.isMaster(true)
	other.eventually(t, "it tries", func() bool { return ending.tries.Load() >= 1 })
	other.endLead() // it comes to an end
	other.masters = nil
}
