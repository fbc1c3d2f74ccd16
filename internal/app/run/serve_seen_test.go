package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mastership"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/internal/store/bolt"
)

// TestSeenFiles: of the copies of what was seen the newest counts; one that is damaged is an
// error, one that is missing is not; what could not be written is told once.
func TestSeenFiles(t *testing.T) {
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state.json")
	for _, x := range []struct {
		dir, state string
		want       []string
	}{
		{"", "", nil}, {dir, "", []string{dir + "/seen.json"}}, {"", state, []string{state + ".seen"}}, {dir, state, []string{dir + "/seen.json", state + ".seen"}},
	} {
		if got := newSeenFiles(x.dir, x.state).paths; !slices.Equal(got, x.want) {
			t.Errorf("%s, %s: %v, want %v", x.dir, x.state, got, x.want)
		}
	}
	f := newSeenFiles(dir, state)
	if seen, err := f.read(); err != nil || seen.Serial != 0 {
		t.Errorf("no copies: %+v, %v", seen, err)
	}
	var log bytes.Buffer
	f.keep(store.Seen{Serial: 3}) // nobody is told yet
	f.tells(slog.New(slog.NewTextHandler(&log, nil)))
	newer := store.Seen{Serial: 4, Accepted: []string{"a"}}
	newSeenFiles("", state).keep(newer)
	if seen, err := f.read(); err != nil || seen.Serial != 4 || !seen.Knows("a") {
		t.Errorf("the newer is the second: %+v, %v", seen, err)
	}
	newSeenFiles(dir, "").keep(store.Seen{Serial: 5})
	if seen, err := f.read(); err != nil || seen.Serial != 5 {
		t.Errorf("the newer is the first: %+v, %v", seen, err)
	}
	f.keep(store.Seen{Serial: 6})
	for _, path := range f.paths {
		if data, err := os.ReadFile(path); err != nil || !bytes.HasPrefix(data, []byte(`{"version":1,"serial":6,`)) || !bytes.HasSuffix(data, []byte("}\n")) {
			t.Errorf("%s: %s, %v", path, data, err)
		}
	}
	for text, want := range map[string]string{
		"{":                          "",
		`{"version":2,"serial":9}`:   "version 2, want 1",
		`{"serial":9}`:               "version 0, want 1",
		`{"version":1,"walls":1}`:    "walls",
		strings.Repeat(" ", 1<<20+1): "",
	} {
		for _, path := range f.paths {
			was, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err = f.read()
			if err == nil || !strings.HasPrefix(err.Error(), "what was seen of the store, "+path+": ") || !strings.Contains(err.Error(), want) ||
				!strings.HasSuffix(err.Error(), "; remove it if you know that the store is not older than it was") {
				t.Errorf("%.30s in %s: %v, want %q", text, path, err, want)
			}
			if err := os.WriteFile(path, was, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	const told = "what was seen of the store could not be kept"
	bad := &seenFiles{paths: []string{filepath.Join(dir, "gone", "seen.json")}}
	bad.keep(store.Seen{}) // without a log
	bad.failed = false
	bad.tells(slog.New(slog.NewTextHandler(&log, nil)))
	for i, want := range []int{1, 1, 1, 2} {
		if i == 2 {
			if err := os.Mkdir(filepath.Join(dir, "gone"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if bad.keep(store.Seen{}); strings.Count(log.String(), told) != want {
			t.Errorf("writing %d: %s", i, log.String())
		}
		if i == 2 {
			if err := os.RemoveAll(filepath.Join(dir, "gone")); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestAnOlderStore: a store in whose place an older one was put takes no changes, /readyz and
// /metrics say so, a policy file waits, and what stands is not widened.
func TestAnOlderStore(t *testing.T) {
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state.json")
	at := func() *Service {
		s, err := Open(t.Context(), Options{Data: daemon.DataDir(dir), State: state, Fabric: "sim", Base: &policy.Policy{Default: policy.Limited}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	file := filepath.Join(dir, storeName, bolt.FileName)
	s := at()
	tenant(t, s, "red")
	if s.missing() != 0 || !s.reaches() || !s.leads() {
		t.Errorf("%d revisions are missing of a store that has all", s.missing())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s = at()
	for _, name := range []string{"blue", "green"} {
		tenant(t, s, name)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, old, 0o600); err != nil {
		t.Fatal(err)
	}
	s = at()
	defer s.Close()
	if s.missing() != 2 {
		t.Errorf("%d revisions are missing, want 2", s.missing())
	}
	const why = "the store was rolled back: it ends with revision 1, and revisions 2 to 3, which were seen, are missing"
	ready(t, s)(503, "store: "+why)
	if err := s.writable(); err == nil || err.Error() != why {
		t.Errorf("writable: %v", err)
	}
	f := resource.File{Name: "f.yaml", Text: "version: 1\ndefault: limited\n"}
	err = s.ApplyFile(t.Context(), f)
	var waiting *WaitsError
	if !errors.As(err, &waiting) || !errors.Is(err, store.ErrRolledBack) || !strings.HasPrefix(err.Error(), "the policy file is not applied, what was in force stays: ") {
		t.Errorf("a policy file: %v", err)
	}
	if got := s.file.Load(); got == nil || got.Text != f.Text {
		t.Errorf("the file that waits is %v", got)
	}
	if err := s.applyLater(t.Context()); !errors.Is(err, store.ErrRolledBack) || s.file.Load() == nil {
		t.Errorf("it does not wait any more: %v", err)
	}
	for err, want := range map[error]bool{
		store.ErrRolledBack: true, store.ErrFull: true, store.ErrUnavailable: true, store.ErrFenced: false, service.ErrNotMaster: false, errors.New("x"): false,
	} {
		if waits(err) != want || waits(fmt.Errorf("x: %w", err)) != want {
			t.Errorf("%v: waits %v", err, !want)
		}
	}
	if waits(nil) {
		t.Error("nothing waits")
	}
	if new(Service).missing() != 0 {
		t.Error("a service that is not open misses revisions")
	}
}

// TestWhatIsKnown: whether the store says who belongs where, to whom others share it with.
func TestWhatIsKnown(t *testing.T) {
	var none *Service
	if none.Shares() || none.Knows() {
		t.Error("a run without a service")
	}
	for _, shared := range []bool{false, true} {
		s, _ := aged(t, shared)
		s.shared = shared
		if got, err := s.Learns(t.Context()); got || err != nil || s.Shares() != shared {
			t.Errorf("shared %v: an empty store says who belongs where: %v", shared, err)
		}
		writer := s
		if shared { // another manager writes
			db := s.store.Store
			other := &Service{manager: daemon.NewServed("sim")}
			other.keep(open{db})
			var err error
			if other.Service, err = service.Open(t.Context(), service.Config{Store: other.store, Manager: other.manager, Base: &policy.Policy{}, Owner: "other", Now: time.Now}); err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			writer = other
		}
		if err := writer.ApplyFile(t.Context(), resource.File{Name: "f", Text: "version: 1\ndefault: limited\npartitions:\n- name: one\n  pkey: 0x10\n"}); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Learns(t.Context()); !got || err != nil || !s.Knows() {
			t.Errorf("shared %v: it does not know of the file: %v", shared, err)
		}
	}
}

// TestRegainWithALease: the store is taken over once more where the lease was lost, or given
// up; from another manager only after a round that showed no other master.
func TestRegainWithALease(t *testing.T) {
	for _, x := range []struct {
		name          string
		holds, fenced bool
		alone         bool
		takes         bool
	}{
		{"it has the lease", true, false, false, false}, {"it has the lease, alone", true, false, true, false},
		{"given up", false, false, false, true}, {"given up, alone", false, false, true, true},
		{"taken by another", false, true, false, false}, {"taken by another, alone", false, true, true, true},
	} {
		s := leading(t)
		s.isMaster(true)
		s.eventually(t, "it leads", s.writes)
		s.rest(t)
		s.rights = &rights{keeper: mastership.NewKeeper(mastership.DefaultTTL)}
		if x.holds {
			s.rights.keeper.Took(0, 1, mastership.Record{})
		}
		if x.fenced {
			if _, err := s.store.Acquire(t.Context(), "another"); err != nil {
				t.Fatal(err)
			}
			if err := s.change(t, "red"); !errors.Is(err, store.ErrFenced) {
				t.Fatal(err)
			}
		}
		s.alone.Store(x.alone)
		before := s.epoch(t)
		if err := s.regain(t.Context()); err != nil {
			t.Errorf("%s: %v", x.name, err)
		}
		if got := s.epoch(t) > before; got != x.takes || !x.fenced && s.alone.Load() != x.alone || x.fenced && s.alone.Load() {
			t.Errorf("%s: taken over %v, alone %v", x.name, got, s.alone.Load())
		}
		s.rights = nil
	}
}

// TestLeaseAndStoreAreTakenTogether: who needs a lease takes the store over with it alone.
func TestLeaseAndStoreAreTakenTogether(t *testing.T) {
	hold(t, func(t *testing.T, h *holder) {
		f := &fencing{rights: h.rights}
		if epoch, err := f.Acquire(t.Context(), "this"); err != nil || epoch != 1 || !h.holds() {
			t.Errorf("epoch %d, %v", epoch, err)
		}
	})
}

// TestALostLeaseIsLookedAt: a manager that lost its lease finds that it is fenced, though it
// writes nothing.
func TestALostLeaseIsLookedAt(t *testing.T) {
	s := leading(t)
	s.isMaster(true)
	s.eventually(t, "it leads", s.writes)
	if _, err := s.store.Acquire(t.Context(), "another"); err != nil {
		t.Fatal(err)
	}
	if err := s.Writable(); err != nil {
		t.Fatalf("it knows before it looks: %v", err)
	}
	s.lostLease()
	s.eventually(t, "it knows", func() bool { return errors.Is(s.Writable(), store.ErrFenced) })
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.lostLease() // after the end nobody asks
	s.confirm()
	alone, _ := aged(t, false)
	alone.lostLease()
	alone.confirm()
	alone.askOthers()
	alone.asked(true)
	if alone.asks.Wait(); alone.alone.Load() || !alone.begun.IsZero() {
		t.Error("a manager that shares nothing asks others")
	}
}

// slowLoad is a store that cannot be read at first.
type slowLoad struct {
	store.Store
	fails int
	loads chan struct{}
}

func (s *slowLoad) Load(ctx context.Context) (*store.Contents, error) {
	if s.loads != nil {
		s.loads <- struct{}{}
		if s.fails--; s.fails >= 0 {
			return nil, store.ErrUnavailable
		}
	}
	return s.Store.Load(ctx)
}

// TestConfirmTriesAgain: a manager that slept asks the store what is in force until it answers.
func TestConfirmTriesAgain(t *testing.T) {
	slow := &slowLoad{fails: 2}
	s, _ := agedOn(t, true, func(db store.Store) store.Store { slow.Store = db; return slow })
	s.masters = make(chan bool, 1) // nobody leads here
	slow.loads = make(chan struct{}, 100)
	s.Event(event.Slept{})
	s.asks.Wait()
	if n := len(slow.loads); n < 3 {
		t.Errorf("it tried %d times, want 3", n)
	}
	s.masters = nil
}

// TestWhoIsMasterIsHeard: the manager's events say whether it is master.
func TestWhoIsMasterIsHeard(t *testing.T) {
	s := leading(t)
	s.isMaster(true)
	s.eventually(t, "it leads", s.writes)
	s.Event(event.Deferred{})
	s.eventually(t, "it leads no more", func() bool { return !s.leads() && !s.master.Load() })
	var none *Service
	none.Event(event.Deferred{})
}

// unread is a store that cannot be read, once that is asked for.
type unread struct {
	store.Store
	err error
}

func (u *unread) Load(ctx context.Context) (*store.Contents, error) {
	if u.err != nil {
		return nil, u.err
	}
	return u.Store.Load(ctx)
}

// TestWhatIsKnownOfAStoreThatIsLost: of a store that was rolled back what is known here is later;
// of one that does not answer nobody knows.
func TestWhatIsKnownOfAStoreThatIsLost(t *testing.T) {
	for lost, want := range map[error]error{store.ErrRolledBack: nil, store.ErrUnavailable: store.ErrUnavailable} {
		u := new(unread)
		s, _ := agedOn(t, true, func(db store.Store) store.Store { u.Store = db; return u })
		s.shared = true
		u.err = lost
		if some, err := s.Learns(t.Context()); some || !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%v: %v, %v", lost, some, err)
		}
		u.err = nil
	}
}
