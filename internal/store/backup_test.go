package store

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
)

// sink takes all records.
type sink struct{ Store }

func (sink) Fill(_ context.Context, records iter.Seq2[Record, error]) error {
	for _, err := range records {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestNewerBackupIsRefused(t *testing.T) {
	_, err := Restore(t.Context(), sink{}, strings.NewReader("ibwarden-backup 7\nanything"), "site.backup")
	var newer *NewerError
	if !errors.As(err, &newer) || !errors.Is(err, ErrNewer) || newer.Has != 7 || newer.Knows != BackupFormat || !strings.Contains(err.Error(), "site.backup has format 7") {
		t.Errorf("error %v", err)
	}
}

func TestBackupRefuses(t *testing.T) {
	state := func(text string) Record { return Record{Kind: RecordState, Data: []byte(text)} }
	revision := func(n uint64) Record { return Record{Kind: RecordRevision, Number: n, Epoch: 1, Data: []byte("x")} }
	log, head := makeLog(t, Head{}, 2)
	entry := func(i int) Record {
		return Record{Kind: RecordEntry, Number: log[i].Sequence, Data: log[i].Line()}
	}
	good := []Record{
		state(`{"revision":2,"oldest":1,"audit":{"sequence":2,"hash":"` + head.Hash.String() + `"}}`),
		{Kind: RecordObject, Key: "a"}, {Kind: RecordObject, Key: "b"}, revision(1), {Kind: RecordOutcome, Number: 1}, revision(2), entry(0), entry(1),
	}
	write := func(records []Record) []byte {
		var b bytes.Buffer
		b.WriteString("ibwarden-backup 1\n")
		for _, r := range records {
			b.Write(r.encode())
		}
		sum := Sum(b.Bytes())
		end := Record{Kind: recordEnd, Data: sum[:]}
		b.Write(end.encode())
		return b.Bytes()
	}
	if _, err := Restore(t.Context(), sink{}, bytes.NewReader(write(good)), "x"); err != nil {
		t.Fatal(err)
	}
	const none = "x is damaged: record 1: there is no state of the store"
	if state, err := Restore(t.Context(), sink{}, bytes.NewReader(write(nil)), "x"); state != nil || err == nil || err.Error() != none {
		t.Errorf("a backup of nothing: %v, want %s", err, none)
	}
	edit := func(f func(r []Record) []Record) []byte { return write(f(append([]Record(nil), good...))) }
	swap := func(i, j int) []byte {
		return edit(func(r []Record) []Record { r[i], r[j] = r[j], r[i]; return r })
	}
	drop := func(i int) []byte {
		return edit(func(r []Record) []Record { return append(r[:i:i], r[i+1:]...) })
	}
	for name, file := range map[string][]byte{
		"no state": drop(0), "two states": edit(func(r []Record) []Record { return append(r, r[0]) }),
		"state second": swap(0, 1), "objects swapped": swap(1, 2), "an object twice": edit(func(r []Record) []Record { r[2] = r[1]; return r }),
		"a revision missing": drop(3), "the last revision missing": drop(5), "an outcome of another": edit(func(r []Record) []Record { r[4].Number = 2; return r }),
		"revisions swapped": swap(3, 5), "entries swapped": swap(6, 7), "an entry missing": drop(6), "the last entry missing": drop(7),
		"an entry before revisions": swap(5, 6), "an unknown kind": edit(func(r []Record) []Record { return append(r, Record{Kind: 9}) }),
		"an entry that is none": edit(func(r []Record) []Record { r[7].Data = []byte("{}"); return r }),
		"more behind the end":   append(write(good), 0), "no bytes": nil, "another file": []byte("\x7fELF\n"),
		"an object too large": edit(func(r []Record) []Record { r[1].Data = make([]byte, MaxObject+1); return r }),
		"a key not printable": edit(func(r []Record) []Record { r[1].Key = "\n"; return r }),
	} {
		if _, err := Restore(t.Context(), sink{}, bytes.NewReader(file), "x"); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	whole := write(good)
	exchanged := bytes.Replace(whole, good[1].encode(), (&Record{Kind: RecordObject, Key: "A"}).encode(), 1)
	if bytes.Equal(exchanged, whole) {
		t.Fatal("the record to be exchanged is not there")
	}
	if _, err := Restore(t.Context(), sink{}, bytes.NewReader(exchanged), "x"); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a record exchanged for a good one: error %v", err)
	}
	for i := range whole {
		bent := bytes.Clone(whole)
		bent[i] ^= 0x10
		if _, err := Restore(t.Context(), sink{}, bytes.NewReader(bent), "x"); err == nil {
			t.Errorf("byte %d of %d changed: restored", i, len(whole))
		}
	}
}
