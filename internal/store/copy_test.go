package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// held is a store of what stands in it; each of its sources can fail with err after so many.
type held struct {
	Store
	now       Contents
	revisions []Revision
	entries   []Entry
	fails     string // load, revisions or audit
}

var errHeld = errors.New("the disk is gone")

func (h *held) Load(context.Context) (*Contents, error) {
	if h.fails == "load" {
		return nil, errHeld
	}
	return &h.now, nil
}

func (h *held) Revisions(_ context.Context, r Range) iter.Seq2[Revision, error] {
	return func(yield func(Revision, error) bool) {
		for _, x := range h.revisions {
			if x.Number >= r.From && !yield(x, nil) {
				return
			}
		}
		if h.fails == "revisions" {
			yield(Revision{}, errHeld)
		}
	}
}

func (h *held) Audit(_ context.Context, r Range) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for _, x := range h.entries {
			if x.Sequence >= r.From && !yield(x, nil) {
				return
			}
		}
		if h.fails == "audit" {
			yield(Entry{}, errHeld)
		}
	}
}

// filled takes what is restored.
type filled struct {
	Store
	records []Record
}

func (f *filled) Fill(_ context.Context, records iter.Seq2[Record, error]) error {
	for r, err := range records {
		if err != nil {
			return err
		}
		f.records = append(f.records, r)
	}
	return nil
}

// holding is a store with two objects, revisions 2 to 4 of which one has an outcome, and a log
// that was cut off after its second entry, as it was when revision 3 and entry 6 were the last.
func holding(t *testing.T) *held {
	t.Helper()
	log, _ := makeLog(t, Head{}, 9)
	begins := Checkpoint{Sequence: 2, Hash: log[1].Hash}
	h := &held{entries: log[2:]}
	h.now = Contents{
		Epoch: 5, Owner: "a", Revision: 3, Oldest: 2, Audit: Head{Sequence: 6, Hash: log[5].Hash}, Checkpoint: begins,
		Objects: []Object{{Key: "a", Value: []byte("1")}, {Key: "b", Value: []byte("2")}},
	}
	for n := uint64(2); n <= 4; n++ {
		h.revisions = append(h.revisions, Revision{Number: n, Epoch: Epoch(n), Data: revisionData(n)})
	}
	h.revisions[0].Outcome = []byte("proved")
	return h
}

// limited takes so many bytes.
type limited struct{ left int }

func (w *limited) Write(p []byte) (int, error) {
	if n := w.left; n < len(p) {
		w.left = 0
		return n, io.ErrShortWrite
	}
	w.left -= len(p)
	return len(p), nil
}

// TestBackupIsOfOneMoment: a backup has what the store held when it was begun, and nothing of
// what came later; what cannot be read or written is an error, not a shorter backup.
func TestBackupIsOfOneMoment(t *testing.T) {
	h := holding(t)
	var file bytes.Buffer
	state, err := Backup(t.Context(), h, &file)
	if err != nil {
		t.Fatal(err)
	}
	want := &State{Epoch: 5, Owner: "a", Revision: 3, Oldest: 2, Audit: h.now.Audit, Checkpoint: h.now.Checkpoint}
	if d := cmp.Diff(want, state); d != "" {
		t.Errorf("state (-loaded +written)\n%s", d)
	}
	var into filled
	back, err := Restore(t.Context(), &into, bytes.NewReader(file.Bytes()), "x")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(state, back); d != "" {
		t.Errorf("state (-written +read)\n%s", d)
	}
	var got []string
	for _, r := range into.records[1:] {
		got = append(got, fmt.Sprintf("%d %d %d %s", r.Kind, r.Number, r.Epoch, r.Key))
	}
	kinds := []string{
		fmt.Sprint(RecordObject, " 0 0 a"), fmt.Sprint(RecordObject, " 0 0 b"), fmt.Sprint(RecordRevision, " 2 2 "), fmt.Sprint(RecordOutcome, " 2 0 "), fmt.Sprint(RecordRevision, " 3 3 "),
		fmt.Sprint(RecordEntry, " 3 0 "), fmt.Sprint(RecordEntry, " 4 0 "), fmt.Sprint(RecordEntry, " 5 0 "), fmt.Sprint(RecordEntry, " 6 0 "),
	}
	if d := cmp.Diff(kinds, got); d != "" {
		t.Errorf("records (-want +got)\n%s", d)
	}
	for _, part := range []string{"load", "revisions", "audit"} {
		h := holding(t)
		h.fails, h.revisions, h.entries = part, h.revisions[:2], h.entries[:4]
		if _, err := Backup(t.Context(), h, io.Discard); !errors.Is(err, errHeld) {
			t.Errorf("%s fails: %v", part, err)
		}
	}
	for n := range file.Len() {
		if _, err := Backup(t.Context(), holding(t), &limited{n}); err == nil {
			t.Fatalf("only %d of %d bytes could be written, and that is no error", n, file.Len())
		}
		if _, err := Restore(t.Context(), &filled{}, bytes.NewReader(file.Bytes()[:n]), "x"); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%d of %d bytes: %v", n, file.Len(), err)
		}
	}
	empty := &held{}
	file.Reset()
	if _, err := Backup(t.Context(), empty, &file); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), &filled{}, &file, "x"); err != nil {
		t.Errorf("an empty store: %v", err)
	}
}

