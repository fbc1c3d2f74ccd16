package bolt

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/ibwarden/ibwarden/internal/store"
)

const oldRevisions = 4

// old is the directory of a store, closed, of whose entries but the last one every one may be
// removed from the audit log; trim removes the first two.
func old(t *testing.T) (dir string, trim store.Trim) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	s := open(t, dir)
	defer s.Close()
	epoch, err := s.Acquire(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Unix(1e9, 0).UTC()
	at := func(n int) time.Time {
		if n == oldRevisions {
			return began.Add(store.KeepAudit + 2*time.Hour)
		}
		return began.Add(time.Duration(n-1) * time.Hour)
	}
	for n := 1; n <= oldRevisions; n++ {
		c := store.Commit{
			Epoch: epoch, After: uint64(n - 1), Revision: fmt.Appendf(nil, "revision %d", n),
			Puts:     []store.Object{{Key: fmt.Sprint("object/", n), Value: fmt.Append(nil, n)}},
			Outcomes: []store.Outcome{{Revision: uint64(n), Data: fmt.Appendf(nil, "outcome %d", n)}},
			Audit:    []store.Entry{{Time: at(n), Action: "test", Decision: store.Accepted, Revision: uint64(n)}},
		}
		if _, err := s.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	return dir, store.Trim{Epoch: epoch, Before: at(3), Audit: store.Entry{Time: at(oldRevisions), Action: "trim", Decision: store.Accepted}}
}

// edit changes what the file of a store has.
func edit(t *testing.T, dir string, f func(tx *bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(dir, FileName), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(f), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// numbers is a sequence of revisions or entries as text, up to its error.
func numbers[T any](seq iter.Seq2[T, error], number func(T) uint64) (string, error) {
	var list []uint64
	for v, err := range seq {
		if err != nil {
			return fmt.Sprint(list), err
		}
		list = append(list, number(v))
	}
	return fmt.Sprint(list), nil
}

// asked is what a store answers to each question, by its name: what it has, and its error.
// The last ones write.
func asked(t *testing.T, s *Store, trim store.Trim) (out map[string]string) {
	t.Helper()
	out = map[string]string{}
	note := func(name, has string, err error) {
		if err != nil {
			has = strings.TrimSpace(has + " " + strings.ReplaceAll(err.Error(), s.path, "FILE"))
		}
		out[name] = has
	}
	c, err := s.Load(t.Context())
	if err != nil && c != nil || err == nil && c == nil {
		t.Errorf("Load: %+v, %v", c, err)
	}
	has := ""
	if err == nil {
		for _, o := range c.Objects {
			has += o.Key + "=" + string(o.Value) + " "
		}
		has += fmt.Sprintf("revision %d of %d, entry %d, epoch %d of %s", c.Revision, c.Oldest, c.Audit.Sequence, c.Epoch, c.Owner)
	}
	note("load", has, err)
	for n := range uint64(oldRevisions + 2) {
		has = ""
		r, err := s.Revision(t.Context(), n)
		if err == nil {
			has = fmt.Sprintf("%d of %d: %s, %s", r.Number, r.Epoch, r.Data, r.Outcome)
		}
		note(fmt.Sprint("revision ", n), has, err)
	}
	of := func(r store.Revision) uint64 { return r.Number }
	in := func(e store.Entry) uint64 { return e.Sequence }
	for name, r := range map[string]store.Range{"oldest": {}, "newest": {Newest: true}, "from 2": {From: 2, Limit: 2}} {
		has, err = numbers(s.Revisions(t.Context(), r), of)
		note("revisions "+name, has, err)
		has, err = numbers(s.Audit(t.Context(), r), in)
		note("audit "+name, has, err)
	}
	seen := 0
	has, err = numbers(func(yield func(store.Revision, error) bool) {
		for r, err := range s.Watch(t.Context(), 0) {
			if seen++; !yield(r, err) || seen == oldRevisions {
				return // there are no more, and it would wait for one
			}
		}
	}, of)
	note("watch", has, err)
	check, err := s.Trim(t.Context(), trim)
	note("trim", fmt.Sprint(check.Sequence), err)
	done, err := s.Commit(t.Context(), store.Commit{Epoch: trim.Epoch, Puts: []store.Object{{Key: "x", Value: []byte("y")}}, After: oldRevisions})
	note("commit", fmt.Sprintf("%d, %d", done.Revision, done.Audit.Sequence), err)
	epoch, err := s.Acquire(t.Context(), "another")
	note("acquire", fmt.Sprint(epoch), err)
	return out
}

// TestDamagedValues damages one thing at a time in a file whose pages are whole. What has the
// damage says so, and names it; everything else answers as before.
func TestDamagedValues(t *testing.T) {
	put := func(bucket []byte, key, value []byte) func(*bbolt.Tx) error {
		return func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put(key, value) }
	}
	drop := func(bucket []byte, n uint64) func(*bbolt.Tx) error {
		return func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Delete(number(n)) }
	}
	flip := func(bucket []byte, key []byte) func(*bbolt.Tx) error {
		return func(tx *bbolt.Tx) error {
			v := slices.Clone(tx.Bucket(bucket).Get(key))
			v[len(v)-1] ^= 1
			return tx.Bucket(bucket).Put(key, v)
		}
	}
	state := func(change func(*store.State)) func(*bbolt.Tx) error {
		return func(tx *bbolt.Tx) error {
			x, err := new(Store).state(tx)
			if err != nil {
				return err
			}
			change(x)
			return putState(tx, x)
		}
	}
	const (
		file = "FILE is damaged: "
		sum  = ": its checksum does not match"
	)
	all := func(err string) map[string]string {
		out := map[string]string{"trim": "0 " + err, "commit": "0, 0 " + err, "acquire": "0 " + err, "load": err, "watch": "[] " + err}
		for n := range oldRevisions + 2 {
			out[fmt.Sprint("revision ", n)] = err
		}
		for _, name := range []string{"oldest", "newest", "from 2"} {
			out["revisions "+name], out["audit "+name] = "[] "+err, "[] "+err
		}
		return out
	}
	for name, x := range map[string]struct {
		edit  func(*bbolt.Tx) error
		opens string            // the error of Open
		says  map[string]string // what is answered otherwise than by a store that is whole
	}{
		"nothing": {edit: func(*bbolt.Tx) error { return nil }},
		"object": {edit: flip(objectBucket, []byte("object/2")), says: map[string]string{
			"load": file + `object "object/2"` + sum,
		}},
		"object under another name": {edit: func(tx *bbolt.Tx) error {
			b := tx.Bucket(objectBucket)
			return b.Put([]byte("object/5"), slices.Clone(b.Get([]byte("object/2"))))
		}, says: map[string]string{"load": file + `object "object/5"` + sum}},
		"revision": {edit: flip(revisionBucket, number(2)), says: map[string]string{
			"revision 2": file + "revision 2" + sum, "revisions oldest": "[1] " + file + "revision 2" + sum,
			"revisions newest": "[4 3] " + file + "revision 2" + sum, "revisions from 2": "[] " + file + "revision 2" + sum,
			"watch": "[1] " + file + "revision 2" + sum,
		}},
		"revision without an epoch": {edit: put(revisionBucket, number(3), store.SealFrame("revision 3", []byte("1234567"))), says: map[string]string{
			"revision 3": file + "revision 3: too short for its epoch", "revisions oldest": "[1 2] " + file + "revision 3: too short for its epoch",
			"revisions newest": "[4] " + file + "revision 3: too short for its epoch", "revisions from 2": "[2] " + file + "revision 3: too short for its epoch",
			"watch": "[1 2] " + file + "revision 3: too short for its epoch",
		}},
		"revision that is only an epoch": {edit: put(revisionBucket, number(3), store.SealFrame("revision 3", number(1))), says: map[string]string{
			"revision 3": "3 of 1: , outcome 3",
		}},
		"no revision": {edit: drop(revisionBucket, 2), says: map[string]string{
			"revision 2": file + "revision 2: too short for its checksum", "revisions oldest": "[1] " + file + "revision 2: it is missing",
			"revisions newest": "[4 3] " + file + "revision 2: it is missing", "revisions from 2": "[3 4]",
			"watch": "[1] " + file + "revision 2: it is missing",
		}},
		"no first revision": {edit: drop(revisionBucket, 1), says: map[string]string{
			"revision 1": file + "revision 1: too short for its checksum", "revisions oldest": "[2 3 4]",
			"revisions newest": "[4 3 2]", "watch": "[] revision 1: " + store.ErrCompacted.Error() + ": the oldest is 2",
		}},
		"no last revision": {edit: drop(revisionBucket, oldRevisions), opens: file + "the history: its last revision is 3, and the state says 4"},
		"no number":        {edit: put(revisionBucket, []byte("x"), nil), opens: file + "the history: its last revision is 0, and the state says 4"},
		"no number between": {edit: put(auditBucket, append(number(2), 0), nil), says: map[string]string{
			"audit oldest": "[1 2] " + file + "audit: key 000000000000000200 is no number", "audit newest": "[4 3] " + file + "audit: key 000000000000000200 is no number",
			"audit from 2": "[2] " + file + "audit: key 000000000000000200 is no number",
		}},
		"outcome": {edit: flip(outcomeBucket, number(2)), says: map[string]string{
			"revision 2": file + "the outcome of revision 2" + sum, "revisions oldest": "[1] " + file + "the outcome of revision 2" + sum,
			"revisions newest": "[4 3] " + file + "the outcome of revision 2" + sum, "revisions from 2": "[] " + file + "the outcome of revision 2" + sum,
			"watch": "[1] " + file + "the outcome of revision 2" + sum,
		}},
		"no outcome": {edit: drop(outcomeBucket, 2), says: map[string]string{"revision 2": "2 of 1: revision 2, "}},
		"entry": {edit: flip(auditBucket, number(2)), says: map[string]string{
			"audit oldest": "[1] " + file + "audit entry 2" + sum, "audit newest": "[4 3] " + file + "audit entry 2" + sum,
			"audit from 2": "[] " + file + "audit entry 2" + sum, "trim": "0 " + file + "audit entry 2" + sum, "commit": "4, 4",
		}},
		"no entry": {edit: drop(auditBucket, 2), says: map[string]string{
			"audit oldest": "[1] " + file + "audit entry 2: it is missing", "audit newest": "[4 3] " + file + "audit entry 2: it is missing",
			"audit from 2": "[3 4]", "trim": "0 " + file + "audit entry 2: too short for its checksum", "commit": "4, 4",
		}},
		"no last entry": {edit: drop(auditBucket, oldRevisions), opens: file + "the audit log: its last entry is 3, and the state says 4"},
		"last entry":    {edit: flip(auditBucket, number(oldRevisions)), opens: file + "audit entry 4" + sum},
		"last entry that is none": {
			edit: put(auditBucket, number(oldRevisions), store.SealFrame("audit 4", []byte("x"))), opens: file + "audit entry 4: ",
		},
		"another last entry": {edit: state(func(s *store.State) { s.Audit.Hash[0] ^= 1 }), opens: file + "the audit log: its last entry has the hash "},
		"revision of the state": {
			edit: state(func(s *store.State) { s.Revision++ }), opens: file + "the history: its last revision is 4, and the state says 5",
		},
		"state": {edit: flip(metaBucket, stateKey), opens: file + "its state" + sum},
		"state that is none": {
			edit: put(metaBucket, stateKey, store.SealFrame("state", []byte("x"))), opens: file + "its state: invalid character",
		},
		"no state":        {edit: func(tx *bbolt.Tx) error { return tx.Bucket(metaBucket).Delete(stateKey) }, opens: file + "its state: too short for its checksum"},
		"no bucket":       {edit: func(tx *bbolt.Tx) error { return tx.DeleteBucket(outcomeBucket) }, opens: file + `the file: it has no bucket "outcome"`},
		"no store":        {edit: func(tx *bbolt.Tx) error { return tx.DeleteBucket(metaBucket) }, opens: file + `the file: it is no store: no bucket "meta"`},
		"format 0":        {edit: put(metaBucket, formatKey, []byte("0")), opens: file + `its format: "0", want a number`},
		"no format":       {edit: put(metaBucket, formatKey, []byte("one")), opens: file + `its format: "one", want a number`},
		"format 2":        {edit: put(metaBucket, formatKey, []byte("2")), opens: "FILE has format 2, and this program knows formats up to 1: use a newer ibwarden"},
		"begun a restore": {edit: put(metaBucket, incompleteKey, []byte{1}), says: all("FILE: " + store.ErrIncomplete.Error())},
	} {
		t.Run(name, func(t *testing.T) {
			dir, trim := old(t)
			edit(t, dir, x.edit)
			s, err := Open(dir)
			if x.opens != "" {
				if err == nil {
					s.Close()
				}
				if got := strings.ReplaceAll(fmt.Sprint(err), filepath.Join(dir, FileName), "FILE"); !strings.HasPrefix(got, x.opens) {
					t.Errorf("Open: %s\nwant: %s", got, x.opens)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			want := map[string]string{
				"load":       "object/1=1 object/2=2 object/3=3 object/4=4 revision 4 of 1, entry 4, epoch 1 of test",
				"revision 0": "revision 0: " + store.ErrNotFound.Error() + ": the last is 4",
				"revision 5": "revision 5: " + store.ErrNotFound.Error() + ": the last is 4",
				"trim":       "2", "commit": "4, 5", "acquire": "2", "watch": "[1 2 3 4]",
			}
			for n := 1; n <= oldRevisions; n++ {
				want[fmt.Sprint("revision ", n)] = fmt.Sprintf("%d of 1: revision %d, outcome %d", n, n, n)
			}
			for _, kind := range []string{"revisions ", "audit "} {
				want[kind+"oldest"], want[kind+"newest"], want[kind+"from 2"] = "[1 2 3 4]", "[4 3 2 1]", "[2 3]"
			}
			for question, answer := range x.says {
				want[question] = answer
			}
			got := asked(t, s, trim)
			for question, answer := range want {
				if got[question] != answer {
					t.Errorf("%s: %s\nwant: %s", question, got[question], answer)
				}
			}
		})
	}
}

// TestTrimmedStore: what was trimmed is not there, and said to be so, and everything after is;
// what may not be trimmed stays.
func TestTrimmedStore(t *testing.T) {
	dir, trim := old(t)
	s := open(t, dir)
	defer s.Close()
	for name, x := range map[string]struct {
		change func(*store.Trim)
		want   error
	}{
		"another epoch": {func(x *store.Trim) { x.Epoch++ }, store.ErrFenced},
		"too much":      {func(x *store.Trim) { x.Before = x.Before.Add(time.Second) }, store.ErrRetention},
		"no entry":      {func(x *store.Trim) { x.Audit.Action = strings.Repeat("x", store.MaxLine+1) }, store.ErrTooLarge},
		"nothing":       {func(x *store.Trim) { x.Before = time.Unix(1e9, 0) }, nil},
	} {
		bad := trim
		x.change(&bad)
		if got, err := s.Trim(t.Context(), bad); !errors.Is(err, x.want) || (err == nil) != (x.want == nil) || got.Sequence != 0 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	clock := s.now
	s.now = func() time.Time { return trim.Before }
	if _, err := s.Trim(t.Context(), trim); !errors.Is(err, store.ErrRetention) {
		t.Errorf("by a clock that says that nothing is old: %v", err)
	}
	s.now = clock
	c, err := s.Load(t.Context())
	if err != nil || c.Audit.Sequence != oldRevisions || c.Checkpoint.Sequence != 0 {
		t.Fatalf("a trim that did nothing did something: %+v, %v", c, err)
	}
	var second store.Entry
	for e, err := range s.Audit(t.Context(), store.Range{From: 2, Limit: 1}) {
		if second = e; err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second finds nothing
		got, err := s.Trim(t.Context(), trim)
		if err != nil || got != (store.Checkpoint{Sequence: 2, Hash: second.Hash}) {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if c, err = s.Load(t.Context()); err != nil || c.Checkpoint.Sequence != 2 || c.Oldest != 3 || c.Audit.Sequence != oldRevisions+1 || len(c.Objects) != oldRevisions {
		t.Errorf("%+v, %v", c, err)
	}
	got := asked(t, s, trim)
	for question, want := range map[string]string{
		"revision 2": "revision 2: " + store.ErrCompacted.Error() + ": the oldest is 3", "revision 3": "3 of 1: revision 3, outcome 3",
		"revisions oldest": "[3 4]", "revisions newest": "[4 3]", "audit oldest": "[3 4 5]", "audit newest": "[5 4 3]",
		"watch": "[] revision 1: " + store.ErrCompacted.Error() + ": the oldest is 3",
	} {
		if got[question] != want {
			t.Errorf("%s: %s\nwant: %s", question, got[question], want)
		}
	}
	if err := s.db.View(func(tx *bbolt.Tx) error {
		for _, bucket := range [][]byte{revisionBucket, outcomeBucket, auditBucket} {
			if k, _ := tx.Bucket(bucket).Cursor().First(); !slices.Equal(k, number(3)) {
				t.Errorf("the first of %s is %x", bucket, k)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// TestTrimmedWhileRead: who reads the history a page at a time, and what comes next is trimmed
// meanwhile, is told so.
func TestTrimmedWhileRead(t *testing.T) {
	dir, trim := old(t)
	s := open(t, dir)
	defer s.Close()
	for _, bucket := range [][]byte{revisionBucket, auditBucket} {
		if err := s.view(t.Context(), func(tx *bbolt.Tx) error {
			if err := s.missing(tx, bucket, 1); !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("%s: %v", bucket, err)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Trim(t.Context(), trim); err != nil {
		t.Fatal(err)
	}
	if err := s.view(t.Context(), func(tx *bbolt.Tx) error {
		for n := uint64(1); n <= 3; n++ {
			want := store.ErrCompacted
			if n == 3 {
				want = store.ErrCorrupt
			}
			for bucket, name := range map[string]string{"revision": "revision", "audit": "audit entry"} {
				err := s.missing(tx, []byte(bucket), n)
				if !errors.Is(err, want) || !strings.Contains(err.Error(), fmt.Sprintf("%s %d", name, n)) {
					t.Errorf("%s %d: %v, want %v", bucket, n, err, want)
				}
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestFillWithWhatDoesNotFit: what is no store, or none that fits together, is refused and the
// store stays one that is to be restored; the next try may begin again.
func TestFillWithWhatDoesNotFit(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store"))
	defer s.Close()
	given := func(err error, list ...store.Record) iter.Seq2[store.Record, error] {
		return func(yield func(store.Record, error) bool) {
			for _, r := range list {
				if !yield(r, nil) {
					return
				}
			}
			if err != nil {
				yield(store.Record{}, err)
			}
		}
	}
	state := func(text string) store.Record { return store.Record{Kind: store.RecordState, Data: []byte(text)} }
	revision := store.Record{Kind: store.RecordRevision, Number: 1, Epoch: 1, Data: []byte("x")}
	broken := errors.New("the end of the file")
	for name, x := range map[string]struct {
		records iter.Seq2[store.Record, error]
		want    string
	}{
		"broken":         {given(broken, state("{}")), broken.Error()},
		"without state":  {given(nil, revision), store.ErrInvalid.Error() + ": records without a state"},
		"no state":       {given(nil, state("x")), store.ErrInvalid.Error() + ": the state of a store: invalid character"},
		"unknown":        {given(nil, state("{}"), store.Record{Kind: 9}), "a record of no known kind"},
		"does not fit":   {given(nil, state(`{"revision":2}`), revision), "its last revision is 1, and the state says 2"},
		"object no name": {given(nil, state("{}"), store.Record{Kind: store.RecordObject}), "key required"},
		"much and wrong": {given(nil, state("{}"), store.Record{Kind: 9, Data: make([]byte, fillBytes)}), "a record of no known kind"},
	} {
		if err := s.Fill(t.Context(), x.records); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %s", name, err, x.want)
		}
		if _, err := s.Load(t.Context()); !errors.Is(err, store.ErrIncomplete) {
			t.Errorf("%s: the store is there: %v", name, err)
		}
	}
	if err := s.Fill(t.Context(), given(nil, state(`{"revision":1,"oldest":1,"epoch":7}`), revision, store.Record{Kind: store.RecordObject, Key: "a", Data: []byte("b")})); err != nil {
		t.Fatal(err)
	}
	c, err := s.Load(t.Context())
	if err != nil || c.Revision != 1 || c.Epoch != 7 || len(c.Objects) != 1 || c.Objects[0].Key != "a" || string(c.Objects[0].Value) != "b" {
		t.Errorf("%+v, %v", c, err)
	}
	want := s.path + ": " + store.ErrNotEmpty.Error() + ": it has revision 1, audit entry 0 and epoch 7"
	if err := s.Fill(t.Context(), given(nil, state("{}"))); !errors.Is(err, store.ErrNotEmpty) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestPlacesThatAreNoStore: what stands where the store or its directory should be is named, and
// left as it is.
func TestPlacesThatAreNoStore(t *testing.T) {
	top := t.TempDir()
	at := func(name string) string { return filepath.Join(top, name) }
	write := func(name string, data string, mode os.FileMode) {
		if err := os.WriteFile(at(name), []byte(data), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"empty", "folder", "folder/" + FileName, "small"} {
		if err := os.Mkdir(at(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write("file", "x", 0o600)
	write("empty/"+FileName, "", 0o600)
	write("small/"+FileName, "x", 0o600)
	for name, want := range map[string]string{
		"file":   at("file") + ": want a directory",
		"folder": at("folder/"+FileName) + ": want a regular file, it is d",
		"empty":  at("empty/"+FileName) + " is damaged: the file: it is empty",
		"small":  at("small/"+FileName) + " is damaged: the file: ",
		"no/dir": "mkdir " + at("no/dir") + ": no such file or directory",
	} {
		s, err := Open(at(name))
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	for name, want := range map[string]string{"file": "x", "empty/" + FileName: "", "small/" + FileName: "x"} {
		if data, err := os.ReadFile(at(name)); err != nil || string(data) != want {
			t.Errorf("%s has %q, %v", name, data, err)
		}
	}
	// A new one leaves nothing beside it.
	s := open(t, at("new"))
	defer s.Close()
	if list, err := os.ReadDir(at("new")); err != nil || len(list) != 1 || list[0].Name() != FileName {
		t.Errorf("a new store: %v, %v", list, err)
	}
	if got := holder(at("nothing")); got != "which one is not known" {
		t.Errorf("holder of no file: %s", got)
	}
	if got := holder(at("file")); got != "which one is not known" {
		t.Errorf("holder of a file that nobody has locked: %s", got)
	}
}

// TestPages reads more than one page of the history, in either direction, from any number and
// with any limit, and gets what a list has.
func TestPages(t *testing.T) {
	const count = 2*pageValues + 3
	s := open(t, filepath.Join(t.TempDir(), "store"))
	defer s.Close()
	epoch, err := s.Acquire(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.update(t.Context(), func(tx *bbolt.Tx) error { // as commits would, with one sync
		state := &store.State{Epoch: epoch, Revision: count, Oldest: 1}
		for n := uint64(1); n <= count; n++ {
			if err := putRevision(tx, n, epoch, fmt.Append(nil, n)); err != nil {
				return err
			}
		}
		return putState(tx, state)
	}); err != nil {
		t.Fatal(err)
	}
	for _, from := range []uint64{0, 1, 2, pageValues, pageValues + 1, count - 1, count, count + 1, 1 << 40} {
		for _, limit := range []int{-1, 0, 1, 2, pageValues, pageValues + 1, count, count + 1} {
			for _, newest := range []bool{false, true} {
				var want []uint64
				for n := uint64(1); n <= count; n++ {
					if newest && (from == 0 || n <= from) || !newest && n >= from {
						want = append(want, n)
					}
				}
				if newest {
					slices.Reverse(want)
				}
				if limit > 0 {
					want = want[:min(limit, len(want))]
				}
				var got []uint64
				for r, err := range s.Revisions(t.Context(), store.Range{From: from, Limit: limit, Newest: newest}) {
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, r.Number)
				}
				if !slices.Equal(got, want) {
					t.Errorf("from %d, at most %d, newest %v: %v", from, limit, newest, got)
				}
			}
		}
	}
}

// TestWritesThatFail: a part of a commit that cannot be written ends all of it.
func TestWritesThatFail(t *testing.T) {
	dir, trim := old(t)
	s := open(t, dir)
	defer s.Close()
	data := []byte("x")
	if err := s.db.View(func(tx *bbolt.Tx) error { // which takes no writes
		for name, c := range map[string]store.Commit{
			"put": {Puts: []store.Object{{Key: "x", Value: data}}}, "delete": {Deletes: []string{"object/1"}}, "revision": {Revision: data},
			"outcome": {Outcomes: []store.Outcome{{Revision: 1, Data: data}}}, "entry": {Audit: []store.Entry{trim.Audit}},
		} {
			r := &request{c: &c}
			if err := s.write(tx, &store.State{}, r); !errors.Is(err, berrors.ErrTxNotWritable) || r.out != (store.Committed{}) {
				t.Errorf("%s: %v, %+v", name, err, r.out)
			}
		}
		for _, k := range []store.RecordKind{store.RecordObject, store.RecordRevision, store.RecordOutcome, store.RecordEntry} {
			if err := putRecord(tx, &store.Record{Kind: k, Key: "x", Number: 1, Data: data}); !errors.Is(err, berrors.ErrTxNotWritable) {
				t.Errorf("record of kind %d: %v", k, err)
			}
		}
		if err := putState(tx, &store.State{}); !errors.Is(err, berrors.ErrTxNotWritable) {
			t.Errorf("state: %v", err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
