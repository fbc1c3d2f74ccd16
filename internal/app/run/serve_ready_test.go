package run

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/app/telemetry"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
)

// ready is what /readyz of a standby says with the checks of a service.
func ready(t *testing.T, s *Service) func(code int, text string) {
	x := telemetry.New(time.Now)
	x.Turn(telemetry.Status{Manager: "standby"}, false, nil)
	s.Watch(x)
	return func(code int, text string) {
		t.Helper()
		w := httptest.NewRecorder()
		x.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
		if w.Code != code || !strings.Contains(w.Body.String(), text) {
			t.Errorf("/readyz: %d %s, want %d and %q", w.Code, w.Body, code, text)
		}
	}
}

// TestReadyWhileTheStoreCanBeWritten: /readyz says when the store cannot be written, and
// when it can be again, even if no change was attempted in between.
func TestReadyWhileTheStoreCanBeWritten(t *testing.T) {
	s, _ := aged(t, false)
	want := ready(t, s)
	want(200, `"reasons":[]`)
	works := s.store.Store
	s.store.Store = full{works}
	change := service.Request{Change: resource.PutTenant{Tenant: resource.Tenant{Name: "red"}}, By: fileCaller, Seen: resource.Unseen}
	if _, err := s.Do(t.Context(), change); err == nil {
		t.Fatal("a full store took a change")
	}
	want(503, "store: the store is full")
	ctx, cancel := context.WithCancel(t.Context())
	tick, ended := make(chan time.Time), make(chan struct{})
	go func() {
		s.recovers(ctx, tick)
		close(ended)
	}()
	tick <- time.Time{}
	tick <- time.Time{}                   // the first try is over
	want(503, "store: the store is full") // it can be read, and that is not enough
	cancel()
	<-ended
	s.store.Store = works
	before, err := s.store.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(200, `"reasons":[]`)
	after, err := s.store.Load(t.Context())
	if err != nil || after.Revision != before.Revision || after.Audit != before.Audit || len(after.Objects) != len(before.Objects) {
		t.Errorf("trying changed the store: %+v, before %+v, %v", after, before, err)
	}
}

// TestReadyWithASharedStore: a standby is ready; a master is when it has the store, and
// not any more when another has taken it.
func TestReadyWithASharedStore(t *testing.T) {
	s, _ := aged(t, true)
	want := ready(t, s)
	want(200, `"reasons":[]`)
	s.isMaster(true)
	want(503, "has not taken the store over yet")
	if err := s.Lead(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	want(200, `"reasons":[]`)
	if _, err := s.store.Acquire(t.Context(), "another"); err != nil {
		t.Fatal(err)
	}
	change := service.Request{Change: resource.PutTenant{Tenant: resource.Tenant{Name: "red"}}, By: fileCaller, Seen: resource.Unseen}
	if _, err := s.Do(t.Context(), change); err == nil {
		t.Fatal("a manager that was fenced off made a change")
	}
	want(503, "another manager has become the writer")
	if err := s.Recover(t.Context()); err == nil {
		t.Error("it took the store back")
	}
	want(503, "another manager has become the writer")
	s.isMaster(false)
	if err := s.Lead(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	want(200, `"reasons":[]`)
}

// TestNoServiceNoCheck: a run without a service has no store.
func TestNoServiceNoCheck(t *testing.T) {
	ready(t, nil)(200, `"reasons":[]`)
}
