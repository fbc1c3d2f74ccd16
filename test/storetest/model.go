package storetest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/test/need"
)

// Calls of the random test: a share for CI, and the long form.
const (
	shortCalls = 400
	longCalls  = 20_000
)

// model is what a store ought to hold, kept in the plainest way.
type model struct {
	epoch     store.Epoch
	objects   map[string]string
	revisions []store.Revision // all ever, number n at n-1
	oldest    uint64
	entries   []store.Entry // all ever
	cut       uint64        // entries trimmed
	now       time.Time     // of the next entry
}

// walk is a run of random calls.
type walk struct {
	*rand.Rand
	place Place
	s     store.Store
	model
	calls map[string]int
}

// testModel makes random calls and holds every answer against the model.
func testModel(t *testing.T, p Place) {
	calls := shortCalls
	if need.Soak() {
		calls = longCalls
	}
	w := &walk{
		Rand: rand.New(rand.NewPCG(need.Seed(t, 16), 0)), place: p, s: p.Open(t), calls: map[string]int{},
		model: model{objects: map[string]string{}, now: day.AddDate(-8, 0, 0)},
	}
	defer func() { w.s.Close() }()
	for range calls {
		w.now = w.now.Add(time.Duration(w.IntN(3*1095*24)) * time.Hour / time.Duration(calls))
		name, call := "commit", w.commit
		switch n := w.IntN(100); {
		case n < 5:
			name, call = "acquire", w.acquire
		case n < 10:
			name, call = "load", w.load
		case n < 14:
			name, call = "trim", w.trim
		case n < 18:
			name, call = "ranges", w.ranges
		case n < 20:
			name, call = "reopen", w.reopen
		}
		w.calls[name]++
		call(t)
	}
	w.load(t)
	Verify(t, w.s)
	t.Logf("%v: %d revisions, %d entries, %d of them trimmed", w.calls, len(w.revisions), len(w.entries), w.cut)
	for _, name := range []string{"acquire", "load", "trim", "ranges", "reopen", "commit", "done", "stale", "fenced"} {
		if w.calls[name] == 0 {
			t.Errorf("no %s among the calls", name)
		}
	}
}

func (w *walk) acquire(t testing.TB) {
	t.Helper()
	e := acquire(t, w.s)
	if e <= w.epoch {
		t.Fatalf("epoch %d after %d", e, w.epoch)
	}
	w.epoch = e
}

func (w *walk) key() string { return fmt.Sprintf("object/%d", w.IntN(30)) }

func (w *walk) commit(t testing.TB) {
	t.Helper()
	last := uint64(len(w.revisions))
	c := store.Commit{Epoch: w.epoch, After: last}
	touched := map[string]bool{}
	for range w.IntN(4) {
		if k := w.key(); !touched[k] {
			touched[k] = true
			c.Puts = append(c.Puts, object(k, fmt.Sprint(w.Uint64N(1000))))
		}
	}
	for range w.IntN(3) {
		if k := w.key(); !touched[k] {
			touched[k] = true
			c.Deletes = append(c.Deletes, k)
		}
	}
	about := uint64(0)
	if w.IntN(3) > 0 {
		about = last + 1
		c.Revision = fmt.Appendf(nil, "revision %d %d", about, w.Uint64())
		last++
	}
	for range 1 + w.IntN(3) {
		e := About(about)
		e.Time = w.now
		c.Audit = append(c.Audit, e)
	}
	if last > 0 && w.IntN(3) == 0 {
		if n := 1 + w.Uint64N(last); n >= w.oldest {
			c.Outcomes = []store.Outcome{{Revision: n, Data: fmt.Append(nil, w.Uint64())}}
		}
	}
	var want error
	switch w.IntN(10) {
	case 0:
		c.Epoch -= min(c.Epoch, 1)
		want = store.ErrFenced
	case 1:
		if c.Guarded() {
			c.After += 2*w.Uint64N(2) - 1 // wraps to 1<<64-1 or goes one too far
			want = store.ErrStale
			for i := range c.Audit {
				c.Audit[i].Revision = c.After + 1
			}
		}
	}
	if w.epoch == 0 {
		want = store.ErrFenced
	}
	w.settle(t, c, want)
}

// settle commits, and does the same to the model.
func (w *walk) settle(t testing.TB, c store.Commit, want error) {
	t.Helper()
	got, err := w.s.Commit(t.Context(), c)
	if !errors.Is(err, want) || err != nil && want == nil {
		t.Fatalf("commit %+v: %v, want %v", c, err, want)
	}
	switch {
	case errors.Is(want, store.ErrFenced):
		w.calls["fenced"]++
	case errors.Is(want, store.ErrStale):
		w.calls["stale"]++
	}
	if want != nil {
		return
	}
	w.calls["done"]++
	for _, o := range c.Puts {
		w.objects[o.Key] = string(o.Value)
	}
	for _, k := range c.Deletes {
		delete(w.objects, k)
	}
	if c.Revision != nil {
		w.revisions = append(w.revisions, store.Revision{Number: c.After + 1, Epoch: c.Epoch, Data: c.Revision})
		w.oldest = max(w.oldest, 1)
	}
	for _, o := range c.Outcomes {
		w.revisions[o.Revision-1].Outcome = o.Data
	}
	for _, e := range c.Audit {
		if e.Sequence = uint64(len(w.entries)) + 1; c.Revision != nil {
			e.Digest = store.Sum(c.Revision)
		}
		w.entries = append(w.entries, e)
	}
	if got.Revision != uint64(len(w.revisions)) || got.Audit.Sequence != uint64(len(w.entries)) {
		t.Fatalf("committed %+v, want revision %d and entry %d", got, len(w.revisions), len(w.entries))
	}
}

