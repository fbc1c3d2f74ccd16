package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
)

// wrote is what another manager, at port 0x42, writes: a LID, a key made of a secret, and
// a list of cables.
func wrote(t *testing.T, s *shelf, lid ib.LID, ring *daemon.Keyring, text []byte) {
	t.Helper()
	all := files.All{Cables: text, Registered: files.Registered{SAKey: sharedKey, Manager: 0x42}}
	all.Assigned.LIDs = map[ib.PortGUID]ib.LID{0x43: lid}
	if ring != nil {
		var err error
		if all.Book, err = ring.Book.MarshalJSON(); err != nil {
			t.Fatal(err)
		}
		all.Secret = ring.Ring.Sum()
	}
	var o files.Objects
	s.mu.Lock()
	o.Enter(slices.Collect(maps.Values(s.aside)))
	s.mu.Unlock()
	list, err := o.Changes(&all, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s.put(list...)
}

// given is a ring whose book has a key of this port.
func given(t *testing.T, secret string, port ib.PortGUID) *daemon.Keyring {
	t.Helper()
	ring := keyring(t, t.TempDir(), secret)
	if _, err := ring.Book.Add(mkey.ID{Node: ib.NodeGUID(port), Port: port}, observed.Place{Node: ib.NodeGUID(port), Port: 1}); err != nil {
		t.Fatal(err)
	}
	return ring
}

const damagedText = "neither a switch nor a cable"

// TestWhatIsNotTakenFromOthers: what is damaged, or made with another secret, ends the start
// with an error; keys are shared only where they are kept, and a list of cables is taken only
// by who has none of its own.
func TestWhatIsNotTakenFromOthers(t *testing.T) {
	var none *Service
	for _, s := range []*Service{none, {}} {
		if k, _, some, err := s.Kept(t.Context(), sharedKey, nil, nil); k != nil || some || err != nil || k.SharesKeys() {
			t.Errorf("nothing is shared: %v, %v, %v", k, some, err)
		}
	}
	_, text := aList(t)
	damage := func(key string) func(*shelf) {
		return func(s *shelf) { s.put(store.Object{Key: files.Prefix + key, Value: []byte("{")}) }
	}
	const place = "what managers share in the store (docs/managers.md): "
	for name, x := range map[string]struct {
		with   func(*shelf)
		ring   *daemon.Keyring
		keep   error
		want   string // error
		shares bool
		lists  int
	}{
		"all of it":            {ring: keyring(t, t.TempDir(), "a"), shares: true, lists: 1},
		"no keys":              {lists: 1},
		"keys that end":        {ring: daemon.ThrowAwayKeys(), lists: 1},
		"another secret":       {ring: keyring(t, t.TempDir(), "b"), want: place + "it was written with another master secret: managers that share a store share the secret"},
		"a list that is stuck": {keep: errors.New("no room"), want: place + "no room", lists: 1},
		"damaged":              {with: damage("head"), want: place + files.Prefix + "head: "},
		"damaged list":         {with: func(s *shelf) { wrote(t, s, 7, given(t, "a", 0x99), []byte(damagedText)) }, want: "the list of cables in the store"},
		"unavailable":          {with: func(s *shelf) { s.answers(store.ErrUnavailable, nil) }, want: place + store.ErrUnavailable.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			s := aShelf(t)
			wrote(t, s, 7, given(t, "a", 0x99), text)
			if x.with != nil {
				x.with(s)
			}
			lists := 0
			keep := func(l *cables.List) error { lists++; return x.keep }
			of := &Service{db: s}
			k, all, some, err := of.Kept(t.Context(), sharedKey, x.ring, keep)
			if x.want != "" {
				if err == nil || !strings.Contains(err.Error(), x.want) || lists != x.lists {
					t.Errorf("%v, %d lists; want %q", err, lists, x.want)
				}
				return
			}
			if err != nil || !some || all.Assigned.LIDs[0x43] != 7 || all.Registered.Manager != 0x42 || lists != x.lists || k.SharesKeys() != x.shares || k.known != 1 {
				t.Errorf("%v, %v, %+v, %d lists, keys %v, change %d", err, some, all, lists, k.SharesKeys(), k.known)
			}
			if x.ring != nil && (x.ring.Book.Len() == 1) != x.shares {
				t.Errorf("%d ports in the book", x.ring.Book.Len())
			}
			if _, _, _, err := of.Kept(t.Context(), sharedKey, x.ring, nil); err != nil || lists != x.lists {
				t.Errorf("who has a list of its own: %v, %d lists", err, lists)
			}
		})
	}
}

