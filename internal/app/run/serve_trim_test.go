package run

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/internal/store/bolt"
)

// aged is a service on a store of its own, with a clock that stands.
func aged(t *testing.T, shared bool) (s *Service, now *time.Time) {
	t.Helper()
	return agedOn(t, shared, func(db store.Store) store.Store { return db })
}

// agedOn is aged with something between the service and the store.
func agedOn(t *testing.T, shared bool, between func(store.Store) store.Store) (s *Service, now *time.Time) {
	t.Helper()
	db, err := bolt.Open(t.TempDir() + "/store")
	if err != nil {
		t.Fatal(err)
	}
	now = new(time.Now())
	s = &Service{manager: daemon.NewServed("sim")}
	s.keep(between(db))
	s.Service, err = service.Open(t.Context(), service.Config{
		Store: s.store, Manager: s.manager, Base: &policy.Policy{Default: policy.Limited}, Owner: "test", Shared: shared,
		Now: func() time.Time { return *now },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, now
}

// TestTrim: what has had its time is forgotten by a change of the caller run, and there
// is neither a revision nor an entry of the audit log where there is nothing to forget.
func TestTrim(t *testing.T) {
	s, now := aged(t, false)
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	trim := func(want time.Duration) (revision uint64) {
		t.Helper()
		if got := s.trim(t.Context(), log); got != want {
			t.Errorf("again in %v, want %v: %s", got, want, out.String())
		}
		contents, err := s.store.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if contents.Revision != contents.Audit.Sequence {
			t.Errorf("revision %d, entry %d of the audit log", contents.Revision, contents.Audit.Sequence)
		}
		return contents.Revision
	}
	if n := trim(trimEvery); n != 0 {
		t.Errorf("revision %d of nothing", n)
	}
	for i := range 3 {
		token := resource.Token{ID: fmt.Sprint("t", i), Tenant: resource.Provider, Sum: strings.Repeat(fmt.Sprint(i), 64), Expires: now.Add(time.Hour)}
		if i == 2 {
			token.Expires = time.Time{} // never
		}
		if _, err := s.Do(t.Context(), service.Request{Change: resource.PutToken{Token: token}, By: fileCaller, Seen: resource.Unseen}); err != nil {
			t.Fatal(err)
		}
	}
	if n := trim(trimEvery); n != 3 {
		t.Errorf("revision %d: tokens were forgotten before their time", n)
	}
	*now = now.Add(2 * time.Hour)
	for range 2 { // the second has nothing to do
		if n := trim(trimEvery); n != 4 {
			t.Errorf("revision %d, want one for both tokens", n)
		}
	}
	record, err := s.Revision(t.Context(), fileCaller, 4)
	if err != nil || record.By != "run" || record.Action != "trim" || len(record.Edits) != 2 {
		t.Errorf("%+v, %v", record, err)
	}
	// A store that fails is tried again, which the log says; a standby leaves it to
	// the master.
	token := resource.Token{ID: "t4", Tenant: resource.Provider, Sum: strings.Repeat("4", 64), Expires: now.Add(time.Hour)}
	if _, err := s.Do(t.Context(), service.Request{Change: resource.PutToken{Token: token}, By: fileCaller, Seen: resource.Unseen}); err != nil {
		t.Fatal(err)
	}
	*now = now.Add(2 * time.Hour)
	works := s.store.Store
	s.store.Store = full{works}
	if n := trim(trimAgain); n != 5 || !strings.Contains(out.String(), "the store is full") {
		t.Errorf("revision %d; the log has %q", n, out.String())
	}
	s.store.Store = works
	if n := trim(trimEvery); n != 6 {
		t.Errorf("revision %d when the store takes changes again", n)
	}
	out.Reset()
	standby, _ := aged(t, true)
	if next := standby.trim(t.Context(), log); next != trimAgain || out.Len() > 0 {
		t.Errorf("a standby: again in %v: %s", next, out.String())
	}
}

// full is a store that fails every write.
type full struct{ store.Store }

func (full) Commit(context.Context, store.Commit) (store.Committed, error) {
	return store.Committed{}, store.ErrFull
}
