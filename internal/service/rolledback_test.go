package service_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/internal/store/bolt"
	"github.com/ibwarden/ibwarden/test/need"
)

// swapped is a store in whose place another one can be put while it is used, as etcd is
// restored under managers that run.
type swapped struct {
	mu   sync.Mutex
	db   store.Store
	told store.Seen // in it
}

func (s *swapped) Told(context.Context) (store.Seen, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told.Clone(), nil
}

func (s *swapped) Tell(_ context.Context, seen store.Seen) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = seen.Clone()
	return nil
}

func (s *swapped) now() store.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.db
}

func (s *swapped) put(db store.Store) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.db, s.told = db, store.Seen{}
}

func (s *swapped) Load(ctx context.Context) (*store.Contents, error) { return s.now().Load(ctx) }
func (s *swapped) Acquire(ctx context.Context, owner string) (store.Epoch, error) {
	return s.now().Acquire(ctx, owner)
}
func (s *swapped) Commit(ctx context.Context, c store.Commit) (store.Committed, error) {
	return s.now().Commit(ctx, c)
}
func (s *swapped) Revision(ctx context.Context, n uint64) (store.Revision, error) {
	return s.now().Revision(ctx, n)
}
func (s *swapped) Revisions(ctx context.Context, r store.Range) iter.Seq2[store.Revision, error] {
	return s.now().Revisions(ctx, r)
}
func (s *swapped) Audit(ctx context.Context, r store.Range) iter.Seq2[store.Entry, error] {
	return s.now().Audit(ctx, r)
}
func (s *swapped) Trim(ctx context.Context, t store.Trim) (store.Checkpoint, error) {
	return s.now().Trim(ctx, t)
}
func (s *swapped) Fill(ctx context.Context, records iter.Seq2[store.Record, error]) error {
	return s.now().Fill(ctx, records)
}
func (s *swapped) Close() error { return s.now().Close() }

// watchAgain is how long a watch of a swapped store lasts, since that of a store which was
// put aside would go on without an end.
const watchAgain = 20 * time.Millisecond

func (s *swapped) Watch(ctx context.Context, after uint64) iter.Seq2[store.Revision, error] {
	return func(yield func(store.Revision, error) bool) {
		for ctx.Err() == nil {
			inner, end := context.WithTimeout(ctx, watchAgain)
			for rev, err := range s.now().Watch(inner, after) {
				if errors.Is(err, context.DeadlineExceeded) {
					break
				}
				if !yield(rev, err) || err != nil {
					end()
					return
				}
				after = rev.Number
			}
			end()
		}
		yield(store.Revision{}, ctx.Err())
	}
}

// rolled is a service, or two that share a store, in whose place another one is put.
type rolled struct {
	*testing.T
	rng   *rand.Rand
	place *swapped
	kept  atomic.Pointer[store.Seen] // of the loops of several services
	has   map[ib.PKeyBase]bool       // partitions by the last revision
	dbs   []store.Store
}

type manned struct {
	*service.Service
	m *recorder
}

func (r *rolled) newStore() store.Store {
	r.Helper()
	db, err := bolt.Open(filepath.Join(r.TempDir(), "store"))
	if err != nil {
		r.Fatal(err)
	}
	r.dbs = append(r.dbs, db)
	return db
}

func (r *rolled) copied() store.Store {
	r.Helper()
	var b bytes.Buffer
	if _, err := store.Backup(r.Context(), r.place.now(), &b); err != nil {
		r.Fatal(err)
	}
	db := r.newStore()
	if _, err := store.Restore(r.Context(), db, &b, "copy"); err != nil {
		r.Fatal(err)
	}
	return db
}

func (r *rolled) open(shared bool, seen store.Seen) *manned {
	r.Helper()
	m := &recorder{}
	var witness store.Witness
	if shared {
		witness = r.place
	}
	s, err := service.Open(r.Context(), service.Config{
		Witness: witness, Store: r.place, Manager: m, Base: &policy.Policy{Default: policy.Limited}, Owner: "test", Shared: shared,
		Now: time.Now, Seen: seen, KeepSeen: func(s store.Seen) { r.kept.Store(&s) },
	})
	if err != nil {
		r.Fatal(err)
	}
	return &manned{s, m}
}

