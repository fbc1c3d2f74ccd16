package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ibwarden/ibwarden/internal/metrics"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
)

// TestStoreIsCounted: what the store took and did not take, its revision and epoch, and
// whether this manager writes it.
func TestStoreIsCounted(t *testing.T) {
	s, _ := aged(t, true)
	counts := s.counts
	want := func(text string) {
		t.Helper()
		var names []string
		for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
			name, _, _ := strings.Cut(line, " ")
			name, _, _ = strings.Cut(name, "{")
			if len(names) == 0 || names[len(names)-1] != name {
				names = append(names, name)
			}
		}
		if err := testutil.CollectAndCompare(counts, strings.NewReader(typed(text)), names...); err != nil {
			t.Error(err)
		}
	}
	want("ibwarden_store_commits_total 0\nibwarden_store_leader 0\nibwarden_store_up 1\nibwarden_store_revision 0\n")
	none := func(kind string, n int) (text string) {
		for _, k := range metrics.StoreFailures {
			if k != kind {
				text += fmt.Sprintf("ibwarden_store_failures_total{kind=%q} 0\n", k)
			} else {
				text += fmt.Sprintf("ibwarden_store_failures_total{kind=%q} %d\n", k, n)
			}
		}
		return text
	}
	want(none("", 0)) // each kind is there before its first failure, which is an increase then
	if n := testutil.CollectAndCount(counts, "ibwarden_store_epoch"); n != 0 {
		t.Error("the epoch of a manager that has none")
	}
	if err := s.Lead(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	do := func(name string) error {
		_, err := s.Do(t.Context(), service.Request{Change: resource.PutTenant{Tenant: resource.Tenant{Name: name}}, By: fileCaller, Seen: resource.Unseen})
		return err
	}
	if err := do("red"); err != nil {
		t.Fatal(err)
	}
	if err := do("Not a name!"); err == nil { // a refusal is an entry of the audit log
		t.Fatal("not refused")
	}
	want("ibwarden_store_commits_total 2\nibwarden_store_leader 1\nibwarden_store_revision 1\nibwarden_store_epoch 1\nibwarden_store_up 1\n")
	if _, err := s.store.Acquire(t.Context(), "another"); err != nil {
		t.Fatal(err)
	}
	if err := do("blue"); !errors.Is(err, store.ErrFenced) {
		t.Fatal(err)
	}
	want("ibwarden_store_commits_total 2\nibwarden_store_leader 0\nibwarden_store_up 1\n" + none("fenced", 1))
}

// typed is a text with the type and the meaning of each metric.
func typed(text string) string {
	var out strings.Builder
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		for _, m := range metrics.All() {
			if strings.HasPrefix(line, m.Name+" ") || strings.HasPrefix(line, m.Name+"{") {
				if !strings.Contains(out.String(), "# HELP "+m.Name+" ") {
					fmt.Fprintf(&out, "# HELP %s %s\n# TYPE %s %s\n", m.Name, m.Help, m.Name, m.Type)
				}
				fmt.Fprintln(&out, line)
			}
		}
	}
	return out.String()
}

// TestALostStoreIsSeen: while no transaction can be made, the gauge says so, of a manager
// that still leads.
func TestALostStoreIsSeen(t *testing.T) {
	var db lostStore
	s, _ := agedOn(t, true, func(under store.Store) store.Store {
		db.Store = under
		return &db
	})
	if err := s.Lead(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	db.lost.Store(true)
	_, err := s.Do(t.Context(), service.Request{Change: resource.PutTenant{Tenant: resource.Tenant{Name: "red"}}, By: fileCaller, Seen: resource.Unseen})
	if !errors.Is(err, store.ErrUnavailable) {
		t.Fatal(err)
	}
	text := "ibwarden_store_up 0\nibwarden_store_leader 1\n"
	if err := testutil.CollectAndCompare(s.counts, strings.NewReader(typed(text)), "ibwarden_store_up", "ibwarden_store_leader"); err != nil {
		t.Error(err)
	}
	for old, want := range map[error]bool{
		nil: true, service.ErrNotMaster: true, store.ErrFenced: true, store.ErrUnavailable: false, store.ErrFull: false,
		errors.Join(service.ErrNotMaster, store.ErrUnavailable): false, // a standby that cannot follow
	} {
		if there(old) != want {
			t.Errorf("%v: %v, want %v", old, !want, want)
		}
	}
}

// lostStore is a store whose commits fail once it is lost.
type lostStore struct {
	store.Store
	lost atomic.Bool
}

func (l *lostStore) Commit(ctx context.Context, c store.Commit) (store.Committed, error) {
	if l.lost.Load() {
		return store.Committed{}, store.ErrUnavailable
	}
	return l.Store.Commit(ctx, c)
}

// TestFailureKinds: whatever an error says, its kind is one of a few.
func TestFailureKinds(t *testing.T) {
	for _, f := range append(slices.Clone(failures), struct {
		err  error
		kind string
	}{nil, "other"}) {
		if !slices.Contains(metrics.StoreFailures, f.kind) {
			t.Errorf("%v is counted as %s, of which there is no sample before the first", f.err, f.kind)
		}
	}
	for err, want := range map[error]string{
		nil: "", store.ErrFull: "full", store.ErrUnavailable: "unavailable", store.ErrStale: "stale", store.ErrTooLarge: "invalid",
		context.Canceled: "canceled", store.ErrClosed: "other", errors.New("tenant \"x\""): "other",
	} {
		if err != nil {
			err = fmt.Errorf("/var/lib/x: %w", err)
		}
		if got := failureOf(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
