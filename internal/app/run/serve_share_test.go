package run

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/internal/store/bolt"
	"github.com/ibwarden/ibwarden/internal/topology"
)

const sharedKey ib.SMKey = 0x5A

// shelf is a store that several managers share: bolt's, with the objects of managers apart.
type shelf struct {
	store.Store
	mu      sync.Mutex
	aside   map[string]store.Object
	at      map[string]store.Mark
	mark    store.Mark
	changed chan struct{}
	fails   error // of whatever concerns these objects
	unsure  error // of a commit that is done all the same
	reads   []store.Mark
	commits int
}

func newShelf(db store.Store) *shelf {
	return &shelf{Store: db, aside: map[string]store.Object{}, at: map[string]store.Mark{}, changed: make(chan struct{})}
}

func (s *shelf) answers(err, unsure error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails, s.unsure = err, unsure
}

// put writes objects as another manager does.
func (s *shelf) put(list ...store.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mark++
	for _, x := range list {
		s.aside[x.Key], s.at[x.Key] = x, s.mark
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *shelf) Commit(ctx context.Context, c store.Commit) (store.Committed, error) {
	if len(c.Puts) == 0 || !strings.HasPrefix(c.Puts[0].Key, store.Aside) {
		return s.Store.Commit(ctx, c)
	}
	has, err := s.Load(ctx)
	if err != nil {
		return store.Committed{}, err
	}
	s.mu.Lock()
	fails, unsure := s.fails, s.unsure
	s.commits++
	s.mu.Unlock()
	if has.Epoch != c.Epoch {
		return store.Committed{}, store.ErrFenced
	}
	if fails != nil {
		return store.Committed{}, fails
	}
	s.put(c.Puts...)
	return store.Committed{Revision: has.Revision, Audit: has.Audit}, unsure
}

func (s *shelf) Objects(_ context.Context, prefix string, after store.Mark) (out []store.Object, _ store.Mark, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads = append(s.reads, after)
	for key, x := range s.aside {
		if strings.HasPrefix(key, prefix) && s.at[key] > after {
			out = append(out, x)
		}
	}
	slices.SortFunc(out, func(a, b store.Object) int { return strings.Compare(a.Key, b.Key) })
	return out, s.mark, s.fails
}

func (s *shelf) Await(ctx context.Context, after store.Mark) {
	s.mu.Lock()
	changed, news := s.changed, s.mark > after
	s.mu.Unlock()
	if news {
		return
	}
	select {
	case <-changed:
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
}

// said is what the store has.
func (s *shelf) said(t *testing.T) (all files.All, some bool) {
	t.Helper()
	var o files.Objects
	list, _, err := s.Objects(t.Context(), files.Prefix, 0)
	if err == nil {
		o.Enter(list)
		all, some, err = o.All(sharedKey, time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
	return all, some
}

// still is a link on which nothing comes: its manager is nobody's master.
type still struct{ woken chan struct{} }

func (l still) Drive(ctx context.Context, _ link.Engine, done func() bool) error {
	for !done() {
		select {
		case <-l.woken:
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (l still) Wake() {
	select {
	case l.woken <- struct{}{}:
	default:
	}
}
func (still) SetIsSM(bool) error      { return nil }
func (still) Limits() transact.Limits { return transact.DefaultLimits() }
func (still) Close() error            { return nil }

// sharer is a manager of those that share a store.
type sharer struct {
	*Service
	t      *testing.T
	shelf  *shelf
	shared *Shared
	ring   *daemon.Keyring
	runner *daemon.Runner
	list   *cables.List // that it was given to keep
	mu     sync.Mutex
	events []event.Event
	stop   context.CancelFunc
	ended  chan error
}

func (x *sharer) Event(e event.Event) {
	x.mu.Lock()
	x.events = append(x.events, e)
	x.mu.Unlock()
	x.Service.Event(e)
}
func (x *sharer) Progress(string, uint64) {}

// warned reports whether an event has said so.
func (x *sharer) warned(text string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.ContainsFunc(x.events, func(e event.Event) bool {
		w, is := e.(event.Warned)
		return is && strings.Contains(w.Text, text)
	})
}

// keyring has keys that are kept in dir, made with a secret of this digit.
func keyring(t *testing.T, dir, secret string) *daemon.Keyring {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte(strings.Repeat(secret, 2*mkey.SecretSize)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ring, err := daemon.OpenKeys(daemon.DataDir(dir), "", false)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// join is a manager that shares what is on a shelf; it runs when it is told to.
func join(t *testing.T, s *shelf, to link.Link, ring *daemon.Keyring) (x *sharer, all files.All, some bool) {
	t.Helper()
	x = &sharer{t: t, shelf: s, ring: ring, Service: &Service{manager: daemon.NewServed("sim"), shared: true, db: s}}
	x.Service.keep(open{s})
	var err error
	x.Service.Service, err = service.Open(t.Context(), service.Config{
		Store: x.store, Manager: x.manager, Base: &policy.Policy{Default: policy.Limited}, Owner: "test", Shared: true, Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	x.beginLead()
	t.Cleanup(x.end)
	x.shared, all, some, err = x.Kept(t.Context(), sharedKey, ring, func(l *cables.List) error { x.list = l; return nil })
	if err != nil {
		t.Fatal(err)
	}
	revision, p := x.Policy()
	c := engine.Config{Routing: routing.UpDown, Periods: engine.Periods{Sweep: time.Hour, Drift: time.Hour}, Seed: daemon.Secret()}
	if ring != nil {
		c.Keys = &mkey.KeyingConfig{Keys: mkey.Keys{Ring: ring.Ring, Book: ring.Book}, Keep: true, Shared: true}
	}
	x.runner = daemon.NewRunner(to, c, server.Config{Keep: true}, p, x)
	x.manager.Begin(x.runner, x.Service.Service, revision, p)
	if ring != nil {
		x.runner.KeepKeys(ring.Save)
	}
	x.shared.Begin(x.runner)
	if err := x.runner.Keep(server.State{}, func(server.State) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return x, all, some
}

// open is a store that stays open for others.
type open struct{ store.Store }

func (open) Close() error { return nil }

func (x *sharer) run() {
	var ctx context.Context
	ctx, x.stop = context.WithCancel(context.Background())
	x.ended = make(chan error, 1)
	go func() {
		x.ended <- x.runner.Run(ctx, func() bool {
			x.Turn(x.runner.Engine())
			return false
		})
	}()
}

func (x *sharer) end() {
	if x.stop != nil {
		x.stop()
		if err := <-x.ended; !errors.Is(err, context.Canceled) {
			x.t.Error(err)
		}
		x.stop = nil
	}
	if err := x.Close(); err != nil {
		x.t.Error(err)
	}
}

// demoShare is a link to a demonstration fabric of its own, with a host that asks for nothing.
func demoShare(t *testing.T) link.Link {
	t.Helper()
	n := topology.Demo()
	f, err := fabric.New(n, fabric.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	node, num, err := n.Attach("")
	if err != nil {
		t.Fatal(err)
	}
	l, err := inproc.New(f, node.GUID, num, true)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func newStill() link.Link { return still{make(chan struct{}, 1)} }

// aShelf is an empty store that managers share.
func aShelf(t *testing.T) *shelf {
	t.Helper()
	db, err := bolt.Open(t.TempDir() + "/store")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return newShelf(db)
}

// asks has f run by the engine.
func (x *sharer) asks(f func(*engine.Engine)) {
	x.t.Helper()
	if err := x.runner.Ask(x.t.Context(), f); err != nil {
		x.t.Fatal(err)
	}
}

// settle waits until the shelf has what the engine has.
func (x *sharer) settle(what string) (all files.All) {
	x.t.Helper()
	x.eventually(x.t, what, func() bool {
		var lids map[ib.PortGUID]ib.LID
		var port ib.PortGUID
		var text bytes.Buffer
		settled := false
		x.asks(func(e *engine.Engine) {
			if l := e.Cables(); l != nil {
				_ = l.Write(&text) // a Buffer takes all
			}
			lids, port, settled = maps.Clone(e.Assigned().LIDs), daemon.PortOf(e), e.Settled()
		})
		some := false
		all, some = x.shelf.said(x.t)
		return settled && some && len(lids) > 0 && maps.Equal(all.Assigned.LIDs, lids) && all.Registered.Manager == port && bytes.Equal(all.Cables, text.Bytes())
	})
	return all
}

// aList is a list of cables.
func aList(t *testing.T) (l *cables.List, text []byte) {
	t.Helper()
	var b bytes.Buffer
	if err := topology.Demo().WriteIbnetdiscover(&b); err != nil {
		t.Fatal(err)
	}
	l, err := cables.Read(b.Bytes(), "demoShare")
	if err != nil {
		t.Fatal(err)
	}
	b.Reset()
	if err := l.Write(&b); err != nil {
		t.Fatal(err)
	}
	return l, b.Bytes()
}

// TestWhatManagersShare: a master writes what it gives out, and its keys and cables; who
// joins has it, and a standby hears of every change, and not of the master's own.
func TestWhatManagersShare(t *testing.T) {
	s := aShelf(t)
	master, all, some := join(t, s, demoShare(t), keyring(t, t.TempDir(), "a"))
	if some || len(all.Assigned.LIDs) != 0 || !master.shared.SharesKeys() {
		t.Fatalf("an empty store has %v, %+v, keys %v", some, all, master.shared.SharesKeys())
	}
	master.run()
	all = master.settle("the store has what the master assigned")
	if all.Secret != master.ring.Ring.Sum() || len(all.Book) == 0 || master.list != nil {
		t.Errorf("secret %q, a book of %d bytes, list %v", all.Secret, len(all.Book), master.list)
	}
	b := master.ring.Book

	dir := t.TempDir()
	joined := keyring(t, dir, "a")
	standby, got, some := join(t, s, newStill(), joined)
	if !some || !maps.Equal(got.Assigned.LIDs, all.Assigned.LIDs) || got.Registered.Manager != all.Registered.Manager || standby.list != nil {
		t.Errorf("who joins has %v, %+v; want %+v", some, got.Assigned, all.Assigned)
	}
	master.asks(func(*engine.Engine) {
		if joined.Book.Len() != b.Len() {
			t.Errorf("it has the keys of %d ports, want %d", joined.Book.Len(), b.Len())
		}
	})
	if again, err := daemon.OpenKeys(daemon.DataDir(dir), "", false); err != nil || again.Book.Len() != joined.Book.Len() {
		t.Errorf("it has not kept them itself: %v", err)
	}
	standby.run()

	l, text := aList(t)
	master.asks(func(e *engine.Engine) { e.SetCables(l) })
	if all = master.settle("the store has the master's cables"); !bytes.Equal(all.Cables, text) {
		t.Errorf("cables: %s", all.Cables)
	}
	standby.eventually(t, "the standby has the cables", func() bool {
		same := false
		standby.asks(func(e *engine.Engine) {
			same = e.Cables() != nil && standby.list == e.Cables() && bytes.Equal(standby.shared.lines, text)
		})
		return same
	})
	// Of a key that another manager has given it hears too.
	id := mkey.ID{Node: 0x77, Port: 0x78}
	master.asks(func(e *engine.Engine) {
		if _, err := b.Add(id, observed.Place{Node: 0x77, Port: 1}); err != nil {
			t.Error(err)
		}
		master.shared.due = true
	})
	standby.eventually(t, "the standby has the new key", func() bool {
		some := false
		standby.asks(func(*engine.Engine) { some = len(joined.Book.Of(id)) > 0 })
		return some
	})
	standby.asks(func(e *engine.Engine) {
		if e.Cables() != standby.list || standby.shared.leads || standby.shared.leading.Load() {
			t.Error("a standby has become the master by reading")
		}
	})
	if n := standby.shelf.commits; n == 0 {
		t.Error("nobody has written")
	}

	// While the store does not take it the master tries again.
	s.answers(store.ErrUnavailable, nil)
	master.asks(func(e *engine.Engine) { e.SetCables(nil) })
	master.eventually(t, "the writing failed", master.shared.again.Load)
	s.answers(nil, nil)
	if all = master.settle("the store has it after all"); len(all.Cables) != 0 {
		t.Errorf("cables: %s", all.Cables)
	}
}
