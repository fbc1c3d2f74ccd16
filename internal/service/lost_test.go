package service_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/test/need"
)

// eventually waits until something is so.
func (r *rig) eventually(what string, is func() bool) {
	r.Helper()
	need.Eventually(r, need.Patience, what, is)
}

func (r *rig) outcomeOf(revision uint64) service.OutcomeState {
	r.Helper()
	record, err := r.Revision(r.Context(), provider, revision)
	if err != nil || record.Outcome == nil {
		return ""
	}
	return record.Outcome.State
}

// TestOutcomesWaitForTheStore: what the manager says while the store is lost is stored
// when it is back; of each revision the newest, however often it was said.
func TestOutcomesWaitForTheStore(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "store"), false)
	for k := range ib.PKeyBase(3) {
		r.must(partition(5 + k))
	}
	r.store.fail(store.ErrUnavailable, nil)
	r.Done(2, service.Outcome{Verdict: isolation.Isolated, Writes: 7})
	r.eventually("the service knows that the store is lost", func() bool { return r.Read(func(*resource.State) {}) != nil })
	for range 5 { // each verdict is told
		r.Done(3, service.Outcome{Verdict: isolation.Violated})
	}
	r.Done(3, service.Outcome{Verdict: isolation.Isolated})
	if got := r.outcomeOf(2); got != "" {
		t.Fatalf("revision 2 is %s in a store that fails every write", got)
	}
	if err := r.Recover(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Fatal(err)
	}
	r.store.fail(nil, nil)
	if err := r.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.eventually("every revision has its outcome", func() bool {
		return r.outcomeOf(1) == service.Proved && r.outcomeOf(2) == service.Proved && r.outcomeOf(3) == service.Proved
	})
	r.end()
}

// TestOneOutcomeOfARevision: two verdicts of one revision in a short time are one commit's.
func TestOneOutcomeOfARevision(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "store"), false)
	r.must(partition(5))
	for range 20 {
		r.Done(1, service.Outcome{Verdict: isolation.Violated})
	}
	r.Done(1, service.Outcome{Verdict: isolation.Isolated})
	r.Service.Close()
	if got := r.outcomeOf(1); got != service.Proved {
		t.Errorf("revision 1: %q: want the last verdict", got)
	}
	if err := r.store.Close(); err != nil {
		t.Error(err)
	}
}

// TestRevisionsOfAnEarlierRunGetAnOutcome: the run that accepted them ended before they
// were carried out, and the next one carries out all of them at once.
func TestRevisionsOfAnEarlierRunGetAnOutcome(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "store"), false)
	r.must(partition(5))
	r.Done(1, service.Outcome{Verdict: isolation.Isolated, Writes: 3})
	r.must(partition(6))
	r.must(partition(7))
	r.end()
	again := open(t, r.dir, false)
	if o := again.Outcome(2); o == nil || o.State != service.Pending {
		t.Errorf("revision 2 after a restart: %+v: want it pending", o)
	}
	if o := again.Outcome(1); o != nil {
		t.Errorf("revision 1 after a restart: %+v: its outcome is in the history", o)
	}
	again.Done(3, service.Outcome{Verdict: isolation.Isolated})
	again.Service.Close()
	for n := uint64(1); n <= 3; n++ {
		if got := again.outcomeOf(n); got != service.Proved {
			t.Errorf("revision %d: %q", n, got)
		}
	}
	if record, err := again.Revision(t.Context(), provider, 1); err != nil || record.Outcome.Writes != 3 {
		t.Errorf("revision 1: %+v, %v: want the outcome that it had", record, err)
	}
	if err := again.store.Close(); err != nil {
		t.Error(err)
	}
}

// TestACallerWhoGoesStopsNothing: a change that is being stored is stored, though nobody
// waits for the answer any more; a store that was interrupted would not know.
func TestACallerWhoGoesStopsNothing(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "store"), false)
	defer r.end()
	ctx, leave := context.WithCancel(t.Context())
	r.store.during = func(inner context.Context) error { leave(); return inner.Err() }
	if _, err := r.Do(ctx, service.Request{Change: partition(5), By: provider, Seen: resource.Unseen}); err != nil {
		t.Errorf("%v: want it stored", err)
	}
	r.store.during = nil
	if _, err := r.Do(ctx, service.Request{Change: partition(6), By: provider, Seen: resource.Unseen}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v: want that nothing is begun for a caller who has gone", err)
	}
	r.must(partition(7))
	if r.last() != 2 || r.manager.has(6) {
		t.Errorf("revision %d", r.last())
	}
}

