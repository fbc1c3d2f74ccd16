package service_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/internal/store/bolt"
	"github.com/ibwarden/ibwarden/test/need"
)

// recorder is a manager that carries out what it is told when the test says so.
type recorder struct {
	predicting chan struct{} // where not nil, Predict waits until it is closed

	mu       sync.Mutex
	revision uint64
	policy   *policy.Policy
	back     string // HoldBack was told
	older    bool
}

func (m *recorder) HoldBack(why string, older bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.back, m.older = why, older
}

// heldBack is why no port is given anything new.
func (m *recorder) heldBack() (why string, older bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.back, m.older
}

func (m *recorder) FollowPolicy(revision uint64, p *policy.Policy) { m.SetPolicy(revision, p) }

func (m *recorder) SetPolicy(revision uint64, p *policy.Policy) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.revision, m.policy = revision, p
}

func (m *recorder) Predict(context.Context, *policy.Policy) (*service.Plan, error) {
	if m.predicting != nil {
		<-m.predicting
	}
	return &service.Plan{Text: "one write"}, nil
}

func (m *recorder) Snapshot(context.Context) (*snapshot.Snapshot, error) {
	return nil, service.ErrNotRead
}

// told is the revision of the policy that the manager was told last.
func (m *recorder) told() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.revision
}

func (m *recorder) has(base ib.PKeyBase) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.policy.Partitions {
		if p.PKey == base {
			return true
		}
	}
	return false
}

// broken is a store that fails when it is told to: a commit before or after it was done,
// and all reads.
type broken struct {
	store.Store
	during func(context.Context) error // called before a commit

	mu                    sync.Mutex
	before, after, unread error
	loads                 int
	silent                <-chan struct{} // where not nil, reads wait until it is closed
}

func (b *broken) silence(c <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.silent = c
}

// reading is how often the store was read.
func (b *broken) reading() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.loads
}

func (b *broken) fail(before, after error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.before, b.after = before, after
}

func (b *broken) Commit(ctx context.Context, c store.Commit) (store.Committed, error) {
	b.mu.Lock()
	before, after := b.before, b.after
	b.mu.Unlock()
	if before == nil && b.during != nil {
		before = b.during(ctx)
	}
	if before != nil {
		return store.Committed{}, before
	}
	done, err := b.Store.Commit(ctx, c)
	if err == nil {
		err = after
	}
	return done, err
}

func (b *broken) Load(ctx context.Context) (*store.Contents, error) {
	if err := b.reads(); err != nil {
		return nil, err
	}
	return b.Store.Load(ctx)
}

func (b *broken) reads() error {
	b.mu.Lock()
	b.loads++
	silent := b.silent
	b.mu.Unlock()
	if silent != nil {
		<-silent
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.unread
}

func (b *broken) Watch(ctx context.Context, after uint64) iter.Seq2[store.Revision, error] {
	return func(yield func(store.Revision, error) bool) {
		for rev, err := range b.Store.Watch(ctx, after) {
			if e := b.reads(); e != nil {
				yield(store.Revision{}, e)
				return
			}
			if !yield(rev, err) {
				return
			}
		}
	}
}

type rig struct {
	*testing.T
	*service.Service
	manager *recorder
	store   *broken
	dir     string
	clock
}

// clock is the time of a rig, which the loop of its service reads too.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time       { return time.Unix(0, c.at.Load()).UTC() }
func (c *clock) set(t time.Time)      { c.at.Store(t.UnixNano()) }
func (c *clock) pass(d time.Duration) { c.at.Add(int64(d)) }

func open(t *testing.T, dir string, shared bool) *rig {
	t.Helper()
	db, err := bolt.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, manager: &recorder{}, store: &broken{Store: db}, dir: dir}
	r.set(time.Unix(1e9, 0))
	r.Service, err = service.Open(t.Context(), service.Config{
		Store: r.store, Manager: r.manager, Base: &policy.Policy{Default: policy.Limited}, Owner: "test", Shared: shared,
		Now: r.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) end() {
	r.Service.Close()
	if err := r.store.Close(); err != nil {
		r.Error(err)
	}
}

var provider = resource.Caller{Name: "uid 0", Tenant: resource.Provider}

func partition(k ib.PKeyBase) resource.Change {
	return resource.PutPartition{Partition: resource.Partition{PKey: k, Name: fmt.Sprintf("p%d", k)}}
}

func (r *rig) do(c resource.Change) (*service.Result, error) {
	return r.Do(r.Context(), service.Request{Change: c, By: provider, Seen: resource.Unseen})
}

func (r *rig) must(c resource.Change) *service.Result {
	r.Helper()
	result, err := r.do(c)
	if err != nil {
		r.Fatalf("%s: %v", c.Action(), err)
	}
	return result
}

func (r *rig) last() (n uint64) {
	_ = r.Read(func(s *resource.State) { n = s.Last() })
	return n
}

func TestWhatWasAcknowledgedIsThereAgain(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "store"), false)
	r.must(partition(5))
	r.Done(1, service.Outcome{Verdict: isolation.Isolated, Writes: 3})
	r.end()
	again := open(t, r.dir, false)
	defer again.end()
	if revision, p := again.Policy(); revision != 1 || len(p.Partitions) != 1 || p.Partitions[0].PKey != 5 {
		t.Fatalf("after a restart: revision %d, %+v", revision, p.Partitions)
	}
	record, err := again.Revision(t.Context(), provider, 1)
	if err != nil || record.Outcome == nil || record.Outcome.State != service.Proved || record.Outcome.Writes != 3 {
		t.Fatalf("revision 1: %+v, %v: want its outcome", record, err)
	}
}