// TestWhenAMasterWrites: what is new is handed over when the manager is master, one writing
// at a time; a standby hands over nothing; whoever becomes master writes all of it.
func TestWhenAMasterWrites(t *testing.T) {
	s := aShelf(t)
	master, _, _ := join(t, s, demoShare(t), nil)
	master.run()
	master.settle("the store has what the master assigned")
	master.stop()
	if err := <-master.ended; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	master.stop = nil
	e := master.runner.Engine()
	other := engine.New(engine.Config{}, &policy.Policy{}, nil) // of no fabric: it is no master
	list, _ := aList(t)

	k := &Shared{service: master.Service, runner: master.runner, jobs: make(chan job, 1)}
	step := func(what string, e *engine.Engine, want bool) {
		t.Helper()
		k.turn(e)
		if got := len(k.jobs) == 1; got != want || k.busy.Load() != want {
			t.Errorf("%s: handed over %v, busy %v; want %v", what, got, k.busy.Load(), want)
		}
		if want {
			<-k.jobs
			k.turn(e)
			if len(k.jobs) > 0 {
				t.Errorf("%s: handed over while a writing is under way", what)
			}
			k.busy.Store(false)
		}
		if k.leads != k.leading.Load() || k.leads != isMaster(e) || master.master.Load() != k.leads {
			t.Errorf("%s: leads %v, %v, the service %v", what, k.leads, k.leading.Load(), master.master.Load())
		}
	}
	k.fresh = true
	step("it becomes master", e, true)
	if k.fresh {
		t.Error("a new master takes what it read for what there is")
	}
	step("nothing is new", e, false)
	k.fresh, k.due = true, true
	step("something is", e, true)
	if !k.fresh {
		t.Error("a master reads what it has written itself")
	}
	k.again.Store(true)
	step("the last writing failed", e, true)
	if k.again.Load() {
		t.Error("it is tried again for ever")
	}
	k.busy.Store(true)
	k.due = true
	if k.turn(e); len(k.jobs) != 0 || !k.due {
		t.Errorf("under way: %d handed over, due %v", len(k.jobs), k.due)
	}
	k.busy.Store(false)
	step("what came meanwhile", e, true)
	e.SetCables(list)
	step("a list of cables", e, true)
	if len(k.lines) == 0 {
		t.Error("the list is not written")
	}
	step("the same list", e, false)
	e.SetCables(nil)
	step("no list", e, true)
	if k.lines != nil {
		t.Errorf("list %q", k.lines)
	}
	k.due, k.passed = true, true
	step("master no more", other, false)
	if k.passed {
		t.Error("it has completed a pass as standby")
	}
	k.due = true
	step("still none", other, false)
	step("master again", e, true)

	// A store that was rolled back, and is accepted, is read again and written.
	k.back, k.mark, k.tried, k.due = true, 9, store.Object{Key: "x"}, false
	k.objects.Enter([]store.Object{{Key: files.Prefix + "head", Value: []byte(`{"version":1,"sequence":9}`)}})
	k.fresh = true
	step("a store that is accepted", e, true)
	if k.back || k.mark != 0 || k.tried.Key != "" || k.fresh || k.objects.Sequence() != 0 {
		t.Errorf("not forgotten: %+v", k)
	}
	for range 2 {
		if k.completed(); !k.due || !k.passed {
			t.Error("a pass is not written")
		}
	}
	// A run that shares nothing.
	var none *Shared
	none.turn(e)
	none.Begin(nil)
	none.completed()
	none.rereadKeys()
	none.End()
	new(Shared).End()
}

