package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"
)

var day = time.Date(2026, 11, 22, 12, 0, 0, 5, time.UTC)

// log makes a log of entries of which every second one commits a revision.
func makeLog(t testing.TB, from Head, count int) ([]Entry, Head) {
	t.Helper()
	var out []Entry
	head, revision := from, uint64(0)
	for n := range count {
		e := Entry{Time: day, Caller: "c", Tenant: "t", Action: "a", Object: "o", Decision: Refused, Reason: "r\n\"<>", Request: fmt.Sprint(n)}
		var data []byte
		if n%2 == 0 {
			revision++
			data, e.Revision, e.Decision = revisionData(revision), revision, Accepted
		}
		linked, next := Link(head, []Entry{e}, revision, data)
		out, head = append(out, linked...), next
	}
	return out, head
}

func revisionData(n uint64) []byte { return fmt.Appendf(nil, "revision %d", n) }

func digestOf(n uint64) (Hash, error) { return Sum(revisionData(n)), nil }

func yieldAll(in []Entry) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for _, e := range in {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func TestChainHolds(t *testing.T) {
	log, head := makeLog(t, Head{}, 9)
	anchors := []Head{{}, {Sequence: 4, Hash: log[3].Hash}, head}
	count, err := Verify(Chain{Head: head, Anchors: anchors, Digest: digestOf, Oldest: 1, Last: 5}, yieldAll(log))
	if err != nil || count != 9 {
		t.Fatalf("%d entries, %v", count, err)
	}
	if count, err := Verify(Chain{}, yieldAll(nil)); err != nil || count != 0 {
		t.Fatalf("an empty log: %d entries, %v", count, err)
	}
}

// TestChainBreaks does to a log what somebody who can write the file may do, and says
// where the break is.
func TestChainBreaks(t *testing.T) {
	whole, head := makeLog(t, Head{}, 9)
	edit := func(i int, f func(e *Entry)) []Entry { out := slices.Clone(whole); f(&out[i]); return out }
	relink := func(in []Entry) ([]Entry, Head) { // as somebody who computes hashes does
		at := Head{}
		for i := range in {
			digest := in[i].Digest
			in[i].Sequence, in[i].Previous, in[i].Digest = at.Sequence+1, at.Hash, digest
			in[i].Hash = Sum(in[i].content())
			at = Head{Sequence: in[i].Sequence, Hash: in[i].Hash}
		}
		return in, at
	}
	forged, forgedHead := relink(edit(3, func(e *Entry) { e.Caller = "somebody else" }))
	cutHead := Head{Sequence: 7, Hash: whole[6].Hash}
	cutStart := Checkpoint{Sequence: 2, Hash: whole[1].Hash}
	for name, c := range map[string]struct {
		log   []Entry
		chain Chain
		at    uint64
	}{
		"caller changed":        {edit(3, func(e *Entry) { e.Caller = "x" }), Chain{Head: head}, 4},
		"tenant changed":        {edit(0, func(e *Entry) { e.Tenant = "x" }), Chain{Head: head}, 1},
		"time changed":          {edit(8, func(e *Entry) { e.Time = e.Time.Add(1) }), Chain{Head: head}, 9},
		"count changed":         {edit(1, func(e *Entry) { e.Count++; e.Since = e.Time }), Chain{Head: head}, 2},
		"decision changed":      {edit(1, func(e *Entry) { e.Decision = Accepted }), Chain{Head: head}, 2},
		"reason moved":          {edit(1, func(e *Entry) { e.Object, e.Reason = "", "o"+e.Reason }), Chain{Head: head}, 2},
		"revision changed":      {edit(2, func(e *Entry) { e.Revision++ }), Chain{Head: head}, 3},
		"digest changed":        {edit(2, func(e *Entry) { e.Digest[0] ^= 1 }), Chain{Head: head}, 3},
		"digest removed":        {edit(2, func(e *Entry) { e.Digest = Hash{} }), Chain{Head: head}, 3},
		"hash changed":          {edit(4, func(e *Entry) { e.Hash[31] ^= 1 }), Chain{Head: head}, 5},
		"hash of the last":      {edit(8, func(e *Entry) { e.Hash[31] ^= 1 }), Chain{Head: head}, 9},
		"entry and hash":        {edit(4, func(e *Entry) { e.Action = "b"; e.Hash = Sum(e.content()) }), Chain{Head: head}, 6},
		"entry removed":         {slices.Delete(slices.Clone(whole), 4, 5), Chain{Head: head}, 5},
		"entries swapped":       {edit(4, func(e *Entry) { *e = whole[5] }), Chain{Head: head}, 5},
		"entry twice":           {slices.Insert(slices.Clone(whole), 4, whole[3]), Chain{Head: head}, 5},
		"cut off":               {whole[:7], Chain{Head: head}, 8},
		"emptied":               {nil, Chain{Head: head}, 1},
		"more than the head":    {whole, Chain{Head: cutHead}, 9},
		"start cut off":         {whole[2:], Chain{Head: head}, 1},
		"forged checkpoint":     {whole[2:], Chain{Head: head, Checkpoint: cutStart}, 3},
		"wrong checkpoint":      {whole[2:], Chain{Head: head, Checkpoint: Checkpoint{Sequence: 2}}, 3},
		"all forged, anchor":    {forged, Chain{Head: forgedHead, Anchors: []Head{{Sequence: 6, Hash: whole[5].Hash}}}, 6},
		"all forged, last":      {forged, Chain{Head: forgedHead, Anchors: []Head{head}}, 9},
		"cut with head, anchor": {whole[:7], Chain{Head: cutHead, Anchors: []Head{head}}, 8},
		"anchors that differ":   {whole, Chain{Head: head, Anchors: []Head{head, {Sequence: 9}}}, 9},
		"anchor before the cut": {whole[2:], Chain{Head: head, Checkpoint: cutStart, Anchors: []Head{{Sequence: 1}}}, 1},
		"revision replaced":     {whole, Chain{Head: head, Oldest: 1, Last: 5, Digest: func(n uint64) (Hash, error) { return digestOf(n + n/3) }}, 5},
		"revision added":        {whole, Chain{Head: head, Oldest: 1, Last: 6, Digest: digestOf}, 9},
		"revision cut off":      {whole, Chain{Head: head, Oldest: 1, Last: 4, Digest: digestOf}, 9},
	} {
		_, err := Verify(c.chain, yieldAll(c.log))
		var broken *BrokenError
		if !errors.As(err, &broken) || broken.Sequence != c.at {
			t.Errorf("%s: %v, want a break at entry %d", name, err, c.at)
		}
	}
	if _, err := Verify(Chain{Head: forgedHead}, yieldAll(forged)); err != nil {
		t.Errorf("doc.go says that a log forged with its head is found by anchors alone, and this is: %v", err)
	}
	stop := errors.New("stop")
	if _, err := Verify(Chain{Head: head}, func(yield func(Entry, error) bool) { yield(Entry{}, stop) }); err != stop {
		t.Errorf("the error of the iterator: %v", err)
	}
}

func TestTrimIsStated(t *testing.T) {
	log, head := makeLog(t, Head{}, 5)
	cut := Checkpoint{Sequence: 3, Hash: log[2].Hash}
	entry, head := LinkTrim(head, Entry{Time: day, Action: "trim", Decision: Accepted}, cut)
	log = append(log[3:], entry)
	if _, err := Verify(Chain{Head: head, Checkpoint: cut}, yieldAll(log)); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(Chain{Head: head, Checkpoint: Checkpoint{Sequence: 4, Hash: log[0].Hash}}, yieldAll(log[1:])); err == nil {
		t.Error("a checkpoint that is later than the one stated passes")
	}
}

// TestLineIsHashedAsDocumented computes hashes of exported lines with nothing but what
// doc.go says.
func TestLineIsHashedAsDocumented(t *testing.T) {
	log, _ := makeLog(t, Head{}, 4)
	var file bytes.Buffer
	if n, err := Export(&file, yieldAll(log)); err != nil || n != 4 {
		t.Fatal(n, err)
	}
	previous := strings.Repeat("0", 64)
	for line := range strings.Lines(file.String()) {
		content, rest, ok := strings.Cut(strings.TrimSuffix(line, "\n"), `,"hash":`)
		sum := sha256.Sum256([]byte(content))
		if want := `"` + hex.EncodeToString(sum[:]) + `"}`; !ok || rest != want {
			t.Errorf("%s: hash %s, want %s", line, rest, want)
		}
		var fields struct{ Previous, Hash string }
		if err := json.Unmarshal([]byte(line), &fields); err != nil || fields.Previous != previous {
			t.Errorf("%s: previous %s, want %s, error %v", line, fields.Previous, previous, err)
		}
		previous = fields.Hash
	}
	var got []Entry
	for e, err := range ReadExport(&file) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	if !slices.EqualFunc(got, log, func(a, b Entry) bool { return bytes.Equal(a.Line(), b.Line()) }) {
		t.Errorf("read back %+v, want %+v", got, log)
	}
}

func TestEntriesAreReadStrictly(t *testing.T) {
	log, _ := makeLog(t, Head{}, 1)
	good := string(log[0].Line())
	for name, line := range map[string]string{
		"nothing":           "",
		"no hash":           strings.Split(good, hashMark)[0] + "}",
		"a short hash":      strings.Replace(good, hashMark, hashMark+"zz", 1),
		"capitals":          good[:len(good)-66] + strings.ToUpper(good[len(good)-66:len(good)-2]) + `"}`,
		"a space":           strings.Replace(good, ",", ", ", 1),
		"another field":     strings.Replace(good, `"action"`, `"extra":1,"action"`, 1),
		"a field twice":     strings.Replace(good, `"action":"a"`, `"action":"b","action":"a"`, 1),
		"another order":     strings.Replace(good, `"caller":"c","tenant":"t"`, `"tenant":"t","caller":"c"`, 1),
		"an escape":         strings.Replace(good, `"a"`, `"\u0061"`, 1),
		"another time zone": strings.Replace(good, "Z\"", "+00:00\"", 1),
		"more behind":       good + " ",
		"no decision":       strings.Replace(good, "accepted", "perhaps", 1),
		"a fraction":        strings.Replace(good, `"sequence":1`, `"sequence":1.0`, 1),
		"an empty caller":   strings.Replace(good, `"caller":"c"`, `"caller":""`, 1),
		"too long":          strings.Replace(good, `"c"`, `"`+strings.Repeat("c", MaxField+1)+`"`, 1),
		"too long in bytes": strings.Repeat(" ", MaxLine+1),
	} {
		if name != "nothing" && line == good {
			t.Errorf("%s: the line is the good one", name)
		}
		if e, err := ParseEntry([]byte(line)); err == nil {
			t.Errorf("%s: read as %+v", name, e)
		}
	}
	if _, err := ParseEntry([]byte(good)); err != nil {
		t.Error(err)
	}
	longest := Entry{Time: day, Decision: Refused, Revision: 1<<64 - 1, Digest: Hash{1}, Begins: &Checkpoint{Sequence: 1<<64 - 1}}
	for _, f := range []*string{&longest.Caller, &longest.Tenant, &longest.Action, &longest.Object, &longest.Reason, &longest.Request} {
		*f = strings.Repeat("\x01", MaxField)
	}
	longest.link(Head{Sequence: 1<<64 - 2})
	if n := len(longest.Line()); n > MaxLine || n < MaxLine-1024 {
		t.Errorf("the longest line has %d bytes, MaxLine is %d", n, MaxLine)
	}
}

func FuzzParseEntry(f *testing.F) {
	log, _ := makeLog(f, Head{}, 3)
	for _, e := range log {
		f.Add(e.Line())
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if e, err := ParseEntry(line); err == nil && !bytes.Equal(e.Line(), line) {
			t.Errorf("%q reads as an entry that is written %q", line, e.Line())
		}
	})
}