func TestARepeatedRequestDoesNothingTwice(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "store"), false)
	make5 := service.Request{Change: partition(5), By: provider, Seen: resource.Unseen, Repeat: "key"}
	first, err := r.Do(t.Context(), make5)
	if err != nil {
		t.Fatal(err)
	}
	r.must(resource.DeletePartition{PKey: 5})
	r.end()
	r = open(t, r.dir, false) // it is remembered by the store
	again, err := r.Do(t.Context(), make5)
	if err != nil || !again.Repeated || again.Revision != first.Revision {
		t.Fatalf("the same again: %+v, %v", again, err)
	}
	if r.manager.policy != nil {
		t.Fatal("the manager was given a policy for a repeated request")
	}
	// Of another caller the key means nothing; for another request it is an error.
	other := make5
	other.By.Name = "uid 7"
	if again, err = r.Do(t.Context(), other); err != nil || again.Repeated {
		t.Fatalf("another caller: %+v, %v", again, err)
	}
	other = make5
	other.Change = partition(6)
	if _, err = r.Do(t.Context(), other); !errors.Is(err, service.ErrRepeat) {
		t.Fatalf("another request: %v: want ErrRepeat", err)
	}
	// After a day it is forgotten.
	r.must(resource.DeletePartition{PKey: 5})
	r.pass(25 * time.Hour)
	r.must(partition(7))
	if again, err = r.Do(t.Context(), make5); err != nil || again.Repeated {
		t.Fatalf("after a day: %+v, %v", again, err)
	}
	r.end()
}

func TestWhatWasNotStoredTakesNoEffect(t *testing.T) {
	for _, err := range []error{store.ErrUnavailable, store.ErrFull, store.ErrFenced} {
		r := open(t, filepath.Join(t.TempDir(), "store"), false)
		r.must(partition(5))
		r.store.fail(err, nil)
		if _, got := r.do(partition(6)); !errors.Is(got, err) {
			t.Errorf("%v: %v", err, got)
		}
		if r.manager.has(6) || r.last() != 1 {
			t.Errorf("%v: the change took effect", err)
		}
		if old := r.Read(func(*resource.State) {}); !errors.Is(old, err) {
			t.Errorf("%v: reads are not marked as old: %v", err, old)
		}
		r.store.fail(nil, nil)
		if _, got := r.do(partition(6)); errors.Is(err, store.ErrFenced) != (got != nil) {
			t.Errorf("%v, and then it is over: %v", err, got)
		}
		r.end()
	}
}

func TestWhatWasStoredUnheardTakesEffect(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "store"), false)
	defer r.end()
	r.store.fail(nil, store.ErrUnavailable)
	if _, err := r.do(partition(5)); err == nil {
		t.Fatal("no error though nobody knows whether it was stored")
	}
	r.store.fail(nil, nil)
	r.must(partition(6)) // reads the store first
	if !r.manager.has(5) || !r.manager.has(6) || r.last() != 2 {
		t.Fatalf("revision %d: what the store has is not in force", r.last())
	}
}