// TestVerifyStore: a store that can be read is verified as it was at one moment; one that
// cannot is no store that holds.
func TestVerifyStore(t *testing.T) {
	whole := func() *held {
		log, _ := makeLog(t, Head{}, 9)
		h := &held{entries: log}
		// The first entry states that nothing was cut off, as makeLog's do by saying nothing.
		h.now = Contents{Epoch: 5, Revision: 3, Oldest: 1, Audit: Head{Sequence: 6, Hash: log[5].Hash}}
		for n := uint64(1); n <= 4; n++ {
			h.revisions = append(h.revisions, Revision{Number: n, Data: revisionData(n)})
		}
		return h
	}
	now, count, err := VerifyStore(t.Context(), whole(), nil)
	if err != nil || count != 6 || now.Revision != 3 {
		t.Fatalf("%+v, %d entries, %v", now, count, err)
	}
	for name, do := range map[string]func(*held){
		"another revision":    func(h *held) { h.revisions[1].Data = []byte("x") },
		"a revision missing":  func(h *held) { h.revisions = append(h.revisions[:1], h.revisions[2:]...) },
		"no revisions":        func(h *held) { h.revisions = nil },
		"an entry missing":    func(h *held) { h.entries = append(h.entries[:1], h.entries[2:]...) },
		"no entries":          func(h *held) { h.entries = nil },
		"a later head":        func(h *held) { h.now.Audit.Sequence++ },
		"revisions not read":  func(h *held) { h.fails, h.revisions = "revisions", h.revisions[:2] },
		"entries not read":    func(h *held) { h.fails, h.entries = "audit", h.entries[:4] },
		"nothing is read":     func(h *held) { h.fails = "load" },
		"one revision fewer":  func(h *held) { h.now.Revision = 2 },
		"one revision more":   func(h *held) { h.now.Revision = 4 },
		"the oldest is later": func(h *held) { h.now.Checkpoint = Checkpoint{Sequence: 1} },
	} {
		h := whole()
		do(h)
		if _, _, err := VerifyStore(t.Context(), h, nil); err == nil {
			t.Errorf("%s: it holds", name)
		} else if strings.HasSuffix(name, "read") && !errors.Is(err, errHeld) {
			t.Errorf("%s: %v, want the error of the store", name, err)
		}
	}
}

