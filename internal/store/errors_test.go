package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestWhatErrorsSay: each error says what is wrong in one sentence, and is of its kind.
func TestWhatErrorsSay(t *testing.T) {
	cause := errors.New("its checksum does not match")
	head := func(n uint64) Head { return Head{Sequence: n} }
	for want, x := range map[string]struct{ err, kind error }{
		"the store was rolled back: it ends with revision 3, and revisions 4 to 6, which were seen, are missing": {
			&RolledBackError{Last: 3, First: 4, Seen: 6}, ErrRolledBack,
		},
		"the store was rolled back: it ends with revision 5, and revision 6, which was seen, is missing": {
			&RolledBackError{Last: 5, First: 6, Seen: 6}, ErrRolledBack,
		},
		"the store was rolled back: revisions 4 to 6, which were seen, are missing: it has another content there": {
			&RolledBackError{Last: 6, First: 4, Seen: 6}, ErrRolledBack,
		},
		"the store was rolled back: revision 6, which was seen, is missing: it has another content there": {
			&RolledBackError{Last: 9, First: 6, Seen: 6}, ErrRolledBack,
		},
		"the store was rolled back: its audit log ends with entry 8, and entries up to 9, which were seen, are missing": {
			&RolledBackError{Last: 6, First: 7, Seen: 6, Audit: head(8), SeenAudit: head(9)}, ErrRolledBack,
		},
		"the store was rolled back: its audit log has another content than the one that was seen up to entry 9": {
			&RolledBackError{Last: 6, First: 7, Seen: 6, Audit: head(9), SeenAudit: head(9)}, ErrRolledBack,
		},
		"FILE has format 3, and this program knows formats up to 1: use a newer ibwarden": {&NewerError{"FILE", 3, 1}, ErrNewer},
		"FILE is damaged: audit entry 4: its checksum does not match":                     {&CorruptError{"FILE", "audit entry 4", cause}, ErrCorrupt},
		"the audit log breaks at entry 4: it is missing":                                  {&BrokenError{4, "it is missing"}, nil},
		"another manager has become the writer of the store: nobody has acquired it yet":  {Fenced(0, &State{}), ErrFenced},
		"another manager has become the writer of the store: b, with epoch 7, and this is epoch 6": {
			Fenced(6, &State{Epoch: 7, Owner: "b"}), ErrFenced,
		},
		"audit entries have to be kept for 400 days: entries from 2025-10-18T12:00:00Z on cannot be removed": {
			(&Trim{Before: day}).Keeps(day, day), ErrRetention,
		},
		"the store has a newer revision: 9, and the commit is for 8": {
			(&Commit{Epoch: 1, After: 8, Deletes: []string{"a"}}).Allowed(&State{Epoch: 1, Revision: 9}), ErrStale,
		},
	} {
		if got := x.err.Error(); got != want {
			t.Errorf("%s\nwant: %s", got, want)
		}
		for _, kind := range []error{ErrRolledBack, ErrNewer, ErrCorrupt, ErrFenced, ErrRetention, ErrStale} {
			if errors.Is(x.err, kind) != (kind == x.kind) {
				t.Errorf("%s: is %v: %v", want, kind, !errors.Is(x.err, kind))
			}
		}
	}
	if !errors.Is(&CorruptError{Err: cause}, cause) {
		t.Error("the cause of what is damaged is not there")
	}
	if from, to := (&RolledBackError{First: 4, Seen: 6, Last: 3}).Missing(); from != 4 || to != 6 {
		t.Errorf("missing %d to %d", from, to)
	}
	s := &State{Revision: 9, Oldest: 4}
	for n := range uint64(12) {
		want, text := error(nil), ""
		switch {
		case n == 0 || n > 9:
			want, text = ErrNotFound, fmt.Sprintf("revision %d: not in the store: the last is 9", n)
		case n < 4:
			want, text = ErrCompacted, fmt.Sprintf("revision %d: removed from the history: the oldest is 4", n)
		}
		if err := s.Has(n); !errors.Is(err, want) || err != nil && err.Error() != text {
			t.Errorf("%d: %v, want %s", n, err, text)
		}
	}
}

// TestEntriesAreChecked: each field of an entry has its bounds, and what goes beyond is named.
func TestEntriesAreChecked(t *testing.T) {
	at := func(year int) time.Time { return time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC) }
	long := strings.Repeat("x", MaxField)
	for name, x := range map[string]struct {
		change func(*Entry)
		want   string
	}{
		"as it is":         {func(*Entry) {}, ""},
		"refused":          {func(e *Entry) { e.Decision = Refused }, ""},
		"no decision":      {func(e *Entry) { e.Decision = "" }, `decision "", want "accepted" or "refused"`},
		"no action":        {func(e *Entry) { e.Action = "" }, "an audit entry without an action"},
		"no time":          {func(e *Entry) { e.Time = time.Time{} }, "an audit entry with the time"},
		"year 1":           {func(e *Entry) { e.Time = at(1) }, ""},
		"before year 1":    {func(e *Entry) { e.Time = at(0) }, "an audit entry with the time"},
		"year 9999":        {func(e *Entry) { e.Time = at(9999) }, ""},
		"year 10000":       {func(e *Entry) { e.Time = at(10000) }, "an audit entry with the time"},
		"merged":           {func(e *Entry) { e.Count, e.Since = 1, at(2026) }, ""},
		"merged, no time":  {func(e *Entry) { e.Count = 1 }, "an audit entry of 1 decisions since 0001"},
		"one, with a time": {func(e *Entry) { e.Since = at(2026) }, "an audit entry of 0 decisions since 2026"},
		"since 10000":      {func(e *Entry) { e.Count, e.Since = 1, at(10000) }, "an audit entry of 1 decisions since 10000"},
		"since before 1":   {func(e *Entry) { e.Count, e.Since = 1, at(0) }, "an audit entry of 1 decisions since 0000"},
		"fields at most": {func(e *Entry) {
			e.Caller, e.Tenant, e.Object, e.Reason, e.Request, e.Action = long, long, long, long, long, long
		}, ""},
		"caller too long":   {func(e *Entry) { e.Caller = long + "x" }, "the caller of an audit entry of 1025 bytes, at most 1024"},
		"tenant too long":   {func(e *Entry) { e.Tenant = long + "x" }, "the tenant of an audit entry"},
		"action too long":   {func(e *Entry) { e.Action = long + "x" }, "the action of an audit entry"},
		"object too long":   {func(e *Entry) { e.Object = long + "x" }, "the object of an audit entry"},
		"reason too long":   {func(e *Entry) { e.Reason = long + "x" }, "the reason of an audit entry"},
		"request too long":  {func(e *Entry) { e.Request = long + "x" }, "the request of an audit entry"},
		"text of no form":   {func(e *Entry) { e.Caller = "a\xff" }, ""},
		"replaced too long": {func(e *Entry) { e.Caller = strings.Repeat("\xffx", MaxField/2) }, ""},
	} {
		e := Entry{Time: day, Action: "a", Decision: Accepted}
		x.change(&e)
		err := e.check()
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
		if err != nil {
			continue
		}
		made, _ := Link(Head{Sequence: 7}, []Entry{e}, 0, nil)
		if got, err := ParseEntry(made[0].Line()); err != nil || got != made[0] {
			t.Errorf("%s: reads back as %+v, %v; want %+v", name, got, err, made[0])
		}
	}
}
