package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/store"
)

// numbers reads the numbers that an iterator yields.
func numbers[T any](t testing.TB, in iter.Seq2[T, error], number func(T) uint64) []uint64 {
	t.Helper()
	var out []uint64
	for v, err := range in {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, number(v))
	}
	return out
}

func testRanges(t *testing.T, p Place) {
	s := p.Open(t)
	defer s.Close()
	e := acquire(t, s)
	const count = 200 // more than one page
	for n := range uint64(count / 2) {
		c := Next(e, n)
		c.Audit = append(c.Audit, About(0))
		commit(t, s, c)
	}
	for _, r := range []store.Range{
		{}, {Newest: true}, {From: 1}, {From: 95}, {From: 95, Newest: true}, {From: 1, Newest: true}, {From: 9999}, {From: 9999, Newest: true},
		{Limit: 7}, {Limit: 7, Newest: true}, {From: 70, Limit: 3}, {From: 70, Limit: 3, Newest: true}, {From: 2, Limit: 5, Newest: true},
		{Limit: 100}, {From: 1, Limit: 64}, {Limit: -1}, {From: 65, Limit: 65, Newest: true}, {Limit: 3, MayLack: true},
	} {
		want := expected(r, count/2)
		got := numbers(t, s.Revisions(t.Context(), r), func(v store.Revision) uint64 { return v.Number })
		if !slices.Equal(got, want) {
			t.Errorf("revisions of %+v: %v, want %v", r, got, want)
		}
		want = expected(r, count)
		got = numbers(t, s.Audit(t.Context(), r), func(v store.Entry) uint64 { return v.Sequence })
		if !slices.Equal(got, want) {
			t.Errorf("entries of %+v: %v, want %v", r, got, want)
		}
	}
	for r, err := range s.Revisions(t.Context(), store.Range{}) { // who looks at a value may write
		if err != nil {
			t.Fatal(err)
		}
		if r.Number == 5 {
			break
		}
		commit(t, s, store.Commit{Epoch: e, Audit: []store.Entry{About(r.Number)}})
	}
}

// expected are the numbers of a range of 1 to last, in the plainest way.
func expected(r store.Range, last uint64) (out []uint64) {
	for n := uint64(1); n <= last; n++ {
		if r.From == 0 || !r.Newest && n >= r.From || r.Newest && n <= r.From {
			out = append(out, n)
		}
	}
	if r.Newest {
		slices.Reverse(out)
	}
	if r.Limit > 0 && r.Limit < len(out) {
		out = out[:r.Limit]
	}
	return out
}

func testWatch(t *testing.T, p Place) {
	s := p.Open(t)
	defer s.Close()
	watched := s
	if p.Shared {
		watched = p.Open(t)
		defer watched.Close()
	}
	e := acquire(t, s)
	for n := range uint64(3) {
		commit(t, s, Next(e, n))
	}
	for _, err := range watched.Watch(t.Context(), 4) {
		fails(t, "a watch after a revision that is not there", err, store.ErrNotFound)
	}
	const last = 40
	type seen struct {
		numbers []uint64
		err     error
	}
	results := make(chan seen)
	for after := range uint64(4) {
		go func() {
			var out seen
			for r, err := range watched.Watch(t.Context(), after) {
				if out.err = err; err != nil {
					break
				}
				if want := fmt.Sprintf("revision %d", r.Number); string(r.Data) != want {
					out.err = fmt.Errorf("%q, want %q", r.Data, want)
				}
				if out.numbers = append(out.numbers, r.Number); r.Number == last {
					break
				}
			}
			results <- out
		}()
	}
	for n := uint64(3); n < last; n++ {
		commit(t, s, Next(e, n))
	}
	for range 4 {
		out := <-results
		want := last - int(out.numbers[0]) + 1
		if out.err != nil || len(out.numbers) != want || !slices.IsSorted(out.numbers) {
			t.Errorf("a watch saw %v, error %v", out.numbers, out.err)
		}
	}
	// A watch that waits ends with its context, and when the store is closed.
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	for _, err := range watched.Watch(ctx, last) {
		fails(t, "a watch that was cancelled", err, context.Canceled)
	}
	time.AfterFunc(10*time.Millisecond, func() { watched.Close() })
	for _, err := range watched.Watch(t.Context(), last) {
		fails(t, "a watch on a store that was closed", err, store.ErrClosed)
	}
}