// TestWhatOthersWroteBetween: a master that finds that others have written what it does not
// know of does not say that it knows what all hosts registered, until they registered again;
// its own writing of which it was not known whether it was done is its own.
func TestWhatOthersWroteBetween(t *testing.T) {
	now := time.Now()
	all := func(lid ib.LID) *job {
		j := &job{all: files.All{Registered: files.Registered{SAKey: sharedKey, Manager: 0x42}}}
		j.all.Assigned.LIDs = map[ib.PortGUID]ib.LID{1: lid}
		return j
	}
	changes := func(k *Shared, lid ib.LID) (list []store.Object, by ib.PortGUID) {
		t.Helper()
		list, err := k.changes(all(lid))
		if err != nil {
			t.Fatal(err)
		}
		var o files.Objects
		o.Enter(list)
		if len(list) > 0 {
			got, _, err := o.All(sharedKey, now)
			if err != nil {
				t.Fatal(err)
			}
			by = got.Registered.Manager
		}
		return list, by
	}
	k := new(Shared)
	list, by := changes(k, 7)
	if len(list) == 0 || by != 0x42 || k.missed {
		t.Fatalf("the first: %d objects by %v, missed %v", len(list), by, k.missed)
	}
	if list[len(list)-1].Key != files.Prefix+"head" {
		t.Fatalf("the last one is %s: it is what reports whether all was written", list[len(list)-1].Key)
	}
	// It was done, and nobody said so.
	k.tried = list[len(list)-1]
	k.objects.Enter(list)
	if list, _ = changes(k, 7); len(list) != 0 || k.missed || k.known != 1 {
		t.Errorf("%d objects, missed %v, change %d known", len(list), k.missed, k.known)
	}
	if list, by = changes(k, 8); by != 0x42 || k.missed {
		t.Errorf("%d objects by %v, missed %v", len(list), by, k.missed)
	}
	// Another manager writes the same and more.
	var theirs files.Objects
	theirs.Enter(list)
	more, err := theirs.Changes(&all(9).all, now)
	if err != nil {
		t.Fatal(err)
	}
	k.objects.Enter(list)
	k.objects.Enter(more)
	if list, by = changes(k, 8); by != 0 || !k.missed || len(list) == 0 {
		t.Errorf("another wrote: %d objects by %v, missed %v", len(list), by, k.missed)
	}
	k.known = k.objects.Sequence()
	if list, by = changes(k, 10); by != 0 || !k.missed {
		t.Errorf("until hosts register again: %d objects by %v, missed %v", len(list), by, k.missed)
	}
	k.missed = false
	if _, by = changes(k, 10); by != 0x42 || k.missed {
		t.Errorf("they have: by %v, missed %v", by, k.missed)
	}
	// What is there is what it wants, whoever wrote it.
	k.known = 0
	last, err := k.objects.Changes(&all(10).all, now)
	if err != nil {
		t.Fatal(err)
	}
	k.objects.Enter(last)
	if list, _ = changes(k, 10); len(list) != 0 || k.missed || k.known != k.objects.Sequence() {
		t.Errorf("nothing is lacking: %d objects, missed %v, change %d known of %d", len(list), k.missed, k.known, k.objects.Sequence())
	}
}

// TestOneWriting: a master writes what the store lacks, having read what others wrote; it
// does not before the store is its own, and one that failed is read first.
func TestOneWriting(t *testing.T) {
	s := aShelf(t)
	x, _, _ := join(t, s, newStill(), nil)
	x.shared.End() // the test is who writes
	k := x.shared
	k.ctx = t.Context()
	j := func(lid ib.LID) *job {
		j := &job{all: files.All{Registered: files.Registered{SAKey: sharedKey, Manager: 0x42}}}
		j.all.Assigned.LIDs = map[ib.PortGUID]ib.LID{1: lid}
		return j
	}
	check := func(what string, lid ib.LID, err, want error, commits int, fresh bool) {
		t.Helper()
		if !errors.Is(err, want) || (err == nil) != (want == nil) || s.commits != commits || k.fresh != fresh {
			t.Errorf("%s: %v, %d commits, fresh %v; want %v, %d, %v", what, err, s.commits, k.fresh, want, commits, fresh)
		}
		all, some := s.said(t)
		if some != (lid != 0) || all.Assigned.LIDs[1] != lid {
			t.Errorf("%s: the store has %v", what, all.Assigned.LIDs)
		}
	}
	check("a standby", 0, k.store(j(7)), service.ErrNotMaster, 0, false)
	x.isMaster(true)
	x.eventually(t, "it leads", x.writes)
	check("the master", 7, k.store(j(7)), nil, 1, true)
	if k.known != 1 {
		t.Errorf("it knows of change %d", k.known)
	}
	reads := len(s.reads)
	check("the same", 7, k.store(j(7)), nil, 1, true)
	check("another", 8, k.store(j(8)), nil, 2, true)
	if n := len(s.reads) - reads; n != 2 { // those of check
		t.Errorf("it read %d times what it wrote itself", n-2)
	}
	s.answers(nil, store.ErrUnavailable) // it is done, and nobody says so
	check("not known whether", 9, k.store(j(9)), service.ErrUnknown, 3, false)
	s.answers(nil, nil)
	x.eventually(t, "it writes again", func() bool { return x.Recover(t.Context()) == nil && x.writes() })
	check("it was done", 9, k.store(j(9)), nil, 3, false)
	if k.missed {
		t.Error("what it wrote itself is another's")
	}
	check("further", 10, k.store(j(10)), nil, 4, true)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	k.ctx = ended
	k.reading <- struct{}{}
	check("who ends while another reads", 10, func() error { err := k.store(j(11)); <-k.reading; return err }(), context.Canceled, 4, true)
	k.ctx = t.Context()
	k.fresh = false
	s.mu.Lock()
	s.fails = store.ErrUnavailable
	s.mu.Unlock()
	err := k.store(j(11))
	s.answers(nil, nil)
	check("who cannot read", 10, err, store.ErrUnavailable, 4, false)
}

