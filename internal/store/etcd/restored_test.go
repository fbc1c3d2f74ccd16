package etcd

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/test/need"
)

// TestRestoredEtcd restores etcd itself to an earlier moment under stores that are in use, so
// that its revisions go back too: a writer of before writes nothing, though another one has
// the same epoch by now; a watch ends before it yields a revision of the other history; and
// the lease is seen as it is, so that it can be taken.
func TestRestoredEtcd(t *testing.T) {
	need.Long(t, "three members of etcd, restored from a copy")
	t.Parallel()
	c := startCluster(t)
	place := c.place(t)
	first, former, next, watcher := place.Open(t).(*Store), place.Open(t).(*Store), place.Open(t).(*Store), place.Open(t).(*Store)
	for _, s := range []*Store{first, former, next, watcher} {
		defer s.Close()
	}
	write := func(s *Store, epoch store.Epoch, after uint64, text string) error {
		for {
			_, err := s.Commit(t.Context(), store.Commit{
				Epoch: epoch, After: after, Revision: []byte(text),
				Audit: []store.Entry{{Time: time.Unix(1e9, 0), Action: "test", Decision: store.Accepted, Revision: after + 1}},
			})
			if !errors.Is(err, store.ErrUnavailable) {
				return err
			}
		}
	}
	// Members that are busy, or have just been started, may not answer in time.
	renew := func(s *Store) error {
		for {
			if err := s.RenewLease(t.Context()); !errors.Is(err, store.ErrUnavailable) {
				return err
			}
		}
	}
	acquire := func(s *Store, owner string, after int64) (store.Epoch, error) {
		for {
			if epoch, err := s.AcquireLease(t.Context(), owner, after, time.Second); !errors.Is(err, store.ErrUnavailable) {
				return epoch, err
			}
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	epoch1, err := acquire(first, "first", 0)
	must(err)
	must(write(first, epoch1, 0, "one"))
	copied := c.Copy()

	var mu sync.Mutex
	var lease store.Lease
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	defer ended.Wait()
	defer cancel()
	ended.Go(func() {
		for ctx.Err() == nil {
			_ = watcher.FollowLease(ctx, func(l store.Lease) { mu.Lock(); defer mu.Unlock(); lease = l })
		}
	})
	seen := func(is func(store.Lease) bool) store.Lease {
		t.Helper()
		for late := time.Now().Add(startWait); ; time.Sleep(time.Millisecond) {
			mu.Lock()
			l := lease
			mu.Unlock()
			if is(l) {
				return l
			}
			if time.Now().After(late) {
				t.Fatalf("it sees %+v", l)
			}
		}
	}
	l := seen(func(l store.Lease) bool { return l.Epoch == epoch1 })
	epoch2, err := acquire(former, "former", l.Version)
	must(err)
	for range 5 { // revisions of etcd go on
		must(renew(former))
	}
	must(write(former, epoch2, 1, "two"))
	before := seen(func(l store.Lease) bool { return l.Epoch == epoch2 })
	watched := make(chan error, 1)
	yielded := make(chan string, 10)
	ended.Go(func() {
		for {
			for rev, err := range watcher.Watch(ctx, 1) {
				if errors.Is(err, store.ErrUnavailable) && len(yielded) == 0 {
					break
				}
				if err != nil {
					watched <- err
					return
				}
				yielded <- string(rev.Data)
			}
		}
	})
	if text := <-yielded; text != "two" {
		t.Fatalf("it yields %q", text)
	}

	c.Restore(copied)
	l = seen(func(l store.Lease) bool { return l.Epoch == epoch1 })
	if l.Version >= before.Version {
		t.Fatalf("the lease has version %d after %d: etcd did not go back", l.Version, before.Version)
	}
	epoch, err := acquire(next, "next", l.Version)
	must(err)
	if epoch != epoch2 {
		t.Fatalf("epoch %d, and the former writer has %d: the test shows nothing", epoch, epoch2)
	}
	for name, err := range map[string]error{
		"the former writer": write(former, epoch2, 1, "bad"), "the first writer": write(first, epoch1, 1, "bad"),
		"the former holder of the lease": renew(former),
	} {
		if !errors.Is(err, store.ErrFenced) {
			t.Errorf("%s: %v, want ErrFenced", name, err)
		}
	}
	must(write(next, epoch, 1, "other two"))
	must(write(next, epoch, 2, "other three"))
	must(write(next, epoch, 3, "other four"))
	must(renew(next))
	if err := <-watched; !errors.Is(err, store.ErrRolledBack) && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("the watch ends with %v", err)
	}
	select {
	case text := <-yielded:
		t.Errorf("the watch yields %q of the other history", text)
	default:
	}
}

// TestWatchOfAnotherHistory: a watch that has yielded a revision yields none after another one
// with its number.
func TestWatchOfAnotherHistory(t *testing.T) {
	need.Long(t, "a cluster that is made again")
	t.Parallel()
	c := startCluster(t)
	s := c.place(t).Open(t).(*Store)
	defer s.Close()
	epoch, err := s.Acquire(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	write := func(after uint64, text string) {
		t.Helper()
		if _, err := s.Commit(t.Context(), store.Commit{
			Epoch: epoch, After: after, Revision: []byte(text),
			Audit: []store.Entry{{Time: time.Unix(1e9, 0), Action: "test", Decision: store.Accepted, Revision: after + 1}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	write(0, "one")
	n := 0
	for rev, err := range s.Watch(t.Context(), 0) {
		if n++; n == 1 {
			if err != nil || rev.Number != 1 {
				t.Fatal(rev, err)
			}
			ops, err := s.revisionOps(t.Context(), seen{}, 1, epoch, []byte("another one"), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.direct(t).Txn(t.Context()).Then(ops...).Commit(); err != nil {
				t.Fatal(err)
			}
			write(1, "two")
			continue
		}
		if !errors.Is(err, store.ErrRolledBack) {
			t.Errorf("%q, %v: want ErrRolledBack", rev.Data, err)
		}
		break
	}
}
