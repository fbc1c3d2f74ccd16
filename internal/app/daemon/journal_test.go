package daemon

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/group"
)

func entry() *Entry {
	e := &Entry{
		Change: &plan.Change{Blocks: []plan.ChangedBlock{
			{Node: 0x10, Port: 3, Name: "leaf:3", Attribute: smp.AttrPKeyTable, Modifier: 3 << 16},
			{Node: 0x11, Port: 1, Name: "host", Attribute: smp.AttrPortInfo, Elements: observed.ElementEnforcement | observed.ElementLID, Activate: true},
		}},
		Allowed: []observed.Partition{{Name: "red", Base: 0x10, Full: []ib.PortGUID{1, 2}, Limited: []ib.PortGUID{3}}},
	}
	e.Change.Blocks[0].Before[0], e.Change.Blocks[0].After[63] = 0x80, 0x11
	return e
}

func TestJournalHoldsAChange(t *testing.T) {
	j := FileJournal{filepath.Join(t.TempDir(), "j")}
	if e, err := j.Load(); e != nil || err != nil {
		t.Fatalf("no file: %v, %v", e, err)
	}
	want := entry()
	if err := j.Begin(want); err != nil {
		t.Fatal(err)
	}
	for _, n := range []Note{{NoteStep, "canary"}, {NoteStopped, "lost"}} {
		if err := j.Note(n); err != nil {
			t.Fatal(err)
		}
		want.Notes = append(want.Notes, n)
	}
	got, err := j.Load()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, %v\nwant %+v", got, err, want)
	}
	if got.Finished() {
		t.Error("finished after a stop")
	}
	info, err := os.Stat(j.Path)
	if err != nil || info.Mode().Perm() != journalMode {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	// A note that a crash cut short does not count; a whole one that is wrong does.
	file, err := os.ReadFile(j.Path)
	if err != nil {
		t.Fatal(err)
	}
	for tail, faulty := range map[string]bool{`{"state":"do`: false, "{\"state\":\"do\n": true} {
		got, err := readJournal(append(append([]byte{}, file...), tail...))
		if faulty != (err != nil) || err == nil && len(got.Notes) != 2 {
			t.Errorf("tail %q: %+v, %v", tail, got, err)
		}
	}
	if err := j.Note(Note{NoteDone, ""}); err != nil {
		t.Fatal(err)
	}
	if got, err := j.Load(); err != nil || !got.Finished() {
		t.Errorf("not finished: %v", err)
	}
}

// A journal holds partitions whole: what a field of the type says is neither left
// out nor worked out again.
func TestJournalHoldsPartitionsWhole(t *testing.T) {
	red := observed.Partition{
		Name: "red", Base: 0x10, Full: []ib.PortGUID{1, 2}, Limited: []ib.PortGUID{3}, Index0: []ib.PortGUID{2}, Order: 4, SL: 5,
		ByService: []observed.ServiceRange{{First: 1, Last: 2, SL: 3}}, RateLimit: 16,
		Multicast: []group.Group{{
			MGID: ib.GID{0: 0xFF, 1: 0x15, 15: 9}, MLID: 0xC001, Partition: 0x10, Fixed: true,
			Settings: group.Settings{QKey: 0xB1B, MTU: ib.MTU4096, Rate: 16, Lifetime: 18, SL: 5, TClass: 7, FlowLabel: 0xABCDE, HopLimit: 255},
			Members:  []group.Member{{Port: 1, GID: ib.MakeGID(ib.DefaultGIDPrefix, 1), State: sa.JoinFull, Proxy: true}},
		}},
	}
	var empty func(at string, v reflect.Value)
	empty = func(at string, v reflect.Value) {
		if v.IsZero() {
			t.Errorf("%s is not set here: a journal may lose it", at)
		}
		switch {
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				empty(at+"."+v.Type().Field(i).Name, v.Field(i))
			}
		case v.Kind() == reflect.Slice && v.Len() > 0:
			empty(at+"[0]", v.Index(0))
		}
	}
	empty("Partition", reflect.ValueOf(red))
	j := FileJournal{filepath.Join(t.TempDir(), "j")}
	want := entry()
	want.Allowed = []observed.Partition{red, {Name: "nobody", Base: 0x11}}
	if err := j.Begin(want); err != nil {
		t.Fatal(err)
	}
	got, err := j.Load()
	if err != nil || !reflect.DeepEqual(got.Allowed, want.Allowed) {
		t.Errorf("read %+v, %v\nwant %+v", got, err, want)
	}
}

// A change that was begun by an ibwarden whose journal had names and members only can
// be finished.
func TestJournalOfBefore(t *testing.T) {
	const line = `{"version":1,"blocks":[],"allowed":[{"name":"red","pkey":"0x0010","full":["0x0000000000000001"],"limited":[]}],"raw":"denied"}` + "\n" +
		`{"state":"stopped","text":"lost"}` + "\n"
	got, err := readJournal([]byte(line))
	want := &Entry{
		Change: &plan.Change{}, Raw: isolation.RawDenied, Notes: []Note{{NoteStopped, "lost"}},
		Allowed: []observed.Partition{{Name: "red", Base: 0x10, Full: []ib.PortGUID{1}, Limited: []ib.PortGUID{}}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, %v\nwant %+v", got, err, want)
	}
}

// A journal with any fault is refused, not half believed.
func TestDamagedJournals(t *testing.T) {
	j := FileJournal{filepath.Join(t.TempDir(), "j")}
	if err := j.Begin(entry()); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(j.Path)
	if err != nil {
		t.Fatal(err)
	}
	good := string(file)
	for name, bad := range map[string]string{
		"empty":           "",
		"cut off":         good[:len(good)-1],
		"another version": strings.Replace(good, `"version":1`, `"version":2`, 1),
		"half a byte":     strings.Replace(good, `"before":"80`, `"before":"8`, 1),
		"an element":      strings.Replace(good, `"LID"`, `"shoe size"`, 1),
		"a node":          strings.Replace(good, `"node":"0x`, `"node":"y`, 1),
		"a partition":     strings.Replace(good, `"pkey":"0x0010"`, `"pkey":"0x8010"`, 1),
		"no number":       strings.Replace(good, `"pkey":"0x0010",`, "", 1),
		"a member":        strings.Replace(good, `"full":["0x`, `"full":["q`, 1),
	} {
		if bad == good {
			t.Fatalf("%s: nothing was damaged", name)
		}
		if e, err := readJournal([]byte(bad)); err == nil {
			t.Errorf("%s: taken: %+v", name, e)
		}
	}
}
