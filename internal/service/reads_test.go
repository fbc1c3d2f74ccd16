package service_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/test/need"
)

// modelled is a rig with the tenants of each revision, as a model of what each caller reads: the
// provider all of them by their numbers, a tenant its own, counted from 1.
func modelled(t *testing.T) (r *rig, concerns [][]string) {
	r = open(t, filepath.Join(t.TempDir(), "store"), false)
	r.twoTenants()
	for n := uint64(1); n <= r.last(); n++ {
		record, err := r.Revision(t.Context(), provider, n)
		if err != nil || record.Number != n {
			t.Fatalf("revision %d: %+v, %v", n, record, err)
		}
		concerns = append(concerns, record.Concerns)
	}
	return r, concerns
}

// numbersBy are the revisions that a caller reads, in his numbers.
func numbersBy(by resource.Caller, concerns [][]string) (list []uint64) {
	for n, tenants := range concerns {
		if by.IsProvider() || slices.Contains(tenants, by.Tenant) {
			list = append(list, uint64(n+1))
		}
	}
	return list
}

// TestHistoryIsReadByOnesOwnNumbers: every range of the history, for each caller, against the model.
func TestHistoryIsReadByOnesOwnNumbers(t *testing.T) {
	r, concerns := modelled(t)
	defer r.end()
	for _, by := range []resource.Caller{provider, {Tenant: "red"}, {Tenant: "blue"}, {Tenant: "nobody"}} {
		own := numbersBy(by, concerns)
		for from := uint64(0); from <= uint64(len(own))+1; from++ {
			for _, newest := range []bool{false, true} {
				for _, limit := range []int{0, 1, 2, len(own) + 1} {
					var want []uint64
					switch {
					case from == 0:
						want = slices.Clone(own)
					case newest:
						want = slices.Clone(own[:min(int(from), len(own))])
					case int(from) <= len(own):
						want = slices.Clone(own[from-1:])
					}
					if newest {
						slices.Reverse(want)
					}
					if limit > 0 && len(want) > limit {
						want = want[:limit]
					}
					records, err := r.History(t.Context(), by, store.Range{From: from, Newest: newest, Limit: limit})
					if errors.Is(err, store.ErrNotFound) && len(want) == 0 {
						continue
					}
					var got []uint64
					for _, x := range records {
						got = append(got, x.Number)
					}
					if err != nil || !slices.Equal(got, want) {
						t.Errorf("%s from %d, newest %v, limit %d: %v, %v; want %v", by.Tenant, from, newest, limit, got, err, want)
					}
				}
			}
		}
		for n := uint64(0); n <= uint64(len(own))+1; n++ {
			record, err := r.Revision(t.Context(), by, n)
			there := n > 0 && n <= uint64(len(own))
			if there && (err != nil || record.Number != own[n-1]) {
				t.Errorf("%s: revision %d: %+v, %v", by.Tenant, n, record, err)
			}
			if !there && (!errors.Is(err, store.ErrNotFound) || !strings.HasPrefix(err.Error(), fmt.Sprintf("revision %d: ", n))) {
				t.Errorf("%s: revision %d: %v, want that there is none", by.Tenant, n, err)
			}
		}
	}
}

// TestSince: what a rollback is given are the changes after a revision, the newest first: for the
// provider all, for a tenant its own; whole, or none.
func TestSince(t *testing.T) {
	r, concerns := modelled(t)
	defer r.end()
	last := r.last()
	for _, by := range []resource.Caller{provider, {Tenant: "red"}, {Tenant: "blue"}} {
		own := numbersBy(by, concerns)
		for number := range uint64(len(own)) + 1 {
			to := uint64(0)
			if number > 0 {
				to = own[number-1]
			}
			for upTo := to; upTo <= last; upTo++ {
				later, err := r.Since(t.Context(), by, to, number, upTo)
				if err != nil {
					t.Fatalf("%s since %d up to %d: %v", by.Tenant, to, upTo, err)
				}
				var want []uint64
				for _, n := range slices.Backward(own) {
					if n > to && n <= upTo {
						want = append(want, n)
					}
				}
				if len(later) != len(want) {
					t.Fatalf("%s since %d up to %d: %d changes, want those of %v", by.Tenant, to, upTo, len(later), want)
				}
				for i, n := range want {
					record, err := r.Revision(t.Context(), provider, n)
					if err != nil {
						t.Fatal(err)
					}
					for j, e := range record.Edits {
						if got := later[i].Edits[j]; got.Key != e.Key || (got.Before == nil) != (e.Before == nil) || (got.After == nil) != (e.After == nil) {
							t.Errorf("%s since %d: change %d is %+v, want that of revision %d", by.Tenant, to, i, got, n)
						}
					}
				}
			}
		}
	}
}

// TestProved: the newest revision that was proved, whatever became of those after it.
func TestProved(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "store"), false)
	defer r.end()
	proved := func(want uint64, some bool) {
		t.Helper()
		if got, is := r.Proved(t.Context()); got != want || is != some {
			t.Errorf("proved %d, %v; want %d, %v", got, is, want, some)
		}
	}
	done := func(revision uint64, o service.Outcome) {
		t.Helper()
		r.Done(revision, o)
		need.Eventually(t, need.Patience, "the outcome is stored, which is after it is told", func() bool {
			record, err := r.Revision(t.Context(), provider, revision)
			return err != nil || record.Outcome != nil
		})
	}
	proved(0, false)
	r.must(partition(5))
	proved(0, false)
	done(1, service.Outcome{Verdict: isolation.Isolated})
	r.must(partition(6))
	proved(1, true)
	done(2, service.Outcome{Verdict: isolation.Isolated, Failures: 1})
	r.must(partition(7))
	proved(1, true)
	done(3, service.Outcome{Verdict: isolation.Violated})
	proved(1, true)
	for revision, want := range map[uint64]service.OutcomeState{1: service.Proved, 2: service.Failed, 3: service.Failed} {
		if o := r.Outcome(revision); o == nil || o.State != want {
			t.Errorf("revision %d came to %+v, want %s", revision, o, want)
		}
	}
	r.must(partition(8))
	if o := r.Outcome(4); o == nil || o.State != service.Pending || o.At != r.now() {
		t.Errorf("revision 4: %+v", o)
	}
	if o := r.Outcome(5); o != nil {
		t.Errorf("revision 5, which is not there: %+v", o)
	}
}