func testTrim(t *testing.T, p Place) {
	s := p.Open(t)
	e := acquire(t, s)
	old := day.AddDate(-2, 0, 0)
	entry := func(at time.Time, revision uint64) store.Entry {
		a := About(revision)
		a.Time = at
		return a
	}
	for n := range uint64(6) { // revision n+1 is n days after old, its entry is n+1
		c := Next(e, n, object("a", fmt.Sprint(n)))
		c.Audit = []store.Entry{entry(old.AddDate(0, 0, int(n)), n+1)}
		c.Outcomes = []store.Outcome{{Revision: n + 1, Data: []byte("done")}}
		commit(t, s, c)
	}
	trim := func(before time.Time) (store.Checkpoint, error) {
		return s.Trim(t.Context(), store.Trim{Epoch: e, Before: before, Audit: entry(day, 0)})
	}
	_, err := trim(old.AddDate(0, 0, 2))
	fails(t, "a trim of entries that the newest does not let go", err, store.ErrRetention)
	commit(t, s, store.Commit{Epoch: e, Audit: []store.Entry{entry(day, 0)}})
	_, err = trim(day.Add(-store.KeepAudit).Add(time.Nanosecond))
	fails(t, "a trim of entries of the last 400 days", err, store.ErrRetention)
	if c, err := trim(old); err != nil || c != (store.Checkpoint{}) {
		t.Fatalf("a trim that removes nothing: %v, %v", c, err)
	}
	whole := Verify(t, s)
	cut, err := trim(old.AddDate(0, 0, 2)) // entries 1 and 2
	if err != nil || cut.Sequence != 2 {
		t.Fatalf("trimmed to %+v, %v", cut, err)
	}
	now := Verify(t, s, whole.Audit)
	if now.Checkpoint != cut || now.Oldest != 3 || now.Audit.Sequence != 8 {
		t.Fatalf("after the trim: %+v", now)
	}
	_, err = s.Revision(t.Context(), 2)
	fails(t, "a revision that was trimmed", err, store.ErrCompacted)
	_, err = s.Commit(t.Context(), store.Commit{Epoch: e, Outcomes: []store.Outcome{{Revision: 2}}})
	fails(t, "an outcome of a revision that was trimmed", err, store.ErrCompacted)
	for _, err := range s.Watch(t.Context(), 1) {
		fails(t, "a watch after a revision that was trimmed", err, store.ErrCompacted)
	}
	for r, err := range s.Watch(t.Context(), 2) {
		if err != nil || r.Number != 3 {
			t.Fatalf("a watch from the oldest revision: %d, %v", r.Number, err)
		}
		break
	}
	if cut, err = trim(day.Add(-store.KeepAudit)); err != nil || cut.Sequence != 5 { // the last revision keeps its entry
		t.Fatalf("trimmed to %+v, %v", cut, err)
	}
	s.Close()
	s = p.Open(t)
	defer s.Close()
	if now := Verify(t, s); now.Oldest != 6 || now.Revision != 6 || now.Checkpoint != cut {
		t.Fatalf("after the second trim: %+v", now)
	}
	commit(t, s, Next(e, 6))
	Verify(t, s)
}

func testBackup(t *testing.T, p Place) {
	s := p.Open(t)
	e := acquire(t, s)
	for n := range uint64(100) {
		c := Next(e, n, object(fmt.Sprintf("k%d", n%40), fmt.Sprint(n)))
		if n%3 == 0 {
			c.Outcomes = []store.Outcome{{Revision: n + 1, Data: fmt.Appendf(nil, "outcome %d", n)}}
		}
		if n%7 == 0 {
			c.Deletes = []string{fmt.Sprintf("k%d", (n+1)%40)}
		}
		if n < 20 {
			c.Audit[0].Time = day.AddDate(-2, 0, 0)
		}
		commit(t, s, c)
	}
	if _, err := s.Trim(t.Context(), store.Trim{Epoch: e, Before: day.AddDate(-1, -6, 0), Audit: About(0)}); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	state, err := store.Backup(t.Context(), s, &file)
	if err != nil {
		t.Fatal(err)
	}
	want, wantRevisions, wantEntries := load(t, s), Revisions(t, s), Entries(t, s, store.Range{})
	if state.Revision != 100 || state.Audit != want.Audit || len(wantRevisions) != 80 {
		t.Fatalf("backed up %+v, %d revisions", state, len(wantRevisions))
	}
	_, err = store.Restore(t.Context(), s, bytes.NewReader(file.Bytes()), "backup")
	fails(t, "a restore into a store that is in use", err, store.ErrNotEmpty)
	s.Close()

	for cut := range 40 { // never half of it
		in := io.LimitReader(bytes.NewReader(file.Bytes()), int64(file.Len()*cut/40))
		if _, err := store.Restore(t.Context(), nowhere{}, in, "backup"); !errors.Is(err, store.ErrCorrupt) {
			t.Fatalf("a backup cut off at %d/40: %v", cut, err)
		}
	}
	again := renew(t, p)
	defer again.Close()
	if _, err = store.Restore(t.Context(), again, bytes.NewReader(file.Bytes()), "backup"); err != nil {
		t.Fatal(err)
	}
	same(t, "the restored store", load(t, again), want)
	same(t, "its revisions", Revisions(t, again), wantRevisions)
	same(t, "its entries", Entries(t, again, store.Range{}), wantEntries)
	Verify(t, again, state.Audit)
	var second bytes.Buffer
	if _, err := store.Backup(t.Context(), again, &second); err != nil || !bytes.Equal(file.Bytes(), second.Bytes()) {
		t.Fatalf("a backup of the restored store is another one, error %v", err)
	}
	if newer := acquire(t, again); newer <= e {
		t.Fatalf("epoch %d after a restore, %d before", newer, e)
	}
}

