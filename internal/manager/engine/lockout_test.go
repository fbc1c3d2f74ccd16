package engine_test

import (
	"errors"
	"testing"

	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
)

// keyed is a manager that gives every port a key of its own.
func keyed(book *mkey.Book, shared bool) engine.Config {
	return engine.Config{Profile: protect.Tenant, Routing: routing.UpDown, Keys: &mkey.KeyingConfig{
		Keys: mkey.Keys{Ring: mkey.NewRing([mkey.SecretSize]byte{1}), Book: book}, Shared: shared,
	}}
}

// TestKeysOfAnotherManager: a manager that meets keys which another one has just given does
// not give up before it has read what that one stored: with it, whenever it came, it goes on;
// without news, or where that cannot be read, it is refused, and has written nothing.
func TestKeysOfAnotherManager(t *testing.T) {
	for _, x := range []struct {
		name         string
		shared       bool
		early, late  bool // the keys come while it reads the fabric, or when it has asked for them
		err          error
		asks, enters bool
	}{
		{name: "nobody shares keys"},
		{name: "no news", shared: true, asks: true},
		{name: "news", shared: true, late: true, asks: true, enters: true},
		{name: "news while it swept", shared: true, early: true, enters: true},
		{name: "what is stored cannot be read", shared: true, late: true, asks: true, err: errors.New("another secret")},
	} {
		t.Run(x.name, func(t *testing.T) {
			first := new(mkey.Book)
			p := tenants(t)
			s := newSite(t, keyed(first, false), p, fabric.DefaultConfig())
			s.run("the first manager has given keys", s.engine.Settled)
			if _, done := last[event.Completed](s); !done {
				t.Fatal(s.events)
			}
			s.events = nil
			book := new(mkey.Book)
			c := keyed(book, x.shared)
			c.Limits = s.link.Limits()
			c.OnStep = engine.Record
			s.engine = engine.New(c, p, func(e event.Event) { s.events = append(s.events, e) })
			sets := s.sets
			merge := func(due bool) {
				if !due {
					return
				}
				if err := book.Merge(first); err != nil {
					t.Fatal(err)
				}
			}
			s.run("it has begun to read the fabric", func() bool { return len(s.events) > 0 })
			merge(x.early)
			s.run("it is locked out, or has carried out its policy", func() bool {
				_, asks := last[event.LockedOut](s)
				_, refused := last[event.Refused](s)
				_, done := last[event.Completed](s)
				return asks || refused || done
			})
			if _, got := last[event.LockedOut](s); got != x.asks || got == s.engine.Settled() {
				t.Fatalf("it asks for the keys of others: %v, settled %v, %v", got, s.engine.Settled(), s.events)
			}
			if x.asks {
				if r, is := last[event.Refused](s); is {
					t.Fatalf("it is refused before it has read them: %v", r)
				}
				merge(x.late)
				s.engine.KeysRead(x.err)
				if s.engine.Settled() == x.enters {
					t.Fatalf("settled %v", s.engine.Settled())
				}
			}
			if x.enters {
				s.run("it has carried out its policy", func() bool { _, done := last[event.Completed](s); return done })
				return
			}
			r, is := last[event.Refused](s)
			var locked *mkey.LockedError
			if !is || !errors.As(r.Err, &locked) || x.err != nil && !errors.Is(r.Err, x.err) {
				t.Fatalf("%v, want it refused", s.events)
			}
			if s.sets != sets {
				t.Errorf("it has written %d times", s.sets-sets)
			}
		})
	}
}
