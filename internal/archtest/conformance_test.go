package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// ruleGroups is how many rules each group of the checklist has.
var ruleGroups = map[string]int{
	"PK": 36, "QP": 28, "SW": 30, "QK": 25, "VB": 13, "AT": 8, "NI": 27, "SI": 37, "GI": 11, "PI": 117, "PT": 19,
	"SV": 9, "VA": 11, "LF": 7, "RF": 6, "MF": 11, "SM": 19, "NO": 5, "VD": 15, "LE": 6, "MK": 7,
}

var (
	ruleID   = regexp.MustCompile(`^([A-Z]{2})-(\d{2,3})$`)
	codeSpan = regexp.MustCompile("`([^`]+)`")
)

// row is one line of docs/conformance.md: id, rule, source, where, test.
type row struct {
	line  int
	cells []string
}

func conformanceRows(t *testing.T) []row {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	var out []row
	for i, line := range strings.Split(string(data), "\n") {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if ruleID.MatchString(cells[0]) {
			out = append(out, row{i + 1, cells})
		}
	}
	if len(out) < 50 {
		t.Fatalf("docs/conformance.md has %d rows: not read right, or nearly empty", len(out))
	}
	return out
}

// TestConformanceRows checks that every row is about a rule that exists, once,
// and names packages and tests that exist.
func TestConformanceRows(t *testing.T) {
	seen := map[string]int{}
	tests := map[string]string{} // package to the text of its tests
	for _, r := range conformanceRows(t) {
		if len(r.cells) != 5 {
			t.Errorf("line %d: %d cells, want id, rule, source, where, test", r.line, len(r.cells))
			continue
		}
		id := ruleID.FindStringSubmatch(r.cells[0])
		if n, _ := strconv.Atoi(id[2]); n < 1 || n > ruleGroups[id[1]] {
			t.Errorf("line %d: there is no rule %s", r.line, r.cells[0])
		}
		if first := seen[r.cells[0]]; first != 0 {
			t.Errorf("line %d: %s has a row on line %d already", r.line, r.cells[0], first)
		}
		seen[r.cells[0]] = r.line
		for i, what := range []string{"rule", "source", "place"} {
			if len(r.cells[i+1]) < 3 {
				t.Errorf("line %d: %s has no %s", r.line, r.cells[0], what)
			}
		}
		checkTests(t, r, tests)
	}
}

// checkTests looks for each test of a row, written `package TestName` or
// `package TestName/part`; the part must stand in the package's tests as text.
func checkTests(t *testing.T, r row, tests map[string]string) {
	t.Helper()
	spans := codeSpan.FindAllStringSubmatch(r.cells[4], -1)
	if len(spans) == 0 {
		t.Errorf("line %d: %s names no test", r.line, r.cells[0])
	}
	for _, span := range spans {
		pkg, name, ok := strings.Cut(span[1], " ")
		name, part, _ := strings.Cut(name, "/")
		if !ok || !strings.HasPrefix(name, "Test") {
			t.Errorf("line %d: %q, want `package TestName`", r.line, span[1])
			continue
		}
		if _, read := tests[pkg]; !read {
			tests[pkg] = testsOf(t, pkg)
		}
		if !strings.Contains(tests[pkg], "func "+name+"(t *testing.T)") {
			t.Errorf("line %d: %s: no %s in %s", r.line, r.cells[0], name, pkg)
		} else if part != "" && !strings.Contains(tests[pkg], part) {
			t.Errorf("line %d: %s: nothing in the tests of %s is called %q", r.line, r.cells[0], pkg, part)
		}
	}
}

func testsOf(t *testing.T, pkg string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pkg), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(data)
	}
	return b.String()
}
