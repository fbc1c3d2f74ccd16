package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// TestStateFilesThatAreRefused: each value out of its range is named, and nothing of the file
// is taken; the bounds themselves are.
func TestStateFilesThatAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	for text, want := range map[string]string{
		`"lids":{"0x0000000000000001":1}`:                                   "",
		`"lids":{"0x0000000000000001":49151}`:                               "",
		`"lids":{"0x0000000000000001":49152}`:                               `LID 49152 of port "0x0000000000000001": want a unicast LID and a port GUID`,
		`"lids":{"0x0000000000000001":0}`:                                   `LID 0 of port "0x0000000000000001": want a unicast LID and a port GUID`,
		`"lids":{"x":1}`:                                                    `LID 1 of port "x": want a unicast LID and a port GUID`,
		`"pkeys":{"red":"0x0001","blue":"0x7fff"}`:                          "",
		`"pkeys":{"red":null}`:                                              `P_Key 0x0000 of partition "red": want 0x0001 to 0x7fff`,
		`"fenced":["0x0000000000000001"]`:                                   "",
		`"fenced":["x"]`:                                                    `fenced port "x": want a port GUID`,
		`"fences":{"0x0000000000000001:2":"why"}`:                           "",
		`"fences":{"0x0000000000000001":"why"}`:                             `fenced switch port "0x0000000000000001": want a node GUID, a colon and a port number`,
		`"forgets":{"0x0000000000000001:2":["HOQLife"]}`:                    "",
		`"forgets":{"x":["HOQLife"]}`:                                       `port "x" forgets ["HOQLife"]: want a node GUID, a colon and a port number, and names of PortInfo elements`,
		`"forgets":{"0x0000000000000001:2":["walls"]}`:                      `port "0x0000000000000001:2" forgets ["walls"]: want a node GUID, a colon and a port number, and names of PortInfo elements`,
		`"names":["a","b"],"aliases":true,"managed":true`:                   "",
		`"administration":{"saved":"2026-01-01T00:00:00Z","salt":"x"}`:      "",
		`"lids":{"0x0000000000000001":1},"lids":{"0x0000000000000001":"y"}`: "y",
	} {
		if err := os.WriteFile(path, []byte(`{"version":1,`+text+`}`), 0o600); err != nil {
			t.Fatal(err)
		}
		a, err := LoadState(path)
		switch {
		case want == "":
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
		case err == nil || !strings.HasPrefix(err.Error(), "state "+path+": ") || !strings.Contains(err.Error(), want) || a.LIDs != nil || a.PKeys != nil:
			t.Errorf("%s: %v, %+v; want %s", text, err, a, want)
		}
	}
	if err := os.WriteFile(path, []byte(`{"version":0}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{func() error { _, err := LoadState(path); return err }(), SaveState(path, desired.Assigned{})} {
		if err == nil || err.Error() != "state "+path+": version 0, want 1" {
			t.Errorf("another version: %v", err)
		}
	}
	if _, err := ReaderOf(path, testKey)(); err == nil {
		t.Error("a file of another version was taken over")
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != `{"version":0}` {
		t.Errorf("a file that was refused is %s, %v", data, err)
	}
}

// TestWhatStateFilesKeep: what was assigned and what hosts registered are kept apart, nothing is
// kept without a path, and a directory in which nothing can be kept is told before.
func TestWhatStateFilesKeep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	if ReaderOf("", testKey) != nil {
		t.Error("no file is read")
	}
	if all, err := ReaderOf(path, testKey)(); err != nil || len(all.Assigned.LIDs) != 0 || all.Registered.Manager != 0 {
		t.Errorf("a file that is not there: %+v, %v", all, err)
	}
	a := hostsKept(t, 3)
	if err := SaveStates(path, a.Assigned, a.Registered); err != nil {
		t.Fatal(err)
	}
	check := func(what string, lids int) {
		t.Helper()
		all, err := ReaderOf(path, testKey)()
		if err != nil || len(all.Assigned.LIDs) != lids || all.Registered.Manager != a.Registered.Manager || len(all.Registered.Services) != len(a.Registered.Services) {
			t.Errorf("%s: %d LIDs, manager %v, %d services, %v", what, len(all.Assigned.LIDs), all.Registered.Manager, len(all.Registered.Services), err)
		}
	}
	check("saved", 3)
	less := CopyState(a.Assigned)
	less.LIDs = map[ib.PortGUID]ib.LID{1: 1}
	if err := SaveState(path, less); err != nil {
		t.Fatal(err)
	}
	check("assigned alone", 1)
	for _, err := range []error{SaveState("", a.Assigned), SaveStates("", a.Assigned, a.Registered)} {
		if err != nil {
			t.Errorf("nothing is to be kept: %v", err)
		}
	}
	if err := CheckState(path); err != nil {
		t.Error(err)
	}
	gone := filepath.Join(t.TempDir(), "gone", "state")
	if err := CheckState(gone); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "state "+gone+": it could not be kept: ") {
		t.Errorf("a directory that is not there: %v", err)
	}
	if err := SaveState(gone, a.Assigned); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "state "+gone+": ") {
		t.Errorf("a directory that is not there: %v", err)
	}
	if list, err := os.ReadDir(filepath.Dir(path)); err != nil || len(list) != 1 {
		t.Errorf("beside the file is left: %v, %v", list, err)
	}
}

// TestCopyIsApart: what changes in a copy of what was assigned does not change in it.
func TestCopyIsApart(t *testing.T) {
	was, a := hostsKept(t, 2).Assigned, hostsKept(t, 2).Assigned
	b := CopyState(a)
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
	b.LIDs[99], b.PKeys["x"], b.Forgets[observed.Place{Node: 99}], b.Fenced[99], b.Fences[observed.Place{Node: 99}], b.Names["x"] = 9, 9, 1, true, "x", true
	if diff := cmp.Diff(was, a); diff != "" {
		t.Error(diff)
	}
}

// TestBooksThatAreRefused: a key book that is none is not dealt out, and nothing is written.
func TestBooksThatAreRefused(t *testing.T) {
	a := hostsKept(t, 3)
	for text, want := range map[string]string{
		"{":                           "key book: ",
		`{"version":2}`:               "key book: version 2, want 1",
		`{"version":0}`:               "key book: version 0, want 1",
		`{"version":1,"used":[1]}`:    "cannot unmarshal",
		`{"version":1,"ports":["x"]}`: "cannot unmarshal",
	} {
		bad, o := a, Objects{}
		bad.Book = []byte(text)
		if list, err := o.Changes(&bad, time.Now()); err == nil || !strings.Contains(err.Error(), want) || list != nil {
			t.Errorf("%s: %d objects, %v; want %s", text, len(list), err, want)
		}
	}
	// Without a book, and with one that is empty.
	for _, book := range []string{"", `{"version":1}`} {
		bare, o := a, Objects{}
		bare.Book = []byte(book)
		changes(t, &o, &bare, time.Now())
		got, _, err := o.All(testKey, time.Now())
		if err != nil || bytes.Contains(got.Book, []byte("port_guid")) {
			t.Errorf("%q: %s, %v", book, got.Book, err)
		}
	}
}

// TestObjectsOfWhatIsThere: an object is known by what is in it, a list of cables is cut into
// chunks and put together, and what there is less of is emptied.
func TestObjectsOfWhatIsThere(t *testing.T) {
	now := time.Unix(1_800_000_001, 0)
	a := hostsKept(t, 2)
	var o Objects
	for size, chunks := range map[int]int{0: 0, 1: 1, cablesChunk: 1, cablesChunk + 1: 2, 3 * cablesChunk: 3} {
		var o Objects
		a.Cables = bytes.Repeat([]byte("x"), size)
		n := 0
		for _, x := range changes(t, &o, &a, now) {
			if strings.HasPrefix(x.Key, cablesPrefix) {
				n++
			}
			if !o.Has(x) {
				t.Errorf("%s is not there", x.Key)
			}
			if x.Value = append(x.Value, ' '); o.Has(x) {
				t.Errorf("%s is there with another content", x.Key)
			}
		}
		if got, _, err := o.All(testKey, now); n != chunks || err != nil || !bytes.Equal(got.Cables, a.Cables) {
			t.Errorf("a list of %d bytes: %d chunks, %d bytes, %v", size, n, len(got.Cables), err)
		}
	}
	a.Cables = bytes.Repeat([]byte("x"), 2*cablesChunk)
	first := changes(t, &o, &a, now)
	if o.Sequence() != 1 {
		t.Errorf("change %d, want 1", o.Sequence())
	}
	if again := changes(t, &o, &a, now); again != nil || o.Sequence() != 1 {
		t.Errorf("nothing changed: %d objects, change %d", len(again), o.Sequence())
	}
	a.Cables = a.Cables[:1]
	list := changes(t, &o, &a, now)
	if len(list) != 3 || string(list[0].Value) != `{"text":"x"}` || string(list[1].Value) != "{}" || list[2].Key != headKey || o.Sequence() != 2 {
		t.Errorf("a shorter list: %+v", list)
	}
	if sum := sizeOf(list) + sizeOf(first); o.size >= sum || o.size <= sizeOf(list) {
		t.Errorf("%d bytes of %d", o.size, sum)
	}
	size := 0
	for _, n := range o.sizes {
		size += n
	}
	if o.size != size {
		t.Errorf("%d bytes, want %d", o.size, size)
	}
	// Another SA_Key alone is a change of the head.
	a.Registered.SAKey++
	if list := changes(t, &o, &a, now); len(list) != 1 || list[0].Key != headKey {
		t.Errorf("another SA_Key: %d objects", len(list))
	}
	var h head
	if err := json.Unmarshal(list[2].Value, &h); err != nil || h.Version != objectsVersion || h.Manager == "" || !h.Managed || !h.Aliases || h.Secret != "sum" || h.Serial != 9 || h.KeySum == o.head.KeySum || h.Salt != o.head.Salt {
		t.Errorf("head %+v, then %+v, %v", h, o.head, err)
	}
}
