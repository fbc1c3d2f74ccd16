package etcd

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/test/need"
)

// TestLease: who takes the lease at the version that he saw has it, alone; its holder renews
// it until another one, or an older version, has taken the store over; whoever follows it sees
// every writing.
func TestLease(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	place := c.place(t)
	a, b := place.Open(t).(*Store), place.Open(t).(*Store)
	defer a.Close()
	defer b.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	var seen store.Lease
	var ended sync.WaitGroup
	ended.Go(func() {
		_ = b.FollowLease(ctx, func(l store.Lease) {
			mu.Lock()
			defer mu.Unlock()
			if l.Version < seen.Version {
				t.Errorf("%+v comes after %+v", l, seen)
			}
			seen = l
		})
	})
	defer ended.Wait()
	defer cancel()
	sees := func(is func(store.Lease) bool) store.Lease {
		t.Helper()
		for late := time.Now().Add(startWait); ; time.Sleep(time.Millisecond) {
			mu.Lock()
			l := seen
			mu.Unlock()
			if is(l) {
				return l
			}
			if time.Now().After(late) {
				t.Fatalf("it sees %+v", l)
			}
		}
	}
	first, err := a.AcquireLease(ctx, "a", 0, 500*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	l := sees(func(l store.Lease) bool { return l.Epoch == first })
	if l.TTL != 500*time.Millisecond || l.Given {
		t.Errorf("the lease is %+v", l)
	}
	if err := a.RenewLease(ctx); err != nil {
		t.Fatal(err)
	}
	renewed := sees(func(now store.Lease) bool { return now.Version > l.Version })
	if _, err := b.AcquireLease(ctx, "b", l.Version, time.Second); !errors.Is(err, store.ErrHeld) {
		t.Errorf("it is taken at a version that is not there any more: %v", err)
	}
	if _, err := b.AcquireLease(ctx, "b", 0, time.Second); !errors.Is(err, store.ErrHeld) {
		t.Errorf("it is taken as if nobody had had it: %v", err)
	}
	second, err := b.AcquireLease(ctx, "b", renewed.Version, time.Second)
	if err != nil || second <= first {
		t.Fatalf("epoch %d after %d: %v", second, first, err)
	}
	for name, err := range map[string]error{"renewed": a.RenewLease(ctx), "given up": a.GiveLease(ctx)} {
		if !errors.Is(err, store.ErrFenced) {
			t.Errorf("the former holder has %s it: %v", name, err)
		}
	}
	if err := b.RenewLease(ctx); err != nil {
		t.Error(err)
	}
	if err := b.GiveLease(ctx); err != nil {
		t.Error(err)
	}
	given := sees(func(l store.Lease) bool { return l.Given })
	if err := b.RenewLease(ctx); !errors.Is(err, store.ErrFenced) {
		t.Errorf("it is renewed after it was given up: %v", err)
	}
	if _, err := a.AcquireLease(ctx, "a", given.Version, time.Second); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Acquire(ctx, "an older version"); err != nil {
		t.Fatal(err)
	}
	if err := a.RenewLease(ctx); !errors.Is(err, store.ErrFenced) {
		t.Errorf("an older version has taken the store over, and the lease is renewed: %v", err)
	}
	if _, err := a.direct(t).Put(ctx, a.leaseKey(), "{"); err != nil {
		t.Fatal(err)
	}
	if err := b.FollowLease(ctx, func(store.Lease) {}); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("a damaged lease: %v", err)
	}
	if _, err := a.direct(t).Delete(ctx, a.prefix, clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
}

// TestOneTakesTheLease: of many who saw the same version one gets the lease.
func TestOneTakesTheLease(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	place := c.place(t)
	var mu sync.Mutex
	var all sync.WaitGroup
	took := 0
	for range 5 {
		s := place.Open(t).(*Store)
		defer s.Close()
		all.Go(func() {
			_, err := s.AcquireLease(t.Context(), "one of five", 0, time.Second)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				took++
			} else if !errors.Is(err, store.ErrHeld) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if took != 1 {
		t.Errorf("%d have taken it, want 1", took)
	}
}

// TestLeaseAnswerLost: what was done, and whose answer was lost, is not refused when it is asked of
// another member.
func TestLeaseAnswerLost(t *testing.T) {
	need.Long(t, "a cluster of its own; a share: TestLease")
	t.Parallel()
	c := startCluster(t)
	s := c.place(t).Open(t).(*Store)
	defer s.Close()
	version := int64(0)
	for range 3 {
		if _, err := s.AcquireLease(t.Context(), "a", version, time.Second); err != nil {
			t.Fatal(err)
		}
		for i, do := range []func(context.Context) error{s.RenewLease, s.GiveLease} {
			c.losing(t, []string{"renewed", "given up"}[i], func() error {
				answered(t, func() error { return do(t.Context()) }) // each member may lose one
				return nil
			})
		}
		if err := s.RenewLease(t.Context()); !errors.Is(err, store.ErrFenced) {
			t.Errorf("renewed after it was given up: %v", err)
		}
		r, err := s.get(t.Context(), s.leaseKey(), false)
		if err != nil {
			t.Fatal(err)
		}
		version = r.Kvs[0].ModRevision
	}
}