// TestAStandbyReads: what the master writes goes to the engine of a standby; a master does not
// take what it reads, and what is damaged or of another secret is left and told at a takeover.
func TestAStandbyReads(t *testing.T) {
	s := aShelf(t)
	ring := keyring(t, t.TempDir(), "a")
	_, text := aList(t)
	x, _, _ := join(t, s, newStill(), ring)
	x.shared.End()
	x.share.Store(nil) // the test says whether it leads, and not its turns
	x.run()
	k := x.shared
	k.ctx = t.Context()
	recall := func() (all files.All, err error) {
		x.asks(func(*engine.Engine) { all, err = k.recall() })
		return all, err
	}
	listed := func() (l *cables.List) {
		x.asks(func(e *engine.Engine) { l = e.Cables() })
		return l
	}
	if _, err := recall(); err == nil || err.Error() != "there is nothing in the store" {
		t.Errorf("an empty store: %v", err)
	}
	if err := k.followOnce(); err != nil {
		t.Error(err)
	}
	wrote(t, s, 7, given(t, "a", 0x99), text)
	x.asks(func(*engine.Engine) { k.leads = true })
	if err := k.followOnce(); err != nil || listed() != nil || ring.Book.Len() != 0 {
		t.Errorf("a master took what it read: %v", err)
	}
	x.asks(func(*engine.Engine) { k.leads = false })
	if err := k.followOnce(); err != nil || listed() != nil {
		t.Errorf("nothing is new: %v", err)
	}
	wrote(t, s, 8, given(t, "a", 0x99), text)
	if err := k.followOnce(); err != nil || listed() == nil || listed() != x.list || ring.Book.Len() != 1 {
		t.Errorf("a standby: %v, list %v, %d keys", err, listed(), ring.Book.Len())
	}
	had := x.list
	wrote(t, s, 9, given(t, "a", 0x98), text)
	if err := k.followOnce(); err != nil || x.list != had || ring.Book.Len() != 2 {
		t.Errorf("the same list: %v, kept again %v, %d keys", err, x.list != had, ring.Book.Len())
	}
	k.known = 0
	all, err := recall()
	if err != nil || all.Assigned.LIDs[0x43] != 9 || all.Registered.Manager != 0x42 || k.known != 3 {
		t.Errorf("recalled %+v, %v; change %d known", all, err, k.known)
	}
	s.answers(store.ErrUnavailable, nil)
	if err := k.followOnce(); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a store that does not answer: %v", err)
	}
	if err := k.readKeys(); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a store that does not answer: %v", err)
	}
	if all, err = recall(); err != nil || all.Assigned.LIDs[0x43] != 9 {
		t.Errorf("what was read as standby does not count: %v", err)
	}
	s.answers(nil, nil)
	// A list that cannot be kept, or read, is tried with the next reading.
	short := bytes.Replace(text, []byte("# "), []byte("#  "), 1)
	for _, bad := range []struct {
		text []byte
		err  error
	}{{short, errors.New("no room")}, {[]byte(damagedText), nil}, {nil, nil}} {
		k.keep = func(*cables.List) error { return bad.err }
		if x.asks(func(e *engine.Engine) { k.setCables(e, bad.text) }); listed() != had || bytes.Equal(k.lines, bad.text) {
			t.Errorf("%.20s: taken", bad.text)
		}
	}
	k.keep = nil
	if x.asks(func(e *engine.Engine) { k.setCables(e, short) }); listed() != had {
		t.Error("a manager that has a list of its own took another's")
	}
	// Keys of another secret.
	wrote(t, s, 10, given(t, "b", 0x97), text)
	if err := k.followOnce(); err != nil || ring.Book.Len() != 2 {
		t.Errorf("keys of another secret: %v, %d keys", err, ring.Book.Len())
	}
	const another = "it was written with another master secret: managers that share a store share the secret"
	if _, err := recall(); err == nil || err.Error() != another {
		t.Errorf("recalled what another secret made: %v", err)
	}
	if err := k.readKeys(); err != nil {
		t.Errorf("what is wrong there is for the engine: %v", err)
	}
	wrote(t, s, 11, given(t, "a", 0x96), text)
	if err := k.readKeys(); err != nil || ring.Book.Len() != 3 {
		t.Errorf("%v, %d keys", err, ring.Book.Len())
	}
	s.put(store.Object{Key: files.Prefix + "head", Value: []byte("{")})
	if err := k.followOnce(); err != nil {
		t.Errorf("what is damaged is told at a takeover: %v", err)
	}
	if _, err := recall(); err == nil || !strings.HasPrefix(err.Error(), files.Prefix+"head: ") {
		t.Errorf("recalled what is damaged: %v", err)
	}
	if damaged := (&files.All{Secret: ring.Ring.Sum(), Book: []byte("{")}); !strings.HasPrefix(fmt.Sprint(k.merge(damaged)), "key book: ") {
		t.Errorf("a damaged book: %v", k.merge(damaged))
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	k.reading <- struct{}{}
	if _, err := k.read(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("who ends while another reads: %v", err)
	}
}

