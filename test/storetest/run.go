package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/internal/store"
)

// Place is where one store is. Open opens it, again if it was open before; Shared says
// that it may be open several times at once. Renew makes another place of the kind.
type Place struct {
	Open   func(t testing.TB) store.Store
	Shared bool
	Renew  func(t testing.TB) Place
}

// Run runs the tests. Each is given a place of its own, with nothing in it.
func Run(t *testing.T, place func(t testing.TB) Place) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(*testing.T, Place)
	}{
		{"Empty", testEmpty}, {"Commit", testCommit}, {"Stale", testStale}, {"Fenced", testFenced},
		{"Refused", testRefused}, {"Large", testLarge}, {"Outcomes", testOutcomes}, {"Ranges", testRanges},
		{"Watch", testWatch}, {"Trim", testTrim}, {"Backup", testBackup}, {"FillBreaks", testFillBreaks},
		{"Ends", testEnds}, {"Together", testTogether}, {"Moment", testMoment}, {"Verify", testVerify},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, place(t)) })
	}
	t.Run("Model", func(t *testing.T) { testModel(t, place(t)) })
}

// day is the time of entries of tests.
var day = time.Date(2026, 11, 22, 12, 0, 0, 123456789, time.UTC)

// About is an audit entry about a revision, 0 for none.
func About(revision uint64) store.Entry {
	return store.Entry{
		Time: day, Caller: "uid:0", Tenant: "blue", Action: "partition.put", Object: "blue/<a>&\u2028", Decision: store.Accepted,
		Reason: "said so", Request: fmt.Sprintf("r-%d", revision), Revision: revision,
	}
}

// Next is a commit with a revision after another.
func Next(epoch store.Epoch, after uint64, puts ...store.Object) store.Commit {
	return store.Commit{
		Epoch: epoch, After: after, Revision: fmt.Appendf(nil, "revision %d", after+1),
		Puts: puts, Audit: []store.Entry{About(after + 1)},
	}
}

func object(key, value string) store.Object { return store.Object{Key: key, Value: []byte(value)} }

