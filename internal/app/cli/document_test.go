package cli

import (
	"bytes"
	"encoding"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/app/cli/look"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/judge/audit"
	"github.com/ibwarden/ibwarden/internal/judge/shadow"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// documents are what commands print with --json, and where that is described:
// sections of files in docs, "file.md: heading".
var documents = []struct {
	command  string
	document any
	sections []string
}{
	{"run", document{}, []string{"json.md: `ibwarden run`", "json.md: `ibwarden prove`"}},
	{"prove", proveReport{}, []string{"json.md: `ibwarden prove`", "json.md: What becomes of a packet"}},
	{"trace", look.TraceReport{}, []string{"json.md: `ibwarden trace`"}},
	{"device get", look.Document{}, []string{"json.md: `ibwarden device get`"}},
	{"snapshot", snapshotReport{}, []string{"json.md: `ibwarden snapshot`"}},
	{"audit", audit.Report{}, []string{"audit.md: JSON"}},
	{"show shadow", shadow.Summary{}, []string{"json.md: `ibwarden show shadow`"}},
	{"doctor", look.DoctorReport{}, []string{"json.md: `ibwarden doctor`"}},
	{"migrate opensm", Document{}, []string{"json.md: `ibwarden migrate opensm`", "json.md: `ibwarden plan`"}},
	{"plan", planDocument{}, []string{"json.md: `ibwarden plan`"}},
	{"apply", applyDocument{}, []string{"json.md: `ibwarden plan`", "json.md: `ibwarden apply`", "json.md: `ibwarden prove`"}},
}

const common = "json.md: Common fields"

// quoted are the words within `code` of a section.
var (
	code = regexp.MustCompile("`[^`]+`")
	word = regexp.MustCompile("[a-z][a-z0-9_-]*")
)

// described are the names that a section of a document speaks of.
func described(t *testing.T, section string) map[string]bool {
	t.Helper()
	file, heading, _ := strings.Cut(section, ": ")
	text, err := os.ReadFile("../../../docs/" + file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut("\n"+string(text), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("docs/%s has no section %q", file, heading)
	}
	body, _, _ := strings.Cut(rest, "\n## ")
	out := map[string]bool{}
	for _, c := range code.FindAllString(body, -1) {
		for _, w := range word.FindAllString(c, -1) {
			out[w] = true
		}
	}
	return out
}

// fields calls yield for each field name that a value of a type may have in
// JSON, with the way to it.
func fields(of reflect.Type, way string, seen []reflect.Type, yield func(way, name string)) {
	text, own := reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[json.Marshaler]()
	switch {
	case of.Implements(text) || of.Implements(own) || slices.Contains(seen, of):
		return
	case slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map}, of.Kind()):
		fields(of.Elem(), way, seen, yield)
		return
	case of.Kind() != reflect.Struct:
		return
	}
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case f.Anonymous && name == "":
			fields(f.Type, way, append(seen, of), yield)
		case !f.IsExported():
		default:
			if name == "" {
				name = f.Name // as encoding/json prints it: nobody wants that
			}
			yield(way, name)
			fields(f.Type, way+name+".", append(seen, of), yield)
		}
	}
}

// namesFor are those that the sections of a command and the common one speak of.
func namesFor(t *testing.T, sections []string) map[string]bool {
	t.Helper()
	names := described(t, common)
	for _, s := range sections {
		for name := range described(t, s) {
			names[name] = true
		}
	}
	return names
}

// Every field that a command may print is described where docs/json.md says.
func TestEveryFieldIsDescribed(t *testing.T) {
	for _, d := range documents {
		names, n := namesFor(t, d.sections), 0
		fields(reflect.TypeOf(d.document), "", nil, func(way, name string) {
			n++
			if !names[name] {
				t.Errorf("%s --json prints %s%s, which %v do not describe", d.command, way, name, d.sections)
			}
		})
		if n < 5 {
			t.Errorf("%s: only %d fields", d.command, n)
		}
	}
}

// What commands do print are these documents: each name in one is described.
func TestEveryPrintedNameIsDescribed(t *testing.T) {
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte("version: 1\ndescriptions: trusted\n"+
		"partitions:\n  - {name: red, pkey: 0x0010, members: {full: [\"red-*\"]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	arguments := map[string][]string{
		"run":            {"--once", "--policy", policy},
		"prove":          {"--policy", policy},
		"trace":          {"red-1", "red-4", "--packet"},
		"snapshot":       {"-o", filepath.Join(dir, "now.snap")},
		"audit":          {"--policy", policy},
		"show shadow":    {"--data", kept(t, "host-1")},
		"doctor":         {"--fabric", "sim"},
		"migrate opensm": {"../../../examples/opensm", "--fabric", "sim"},
		"plan":           {"--policy", policy},
		"device get":     {"red-1", "PortInfo"},
		"apply":          {"--policy", policy, "--yes", "--journal", filepath.Join(dir, "journal")},
	}
	for _, d := range documents {
		names := namesFor(t, d.sections)
		args, known := arguments[d.command]
		if !known {
			t.Fatalf("%s: nothing to run", d.command)
		}
		var out, complaints bytes.Buffer
		if status := Main(append(append(strings.Fields(d.command), "--json"), args...), &out, &complaints); status > 1 {
			t.Fatalf("%s: status %d: %s", d.command, status, complaints.String())
		}
		var printed map[string]any
		if err := json.Unmarshal(out.Bytes(), &printed); err != nil {
			t.Fatalf("%s: %v in %q", d.command, err, out.String())
		}
		n := 0
		walk(printed, func(name string) {
			if n++; !names[name] {
				t.Errorf("%s --json prints %s, which %v do not describe", d.command, name, d.sections)
			}
		})
		if n < 5 {
			t.Errorf("%s: only %d names", d.command, n)
		}
	}
}

// walk calls yield for every name in a document.
func walk(v any, yield func(name string)) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			walk(x, yield)
		}
	case map[string]any:
		for name, x := range v {
			yield(name)
			walk(x, yield)
		}
	}
}

// So is every column of show and devices, each with its table.
func TestEveryColumnIsDescribed(t *testing.T) {
	check := func(section, name string, rows terminal.Table) {
		t.Helper()
		var b bytes.Buffer
		if err := rows.Print(&b, "", false); err != nil {
			t.Fatal(err)
		}
		names := described(t, section)
		if !names[name] {
			t.Errorf("%s does not speak of %q", section, name)
		}
		heading, _, _ := strings.Cut(b.String(), "\n")
		for _, column := range regexp.MustCompile(`\S+( \S+)*`).FindAllString(heading, -1) {
			if c := strings.ReplaceAll(strings.ToLower(column), " ", "_"); !names[c] {
				t.Errorf("%s does not describe %s of %s", section, c, name)
			}
		}
	}
	for _, v := range cliViews {
		check("json.md: `ibwarden show`", v.name, v.rows(observed.NewFabric()))
	}
	for _, name := range []string{"index", "pkey"} { // of an entry in pkeys
		if !described(t, "json.md: `ibwarden show`")[name] {
			t.Errorf("show pkeys: %s is not described", name)
		}
	}
	check("json.md: `ibwarden show adapters`", "ports", terminal.Devices(nil))
}
