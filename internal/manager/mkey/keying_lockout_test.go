package mkey

import (
	"errors"
	"testing"
)

// A manager that devices do not let in is locked out for good only after it has read what the
// others stored, and has found nothing that was not there when its sweep began. Where nobody
// shares keys there is nothing to read.
func TestLockOut(t *testing.T) {
	locked, unread := errors.New("guarded by other keys"), errors.New("the store does not answer")
	for _, x := range []struct {
		name         string
		none, shared bool
		early, late  bool // the keys of another come while it sweeps, or after it is locked out
		listed       bool // so does a list of cables
		err          error
		again        bool
	}{
		{name: "it gives no keys", none: true},
		{name: "nobody shares keys"},
		{name: "no news", shared: true},
		{name: "news while it swept", shared: true, early: true, again: true},
		{name: "news that was read for this", shared: true, late: true, again: true},
		{name: "another list of cables", shared: true, listed: true, again: true},
		{name: "what is stored cannot be read", shared: true, err: unread},
		{name: "news, and what is stored cannot be read", shared: true, late: true, err: unread},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := newSite()
			book := s.Config.Book
			s.Config.Shared = x.shared
			another := newSite()
			another.pass(t)
			merge := func(due bool) {
				if !due {
					return
				}
				if err := book.Merge(another.Config.Book); err != nil {
					t.Fatal(err)
				}
			}
			if x.none {
				s.Config = nil
			}
			s.Begin()
			if again, why := s.Read(nil); again || why != nil || s.Unsure() {
				t.Errorf("before it is locked out: again %v, %v, unsure %v", again, why, s.Unsure())
			}
			merge(x.early)
			final := s.LockOut(locked)
			if final == x.shared || s.Unsure() != x.shared {
				t.Fatalf("known for good %v, unsure %v", final, s.Unsure())
			}
			if final {
				return
			}
			merge(x.late)
			s.Listed = x.listed
			again, why := s.Read(x.err)
			if again != x.again || again != (why == nil) || s.Unsure() != x.again || !again && !errors.Is(why, locked) || x.err != nil && !errors.Is(why, x.err) {
				t.Errorf("again %v, %v, unsure %v", again, why, s.Unsure())
			}
			if again, why := s.Read(nil); again || why != nil {
				t.Errorf("read a second time: again %v, %v", again, why)
			}
			s.Begin()
			if s.Unsure() {
				t.Error("unsure when another sweep begins")
			}
			if s.LockOut(locked); !x.again {
				return
			}
			if again, why := s.Read(nil); again || !errors.Is(why, locked) {
				t.Errorf("what was there when the sweep began is news: again %v, %v", again, why)
			}
		})
	}
}
