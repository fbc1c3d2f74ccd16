package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/ibwarden/ibwarden/internal/store"
)

// Callers that commit at once, and commits of each that are done.
const (
	callers = 8
	rounds  = 12
)

// testTogether commits from several callers at once, over the same last revision, with
// some that are cancelled, stale or fenced: each revision is made by exactly one of them, and
// each answer is true.
func testTogether(t *testing.T, p Place) {
	s := p.Open(t)
	defer s.Close()
	old := acquire(t, s)
	epoch := acquire(t, s)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	var mu sync.Mutex
	made := map[uint64]string{}
	entries := map[uint64]string{}
	var group sync.WaitGroup
	for id := range callers {
		group.Go(func() {
			after, done := uint64(0), 0
			for try := 0; done < rounds; try++ {
				what := fmt.Sprintf("caller %d, try %d", id, try)
				c := Next(epoch, after, object(fmt.Sprint("caller/", id), what), object("last", what))
				c.Revision, c.Audit[0].Caller = []byte(what), what
				note := c
				note.Revision, note.Puts, note.Audit = nil, nil, []store.Entry{About(0)}
				note.Audit[0].Caller = what
				if _, err := s.Commit(gone, note); !errors.Is(err, context.Canceled) {
					t.Errorf("%s, cancelled: %v", what, err)
				}
				note.Epoch = old
				if _, err := s.Commit(t.Context(), note); !errors.Is(err, store.ErrFenced) {
					t.Errorf("%s, fenced: %v", what, err)
				}
				at, err := s.Commit(t.Context(), c)
				if errors.Is(err, store.ErrStale) {
					now, err := s.Load(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					after = now.Revision
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", what, err)
					return
				}
				mu.Lock()
				if made[at.Revision] != "" || at.Revision != after+1 {
					t.Errorf("%s made revision %d after %d, which %q made too", what, at.Revision, after, made[at.Revision])
				}
				made[at.Revision], entries[at.Audit.Sequence] = what, what
				mu.Unlock()
				after = at.Revision
				done++
			}
		})
	}
	group.Wait()
	if t.Failed() {
		return
	}
	checkTogether(t, s, made, entries)
}

// checkTogether holds a store against what its callers were told, by number.
func checkTogether(t *testing.T, s store.Store, made, entries map[uint64]string) {
	t.Helper()
	now := Verify(t, s)
	if now.Revision != callers*rounds || now.Audit.Sequence != callers*rounds {
		t.Fatalf("%d revisions and %d entries, want %d", now.Revision, now.Audit.Sequence, callers*rounds)
	}
	for _, r := range Revisions(t, s) {
		if string(r.Data) != made[r.Number] {
			t.Errorf("revision %d is %q, and %q was told that it made it", r.Number, r.Data, made[r.Number])
		}
	}
	for _, e := range Entries(t, s, store.Range{}) {
		if e.Caller != entries[e.Sequence] {
			t.Errorf("entry %d is by %q, and %q was told that it made it", e.Sequence, e.Caller, entries[e.Sequence])
		}
	}
	last := slices.IndexFunc(now.Objects, func(o store.Object) bool { return o.Key == "last" })
	if got := string(now.Objects[last].Value); got != made[now.Revision] {
		t.Errorf("the last value is %q, want %q", got, made[now.Revision])
	}
}