// aliased is the port of a host of the demonstration fabric: what a port registered that is not
// there is forgotten by the next pass.
const aliased = 0x100015

// TestResume: a master that was stopped takes in what another one kept that was master meanwhile,
// before it writes anything itself, and nobody registers again; not what that one had not all of,
// nor what it kept itself.
func TestResume(t *testing.T) {
	const alias = 0x99
	for _, x := range []struct {
		name  string
		by    ib.PortGUID
		news  bool
		takes bool
	}{
		{"another, that knew of all", 0x42, true, true},
		{"another, that lacked some", 0, true, false},
		{"what is known", 0x42, false, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			shelf := aShelf(t)
			m, _, _ := join(t, shelf, demoShare(t), nil)
			m.shared.End()
			m.run()
			m.eventually(t, "it knows its port", func() (knows bool) {
				m.asks(func(e *engine.Engine) { knows = daemon.PortOf(e) != 0 && e.Settled() })
				return knows
			})
			all := files.All{Registered: files.Registered{SAKey: sharedKey, Manager: x.by, State: server.State{Aliases: map[ib.PortGUID][]ib.PortGUID{aliased: {0, alias}}}}}
			all.Assigned.LIDs = map[ib.PortGUID]ib.LID{0x43: 7}
			list, err := new(files.Objects).Changes(&all, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			shelf.put(list...)
			if _, err := m.shared.read(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !x.news {
				m.shared.known = m.shared.objects.Sequence()
			}
			err = m.shared.resume(t.Context())
			var has server.State
			m.asks(func(*engine.Engine) { has = m.runner.Registered() })
			if taken := len(has.Aliases) == 1; errors.Is(err, errResumed) != x.takes || taken != x.takes {
				t.Errorf("%v, %+v: want it taken in: %v", err, has.Aliases, x.takes)
			}
			if whole := m.shared.known == m.shared.objects.Sequence(); whole != (x.takes || !x.news) {
				t.Errorf("change %d is known of %d", m.shared.known, m.shared.objects.Sequence())
			}
			if err := m.shared.resume(t.Context()); x.takes && err != nil {
				t.Errorf("a second time: %v", err)
			}
			j := &job{all: files.All{Registered: files.Registered{SAKey: sharedKey, Manager: 0x41, State: has}}}
			if _, err := m.shared.changes(j); err != nil || m.shared.missed != (x.by == 0) {
				t.Errorf("hosts have to register again: %v, %v", m.shared.missed, err)
			}
		})
	}
}

// TestRegainedStore: a master that never was another's standby, and from which another manager took
// the store over and gave it back, takes in what that one wrote, whether or not it noticed, and has
// the store name it as the manager that knows of all: who takes over from it next asks nobody to
// register again.
func TestRegainedStore(t *testing.T) {
	const alias = 0x99
	list, _ := aList(t)
	for _, x := range []struct {
		name    string
		wrote   bool // the other one
		notices func(*sharer)
	}{
		{"nobody noticed", true, func(*sharer) {}},
		{"nobody wrote", false, func(*sharer) {}},
		{"it looked", true, func(m *sharer) {
			if err := m.Look(t.Context()); !errors.Is(err, store.ErrFenced) {
				t.Error(err)
			}
		}},
		{"it tried to write", true, func(m *sharer) {
			m.asks(func(e *engine.Engine) { e.SetCables(list) })
			m.eventually(t, "it could not", func() bool { return errors.Is(m.Writable(), store.ErrFenced) })
		}},
		{"it looked, and tried to write", true, func(m *sharer) {
			_ = m.Look(t.Context())
			m.asks(func(e *engine.Engine) { e.SetCables(list) })
			m.eventually(t, "it could not", m.shared.again.Load)
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := aShelf(t)
			m, _, _ := join(t, s, demoShare(t), nil)
			m.run()
			m.settle("the store has what the master assigned")
			m.eventually(t, "all is written", func() bool { return !m.shared.busy.Load() })
			if _, err := m.store.Acquire(t.Context(), "another"); err != nil {
				t.Fatal(err)
			}
			if x.wrote {
				all, _ := s.said(t)
				all.Registered.Manager, all.Registered.SAKey = 0x42, sharedKey
				all.Registered.Aliases = map[ib.PortGUID][]ib.PortGUID{aliased: {0, alias}}
				var o files.Objects
				s.mu.Lock()
				o.Enter(slices.Collect(maps.Values(s.aside)))
				s.mu.Unlock()
				list, err := o.Changes(&all, time.Now())
				if err != nil {
					t.Fatal(err)
				}
				s.put(list...)
			}
			x.notices(m)
			m.asked(true) // nobody else is master
			m.eventually(t, "it has the store", m.writes)
			all := m.settle("the store names it again")
			var has server.State
			m.asks(func(*engine.Engine) { has = m.runner.Registered() })
			if taken := len(has.Aliases) == 1; taken != x.wrote || (len(all.Registered.Aliases) == 1) != x.wrote {
				t.Errorf("it has %v, and the store %v", has.Aliases, all.Registered.Aliases)
			}
			if m.warned("hosts are asked to register again") {
				t.Error("hosts are asked to register again")
			}
		})
	}
}

// TestHostsRegisterAgain: once, where others registered hosts that are not known here.
func TestHostsRegisterAgain(t *testing.T) {
	x, _, _ := join(t, aShelf(t), newStill(), nil)
	x.shared.End()
	x.run()
	const text = "what hosts registered last with another manager is not known here: hosts are asked to register again"
	for i, missed := range []bool{false, true, false} {
		x.asks(func(*engine.Engine) {
			x.shared.due, x.shared.missed = false, missed
			x.shared.lookBack()
			if x.shared.due != missed || x.shared.missed {
				t.Errorf("missed %v: due %v, missed %v", missed, x.shared.due, x.shared.missed)
			}
		})
		if x.warned(text) != (i > 0) {
			t.Errorf("missed %v: %v", missed, x.events)
		}
		x.mu.Lock()
		x.events = slices.DeleteFunc(x.events, func(event.Event) bool { return i != 0 && !missed })
		x.mu.Unlock()
	}
}

// TestALockedOutManagerReadsKeys: devices that do not accept its keys have it read those that
// others stored, until that has succeeded.
func TestALockedOutManagerReadsKeys(t *testing.T) {
	s := aShelf(t)
	ring := keyring(t, t.TempDir(), "a")
	x, _, _ := join(t, s, newStill(), ring)
	x.run()
	s.answers(store.ErrUnavailable, nil)
	s.mu.Lock()
	before := len(s.reads)
	s.mu.Unlock()
	x.asks(func(*engine.Engine) { x.Service.Event(event.LockedOut{Err: errors.New("locked out")}) })
	x.eventually(t, "it has tried", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.reads) > before
	})
	_, text := aList(t)
	wrote(t, s, 7, given(t, "a", 0x99), text)
	s.answers(nil, nil)
	x.eventually(t, "it has the key, and the list of cables that says where it goes", func() (has bool) {
		x.asks(func(e *engine.Engine) { has = ring.Book.Len() == 1 && e.Cables() != nil })
		return has
	})
}