func acquire(t testing.TB, s store.Store) store.Epoch {
	t.Helper()
	e, err := s.Acquire(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func commit(t testing.TB, s store.Store, c store.Commit) store.Committed {
	t.Helper()
	out, err := s.Commit(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func load(t testing.TB, s store.Store) *store.Contents {
	t.Helper()
	c, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("%s differs (- want, + got):\n%s", what, d)
	}
}

// fails checks that an error is the one that is wanted.
func fails(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: error %v, want %v", what, err, want)
	}
}

func testEmpty(t *testing.T, p Place) {
	s := p.Open(t)
	defer s.Close()
	same(t, "an empty store", load(t, s), &store.Contents{})
	for _, err := range s.Revisions(t.Context(), store.Range{}) {
		t.Fatalf("an empty store yields a revision, error %v", err)
	}
	for _, err := range s.Audit(t.Context(), store.Range{Newest: true}) {
		t.Fatalf("an empty store yields an entry, error %v", err)
	}
	_, err := s.Revision(t.Context(), 1)
	fails(t, "revision 1", err, store.ErrNotFound)
	_, err = s.Commit(t.Context(), Next(0, 0))
	fails(t, "a commit before anybody acquired the store", err, store.ErrFenced)
	_, err = s.Commit(t.Context(), Next(1, 0))
	fails(t, "a commit with an epoch of nobody", err, store.ErrFenced)
}

func testCommit(t *testing.T, p Place) {
	s := p.Open(t)
	e := acquire(t, s)
	c := Next(e, 0, object("b", "2"), object("a", "1"), object("empty", ""))
	c.Audit = append(c.Audit, store.Entry{Time: day.In(time.FixedZone("", 3600)), Action: "look", Decision: store.Refused, Caller: "not \xff UTF-8"})
	c.Audit[1].Sequence, c.Audit[1].Digest, c.Audit[1].Begins = 77, store.Sum([]byte("forged")), &store.Checkpoint{Sequence: 9}
	first := commit(t, s, c)
	if first.Revision != 1 || first.Audit.Sequence != 2 {
		t.Fatalf("committed %+v", first)
	}
	second := Next(e, 1, object("a", "11"))
	second.Deletes = []string{"b", "never there"}
	at := commit(t, s, second)
	only := commit(t, s, store.Commit{Epoch: e, Audit: []store.Entry{About(0)}})
	if only.Revision != 2 || only.Audit.Sequence != at.Audit.Sequence+1 {
		t.Fatalf("a commit with only an entry: %+v after %+v", only, at)
	}
	check := func(s store.Store) {
		t.Helper()
		same(t, "the store", load(t, s), &store.Contents{
			Objects:  []store.Object{object("a", "11"), {Key: "empty", Value: []byte{}}},
			Revision: 2, Oldest: 1, Audit: only.Audit, Epoch: e, Owner: "test",
		})
		r, err := s.Revision(t.Context(), 2)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "revision 2", r, store.Revision{Number: 2, Epoch: e, Data: []byte("revision 2")})
		entries := Entries(t, s, store.Range{})
		if got := entries[1]; got.Caller != "not \uFFFD UTF-8" || !got.Time.Equal(day) || got.Time.Location() != time.UTC || got.Digest != (store.Hash{}) || got.Begins != nil {
			t.Fatalf("entry %+v", got)
		}
		if entries[2].Digest != store.Sum([]byte("revision 2")) || entries[3].Hash != only.Audit.Hash {
			t.Fatalf("entries %+v", entries)
		}
	}
	check(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = p.Open(t)
	defer s.Close()
	check(s)
}

func testStale(t *testing.T, p Place) {
	s := p.Open(t)
	defer s.Close()
	e := acquire(t, s)
	commit(t, s, Next(e, 0, object("a", "1")))
	for _, after := range []uint64{0, 2, 1 << 63} {
		_, err := s.Commit(t.Context(), Next(e, after, object("a", "2")))
		fails(t, fmt.Sprintf("a commit after %d", after), err, store.ErrStale)
	}
	_, err := s.Commit(t.Context(), store.Commit{Epoch: e, After: 0, Deletes: []string{"a"}})
	fails(t, "a stale deletion", err, store.ErrStale)
	same(t, "the objects", load(t, s).Objects, []store.Object{object("a", "1")})
	commit(t, s, store.Commit{Epoch: e, After: 0, Audit: []store.Entry{About(1)}}) // entries alone are not guarded
	commit(t, s, store.Commit{Epoch: e, After: 1, Puts: []store.Object{object("a", "3")}})
	if now := load(t, s); now.Revision != 1 || string(now.Objects[0].Value) != "3" {
		t.Fatalf("after a commit without a revision: %+v", now)
	}
}

func testFenced(t *testing.T, p Place) {
	s := p.Open(t)
	old := acquire(t, s)
	commit(t, s, Next(old, 0))
	other := s
	if p.Shared {
		other = p.Open(t)
		defer other.Close()
	}
	newer := acquire(t, other)
	if newer <= old {
		t.Fatalf("epoch %d after %d", newer, old)
	}
	for _, c := range []store.Commit{
		Next(old, 1), {Epoch: old, Audit: []store.Entry{About(0)}}, {Epoch: old, Outcomes: []store.Outcome{{Revision: 1}}},
		{Epoch: newer + 1, Audit: []store.Entry{About(0)}}, {Epoch: 0, Audit: []store.Entry{About(0)}},
	} {
		_, err := s.Commit(t.Context(), c)
		fails(t, fmt.Sprintf("a commit with epoch %d", c.Epoch), err, store.ErrFenced)
	}
	_, err := s.Trim(t.Context(), store.Trim{Epoch: old, Before: day.AddDate(-3, 0, 0), Audit: About(0)})
	fails(t, "a trim with an old epoch", err, store.ErrFenced)
	commit(t, other, Next(newer, 1))
	if p.Shared {
		commit(t, s, Next(newer, 2)) // who knows the newest epoch is the writer, wherever it is
	}
	s.Close()
	s = p.Open(t)
	defer s.Close()
	if e := acquire(t, s); e <= newer {
		t.Fatalf("epoch %d after the store was opened again, %d before", e, newer)
	}
}

func testRefused(t *testing.T, p Place) {
	s := p.Open(t)
	defer s.Close()
	e := acquire(t, s)
	commit(t, s, Next(e, 0, object("a", "1")))
	before := load(t, s)
	big := make([]byte, store.MaxRevision+1)
	for name, c := range map[string]struct {
		edit func(c *store.Commit)
		want error
	}{
		"an empty revision":        {func(c *store.Commit) { c.Revision = []byte{} }, store.ErrInvalid},
		"a revision too large":     {func(c *store.Commit) { c.Revision = big }, store.ErrTooLarge},
		"an object too large":      {func(c *store.Commit) { c.Puts[0].Value = big[:store.MaxObject+1] }, store.ErrTooLarge},
		"an empty key":             {func(c *store.Commit) { c.Puts[0].Key = "" }, store.ErrInvalid},
		"a key too long":           {func(c *store.Commit) { c.Deletes = []string{string(bytes.Repeat([]byte("k"), store.MaxKey+1))} }, store.ErrTooLarge},
		"a key with a control":     {func(c *store.Commit) { c.Puts[0].Key = "a\x00b" }, store.ErrInvalid},
		"a key twice":              {func(c *store.Commit) { c.Deletes = []string{"a"} }, store.ErrInvalid},
		"a revision without entry": {func(c *store.Commit) { c.Audit[0].Revision = 7 }, store.ErrInvalid},
		"no action":                {func(c *store.Commit) { c.Audit[0].Action = "" }, store.ErrInvalid},
		"no decision":              {func(c *store.Commit) { c.Audit[0].Decision = "maybe" }, store.ErrInvalid},
		"no time":                  {func(c *store.Commit) { c.Audit[0].Time = time.Time{} }, store.ErrInvalid},
		"a reason too long":        {func(c *store.Commit) { c.Audit[0].Reason = string(big[:store.MaxField+1]) }, store.ErrTooLarge},
		"too many entries":         {func(c *store.Commit) { c.Audit = slices.Repeat(c.Audit, store.MaxEntries+1) }, store.ErrTooLarge},
		"two outcomes":             {func(c *store.Commit) { c.Outcomes = []store.Outcome{{Revision: 1}, {Revision: 1}} }, store.ErrInvalid},
		"an outcome of nothing":    {func(c *store.Commit) { c.Outcomes = []store.Outcome{{Revision: 3}} }, store.ErrNotFound},
		"an outcome of revision 0": {func(c *store.Commit) { c.Outcomes = []store.Outcome{{}} }, store.ErrNotFound},
	} {
		n := Next(e, 1, object("a", "2"))
		c.edit(&n)
		_, err := s.Commit(t.Context(), n)
		fails(t, name, err, c.want)
	}
	_, err := s.Acquire(t.Context(), "")
	fails(t, "an owner without a name", err, store.ErrInvalid)
	same(t, "the store after what it refused", load(t, s), before)
}

// testLarge commits more than fits into one message of an etcd server.
func testLarge(t *testing.T, p Place) {
	s := p.Open(t)
	e := acquire(t, s)
	c := Next(e, 0)
	c.Revision = bytes.Repeat([]byte("0123456789abcdef"), 5<<16) // 5 MiB
	for i := range 1500 {
		c.Puts = append(c.Puts, object(fmt.Sprintf("object/%04d", i), fmt.Sprint(i)))
	}
	c.Puts[7].Value = bytes.Repeat([]byte{7}, store.MaxObject)
	c.Puts[8].Value = bytes.Repeat([]byte{8}, store.MaxObject)
	c.Outcomes = []store.Outcome{{Revision: 1, Data: bytes.Repeat([]byte{9}, 3<<20)}}
	commit(t, s, c)
	check := func() {
		t.Helper()
		if now := load(t, s); !slices.EqualFunc(now.Objects, c.Puts, equal) || now.Revision != 1 {
			t.Fatalf("revision %d, %d objects: not those that were committed", now.Revision, len(now.Objects))
		}
		r, err := s.Revision(t.Context(), 1)
		if err != nil || !bytes.Equal(r.Data, c.Revision) || !bytes.Equal(r.Outcome, c.Outcomes[0].Data) {
			t.Fatalf("revision 1 differs, error %v", err)
		}
	}
	check()
	s.Close()
	s = p.Open(t)
	defer s.Close()
	check()
	e = acquire(t, s)
	d := Next(e, 1)
	for _, o := range c.Puts {
		d.Deletes = append(d.Deletes, o.Key)
	}
	commit(t, s, d)
	if now := load(t, s); len(now.Objects) != 0 || now.Revision != 2 {
		t.Fatalf("%d objects are left of those deleted, revision %d", len(now.Objects), now.Revision)
	}
	Verify(t, s)
}

func equal(a, b store.Object) bool { return a.Key == b.Key && bytes.Equal(a.Value, b.Value) }

func testOutcomes(t *testing.T, p Place) {
	s := p.Open(t)
	defer s.Close()
	e := acquire(t, s)
	commit(t, s, Next(e, 0))
	c := Next(e, 1)
	c.Outcomes = []store.Outcome{{Revision: 1, Data: []byte("proved")}, {Revision: 2, Data: []byte("planned")}}
	commit(t, s, c)
	commit(t, s, store.Commit{Epoch: e, Outcomes: []store.Outcome{{Revision: 2, Data: bytes.Repeat([]byte("x"), 2<<20)}}})
	commit(t, s, store.Commit{Epoch: e, Outcomes: []store.Outcome{{Revision: 2, Data: []byte("failed")}}})
	var got []string
	for r, err := range s.Revisions(t.Context(), store.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(r.Outcome))
	}
	same(t, "the outcomes", got, []string{"proved", "failed"})
}

func testEnds(t *testing.T, p Place) {
	s := p.Open(t)
	e := acquire(t, s)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Load(gone)
	fails(t, "Load", err, context.Canceled)
	_, err = s.Commit(gone, Next(e, 0))
	fails(t, "Commit", err, context.Canceled)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatalf("a second Close: %v", err)
	}
	_, err = s.Load(t.Context())
	fails(t, "Load", err, store.ErrClosed)
	_, err = s.Commit(t.Context(), Next(e, 0))
	fails(t, "Commit", err, store.ErrClosed)
	_, err = s.Acquire(t.Context(), "x")
	fails(t, "Acquire", err, store.ErrClosed)
	for _, err := range s.Audit(t.Context(), store.Range{}) {
		fails(t, "Audit", err, store.ErrClosed)
	}
	for _, err := range s.Watch(t.Context(), 0) {
		fails(t, "Watch", err, store.ErrClosed)
	}
	s = p.Open(t)
	defer s.Close()
	if now := load(t, s); now.Revision != 0 || now.Audit.Sequence != 0 {
		t.Fatalf("a commit that was cancelled before it began is in the store: %+v", now)
	}
}

// Entries are the audit entries of a range.
func Entries(t testing.TB, s store.Store, r store.Range) []store.Entry {
	t.Helper()
	var out []store.Entry
	for e, err := range s.Audit(t.Context(), r) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

// Verify fails the test if the chain of a store does not hold.
func Verify(t testing.TB, s store.Store, anchors ...store.Head) *store.Contents {
	t.Helper()
	now, count, err := store.VerifyStore(t.Context(), s, anchors)
	if err != nil {
		t.Fatal(err)
	}
	if want := now.Audit.Sequence - now.Checkpoint.Sequence; count != want {
		t.Fatalf("%d entries were verified, want %d", count, want)
	}
	return now
}
