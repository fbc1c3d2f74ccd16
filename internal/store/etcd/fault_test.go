package etcd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/test/need"
	"github.com/ibwarden/ibwarden/test/storetest"
)

// writer commits steps until it is told to stop, and takes over again after each fault.
type writer struct {
	s            *Store
	epoch        store.Epoch
	stop         atomic.Bool
	done         chan error
	pause        atomic.Int64 // between two commits, in nanoseconds
	acknowledged atomic.Uint64
	unknown      int
	heads        []store.Head
}

func startWriter(t testing.TB, s *Store) *writer {
	t.Helper()
	epoch, err := s.Acquire(t.Context(), "writer")
	if err != nil {
		t.Fatal(err)
	}
	w := &writer{s: s, epoch: epoch, done: make(chan error, 1)}
	go func() { w.done <- w.run(t.Context()) }()
	return w
}

func (w *writer) run(ctx context.Context) error {
	next := uint64(1)
	for !w.stop.Load() {
		at, err := w.s.Commit(ctx, storetest.Step(w.epoch, next))
		switch {
		case err == nil:
			w.acknowledged.Store(next)
			w.heads = append(w.heads, at.Audit)
			next++
			time.Sleep(time.Duration(w.pause.Load()))
			continue
		case !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrStale):
			return fmt.Errorf("commit %d: %w", next, err)
		}
		w.unknown++
		for {
			now, err := w.s.Load(ctx)
			if err == nil {
				if now.Revision != next && now.Revision != next-1 {
					return fmt.Errorf("revision %d after commit %d failed", now.Revision, next)
				}
				next = now.Revision + 1
				break
			}
			if !errors.Is(err, store.ErrUnavailable) {
				return err
			}
		}
	}
	return nil
}

// more waits until the writer has done some more commits.
func (w *writer) more(t testing.TB, count uint64) {
	t.Helper()
	want := w.acknowledged.Load() + count
	for until := time.Now().Add(startWait); w.acknowledged.Load() < want; time.Sleep(time.Millisecond) {
		select {
		case err := <-w.done:
			t.Fatalf("the writer ended: %v", err)
		default:
		}
		if time.Now().After(until) {
			t.Fatalf("no commits for %s, the last was %d", startWait, w.acknowledged.Load())
		}
	}
}

func (w *writer) end(t testing.TB) {
	t.Helper()
	w.stop.Store(true)
	if err := <-w.done; err != nil {
		t.Fatal(err)
	}
}

// TestFaults does to a cluster what happens to clusters, while a manager commits. Each
// time commits go on, and at the end nothing acknowledged is lost or half done.
func TestFaults(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	follower := func() int { return (c.Leader() + 1) % members }
	restart := func(i int) { c.Start(i); c.Healthy() }
	for _, f := range []struct {
		name   string
		long   bool // only in the long form
		always bool // with -short too
		run    func(w *writer)
	}{
		{"a member killed", false, false, func(w *writer) { i := follower(); c.Kill(i); w.more(t, 5); restart(i) }},
		{"the leader killed", false, true, func(w *writer) { i := c.Leader(); c.Kill(i); w.more(t, 5); restart(i) }},
		{"a member stopped", true, false, func(w *writer) {
			i := follower()
			c.Signal(i, syscall.SIGSTOP)
			w.more(t, 5)
			c.Signal(i, syscall.SIGCONT)
		}},
		{"the leader stopped", true, false, func(w *writer) {
			i := c.Leader()
			c.Signal(i, syscall.SIGSTOP)
			w.more(t, 5)
			c.Signal(i, syscall.SIGCONT)
		}},
		{"the way to a member cut", true, false, func(w *writer) { p := c.Proxies[follower()]; p.Set(true); w.more(t, 5); p.Set(false) }},
		{"the way to all cut", false, false, func(w *writer) { c.Cut(true); time.Sleep(time.Second); c.Cut(false); w.more(t, 1) }},
		{"every member killed", false, false, func(w *writer) {
			for i := range members {
				c.Kill(i)
			}
			for i := range members {
				c.Start(i)
			}
			w.more(t, 5)
		}},
	} {
		t.Run(f.name, func(t *testing.T) {
			if f.long && !need.Soak() {
				return // the next one is like it
			}
			if !f.always {
				need.Long(t, "members of a cluster end in every way")
			}
			place := c.place(t)
			w := startWriter(t, c.hasty(t, place))
			defer w.s.Close()
			w.more(t, 3)
			f.run(w)
			w.more(t, 5)
			w.end(t)
			s := place.Open(t)
			defer s.Close()
			storetest.CheckSteps(t, s, w.acknowledged.Load(), w.heads...)
			t.Logf("%d commits, %d of which it was not known whether they were done", w.acknowledged.Load(), w.unknown)
		})
	}
}