// plain is an entry without what chains it.
func plain(e store.Entry) store.Entry {
	e.Hash, e.Previous, e.Begins = store.Hash{}, store.Hash{}, nil
	return e
}

func (w *walk) load(t testing.TB) {
	t.Helper()
	now := load(t, w.s)
	got := map[string]string{}
	for _, o := range now.Objects {
		got[o.Key] = string(o.Value)
	}
	if !maps.Equal(got, w.objects) {
		t.Fatalf("objects %v, want %v", got, w.objects)
	}
	if now.Revision != uint64(len(w.revisions)) || now.Oldest != w.oldest || now.Epoch != w.epoch ||
		now.Audit.Sequence != uint64(len(w.entries)) || now.Checkpoint.Sequence != w.cut {
		t.Fatalf("%d revisions from %d, %d entries from %d, epoch %d: loaded %+v", len(w.revisions), w.oldest, len(w.entries), w.cut+1, w.epoch, now)
	}
}

func (w *walk) ranges(t testing.TB) {
	t.Helper()
	r := store.Range{From: w.Uint64N(uint64(len(w.entries)) + 3), Limit: w.IntN(40), Newest: w.IntN(2) == 0}
	keep := func(n, first uint64) bool { return n >= first }
	var wantRevisions []store.Revision
	for _, n := range expected(store.Range{From: r.From, Newest: r.Newest}, uint64(len(w.revisions))) {
		if keep(n, w.oldest) {
			wantRevisions = append(wantRevisions, w.revisions[n-1])
		}
	}
	var wantEntries []store.Entry
	for _, n := range expected(store.Range{From: r.From, Newest: r.Newest}, uint64(len(w.entries))) {
		if keep(n, w.cut+1) {
			wantEntries = append(wantEntries, w.entries[n-1])
		}
	}
	if r.Limit > 0 {
		wantRevisions = wantRevisions[:min(r.Limit, len(wantRevisions))]
		wantEntries = wantEntries[:min(r.Limit, len(wantEntries))]
	}
	var gotRevisions []store.Revision
	for v, err := range w.s.Revisions(t.Context(), r) {
		if err != nil {
			t.Fatal(err)
		}
		gotRevisions = append(gotRevisions, v)
	}
	gotEntries := Entries(t, w.s, r)
	for i := range gotEntries {
		gotEntries[i] = plain(gotEntries[i])
	}
	if d := cmp.Diff(wantRevisions, gotRevisions); d != "" {
		t.Fatalf("revisions of %+v (- want, + got):\n%s", r, d)
	}
	if d := cmp.Diff(wantEntries, gotEntries); d != "" {
		t.Fatalf("entries of %+v (- want, + got):\n%s", r, d)
	}
}

func (w *walk) trim(t testing.TB) {
	t.Helper()
	if len(w.entries) == 0 || w.epoch == 0 {
		return
	}
	before := w.entries[len(w.entries)-1].Time.Add(-store.KeepAudit).Add(-time.Duration(w.IntN(100*24)) * time.Hour)
	at := w.cut
	oldest := w.oldest
	for at < uint64(len(w.entries)) {
		e := w.entries[at]
		if !e.Time.Before(before) || e.Digest != (store.Hash{}) && e.Revision == uint64(len(w.revisions)) {
			break
		}
		if e.Digest != (store.Hash{}) {
			oldest = e.Revision + 1
		}
		at++
	}
	entry := About(0)
	entry.Time = w.now
	c, err := w.s.Trim(t.Context(), store.Trim{Epoch: w.epoch, Before: before, Audit: entry})
	if err != nil || c.Sequence != at {
		t.Fatalf("trimmed to %d, want %d, error %v", c.Sequence, at, err)
	}
	if at == w.cut {
		return
	}
	w.cut, w.oldest = at, oldest
	entry.Sequence = uint64(len(w.entries)) + 1
	w.entries = append(w.entries, entry)
}

func (w *walk) reopen(t testing.TB) {
	t.Helper()
	if err := w.s.Close(); err != nil {
		t.Fatal(err)
	}
	w.s = w.place.Open(t)
	w.load(t)
	same(t, "the numbers of revisions", numbers(t, w.s.Revisions(t.Context(), store.Range{}), func(r store.Revision) uint64 { return r.Number }),
		slices.DeleteFunc(expected(store.Range{}, uint64(len(w.revisions))), func(n uint64) bool { return n < w.oldest }))
}