// TestVerifyEach: the revisions are handed over in their order, once each, up to the last of that
// moment; what is missing is named by its number.
func TestVerifyEach(t *testing.T) {
	log, _ := makeLog(t, Head{}, 9)
	for name, x := range map[string]struct {
		entry, revision int // that are missing; 0 for none
		want            string
		each            []uint64
	}{
		"nothing":            {0, 0, "", []uint64{1, 2, 3}},
		"the first revision": {0, 1, "entry 1: it commits revision 1, which is missing in the history", []uint64{2}},
		"a revision":         {0, 2, "entry 3: it commits revision 2, which is missing in the history", []uint64{1, 3}},
		"the last revision":  {0, 3, "entry 5: it commits revision 3, which is missing in the history", []uint64{1, 2}},
		"the first entry":    {1, 0, "entry 1: it is missing: entry 2 is in its place", nil},
		"an entry":           {4, 0, "entry 4: it is missing: entry 5 is in its place", []uint64{1, 2}},
		"the last entry":     {6, 0, "entry 6: the log ends before it", []uint64{1, 2, 3}},
	} {
		h := &held{now: Contents{Revision: 3, Oldest: 1, Audit: Head{Sequence: 6, Hash: log[5].Hash}}}
		for n := 1; n <= 6; n++ {
			if n != x.entry {
				h.entries = append(h.entries, log[n-1])
			}
			if n <= 3 && n != x.revision {
				h.revisions = append(h.revisions, Revision{Number: uint64(n), Data: revisionData(uint64(n))})
			}
		}
		var each []uint64
		_, _, err := VerifyEach(t.Context(), h, nil, func(r Revision) { each = append(each, r.Number) })
		var broken *BrokenError
		if errors.As(err, &broken) != (x.want != "") || x.want != "" && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s is missing: %v; want %q", name, err, x.want)
		}
		if d := cmp.Diff(x.each, each); d != "" {
			t.Errorf("%s is missing (-want +handed over)\n%s", name, d)
		}
	}
	// A log that was chained again without the entry of revision 2.
	kept := []Entry{log[0], log[4]}
	var head Head
	for i := range kept {
		head = kept[i].link(head)
	}
	h := &held{entries: kept, now: Contents{Revision: 3, Oldest: 1, Audit: head}}
	for n := uint64(1); n <= 3; n++ {
		h.revisions = append(h.revisions, Revision{Number: n, Data: revisionData(n)})
	}
	if _, _, err := VerifyStore(t.Context(), h, nil); err == nil || !strings.Contains(err.Error(), "entry 2: no entry commits revision 2: this one commits revision 3") {
		t.Errorf("a log without the entry of revision 2: %v", err)
	}
}

// TestExport: what is exported is read again; what cannot be written or read is an error.
func TestExport(t *testing.T) {
	log, _ := makeLog(t, Head{}, 5)
	var file bytes.Buffer
	n, err := Export(&file, yieldAll(log))
	if err != nil || n != 5 {
		t.Fatal(n, err)
	}
	var back []Entry
	for e, err := range ReadExport(bytes.NewReader(file.Bytes())) {
		if err != nil {
			t.Fatal(err)
		}
		back = append(back, e)
	}
	if d := cmp.Diff(log, back); d != "" {
		t.Errorf("(-written +read)\n%s", d)
	}
	if n, err := Export(io.Discard, (&held{entries: log[:2], fails: "audit"}).Audit(t.Context(), Range{})); n != 2 || !errors.Is(err, errHeld) {
		t.Errorf("%d entries, %v", n, err)
	}
	big := make([]Entry, 200)
	for i := range big {
		big[i] = log[0]
	}
	for left := range 3 {
		if _, err := Export(&limited{left * 5000}, yieldAll(big)); err == nil {
			t.Errorf("%d bytes were written, and that is no error", left*5000)
		}
	}
	lines := strings.SplitAfter(file.String(), "\n")
	lines[2] = strings.Replace(lines[2], "{", "{ ", 1)
	var last error
	count := 0
	for _, err := range ReadExport(strings.NewReader(strings.Join(lines, ""))) {
		if last = err; err == nil {
			count++
		}
	}
	if count != 2 || last == nil || !strings.Contains(last.Error(), "line 3: ") {
		t.Errorf("%d entries, %v: want an error of line 3", count, last)
	}
	for _, err := range ReadExport(strings.NewReader(lines[0] + strings.Repeat("x", MaxLine+2))) {
		last = err
	}
	if last == nil || !strings.Contains(last.Error(), "line 2: ") {
		t.Errorf("a line that is too long: %v", last)
	}
	for range ReadExport(bytes.NewReader(file.Bytes())) {
		break // who has read enough is not called again
	}
}