// TestKilledMembers kills members at random, one at a time, while a manager commits.
func TestKilledMembers(t *testing.T) {
	need.Long(t, "a cluster whose members end one after the other")
	kills := 2
	if need.Soak() {
		kills = 150
	}
	r := rand.New(rand.NewPCG(need.Seed(t, 4), 0))
	t.Parallel()
	// A member that starts again reads all since its last snapshot: by default 100,000 commits,
	// which are gigabytes here.
	c := startCluster(t, "--snapshot-count", "1000")
	place := c.place(t)
	w := startWriter(t, c.hasty(t, place))
	w.pause.Store(int64(10 * time.Millisecond))
	defer w.s.Close()
	for n := range kills {
		i := n % members // each in turn
		time.Sleep(time.Duration(r.IntN(200)) * time.Millisecond)
		c.Kill(i)
		w.more(t, uint64(1+r.IntN(5)))
		c.Start(i)
		c.Healthy()
	}
	w.more(t, 1)
	w.end(t)
	s := place.Open(t)
	defer s.Close()
	storetest.CheckSteps(t, s, w.acknowledged.Load(), w.heads...)
	t.Logf("%d commits, %d members killed, %d commits of which it was not known whether they were done", w.acknowledged.Load(), kills, w.unknown)
}

// TestWriterDies ends the connection of a manager at random moments in its commits, as
// when it is killed; the next one takes over.
func TestWriterDies(t *testing.T) {
	deaths := 15
	if need.Soak() {
		deaths = 1000
	}
	r := rand.New(rand.NewPCG(need.Seed(t, 5), 0))
	t.Parallel()
	c := startCluster(t)
	place := c.place(t)
	var acknowledged uint64
	var heads []store.Head
	unanswered, pendingLeft := 0, 0
	for n := range deaths {
		if acknowledged > 100 {
			place, acknowledged, heads = c.place(t), 0, nil
		}
		s := place.Open(t).(*Store)
		epoch, err := s.Acquire(t.Context(), fmt.Sprint("manager ", n))
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Duration(r.IntN(60_000))*time.Microsecond, func() { s.close() })
		for {
			at, err := s.Commit(t.Context(), storetest.Step(epoch, acknowledged+1))
			if err != nil {
				if !errors.Is(err, store.ErrClosed) && !errors.Is(err, store.ErrUnavailable) {
					t.Fatal(err)
				}
				break
			}
			acknowledged++
			heads = append(heads, at.Audit)
		}
		s.Close()
		next := place.Open(t).(*Store)
		if at, err := next.readState(t.Context(), false); err == nil && at.Pending != nil {
			pendingLeft++
		}
		now, err := next.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		storetest.CheckObjects(t, now)
		// What the dead manager sent may arrive until the next one acquires the store.
		if _, err := next.Acquire(t.Context(), "next"); err != nil {
			t.Fatal(err)
		}
		now = storetest.CheckSteps(t, next, max(acknowledged, now.Revision), heads...)
		if now.Revision > acknowledged+1 {
			t.Fatalf("revision %d, and %d was acknowledged", now.Revision, acknowledged)
		}
		if now.Revision > acknowledged {
			unanswered++
		}
		acknowledged = now.Revision
		next.Close()
	}
	t.Logf("%d managers died: %d commits had been done without an answer, %d had objects pending", deaths, unanswered, pendingLeft)

	s := place.Open(t).(*Store)
	defer s.Close()
	epoch, err := s.Acquire(t.Context(), "last")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(t.Context(), storetest.Step(epoch, acknowledged+1)); err != nil {
		t.Fatal(err)
	}
	storetest.CheckSteps(t, s, acknowledged+1, heads...)
	if _, err := s.Acquire(t.Context(), "again"); err != nil {
		t.Fatal(err)
	}
	checkParts(t, s)
}