func TestARefusedRevisionIsTakenBack(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "store"), false)
	r.must(partition(5))
	r.Done(1, service.Outcome{Verdict: isolation.Isolated})
	r.must(partition(6))
	r.Refused(2, errors.New("the P_Key table of port 7 has no room"))
	r.Service.Close() // waits
	if r.manager.has(6) || !r.manager.has(5) || r.last() != 3 {
		t.Fatalf("revision %d: the refused revision is still in force", r.last())
	}
	record, err := r.Revision(t.Context(), provider, 2)
	if err != nil || record.Outcome == nil || record.Outcome.State != service.Refused {
		t.Fatalf("revision 2: %+v, %v", record, err)
	}
	if err := r.store.Close(); err != nil {
		t.Error(err)
	}
}

// Of several revisions that were refused at once those are taken back that the policy is
// made of, the newest first, until the fabric takes the rest.
func TestOnlyWhatCountsForThePolicyIsTakenBack(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "store"), false)
	r.must(partition(5))
	r.Done(1, service.Outcome{Verdict: isolation.Isolated})
	r.must(partition(6))
	r.must(partition(7))
	sum := strings.Repeat("ab", 32)
	r.must(resource.PutToken{Token: resource.Token{ID: "t1", Tenant: resource.Provider, Sum: sum}})
	// The state has a revision before the manager is told of it.
	wait := func(last uint64) {
		need.Eventually(t, need.Patience, "the manager is told", func() bool { return r.manager.told() >= last })
	}
	r.Refused(4, errors.New("no room"))
	wait(5)
	if r.manager.has(7) || !r.manager.has(6) || r.last() != 5 {
		t.Fatalf("revision %d: want the newest partition to be taken back", r.last())
	}
	r.Refused(5, errors.New("no room"))
	wait(6)
	if r.manager.has(6) || !r.manager.has(5) || r.last() != 6 {
		t.Fatalf("revision %d: want the partition before it to be taken back", r.last())
	}
	r.Refused(6, errors.New("no room"))
	r.Service.Close()
	if !r.manager.has(5) || r.last() != 6 {
		t.Fatalf("revision %d: what the manager has carried out was taken back", r.last())
	}
	_ = r.Read(func(s *resource.State) {
		if s.Token(sum) == nil {
			t.Error("a token was taken back")
		}
	})
	if err := r.store.Close(); err != nil {
		t.Error(err)
	}
}

// A verdict may be that of more revisions than one commit has outcomes.
func TestManyOutcomesAreStored(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "store"), false)
	const changes = 2*store.MaxOutcomes + 3
	for i := range changes {
		r.must(partition(ib.PKeyBase(i + 2)))
	}
	r.Done(changes, service.Outcome{Verdict: isolation.Isolated})
	r.end()
	again := open(t, r.dir, false)
	defer again.end()
	for n := uint64(1); n <= changes; n++ {
		record, err := again.Revision(t.Context(), provider, n)
		if err != nil || record.Outcome == nil || record.Outcome.State != service.Proved {
			t.Errorf("revision %d: %+v, %v", n, record, err)
		}
	}
}

func TestAChangedFabricTakesNothingBack(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "store"), false)
	defer r.end()
	r.must(partition(5))
	r.Done(1, service.Outcome{Verdict: isolation.Isolated})
	r.Refused(1, errors.New("a switch came up with a table of one entry"))
	if !r.manager.has(5) || r.last() != 1 {
		t.Fatalf("revision %d: a revision that was proved was taken back", r.last())
	}
}

