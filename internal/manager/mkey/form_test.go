package mkey

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestBadBooks: a book in which one value cannot be is refused with the reason, and the book that there
// was stays; its version does too.
func TestBadBooks(t *testing.T) {
	text := func(change ...string) string {
		good := `{"version":1,"used":[{"node_guid":"0x1","port_guid":"0x2","generation":4},{"node_guid":"0x3","port_guid":"0x4","generation":1}],` +
			`"ports":[{"node_guid":"0x1","port_guid":"0x2","current":3,"next":4,"behind":["0x0000000000000009:7"]},{"node_guid":"0x3","port_guid":"0x4","current":1,"behind":["0x0000000000000009:7/1","self"]}]}`
		return strings.NewReplacer(change...).Replace(good)
	}
	var b Book
	if err := json.Unmarshal([]byte(text()), &b); err != nil {
		t.Fatal(err)
	}
	entries, version := fmt.Sprint(flat(&b)), b.Version()
	if len(b.Entries()) != 2 {
		t.Fatal(entries)
	}
	many := make([]string, placesPerEntry+1)
	for i := range many {
		many[i] = fmt.Sprintf(`"0x%016x:1"`, i+0x100)
	}
	for _, x := range []struct {
		change []string
		want   string // in the error; "" for none
	}{
		{nil, ""},
		{[]string{`"next":4`, `"next":5`}, "port 0x2: " + errBook.Error()},
		{[]string{`"current":3,"next":4`, `"current":5`}, "port 0x2: " + errBook.Error()},
		{[]string{`"current":3,"next":4,`, ``}, "port 0x2: " + errBook.Error()},
		{[]string{`["0x0000000000000009:7"]`, `[]`}, "port 0x2: " + errBook.Error()},
		{[]string{`["0x0000000000000009:7"]`, "[" + strings.Join(many, ",") + "]"}, "port 0x2: " + errBook.Error()},
		{[]string{`["0x0000000000000009:7"]`, "[" + strings.Join(many[1:], ",") + "]"}, ""},
		{[]string{`9:7/1`, `9:7`}, `place "0x0000000000000009:7" has two ports of rank 0`},
		{[]string{`9:7/1`, `9:7/0`}, "want self, or a node GUID, a colon and a port number"},
		{[]string{`9:7/1`, `9:7/x`}, "want self, or a node GUID, a colon and a port number"},
		{[]string{`9:7/1`, fmt.Sprintf(`9:7/%d`, entriesPerPlace-1)}, ""},
		{[]string{`9:7/1`, fmt.Sprintf(`9:7/%d`, entriesPerPlace)}, "want self, or a node GUID, a colon and a port number"},
		{[]string{`0x0000000000000009:7"`, `0x0000000000000000:7"`}, `place "0x0000000000000000:7": want self`},
		{[]string{`0x0000000000000009:7"`, `leaf:7"`}, `place "leaf:7": want self`},
		{[]string{`"self"`, `"self/1"`}, ""},
		{[]string{`"used":[{"node_guid":"0x1"`, `"used":[{"node_guid":"x"`}, "GUID"},
		{[]string{`"port_guid":"0x2","generation"`, `"port_guid":"y","generation"`}, "GUID"},
		{[]string{`"ports":[{"node_guid":"0x1"`, `"ports":[{"node_guid":"x"`}, "GUID"},
		{[]string{`"version":1`, `"version":2`}, "version"},
		{[]string{`"generation":4`, `"generation":"4"`}, "cannot unmarshal"},
	} {
		again := b
		err := json.Unmarshal([]byte(text(x.change...)), &again)
		if (err != nil) != (x.want != "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q: %v, want %q", strings.Join(x.change, " -> ")[:min(80, len(strings.Join(x.change, " -> ")))], err, x.want)
		}
		if err != nil && (fmt.Sprint(flat(&again)) != entries || again.Version() != version) {
			t.Errorf("%q: the book is %v at %d then", x.change, flat(&again), again.Version())
		} else if err == nil && again.Version() != version+1 {
			t.Errorf("%q: read, and its version is %d, want %d", x.change, again.Version(), version+1)
		}
	}
}