// checkParts looks that there are no parts but those that something refers to.
func checkParts(t testing.TB, s *Store) {
	t.Helper()
	blobs, err := s.get(t.Context(), s.prefix+"blob/", false, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, kv := range blobs.Kvs {
		used[string(kv.Key)[len(s.prefix+"blob/"):]] = true
	}
	parts, err := s.get(t.Context(), s.prefix+"part/", false, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	if len(parts.Kvs) < len(used) {
		t.Errorf("%d parts for %d values", len(parts.Kvs), len(used))
	}
	for _, kv := range parts.Kvs {
		id := string(kv.Key)[len(s.prefix+"part/"):]
		if !used[id[:len(id)-17]] {
			t.Errorf("part %s belongs to nothing", id)
		}
	}
}

// TestCutOff takes a manager's network away: it says so within a bounded time, another
// one takes over, and what the first one sent too late writes nothing.
func TestCutOff(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	place := c.place(t)
	old := c.hasty(t, place)
	defer old.Close()
	epoch, err := old.Acquire(t.Context(), "old")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.Commit(t.Context(), storetest.Step(epoch, 1)); err != nil {
		t.Fatal(err)
	}
	watch := make(chan error, 1)
	go func() {
		var last error
		for _, err := range old.Watch(t.Context(), 1) {
			last = err
		}
		watch <- last
	}()
	direct := c.Direct()
	c.Cut(true)
	commit := make(chan error, 1)
	go func() { _, err := old.Commit(t.Context(), storetest.Step(epoch, 2)); commit <- err }()

	taker, err := Open(t.Context(), Config{Endpoints: direct, Prefix: old.prefix})
	if err != nil {
		t.Fatal(err)
	}
	defer taker.Close()
	newer, err := taker.Acquire(t.Context(), "newer")
	if err != nil {
		t.Fatal(err)
	}
	want := uint64(1)
	if _, err := taker.Commit(t.Context(), storetest.Step(newer, 2)); err != nil {
		t.Fatal(err)
	}
	want++
	_, err = old.Load(t.Context())
	fails(t, "Load of a manager that is cut off", err, store.ErrUnavailable)
	for _, err := range old.Revisions(t.Context(), store.Range{MayLack: true}) {
		fails(t, "a range of a manager that is cut off from every member", err, store.ErrUnavailable)
	}
	fails(t, "Commit of a manager that is cut off", <-commit, store.ErrUnavailable)
	fails(t, "Watch of a manager that is cut off", <-watch, store.ErrUnavailable)
	c.Cut(false) // and all that it sent arrives
	for until := time.Now().Add(startWait); ; {
		if _, err = old.Load(t.Context()); err == nil || time.Now().After(until) {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = old.Commit(t.Context(), storetest.Step(epoch, 3))
	fails(t, "Commit of a manager that is back", err, store.ErrFenced)
	now := storetest.CheckSteps(t, taker, want)
	if now.Revision != want || now.Owner != "newer" {
		t.Errorf("revision %d by %s, want %d", now.Revision, now.Owner, want)
	}
}

// TestAnswerLost: the answer to a commit that was done is lost on its way.
func TestAnswerLost(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	place := c.place(t)
	s := place.Open(t).(*Store)
	defer s.Close()
	epoch, err := s.Acquire(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint64(4) {
		c.losing(t, "commit", func() error {
			at, err := s.Commit(t.Context(), storetest.Next(epoch, n))
			if err == nil && (at.Revision != n+1 || at.Audit.Sequence != n+1) {
				t.Errorf("commit %d: %+v", n+1, at)
			}
			return err
		})
	}
	storetest.Verify(t, s)
}

// losing does something while the next answer of each member is lost: it has to succeed all the same.
func (c cluster) losing(t *testing.T, what string, do func() error) {
	t.Helper()
	for _, p := range c.Proxies {
		p.Lose.Store(true)
	}
	if err := do(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	left := 0
	for _, p := range c.Proxies {
		if p.Lose.Swap(false) {
			left++
		}
	}
	if left == members {
		t.Fatalf("%s: no answer was lost", what)
	}
}

// TestLateParts: a fenced manager cannot write what it has left to write besides its commit.
func TestLateParts(t *testing.T) {
	need.Long(t, "a cluster of its own")
	t.Parallel()
	c := startCluster(t)
	place := c.place(t)
	old, next := place.Open(t).(*Store), place.Open(t).(*Store)
	defer old.Close()
	defer next.Close()
	epoch, err := old.Acquire(t.Context(), "old")
	if err != nil {
		t.Fatal(err)
	}
	step := storetest.Step(epoch, 1)
	if _, err := old.Commit(t.Context(), step); err != nil {
		t.Fatal(err)
	}
	at, err := old.readState(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	if epoch, err = next.Acquire(t.Context(), "next"); err != nil {
		t.Fatal(err)
	}
	if _, err := next.Commit(t.Context(), storetest.Step(epoch, 2)); err != nil {
		t.Fatal(err)
	}
	fails(t, "an object written late", old.put(t.Context(), at, old.objectOp(step.Puts[0])), errMoved)
	_, err = old.writeParts(t.Context(), at, []byte("late"))
	fails(t, "a part written late", err, errMoved)
	storetest.CheckSteps(t, next, 2)
}

// TestNoMajority kills two of three members: writes are refused, and what the last
// one has can be read.
func TestNoMajority(t *testing.T) {
	need.Long(t, "a cluster without a majority, until every call has given up")
	t.Parallel()
	c := startCluster(t)
	place := c.place(t)
	s := c.hasty(t, place)
	defer s.Close()
	epoch, err := s.Acquire(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint64(5) {
		if _, err := s.Commit(t.Context(), storetest.Step(epoch, n+1)); err != nil {
			t.Fatal(err)
		}
	}
	c.Kill(0)
	c.Kill(1)
	_, err = s.Load(t.Context())
	fails(t, "Load", err, store.ErrUnavailable)
	_, err = s.Commit(t.Context(), storetest.Step(epoch, 6))
	fails(t, "Commit", err, store.ErrUnavailable)
	_, err = Open(t.Context(), s.config)
	fails(t, "Open", err, store.ErrUnavailable)
	if got := storetest.Entries(t, s, store.Range{MayLack: true, Newest: true}); len(got) < 4 {
		t.Errorf("%d entries are read from the member that is left, want at least 4", len(got))
	}
	c.Start(0)
	c.Start(1)
	c.Healthy()
	back := place.Open(t)
	defer back.Close()
	if epoch, err = back.Acquire(t.Context(), "back"); err != nil {
		t.Fatal(err)
	}
	now := storetest.CheckSteps(t, back, 5) // the sixth may have been done
	if _, err := back.Commit(t.Context(), storetest.Step(epoch, now.Revision+1)); err != nil {
		t.Fatal(err)
	}
	storetest.CheckSteps(t, back, now.Revision+1)
}

// TestFull fills a small cluster until its alarm rises: somebody else does, who uses it
// too, and tidies up in the end.
func TestFull(t *testing.T) {
	need.Long(t, "a cluster that is filled")
	t.Parallel()
	// The file of a member may be twice as large as what is in it: what the other one writes has
	// to fit in any case.
	c := startCluster(t, "--quota-backend-bytes", fmt.Sprint(16<<20))
	place := c.place(t)
	s := place.Open(t).(*Store)
	defer s.Close()
	epoch, err := s.Acquire(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	client := c.Client(0)
	defer client.Close()
	for i := range 5 {
		if _, err := client.Put(t.Context(), fmt.Sprint("other/", i), strings.Repeat("x", 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	// The request that crosses the limit is one that commits: etcd carries it out, and
	// answers that there is no space.
	next := func(n uint64) store.Commit {
		return storetest.Next(epoch, n-1, store.Object{Key: "k", Value: make([]byte, 100<<10)})
	}
	n := uint64(0)
	for err == nil {
		n++
		_, err = s.Commit(t.Context(), next(n))
	}
	fails(t, fmt.Sprintf("commit %d to a full cluster", n), err, store.ErrFull)
	if now := storetest.Verify(t, s); now.Revision != n-1 {
		t.Fatalf("revision %d after commit %d failed", now.Revision, n)
	}
	at, err := client.Delete(t.Context(), "other/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Compact(t.Context(), at.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	for i := range members {
		if _, err := client.Defragment(t.Context(), c.Direct()[i]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.AlarmDisarm(t.Context(), &clientv3.AlarmMember{}); err != nil {
		t.Fatal(err)
	}
	for end := n + 5; n < end; n++ {
		if _, err := s.Commit(t.Context(), next(n)); err != nil {
			t.Fatalf("commit %d when there is space again: %v", n, err)
		}
	}
	storetest.Verify(t, s)
}

// TestCompacted compacts etcd under a watch, which goes on without a gap, and under a
// wait that begins too far back, which ends.
func TestCompacted(t *testing.T) {
	need.Long(t, "a cluster that is compacted")
	t.Parallel()
	c := startCluster(t)
	place := c.place(t)
	s, other := place.Open(t).(*Store), place.Open(t).(*Store)
	defer s.Close()
	defer other.Close()
	epoch, err := s.Acquire(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	client := c.Client(0)
	defer client.Close()
	first, err := s.readState(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	next := uint64(1)
	advance := func() {
		t.Helper()
		for range 5 {
			if _, err := s.Commit(t.Context(), storetest.Step(epoch, next)); err != nil {
				t.Fatal(err)
			}
			next++
		}
		r, err := client.Get(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Compact(t.Context(), r.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
			t.Fatal(err)
		}
	}
	advance()
	want := uint64(1)
	for r, err := range other.Watch(t.Context(), 0) {
		if err != nil || r.Number != want {
			t.Fatalf("revision %d, want %d, error %v", r.Number, want, err)
		}
		if want == 3 || want == 8 || want == 12 {
			advance()
		}
		if want == 20 {
			break
		}
		want++
	}
	raw := other.direct(t).Watch(t.Context(), s.prefix+"state", clientv3.WithRev(first.revision))
	if r := <-raw; r.CompactRevision == 0 {
		t.Fatalf("the test is wrong: etcd still has revision %d", first.revision)
	}
	ended := make(chan struct{})
	go func() { other.await(t.Context(), seen{revision: first.revision - 1}); close(ended) }()
	select {
	case <-ended:
	case <-time.After(startWait):
		t.Error("a watch that was compacted away does not end")
	}
	storetest.CheckSteps(t, other, 20)
}

func fails(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: error %v, want %v", what, err, want)
	}
}