// completer is a manager that reads on demand.
type completer struct {
	recorder
	asked service.Parts
}

var errCompleted = errors.New("completed")

func (c *completer) Complete(_ context.Context, p service.Parts) (*snapshot.Snapshot, error) {
	c.asked = p
	return nil, errCompleted
}

// TestActionsOfTheManager: what changes no object is recorded first, and what the manager keeps is
// stored; neither without the store.
func TestActionsOfTheManager(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "store"), false)
	defer r.end()
	if got := r.Standing(t.Context()); !got.Leads || got.Shared || got.Owner != "test" || got.Epoch == 0 {
		t.Errorf("standing: %+v", got)
	}
	request := service.Request{By: provider, Why: "because", ID: "request-1"}
	refusal := &resource.Refusal{Reason: resource.Forbidden, Detail: "not you"}
	if err := r.Note(t.Context(), request, "hand over", "0x1", nil); err != nil {
		t.Fatal(err)
	}
	if err := r.Note(t.Context(), request, "hand over", "0x2", refusal); err != nil {
		t.Fatal(err)
	}
	var notes []string
	for e, err := range r.store.Audit(t.Context(), store.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		notes = append(notes, fmt.Sprintf("%s %s %s %s %s %s %v %s", e.Time.UTC().Format("2006"), e.Caller, e.Tenant, e.Action, e.Request, e.Object, e.Decision, e.Reason))
	}
	want := []string{
		"2001 uid 0 provider hand over request-1 0x1 accepted because",
		"2001 uid 0 provider hand over request-1 0x2 refused not you",
	}
	if len(notes) < 2 || !slices.Equal(notes[len(notes)-2:], want) {
		t.Errorf("the audit log has %q, want %q", notes, want)
	}
	if err := r.Keep(t.Context(), r.Epoch(), []store.Object{{Key: service.ManagerPrefix + "x", Value: []byte("1")}}); err != nil {
		t.Fatal(err)
	}
	for _, epoch := range []store.Epoch{r.Epoch() - 1, r.Epoch() + 1} {
		if err := r.Keep(t.Context(), epoch, []store.Object{{Key: service.ManagerPrefix + "x", Value: []byte("2")}}); !errors.Is(err, store.ErrFenced) {
			t.Errorf("what was made in epoch %d is stored in epoch %d: %v", epoch, r.Epoch(), err)
		}
	}
	contents, err := r.store.Load(t.Context())
	if err != nil || !slices.ContainsFunc(contents.Objects, func(o store.Object) bool { return o.Key == service.ManagerPrefix+"x" && string(o.Value) == "1" }) {
		t.Errorf("kept: %+v, %v", contents, err)
	}
	if err := r.Writable(); err != nil {
		t.Error(err)
	}
	c := &completer{}
	s, err := service.Open(t.Context(), service.Config{Store: r.store, Manager: c, Base: &policy.Policy{Default: policy.Limited}, Owner: "second", Now: r.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Complete(t.Context(), service.Parts{QoS: true}); err != errCompleted || !c.asked.QoS {
		t.Errorf("a manager that reads on demand: %v, %+v", err, c.asked)
	}
	if _, err := r.Complete(t.Context(), service.Parts{QoS: true}); !errors.Is(err, service.ErrNotRead) {
		t.Errorf("one that does not: %v", err)
	}
	if s.Manager() != service.SubnetManager(c) {
		t.Error("another manager")
	}
	// The first was fenced by the second: it stores nothing any more, and says who may.
	if err := r.Keep(t.Context(), r.Epoch(), nil); err == nil {
		t.Error("a service that was fenced stores something")
	}
	if err := r.Note(t.Context(), request, "hand over", "0x1", nil); err == nil {
		t.Error("a service that was fenced records something")
	}
	if err := r.Writable(); err == nil {
		t.Error("a service that was fenced is writable")
	}
	if got := r.Standing(t.Context()); got.Leads || got.Owner != "second" {
		t.Errorf("standing of who was fenced: %+v", got)
	}
}

// TestActionsNeedTheStore: what could not be recorded says so, and is not to be done.
func TestActionsNeedTheStore(t *testing.T) {
	for name, act := range map[string]func(r *rig) error{
		"it could not be recorded: it is not known whether the change was stored: gone": func(r *rig) error {
			return r.Note(t.Context(), service.Request{By: provider}, "hand over", "0x1", nil)
		},
		"it is not known whether the change was stored: gone": func(r *rig) error { return r.Keep(t.Context(), r.Epoch(), nil) },
	} {
		r := open(t, filepath.Join(t.TempDir(), "store"), false)
		r.store.fail(errors.New("gone"), nil)
		if err := act(r); err == nil || err.Error() != name {
			t.Errorf("%v, want %s", err, name)
		}
		r.end()
	}
}