func (r *rolled) do(s *manned, c resource.Change) (*service.Result, error) {
	return s.Do(r.Context(), service.Request{Change: c, By: provider, Seen: resource.Unseen})
}

// change makes a change that puts or deletes a partition.
func (r *rolled) change(s *manned) {
	r.Helper()
	k := ib.PKeyBase(1 + r.rng.IntN(6))
	c := partition(k)
	if r.has[k] {
		c = resource.DeletePartition{PKey: k}
	}
	if _, err := r.do(s, c); err != nil {
		r.Fatal(err)
	}
	r.has[k] = !r.has[k]
}

func (r *rolled) eventually(what string, is func() bool) {
	r.Helper()
	need.Eventually(r, need.Patience, what, is)
}

// returned are the partitions that a manager gives ports and that the last revision had
// taken away: for one that is bound to its tables, none.
func (r *rolled) returned(s *manned) (list []ib.PKeyBase) {
	why, older := s.m.heldBack()
	if why != "" && older {
		return nil // it gives nothing that the tables do not hold
	}
	_, p := s.Policy()
	told := p
	s.m.mu.Lock()
	if s.m.policy != nil {
		told = s.m.policy
	}
	s.m.mu.Unlock()
	for _, p := range [...]*policy.Policy{p, told} {
		for _, x := range p.Partitions {
			if !r.has[x.PKey] {
				list = append(list, x.PKey)
			}
		}
	}
	return list
}

// held looks at a service whose store was rolled back: it says what is missing, has its
// manager give nobody more, and takes no changes, however often it is asked.
func (r *rolled) held(s *manned, first, last uint64) {
	r.Helper()
	r.eventually("it is noticed", func() bool { _ = s.Recover(r.Context()); return s.Back() != nil })
	if from, to := s.Back().Missing(); from != first || to != last {
		r.Errorf("revisions %d to %d are missing, it says %d to %d: %v", first, last, from, to, s.Back())
	}
	if first < last && !strings.Contains(s.Back().Error(), fmt.Sprintf("revisions %d to %d", first, last)) {
		r.Errorf("it says: %v", s.Back())
	}
	if why, _ := s.m.heldBack(); why != s.Back().Error() {
		r.Errorf("the manager was told %q", why)
	}
	if keys := r.returned(s); len(keys) > 0 {
		r.Errorf("partitions %v are back", keys)
	}
	for range 3 {
		if _, err := r.do(s, partition(9)); !errors.Is(err, store.ErrRolledBack) && !errors.Is(err, service.ErrNotMaster) && !errors.Is(err, store.ErrFenced) {
			r.Errorf("a change: %v", err)
		}
		_ = s.Look(r.Context())
		if _, err := s.Confirm(r.Context()); err != nil {
			r.Errorf("after a nap: %v", err)
		}
		if keys := r.returned(s); len(keys) > 0 {
			r.Fatalf("partitions %v are back after a look", keys)
		}
	}
}