// TestLimitsAtTheirEdge: each limit takes what is at it, and refuses what is one more.
func TestLimitsAtTheirEdge(t *testing.T) {
	entry := func(revision uint64) Entry {
		return Entry{Time: day, Action: "a", Decision: Accepted, Revision: revision}
	}
	objects := func(n, size int) (out []Object) {
		value := make([]byte, size)
		for i := range n {
			out = append(out, Object{Key: fmt.Sprint("k", i), Value: value})
		}
		return out
	}
	outcomes := func(n, size int) (out []Outcome) {
		value := make([]byte, size)
		for i := range n {
			out = append(out, Outcome{Revision: uint64(i + 1), Data: value})
		}
		return out
	}
	keys := func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprint("d", i))
		}
		return out
	}
	entries := func(n int) (out []Entry) {
		for range n {
			out = append(out, entry(0))
		}
		return out
	}
	for name, x := range map[string]struct {
		c    Commit
		want error
	}{
		"nothing":                        {Commit{}, nil},
		"a revision":                     {Commit{Revision: []byte("x"), After: 3, Audit: []Entry{entry(4)}}, nil},
		"a revision without an entry":    {Commit{Revision: []byte("x"), After: 3}, ErrInvalid},
		"a revision with another entry":  {Commit{Revision: []byte("x"), After: 3, Audit: []Entry{entry(3)}}, ErrInvalid},
		"a revision with two entries":    {Commit{Revision: []byte("x"), After: 3, Audit: []Entry{entry(4), entry(1)}}, nil},
		"a revision of no bytes":         {Commit{Revision: []byte{}, Audit: []Entry{entry(1)}}, ErrInvalid},
		"a revision at its limit":        {Commit{Revision: make([]byte, MaxRevision), Audit: []Entry{entry(1)}}, nil},
		"a revision beyond it":           {Commit{Revision: make([]byte, MaxRevision+1), Audit: []Entry{entry(1)}}, ErrTooLarge},
		"an object at its limit":         {Commit{Puts: objects(1, MaxObject)}, nil},
		"an object beyond it":            {Commit{Puts: objects(1, MaxObject+1)}, ErrTooLarge},
		"objects at their limit":         {Commit{Puts: objects(MaxChanges-1, 0), Deletes: keys(1)}, nil},
		"objects beyond it":              {Commit{Puts: objects(MaxChanges, 0), Deletes: keys(1)}, ErrTooLarge},
		"an object twice":                {Commit{Puts: []Object{{Key: "a"}, {Key: "a"}}}, ErrInvalid},
		"an object put and deleted":      {Commit{Puts: []Object{{Key: "a"}}, Deletes: []string{"a"}}, ErrInvalid},
		"a key that is empty":            {Commit{Deletes: []string{""}}, ErrInvalid},
		"a key at its limit":             {Commit{Puts: []Object{{Key: strings.Repeat("k", MaxKey)}}}, nil},
		"a key beyond it":                {Commit{Puts: []Object{{Key: strings.Repeat("k", MaxKey+1)}}}, ErrTooLarge},
		"a key of no text":               {Commit{Puts: []Object{{Key: "\xff"}}}, ErrInvalid},
		"a key with a control character": {Commit{Puts: []Object{{Key: "a\x1b"}}}, ErrInvalid},
		"outcomes at their limit":        {Commit{Outcomes: outcomes(MaxOutcomes, 1)}, nil},
		"outcomes beyond it":             {Commit{Outcomes: outcomes(MaxOutcomes+1, 1)}, ErrTooLarge},
		"an outcome at its limit":        {Commit{Outcomes: outcomes(1, MaxOutcome)}, nil},
		"an outcome beyond it":           {Commit{Outcomes: outcomes(1, MaxOutcome+1)}, ErrTooLarge},
		"an outcome twice":               {Commit{Outcomes: []Outcome{{Revision: 1}, {Revision: 2}, {Revision: 1}}}, ErrInvalid},
		"a commit at its limit":          {Commit{Outcomes: outcomes(8, MaxOutcome)}, nil},
		"a commit beyond it":             {Commit{Outcomes: outcomes(8, MaxOutcome), Puts: objects(1, 0)}, ErrTooLarge},
		"entries at their limit":         {Commit{Audit: entries(MaxEntries)}, nil},
		"entries beyond it":              {Commit{Audit: entries(MaxEntries + 1)}, ErrTooLarge},
		"an entry that is none":          {Commit{Audit: []Entry{{}}}, ErrInvalid},
	} {
		if err := x.c.Check(); !errors.Is(err, x.want) || (err == nil) != (x.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, x.want)
		}
		if x.c.Guarded() != (x.c.Revision != nil || len(x.c.Puts)+len(x.c.Deletes) > 0) {
			t.Errorf("%s: guarded %v", name, x.c.Guarded())
		}
	}
	c := Commit{Revision: []byte("123"), Puts: []Object{{Key: "k", Value: []byte("45")}}, Deletes: []string{"abcd"}, Outcomes: outcomes(2, 10)}
	if c.Size() != 3+1+2+4+20 {
		t.Errorf("size %d", c.Size())
	}
}