func FuzzRestore(f *testing.F) {
	f.Add([]byte("ibwarden-backup 1\n"))
	var small bytes.Buffer
	small.WriteString("ibwarden-backup 1\n")
	for _, r := range []Record{
		{Kind: RecordState, Data: []byte(`{"revision":1,"oldest":1}`)}, {Kind: RecordObject, Key: "a", Data: []byte("1")},
		{Kind: RecordRevision, Number: 1, Epoch: 1, Data: []byte("x")}, {Kind: RecordOutcome, Number: 1},
	} {
		small.Write(r.encode())
	}
	sum := sha256.Sum256(small.Bytes())
	end := Record{Kind: recordEnd, Data: sum[:]}
	small.Write(end.encode())
	f.Add(small.Bytes())
	if _, err := Restore(f.Context(), sink{}, bytes.NewReader(small.Bytes()), "x"); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := Restore(t.Context(), sink{}, bytes.NewReader(data), "x")
		if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrNewer) {
			t.Errorf("error %v", err)
		}
	})
}

func TestHeadAsText(t *testing.T) {
	h := Head{Sequence: 1<<64 - 1, Hash: Sum([]byte("x"))}
	if got, err := ParseHead(h.String()); err != nil || got != h {
		t.Errorf("%v read back is %v, %v", h, got, err)
	}
	for _, text := range []string{"", "1", ":", h.String() + "0", "0" + h.String(), "-" + h.String(), " " + h.String(), strings.ToUpper(h.String()), h.String()[:30]} {
		if got, err := ParseHead(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}
