package run

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/mastership"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/store"
)

// leased is a lease in a store. The rest of the store is not there.
type leased struct {
	store.Leaser
	mu       sync.Mutex
	now      store.Lease
	changed  chan struct{}
	renewals int
	given    int
	err      error // of whatever is asked
}

// put has the lease be another one.
func (l *leased) put(edit func(*store.Lease)) {
	edit(&l.now)
	l.now.Version++
	close(l.changed)
	l.changed = make(chan struct{})
}

// another takes the lease over.
func (l *leased) another() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(func(x *store.Lease) { x.Epoch, x.Given, x.TTL = x.Epoch+1, false, mastership.DefaultTTL })
}

// fails has the store answer so.
func (l *leased) fails(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

// counts is how often the lease was renewed since the last call.
func (l *leased) counts() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, l.renewals = l.renewals, 0
	return n
}

func (l *leased) FollowLease(ctx context.Context, see func(store.Lease)) error {
	for {
		l.mu.Lock()
		now, changed, err := l.now, l.changed, l.err
		l.mu.Unlock()
		if err != nil {
			return err
		}
		see(now)
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *leased) AcquireLease(_ context.Context, _ string, version int64, ttl time.Duration) (store.Epoch, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.err != nil:
		return 0, l.err
	case version != l.now.Version:
		return 0, store.ErrHeld
	}
	l.put(func(x *store.Lease) { x.Epoch, x.Given, x.TTL = x.Epoch+1, false, ttl })
	return l.now.Epoch, nil
}

func (l *leased) RenewLease(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewals++
	if l.err == nil {
		l.put(func(*store.Lease) {})
	}
	return l.err
}

func (l *leased) GiveLease(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.given++
	l.put(func(x *store.Lease) { x.Given = true })
	return l.err
}

// holder is a manager with a part in a lease, and its engine.
type holder struct {
	*rights
	t      *testing.T
	store  *leased
	served *daemon.Served
	engine *engine.Engine
	losses int
}

// hold runs do with a manager in a bubble of its own time.
func hold(t *testing.T, do func(*testing.T, *holder)) {
	synctest.Test(t, func(t *testing.T) {
		h := &holder{t: t, store: &leased{changed: make(chan struct{})}, served: daemon.NewServed("test")}
		h.engine = engine.New(engine.Config{}, &policy.Policy{}, nil)
		h.rights = newRights(h.store, mastership.DefaultTTL, func() { h.losses++ })
		synctest.Wait()
		do(t, h)
		h.end()
	})
}

// asks is the term that the engine is told when it asks.
func (h *holder) asks() uint64 {
	synctest.Wait()
	return h.grant.At(h.now()).Term
}

// pass lets time pass, in which the engine asks, and is its last answer.
func (h *holder) pass(d time.Duration) (term uint64) {
	for end := h.now() + d; h.now() < end; term = h.asks() {
		time.Sleep(mastership.RenewEvery(h.ttl))
	}
	return term
}

// begin takes the lease, and has the engine told.
func (h *holder) begin() uint64 {
	h.t.Helper()
	epoch, err := h.acquire(h.t.Context(), "this")
	if err != nil || !h.uses() {
		h.t.Fatalf("it cannot take the lease: %v", err)
	}
	if h.turn(h.engine, h.served); h.asks() != uint64(epoch) {
		h.t.Fatalf("the engine has no right to write in the term that began: %d of %d", h.asks(), epoch)
	}
	return uint64(epoch)
}

// A lease is renewed as long as the engine asks for its right to write: one that hangs, or a
// process that was stopped and goes on in part, leaves it to others; when it asks again it
// is renewed again.
func TestHungEngine(t *testing.T) {
	hold(t, func(t *testing.T, h *holder) {
		if h.pass(2 * hungAfter); h.store.counts() != 0 {
			t.Error("it renews what it does not have")
		}
		term := h.begin()
		for range 2 {
			if got := h.pass(3 * hungAfter); got != term || h.store.counts() < int(hungAfter/h.ttl) {
				t.Fatalf("the engine asks, and the lease is not renewed: term %d of %d", got, term)
			}
			time.Sleep(hungAfter - mastership.RenewEvery(h.ttl)/2)
			if synctest.Wait(); h.store.counts() == 0 {
				t.Errorf("not renewed although the engine asked less than %v ago", hungAfter)
			}
			time.Sleep(mastership.RenewEvery(h.ttl)) // one renewal may be on its way
			synctest.Wait()
			h.store.counts()
			time.Sleep(10 * hungAfter)
			if synctest.Wait(); h.store.counts() != 0 {
				t.Fatal("the engine hangs, and the lease is renewed")
			}
		}
		h.store.another()
		if h.asks() != 0 || h.losses != 1 {
			t.Errorf("another has it: the engine is told term %d, %d losses", h.asks(), h.losses)
		}
	})
}