func TestOnlyTheMasterWritesASharedStore(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "store"), true)
	defer r.end()
	if _, err := r.do(partition(5)); !errors.Is(err, service.ErrNotMaster) {
		t.Fatalf("a standby: %v: want ErrNotMaster", err)
	}
	if err := r.Lead(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	r.must(partition(5))
	if err := r.Lead(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if _, err := r.do(partition(6)); !errors.Is(err, service.ErrNotMaster) {
		t.Fatalf("a former master: %v: want ErrNotMaster", err)
	}
}

// A dry run that takes long keeps nobody from writing.
func TestDryRunsKeepNobodyWaiting(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "store"), false)
	defer r.end()
	r.manager.predicting = make(chan struct{})
	answered := make(chan error, 1)
	go func() {
		result, err := r.Do(t.Context(), service.Request{Change: partition(6), By: provider, Seen: resource.Unseen, DryRun: true})
		if err == nil && result.Plan == nil {
			err = errors.New("no plan")
		}
		answered <- err
	}()
	r.must(partition(5))
	close(r.manager.predicting)
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	if r.last() != 1 {
		t.Errorf("revision %d: the dry run changed something", r.last())
	}
}

// A refusal that cannot be recorded is no answer: the audit log has every decision.
func TestRefusalsAreRecorded(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "store"), false)
	defer r.end()
	r.store.fail(store.ErrFull, nil)
	var refusal *resource.Refusal
	if _, err := r.do(partition(0x7FFF)); !errors.Is(err, store.ErrFull) || errors.As(err, &refusal) {
		t.Errorf("%v: want ErrFull", err)
	}
}

// Who follows a revision of a tenant hears of its outcome too.
func TestTenantsHearOfOutcomes(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "store"), false)
	defer r.end()
	r.must(resource.PutTenant{Tenant: resource.Tenant{Name: "red", Keys: resource.KeyRange{First: 1, Last: 9}}})
	r.must(resource.PutPartition{Partition: resource.Partition{PKey: 5, Name: "training", Owner: "red"}})
	r.must(partition(0x10))
	r.pass(time.Second)
	r.Done(3, service.Outcome{Verdict: isolation.Isolated})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var heard []uint64
	for e := range r.Events(ctx, resource.Caller{Name: "red-1", Tenant: "red"}, "") {
		if e.Kind == service.EventOutcome {
			if heard = append(heard, e.Revision); e.Outcome.Seconds != 1 {
				t.Errorf("outcome of revision %d: %+v: want it after 1 s", e.Revision, e.Outcome)
			}
		}
		if len(heard) == 2 {
			break
		}
	}
	if len(heard) != 2 || heard[0] != 1 || heard[1] != 2 {
		t.Errorf("red hears of the outcomes of %v: want 1 and 2", heard)
	}
}

func TestEventsAreResumed(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "store"), false)
	defer r.end()
	read := func(by resource.Caller, after string, n int) (list []service.Event) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for e := range r.Events(ctx, by, after) {
			if list = append(list, e); len(list) == n {
				break
			}
		}
		return list
	}
	r.must(resource.PutTenant{Tenant: resource.Tenant{Name: "red", Keys: resource.KeyRange{First: 1, Last: 9}}})
	r.must(partition(0x10))
	r.must(resource.PutPartition{Partition: resource.Partition{PKey: 5, Name: "training", Owner: "red"}})
	all := read(provider, "", 3)
	if len(all) != 3 || all[2].Revision != 3 {
		t.Fatalf("%+v: want three revisions", all)
	}
	if rest := read(provider, all[0].ID, 2); len(rest) != 2 || rest[0].ID != all[1].ID {
		t.Fatalf("after the first: %+v", rest)
	}
	// A tenant sees what concerns it.
	if own := read(resource.Caller{Name: "red-1", Tenant: "red"}, "", 2); len(own) != 2 || own[0].Revision != 1 || own[1].Revision != 3 {
		t.Fatalf("red sees %+v: want revisions 1 and 3", own)
	}
	kept := slices.Collect(r.KeptEvents(provider, all[0].ID)) // ends by itself
	if len(kept) < 2 || kept[0].ID != all[1].ID {
		t.Fatalf("kept after the first: %+v", kept)
	}
	for e := range r.KeptEvents(resource.Caller{Name: "red-1", Tenant: "red"}, "") {
		if e.Kind == service.EventRevision && e.Revision == 2 {
			t.Errorf("red sees %+v", e)
		}
	}
	if lost := read(provider, "another-7", 1); len(lost) != 1 || lost[0].Kind != service.EventReset {
		t.Fatalf("after an event of another run: %+v: want a reset", lost)
	}
}