// TestAnUnknownErrorIsLookedUp: whatever a store says that it did not foresee, the
// service reads the store before it goes on.
func TestAnUnknownErrorIsLookedUp(t *testing.T) {
	for _, why := range []error{errors.New("an answer of nobody"), store.ErrStale, context.DeadlineExceeded} {
		r := open(t, filepath.Join(t.TempDir(), "store"), false)
		r.store.fail(nil, why)
		_, err := r.do(partition(5))
		if !errors.Is(err, why) || errors.Is(err, store.ErrStale) == errors.Is(err, service.ErrUnknown) {
			t.Errorf("%v: %v", why, err)
		}
		r.store.fail(nil, nil)
		r.must(partition(6))
		if r.last() != 2 || !r.manager.has(5) {
			t.Errorf("%v: revision %d: what was stored is not in force", why, r.last())
		}
		r.end()
	}
}

// TestALostStoreIsNotAskedByEverybody: while it is lost, and answers nobody, one asks it and
// all are refused soon; when it answers, the next change is taken.
func TestALostStoreIsNotAskedByEverybody(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "store"), false)
	defer r.end()
	r.store.fail(store.ErrUnavailable, nil)
	if _, err := r.do(partition(5)); !errors.Is(err, store.ErrUnavailable) {
		t.Fatal(err)
	}
	silent := make(chan struct{})
	r.store.silence(silent)
	answers := make(chan error)
	for range 10 {
		go func() { _, err := r.do(partition(5)); answers <- err }()
	}
	for range 10 {
		if err := <-answers; !errors.Is(err, store.ErrUnavailable) {
			t.Fatal(err)
		}
	}
	if n := r.store.reading(); n != 2 { // by Open, and by the one that waits
		t.Errorf("the store was read %d times", n)
	}
	r.store.fail(nil, nil)
	close(silent)
	r.eventually("the store is found", func() bool { return r.Read(func(*resource.State) {}) == nil })
	r.must(partition(6))
}

