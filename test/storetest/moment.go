package storetest

import (
	"fmt"
	"testing"

	"github.com/ibwarden/ibwarden/internal/store"
)

// More objects than are read or written at a time, and how often they change.
const (
	manyObjects = 1200
	changes     = 8
)

// testMoment loads while all objects change at once, again and again: what is loaded is
// of one revision.
func testMoment(t *testing.T, p Place) {
	s := p.Open(t)
	defer s.Close()
	reader := s
	if p.Shared {
		reader = p.Open(t)
		defer reader.Close()
	}
	epoch := acquire(t, s)
	done := make(chan error, 1)
	go func() {
		for n := range uint64(changes) {
			c := Next(epoch, n)
			for i := range manyObjects {
				c.Puts = append(c.Puts, object(fmt.Sprintf("object/%04d", i), fmt.Sprint(n+1)))
			}
			if _, err := s.Commit(t.Context(), c); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	check := func(now *store.Contents) {
		t.Helper()
		if want := manyObjects * int(min(now.Revision, 1)); len(now.Objects) != want {
			t.Errorf("%d objects at revision %d, want %d", len(now.Objects), now.Revision, want)
		}
		for _, o := range now.Objects {
			if string(o.Value) != fmt.Sprint(now.Revision) {
				t.Errorf("%s is %s at revision %d", o.Key, o.Value, now.Revision)
				return
			}
		}
	}
	for loads := 0; ; loads++ {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			check(load(t, reader))
			t.Logf("%d loads beside %d commits", loads, changes)
			return
		default:
			check(load(t, reader))
		}
	}
}