// nowhere is a store that takes all records.
type nowhere struct{ store.Store }

func (nowhere) Fill(_ context.Context, records iter.Seq2[store.Record, error]) error {
	for _, err := range records {
		if err != nil {
			return err
		}
	}
	return nil
}

// renew is an empty store of the same kind.
func renew(t testing.TB, p Place) store.Store {
	t.Helper()
	if p.Renew == nil {
		t.Fatal("a place without Renew")
	}
	return p.Renew(t).Open(t)
}

// testFillBreaks restores a backup that ends too soon, and then a whole one.
func testFillBreaks(t *testing.T, p Place) {
	s := p.Open(t)
	e := acquire(t, s)
	for n := range uint64(20) {
		commit(t, s, Next(e, n, object(fmt.Sprint(n), "x")))
	}
	var file bytes.Buffer
	if _, err := store.Backup(t.Context(), s, &file); err != nil {
		t.Fatal(err)
	}
	want := load(t, s)
	s.Close()
	target := p.Renew(t)
	into := target.Open(t)
	_, err := store.Restore(t.Context(), into, bytes.NewReader(file.Bytes()[:file.Len()-5]), "backup")
	fails(t, "a backup without its end", err, store.ErrCorrupt)
	refuses := func() {
		t.Helper()
		_, err := into.Load(t.Context())
		fails(t, "Load", err, store.ErrIncomplete)
		_, err = into.Acquire(t.Context(), "x")
		fails(t, "Acquire", err, store.ErrIncomplete)
		_, err = into.Commit(t.Context(), Next(e, 20))
		fails(t, "Commit", err, store.ErrIncomplete)
		for _, err := range into.Revisions(t.Context(), store.Range{}) {
			fails(t, "Revisions", err, store.ErrIncomplete)
		}
	}
	refuses()
	into.Close()
	into = target.Open(t)
	defer into.Close()
	refuses()
	if _, err := store.Restore(t.Context(), into, bytes.NewReader(file.Bytes()), "backup"); err != nil {
		t.Fatal(err)
	}
	same(t, "the restored store", load(t, into), want)
	Verify(t, into)
}

// testVerify looks that VerifyStore holds the heads that it is given against the store.
func testVerify(t *testing.T, p Place) {
	s := p.Open(t)
	defer s.Close()
	e := acquire(t, s)
	var heads []store.Head
	for n := range uint64(9) {
		heads = append(heads, commit(t, s, Next(e, n)).Audit)
	}
	Verify(t, s, heads...)
	for _, wrong := range []store.Head{{Sequence: 4, Hash: heads[4].Hash}, {Sequence: 10, Hash: heads[8].Hash}, {Sequence: 9}} {
		_, _, err := store.VerifyStore(t.Context(), s, []store.Head{wrong})
		var broken *store.BrokenError
		if !errors.As(err, &broken) || broken.Sequence != wrong.Sequence {
			t.Errorf("anchor %v: %v", wrong, err)
		}
	}
}

// Revisions are all revisions of a store.
func Revisions(t testing.TB, s store.Store) []store.Revision {
	t.Helper()
	var out []store.Revision
	for r, err := range s.Revisions(t.Context(), store.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}