// TestAnOutcomeBeforeTheStoreIsTaken: a new master proves the fabric before it has taken
// the store over, and is not taken for one that was fenced off.
func TestAnOutcomeBeforeTheStoreIsTaken(t *testing.T) {
	a := open(t, filepath.Join(t.TempDir(), "store"), true)
	defer a.end()
	if err := a.Lead(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	a.must(partition(5))
	b := a.beside()
	defer b.Service.Close()
	b.eventually("the standby has revision 1", func() bool { return b.last() == 1 })
	b.Done(1, service.Outcome{Verdict: isolation.Isolated})
	time.Sleep(50 * time.Millisecond) // for it to be tried
	if err := b.Read(func(*resource.State) {}); !errors.Is(err, service.ErrNotMaster) {
		t.Fatalf("%v: want ErrNotMaster", err)
	}
	if err := b.Lead(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	b.must(partition(6))
	b.eventually("the outcome is stored", func() bool { return b.outcomeOf(1) == service.Proved })
	if _, err := a.do(partition(7)); !errors.Is(err, store.ErrFenced) {
		t.Errorf("the former master: %v: want ErrFenced", err)
	}
}

// beside is another service on the same store, as a standby.
func (r *rig) beside() *rig {
	r.Helper()
	b := &rig{T: r.T, manager: &recorder{}, store: &broken{Store: r.store.Store}, dir: r.dir}
	b.set(r.now())
	var err error
	b.Service, err = service.Open(r.Context(), service.Config{
		Store: b.store, Manager: b.manager, Base: &policy.Policy{Default: policy.Limited}, Owner: "beside", Shared: true,
		Now: b.now,
	})
	if err != nil {
		r.Fatal(err)
	}
	return b
}

// TestAStandbyFollows: it shows what the master wrote, hands it to its manager, says
// which revision it has, and writes nothing; after a takeover the two change their parts.
func TestAStandbyFollows(t *testing.T) {
	const seed, changes = 16, 120
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, seed))
	a := open(t, filepath.Join(t.TempDir(), "store"), true)
	defer a.end()
	b := a.beside()
	defer b.Service.Close()
	master, standby := a, b
	for round := range 3 {
		if err := standby.Lead(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if err := master.Lead(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		for range changes {
			_, _ = master.Do(t.Context(), service.Request{Change: randomChange(random), By: provider, Seen: resource.Unseen})
		}
		last := master.last()
		if last < uint64((round+1)*changes/4) {
			t.Fatalf("%d revisions after %d changes: too few to say anything", last, (round+1)*changes)
		}
		standby.eventually("the standby has the last revision", func() bool { return standby.last() == last })
		same(t, master, standby)
		old := standby.Read(func(*resource.State) {})
		if !errors.Is(old, service.ErrNotMaster) || !strings.Contains(old.Error(), fmt.Sprintf("revision %d", last)) {
			t.Errorf("%v: want which revision it has", old)
		}
		if _, err := standby.do(partition(99)); !errors.Is(err, service.ErrNotMaster) {
			t.Errorf("a standby: %v", err)
		}
		standby.eventually("its manager has the policy", func() bool {
			standby.manager.mu.Lock()
			defer standby.manager.mu.Unlock()
			_, want := master.Policy()
			return standby.manager.revision == last && reflect.DeepEqual(standby.manager.policy, want)
		})
		master, standby = standby, master
	}
}

func randomChange(r *rand.Rand) resource.Change {
	k, port := ib.PKeyBase(2+r.IntN(6)), ib.PortGUID(1+r.IntN(5))
	switch r.IntN(5) {
	case 0:
		return resource.DeletePartition{PKey: k}
	case 1:
		return resource.RemoveMembers{PKey: k, Ports: []ib.PortGUID{port}}
	case 2, 3:
		return resource.SetMembers{PKey: k, Members: []resource.Member{{Port: port, Membership: policy.Full}, {Port: port + 1, Membership: policy.Limited}}}
	}
	return partition(k)
}

// same holds what two services show against each other, and against what a third reads
// of the store.
func same(t *testing.T, a, b *rig) {
	t.Helper()
	state := func(r *rig) (out map[string]resource.Object, revisions map[string]uint64) {
		out, revisions = map[string]resource.Object{}, map[string]uint64{}
		_ = r.Read(func(s *resource.State) {
			for _, o := range s.Objects() {
				out[o.Key()], revisions[o.Key()] = s.Object(o.Key())
			}
		})
		return out, revisions
	}
	fresh := a.beside()
	defer fresh.Service.Close()
	want, wantRevisions := state(a)
	for name, r := range map[string]*rig{"the standby": b, "one that reads the store": fresh} {
		got, revisions := state(r)
		if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(revisions, wantRevisions) {
			t.Fatalf("%s has %d objects, the master %d; or other revisions of them", name, len(got), len(want))
		}
	}
}

// TestAStandbyThatCannotFollow: it says so, goes on showing what it has, and catches up.
func TestAStandbyThatCannotFollow(t *testing.T) {
	a := open(t, filepath.Join(t.TempDir(), "store"), true)
	defer a.end()
	b := a.beside()
	defer b.Service.Close()
	if err := a.Lead(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	a.must(partition(5))
	b.eventually("revision 1", func() bool { return b.last() == 1 })
	b.store.fail(nil, nil)
	b.store.mu.Lock()
	b.store.unread = store.ErrUnavailable
	b.store.mu.Unlock()
	a.must(partition(6)) // wakes the watch, which then fails
	b.eventually("it says why it cannot follow", func() bool {
		old := b.Read(func(*resource.State) {})
		return errors.Is(old, store.ErrUnavailable) && errors.Is(old, service.ErrNotMaster)
	})
	a.must(partition(7))
	if n := b.last(); n > 2 {
		t.Fatalf("revision %d of a store that cannot be read", n)
	}
	b.store.mu.Lock()
	b.store.unread = nil
	b.store.mu.Unlock()
	b.eventually("it has caught up", func() bool { return b.last() == 3 && b.manager.has(7) })
	same(t, a, b)
}

// TestAMasterLooksWhetherItStillIs: one to whom nobody writes learns that another has
// taken the store over, or that the store is lost, all the same.
func TestAMasterLooksWhetherItStillIs(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "store"), true)
	defer r.end()
	if err := r.Lead(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	r.must(partition(5))
	look := func(want error) {
		t.Helper()
		r.pass(10 * time.Second)
		err := r.Recover(t.Context())
		if old := r.Read(func(*resource.State) {}); !errors.Is(err, want) || !errors.Is(old, want) || (want == nil) != (old == nil) {
			t.Errorf("%v, and reads are marked %v: want %v", err, old, want)
		}
	}
	before, err := r.store.Store.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	look(nil)
	r.store.fail(store.ErrUnavailable, nil)
	look(store.ErrUnavailable)
	r.store.fail(nil, nil)
	look(nil)
	after, err := r.store.Store.Load(t.Context())
	if err != nil || !reflect.DeepEqual(after, before) {
		t.Errorf("looking changed the store: %+v, before %+v, %v", after, before, err)
	}
	if _, err := r.store.Acquire(t.Context(), "another"); err != nil {
		t.Fatal(err)
	}
	look(store.ErrFenced)
	look(store.ErrFenced)
}