// TestAllowed: who may write, and after what.
func TestAllowed(t *testing.T) {
	state := State{Epoch: 4, Revision: 9, Oldest: 3, Owner: "b"}
	outcome := func(n uint64) []Outcome { return []Outcome{{Revision: n}} }
	revision := []byte("x")
	for name, x := range map[string]struct {
		c    Commit
		want error
	}{
		"its epoch, after the last":      {Commit{Epoch: 4, Revision: revision, After: 9}, nil},
		"an earlier epoch":               {Commit{Epoch: 3, Revision: revision, After: 9}, ErrFenced},
		"a later epoch":                  {Commit{Epoch: 5, Revision: revision, After: 9}, ErrFenced},
		"no epoch":                       {Commit{Revision: revision, After: 9}, ErrFenced},
		"after an earlier one":           {Commit{Epoch: 4, Revision: revision, After: 8}, ErrStale},
		"after a later one":              {Commit{Epoch: 4, Revision: revision, After: 10}, ErrStale},
		"objects after an earlier one":   {Commit{Epoch: 4, Puts: []Object{{Key: "a"}}, After: 8}, ErrStale},
		"deletes after an earlier one":   {Commit{Epoch: 4, Deletes: []string{"a"}, After: 8}, ErrStale},
		"an outcome, whatever was last":  {Commit{Epoch: 4, Outcomes: outcome(9)}, nil},
		"of its own revision":            {Commit{Epoch: 4, Revision: revision, After: 9, Outcomes: outcome(10)}, nil},
		"of a revision that is not made": {Commit{Epoch: 4, Outcomes: outcome(10)}, ErrNotFound},
		"of the one after its own":       {Commit{Epoch: 4, Revision: revision, After: 9, Outcomes: outcome(11)}, ErrNotFound},
		"of none":                        {Commit{Epoch: 4, Outcomes: outcome(0)}, ErrNotFound},
		"of the oldest":                  {Commit{Epoch: 4, Outcomes: outcome(3)}, nil},
		"of one that is gone":            {Commit{Epoch: 4, Outcomes: outcome(2)}, ErrCompacted},
	} {
		if err := x.c.Allowed(&state); !errors.Is(err, x.want) || (err == nil) != (x.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, x.want)
		}
	}
	if err := (&Commit{}).Allowed(&State{}); !errors.Is(err, ErrFenced) || !strings.Contains(err.Error(), "nobody has acquired it") {
		t.Errorf("nobody has acquired it: %v", err)
	}
}

// TestTrimKeeps: a trim leaves what is younger than its bound, by the earlier of two clocks, the
// last revision, and everything after what stays.
func TestTrimKeeps(t *testing.T) {
	keep := day.Add(-KeepAudit)
	for name, x := range map[string]struct {
		before, now, newest time.Time
		want                error
	}{
		"at the bound":             {keep, day, day, nil},
		"beyond it":                {keep.Add(1), day, day, ErrRetention},
		"the clock runs ahead":     {keep.Add(time.Hour), day.Add(time.Hour), day, ErrRetention},
		"the newest is of later":   {keep.Add(time.Hour), day, day.Add(time.Hour), ErrRetention},
		"both are later":           {keep.Add(time.Hour), day.Add(time.Hour), day.Add(time.Hour), nil},
		"long before what is kept": {keep.Add(-time.Hour), day, day, nil},
	} {
		if err := (&Trim{Before: x.before}).Keeps(x.now, x.newest); !errors.Is(err, x.want) || (err == nil) != (x.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, x.want)
		}
	}
	digest := Sum([]byte("x"))
	c := Cut{Trim: Trim{Before: day}, Last: 3}
	for i, x := range []struct {
		e    Entry
		want bool
	}{
		{Entry{Sequence: 1, Time: day.Add(-2), Revision: 1, Digest: digest}, true},
		{Entry{Sequence: 2, Time: day.Add(-2), Revision: 3}, true}, // about the last, but not what made it
		{Entry{Sequence: 3, Time: day.Add(-1), Revision: 2, Digest: digest}, true},
		{Entry{Sequence: 4, Time: day, Revision: 2}, false},
		{Entry{Sequence: 4, Time: day.Add(-1), Revision: 3, Digest: digest}, false},
	} {
		if got := c.Takes(&x.e); got != x.want {
			t.Errorf("entry %d is taken: %v", i, got)
		}
	}
	if c.Checkpoint.Sequence != 3 || c.Revision != 2 {
		t.Errorf("it goes up to entry %d and revision %d, want 3 and 2", c.Checkpoint.Sequence, c.Revision)
	}
}
