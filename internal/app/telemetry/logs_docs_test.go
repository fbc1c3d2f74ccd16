package telemetry

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/api/listen"
)

// page is made of the events of logs_test.go, which has one of each type, and of
// meanings.
const (
	begin = "<!-- events -->\n"
	end   = "<!-- end of events -->\n"
)

// TestDocs: docs/logs.md lists every event id with its levels and fields.
// IBWARDEN_UPDATE=1 writes it.
func TestDocs(t *testing.T) {
	type row struct{ levels, fields []string }
	rows := map[string]*row{
		idRepeated: {nil, []string{"of", "times", "within"}},
		idProgress: {[]string{"info", "debug"}, []string{"phase", "answered"}},
		AuditHead:  {[]string{"info"}, []string{"head"}},

		ReloadFailed: {[]string{"error"}, []string{"what", "reason"}},

		listen.SessionBegun:  {[]string{"info"}, []string{"caller", "tenant", "by", "from", "until"}},
		listen.LoginRefused:  {[]string{"warn"}, []string{"from", "reason"}},
		listen.CallerUnknown: {[]string{"warn"}, []string{"from", "reason"}},

		listen.SessionRevoked: {[]string{"warn"}, []string{"caller", "tenant", "reason"}},
		listen.ProviderAway:   {[]string{"warn"}, []string{"issuer", "reason"}},
		listen.ProviderBack:   {[]string{"info"}, []string{"issuer"}},
	}
	for _, x := range events {
		d := Describe(x.Event)
		r := rows[d.Kind]
		if r == nil {
			r = &row{}
			rows[d.Kind] = r
		}
		if level := strings.ToLower(d.Level.String()); !slices.Contains(r.levels, level) {
			r.levels = append(r.levels, level)
		}
		for _, a := range d.Attrs {
			if !slices.Contains(r.fields, a.Key) {
				r.fields = append(r.fields, a.Key)
			}
		}
	}
	for id := range meanings {
		if rows[id] == nil {
			t.Errorf("no event of logs_test.go has the id %s", id)
		}
	}
	var table strings.Builder
	table.WriteString("\n| id | level | fields | meaning |\n|---|---|---|---|\n")
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		if meanings[id] == "" {
			t.Errorf("%s has no meaning: add it to ids.go", id)
		}
		fields := ""
		if f := rows[id].fields; len(f) > 0 {
			fields = "`" + strings.Join(f, "`, `") + "`"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", id, strings.Join(rows[id].levels, ", "), fields, meanings[id])
	}
	table.WriteString("\n")
	path := filepath.Join("..", "..", "..", "docs", "logs.md")
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(old), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place between %q and %q", path, begin, end)
	}
	if want := before + begin + table.String() + end + after; want != string(old) {
		if os.Getenv("IBWARDEN_UPDATE") == "1" {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		t.Errorf("%s is out of date: IBWARDEN_UPDATE=1 go test ./internal/app/telemetry -run TestDocs", path)
	}
}