// accepts has the provider accept the store; the others follow.
func (r *rolled) accepts(all ...*manned) {
	r.Helper()
	s := all[0]
	if _, err := s.AcceptRestored(r.Context(), service.Request{By: provider}); err == nil {
		r.Error("it is accepted without a reason")
	}
	tenant := resource.Caller{Name: "x=1", Tenant: "red"}
	if _, err := s.AcceptRestored(r.Context(), service.Request{By: tenant, Why: "mine"}); err == nil || s.Back() == nil {
		r.Error("a tenant accepts a store")
	}
	done, err := s.AcceptRestored(r.Context(), service.Request{By: provider, Why: "the disk was lost"})
	if err != nil {
		r.Fatal(err)
	}
	for i, s := range all {
		r.eventually(fmt.Sprintf("manager %d takes it over", i), func() bool {
			_ = s.Recover(r.Context())
			why, _ := s.m.heldBack()
			revision, _ := s.Policy()
			return s.Back() == nil && why == "" && revision == done.Revision && s.m.told() == done.Revision
		})
	}
	r.has = map[ib.PKeyBase]bool{}
	_ = s.Read(func(x *resource.State) {
		for _, p := range x.Partitions("") {
			r.has[p.PKey] = true
		}
	})
	r.change(s)
	verified(r, r.place.now())
	contents, err := r.place.now().Load(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	accepted := false
	for e, err := range r.place.now().Audit(r.Context(), store.Range{}) {
		accepted = accepted || err == nil && e.Revision == done.Revision && e.Decision == store.Accepted && e.Reason == "the disk was lost" && e.Caller == provider.Name
	}
	if !accepted || contents.Revision != done.Revision+1 {
		r.Errorf("the audit log has it: %v; revision %d after %d", accepted, contents.Revision, done.Revision)
	}
}

// TestAStoreThatWasRolledBack puts older stores in place in six ways, each several times:
// nobody gets back what later revisions took away, and what is missing is named. When
// the provider has accepted one, the next one that is older is not accepted by that.
func TestAStoreThatWasRolledBack(t *testing.T) {
	const times = 4
	seed := uint64(time.Now().UnixNano()) % 1e6
	for _, x := range []struct {
		name string
		way  func(r *rolled)
	}{
		{"an older file before a start", (*rolled).beforeAStart},
		{"under a service that runs", (*rolled).underOne},
		{"under two managers", (*rolled).underTwo},
		{"one takes over that has not seen it", (*rolled).byAnother},
		{"others have written since", (*rolled).forked},
		{"only the audit log is older", (*rolled).auditOnly},
	} {
		for i := range uint64(times) {
			t.Run(fmt.Sprintf("%s/%d", x.name, i), func(t *testing.T) {
				t.Parallel()
				t.Logf("seed %d", seed+i)
				r := &rolled{T: t, rng: rand.New(rand.NewPCG(seed+i, 1)), place: &swapped{}, has: map[ib.PKeyBase]bool{}}
				r.place.put(r.newStore())
				t.Cleanup(func() {
					for _, db := range r.dbs {
						db.Close()
					}
				})
				x.way(r)
			})
		}
	}
}

// written makes changes, and copies the store in between.
func (r *rolled) written(s *manned) (older store.Store, at, last uint64) {
	r.Helper()
	for range 2 + r.rng.IntN(4) {
		r.change(s)
	}
	at, _ = s.Policy()
	older = r.copied()
	for range 1 + r.rng.IntN(5) {
		r.change(s)
	}
	last, _ = s.Policy()
	return older, at, last
}

func (r *rolled) beforeAStart() {
	s := r.open(false, store.Seen{})
	older, at, last := r.written(s)
	s.Close()
	r.place.put(older)
	seen := *r.kept.Load()
	for range 2 { // a start more changes nothing
		s = r.open(false, seen)
		r.held(s, at+1, last)
		if _, older := s.m.heldBack(); !older {
			r.Error("the manager is not told that its policy is older than the tables")
		}
		s.Close()
	}
	s = r.open(false, *r.kept.Load())
	r.accepts(s)
	for range 3 {
		r.change(s)
	}
	s.Close()
	seen = *r.kept.Load()
	s = r.open(false, seen)
	if s.Back() != nil {
		r.Errorf("after it was accepted: %v", s.Back())
	}
	older, at, last = r.written(s)
	s.Close()
	r.place.put(older)
	s = r.open(false, *r.kept.Load())
	r.held(s, at+1, last)
	s.Close()
}

func (r *rolled) underOne() {
	s := r.open(false, store.Seen{})
	defer s.Close()
	older, at, last := r.written(s)
	right := r.place.now()
	r.place.put(older)
	r.held(s, at+1, last)
	if _, older := s.m.heldBack(); older {
		r.Error("the policy that the service has is the last one")
	}
	r.place.put(right)
	r.eventually("the right store counts again", func() bool {
		why, _ := s.m.heldBack()
		return s.Recover(r.Context()) == nil && s.Back() == nil && why == ""
	})
	r.change(s)
	if keys := r.returned(s); len(keys) > 0 {
		r.Errorf("partitions %v are back", keys)
	}
	r.place.put(older)
	last, _ = s.Policy()
	r.held(s, at+1, last)
	r.accepts(s)
}

func (r *rolled) underTwo() {
	a, b := r.open(true, store.Seen{}), r.open(true, store.Seen{})
	defer a.Close()
	defer b.Close()
	if err := a.Lead(r.Context(), true); err != nil {
		r.Fatal(err)
	}
	older, at, last := r.written(a)
	r.eventually("the other one follows", func() bool { n, _ := b.Policy(); return n == last })
	r.place.put(older)
	r.held(a, at+1, last)
	r.held(b, at+1, last)
	// The other one takes over: it knows what is missing too.
	if err := b.Lead(r.Context(), true); err != nil {
		r.Fatal(err)
	}
	if err := a.Lead(r.Context(), false); err != nil {
		r.Fatal(err)
	}
	r.held(b, at+1, last)
	r.held(a, at+1, last)
	r.accepts(b, a)
	r.eventually("changes are followed again", func() bool { x, _ := a.Policy(); y, _ := b.Policy(); return x == y })
	older, at, last = r.written(b)
	r.eventually("and more of them", func() bool { n, _ := a.Policy(); return n == last })
	r.place.put(older)
	r.held(a, at+1, last)
	r.held(b, at+1, last)
}

// byAnother has a manager take over that has not seen what is missing: it is told by one that has,
// whether that noticed before the new one began or after.
func (r *rolled) byAnother() {
	a := r.open(true, store.Seen{})
	defer a.Close()
	lead := func(s *manned, is bool) {
		if err := s.Lead(r.Context(), is); err != nil {
			r.Fatal(err)
		}
	}
	lead(a, true)
	for range 2 { // and again after the first one was accepted
		older, at, last := r.written(a)
		r.place.put(older)
		early := r.rng.IntN(2) == 0
		var b *manned
		if early {
			b = r.open(true, store.Seen{})
		}
		r.held(a, at+1, last)
		if !early {
			b = r.open(true, store.Seen{})
		}
		lead(b, true)
		lead(a, false)
		r.held(b, at+1, last)
		if _, older := b.m.heldBack(); !older {
			r.Error("the new manager is not told that its policy is older than the tables")
		}
		r.accepts(b, a)
		b.Close()
		lead(a, true)
	}
}

func (r *rolled) forked() {
	s := r.open(false, store.Seen{})
	older, at, last := r.written(s)
	s.Close()
	seen, had := *r.kept.Load(), r.has
	r.place.put(older)
	other := r.open(false, store.Seen{}) // it has seen nothing
	r.has = map[ib.PKeyBase]bool{}
	_ = other.Read(func(x *resource.State) {
		for _, p := range x.Partitions("") {
			r.has[p.PKey] = true
		}
	})
	for n, _ := other.Policy(); n < last+uint64(r.rng.IntN(3)); n, _ = other.Policy() {
		r.change(other)
	}
	other.Close()
	r.has = had
	s = r.open(false, seen)
	r.held(s, at+1, last)
	r.accepts(s)
	s.Close()
}

func (r *rolled) auditOnly() {
	s := r.open(false, store.Seen{})
	r.written(s)
	older := r.copied()
	last, _ := s.Policy()
	for range 1 + r.rng.IntN(3) {
		if _, err := r.do(s, resource.DeletePartition{PKey: 77}); err == nil {
			r.Fatal("there is no such partition")
		}
	}
	s.Close()
	r.place.put(older)
	s = r.open(false, *r.kept.Load())
	defer s.Close()
	r.held(s, last+1, last)
	if !strings.Contains(s.Back().Error(), "audit log ends with entry") {
		r.Errorf("it says: %v", s.Back())
	}
	r.accepts(s)
}