// In a new term the engine may write once it has been given what the store had when the term
// began, and not by what it had in the one before.
func TestNewTermHasThePolicyFirst(t *testing.T) {
	hold(t, func(t *testing.T, h *holder) {
		not := func(what string) {
			t.Helper()
			h.turn(h.engine, h.served)
			if term := h.asks(); term != 0 {
				t.Errorf("%s: the engine writes in term %d", what, term)
			}
		}
		if h.uses() {
			t.Error("it may write to a store of which it has no lease")
		}
		not("it has no lease")
		for n := range uint64(3) {
			epoch, err := h.acquire(t.Context(), "this")
			if err != nil {
				t.Fatal(err)
			}
			not("the store is not read yet")
			later := &policy.Policy{}
			h.served.FollowPolicy(n+1, later)
			if !h.uses() {
				t.Error("it may not write to a store of which it has the lease")
			}
			not("the engine does not have the policy yet")
			h.served.Turn(h.engine)
			if h.asks() != 0 {
				t.Error("the engine writes between two turns")
			}
			if h.turn(h.engine, h.served); h.asks() != uint64(epoch) {
				t.Errorf("the engine has the policy, and term %d of %d", h.asks(), epoch)
			}
			h.uses() // again, when nothing has begun
			h.served.SetPolicy(n+1, later)
			if h.turn(h.engine, h.served); h.asks() != uint64(epoch) {
				t.Error("a change of the policy ends the right to write")
			}
			h.served.Turn(h.engine)

			h.uses()
			h.store.another() // which ends the term
			not("another has taken the lease")
			h.pass(2 * h.ttl)
			if _, err := h.acquire(t.Context(), "this"); err != nil {
				t.Fatal(err)
			}
			h.uses()
			h.store.another() // before the engine was told of it
			not("another has taken the lease at once")
			h.pass(2 * h.ttl)
		}
	})
}

// The lease is taken when it is known to be free, and by nobody who hears nothing; a try
// that fails gives nothing.
func TestWhenTheLeaseIsTaken(t *testing.T) {
	hold(t, func(t *testing.T, h *holder) {
		refused := func(what string, want error) {
			t.Helper()
			if _, err := h.acquire(t.Context(), "this"); !errors.Is(err, want) || h.holds() {
				t.Errorf("%s: %v, has it %v; want %v", what, err, h.holds(), want)
			}
		}
		h.store.another()
		synctest.Wait()
		refused("another has just written it", store.ErrHeld)
		began := h.now()
		if err := h.await(t.Context()); err != nil || h.now() != began+h.ttl {
			t.Errorf("%v, after %v; want it free after %v", err, h.now()-began, h.ttl)
		}
		h.store.fails(store.ErrUnavailable)
		refused("the store does not answer", store.ErrUnavailable)
		h.store.fails(nil)
		h.engine.Lease().Require()
		h.engine.Lease().Alone(1)
		if !h.turn(h.engine, h.served) || h.turn(h.engine, h.served) {
			t.Error("that it has become deaf is news once")
		}
		refused("it hears nothing", store.ErrHeld)
		short, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := h.await(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it hears nothing, and has waited for the lease: %v", err)
		}
		h.engine.Lease().Heard(0)
		if !h.turn(h.engine, h.served) {
			t.Error("that it hears again is no news")
		}
		h.begin()
		if h.give(false); !h.holds() || h.store.given != 0 {
			t.Error("a master that hears its fabric gives the lease up")
		}
		if h.give(true); h.holds() || h.asks() != 0 || h.store.given != 1 {
			t.Error("it resigns, and keeps the lease")
		}
		if h.give(true); h.store.given != 1 {
			t.Error("it gives up what it does not have")
		}
	})
}

// A store that does not answer says nothing of others: the right stands for its time, and
// its reason is known; one that says that another has it ends it at once.
func TestRenewalsThatFail(t *testing.T) {
	hold(t, func(t *testing.T, h *holder) {
		term := h.begin()
		until := h.grant.At(h.now()).Until
		h.store.fails(store.ErrUnavailable)
		h.pass(2 * h.ttl)
		if g := h.grant.At(h.now()); g.Term != term || g.Why == "" || g.Until != until || h.losses != 0 {
			t.Errorf("the store does not answer: %+v, %d losses; want term %d until %v, and why", g, h.losses, term, until)
		}
		h.store.fails(nil)
		h.pass(h.ttl)
		if g := h.grant.At(h.now()); g.Term != term || g.Why != "" || g.Until <= until {
			t.Errorf("the store answers again: %+v", g)
		}
		h.store.fails(store.ErrFenced)
		if h.pass(h.ttl) != 0 || h.holds() || h.losses != 1 {
			t.Errorf("fenced: has it %v, %d losses", h.holds(), h.losses)
		}
		h.store.fails(nil)
	})
}

// TestAwaitOfAStoreThatDoesNotAnswer: who does not know of the lease waits for it, without end;
// when the store answers it is as free as that says.
func TestAwaitOfAStoreThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &leased{changed: make(chan struct{}), err: store.ErrUnavailable}
		r := newRights(l, mastership.DefaultTTL, func() {})
		short, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := r.await(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the store has not answered: %v", err)
		}
		if _, err := r.acquire(t.Context(), "this"); !errors.Is(err, store.ErrHeld) {
			t.Errorf("taken though nobody knows whose it is: %v", err)
		}
		l.fails(nil)
		if err := r.await(t.Context()); err != nil {
			t.Error(err)
		}
		var none *rights
		if none.await(t.Context()) != nil || !none.uses() || none.turn(nil, nil) {
			t.Error("who shares nothing waits for it")
		}
		none.give(true)
		none.end()
		r.end()
	})
}
