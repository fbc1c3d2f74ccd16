package terminal

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// What devices say of themselves reaches a terminal as text that steers nothing and
// shows what is there: no control character, of one byte or two, and none that turns
// the order of letters or hides some.
func TestPlain(t *testing.T) {
	for in, want := range map[any]string{
		"":                          "-",
		"rack 7":                    "rack 7",
		"Büro \u4e2d":               "Büro \u4e2d",
		"a\x1b[2Jb":                 "a?[2Jb",
		"a\u009b2Jb":                "a?2Jb", // CSI in one character
		"a\u202eb":                  "a?b",   // from right to left
		"red\u200b":                 "red?",  // of no width
		"a\u2028b":                  "a?b",
		"a\x7f\x00\nb\tc":           "a???b?c",
		7:                           "7",
		ib.PKey(0x8010):             "0x8010",
		ib.LID(3):                   "3",
		[2]int{1, 2}:                "[1 2]",
		struct{ A, B int }{1, 2}:    "{1 2}",
		ib.PortGUID(0x10):           "0x0000000000000010",
		any(nil):                    "-",
		[1]string{"only \x1b text"}: "[only ? text]",
	} {
		if got := Plain(in); got != want {
			t.Errorf("%q reads %q, want %q", in, got, want)
		}
	}
	if got := Plain([]string{"a", "b"}) + Plain([]ib.LID{1, 2}) + Plain([]string{}) + Plain([]int(nil)); got != "a b1 2--" {
		t.Errorf("lists read %q", got)
	}
}

func TestTablePrint(t *testing.T) {
	x := NewTable("name", "port_guid")
	x.Add("a\x1b", ib.PortGUID(1))
	x.Add("", nil)
	var text, document strings.Builder
	if err := x.Print(&text, "things", false); err != nil {
		t.Fatal(err)
	}
	if want := "NAME  PORT GUID\na?    0x0000000000000001\n-     -\n"; text.String() != want {
		t.Errorf("%q, want %q", text.String(), want)
	}
	if err := x.Print(&document, "things", true); err != nil {
		t.Fatal(err)
	}
	var got map[string][]map[string]any
	if err := json.Unmarshal([]byte(document.String()), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string][]map[string]any{"things": {{"name": "a\x1b", "port_guid": "0x0000000000000001"}, {"name": "", "port_guid": nil}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	document.Reset()
	if err := NewTable("name").Print(&document, "things", true); err != nil || !strings.Contains(document.String(), `"things": []`) {
		t.Errorf("no rows: %v, %s", err, document.String())
	}
	if Count(1, "fault") != "1 fault" || Count(0, "fault") != "0 faults" || Count(2, "fault") != "2 faults" || Count(2, "entry") != "2 entries" || Count(2, "key") != "2 keys" {
		t.Error("counts")
	}
}

// What was not read is not shown as empty, and what counts for nothing not at all.
func TestFabricTables(t *testing.T) {
	b := subnettest.New()
	sw := b.Switch(2, "switch")
	p, q := b.Host(sw, "a"), b.Host(sw, "b")
	subnettest.SetPKeysThrough(p, 0x8010, 0x0011)
	q.PKeys, q.PKeysRead = nil, nil
	b.Route()
	sw.Switch.Info.LinearFDBTop = 2
	show := func(x Table) string {
		var out strings.Builder
		if err := x.Print(&out, "", false); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for name, x := range map[string]struct{ got, want string }{
		"P_Keys: none of b, which was not read": {show(PKeys(b.Fabric)), `NODE    PORT  GUID                CAP  PKEYS
switch  0     0x0000000000001001  32   -
switch  1     -                   32   [0]0x8010 [1]0x0011
switch  2     -                   32   -
a       1     0x0000000000001011  32   [0]0x8010 [1]0x0011
`},
		"routes: none above LinearFDBTop": {show(Routes(b.Fabric)), `SWITCH  GUID                LID  PORT  TOWARDS
switch  0x0000000000001000  1    0     switch
switch  0x0000000000001000  2    1     a
`},
	} {
		if diff := cmp.Diff(x.want, x.got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
	if lids := show(LIDs(b.Fabric)); strings.Count(lids, "\n") != 4 {
		t.Errorf("LIDs of three end ports\n%s", lids)
	}
}
