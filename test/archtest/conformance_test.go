package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// ruleGroups is how many rules each group of the checklist has.
var ruleGroups = map[string]int{
	"PK": 36, "QP": 28, "SW": 32, "QK": 25, "VB": 15, "AT": 8, "NI": 27, "SI": 39, "GI": 11, "PI": 119, "PT": 19,
	"SV": 9, "VA": 12, "LF": 7, "RF": 6, "MF": 11, "SM": 19, "NO": 6, "VD": 16, "LE": 7, "MK": 8,
}

var (
	ruleID   = regexp.MustCompile(`^([A-Z]{2})-(\d{2,3})$`)
	codeSpan = regexp.MustCompile("`([^`]+)`")
	// unshown is a line of the closing list: "- QP, 3: 01, 04-05; reason".
	unshown = regexp.MustCompile(`^- ([A-Z]{2}), (\d+): ([\d, -]+); .`)
)

// row is one line of docs/dev/conformance.md, or of a page in its form: id, rule, source, where, test.
type row struct {
	line  int
	cells []string
}

func conformanceLines(t *testing.T) []string { return pageLines(t, "conformance.md") }

func pageLines(t *testing.T, page string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "dev", page))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(data), "\n")
}

func conformanceRows(t *testing.T) []row {
	t.Helper()
	out := pageRows(t, "conformance.md")
	if len(out) < 50 {
		t.Fatalf("docs/dev/conformance.md has %d rows: not read right, or nearly empty", len(out))
	}
	return out
}

func pageRows(t *testing.T, page string) []row {
	t.Helper()
	var out []row
	for i, line := range pageLines(t, page) {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if ruleID.MatchString(cells[0]) {
			out = append(out, row{i + 1, cells})
		}
	}
	return out
}

// TestConformanceRows checks that every row is about a rule that exists, once,
// and names packages and tests that exist.
func TestConformanceRows(t *testing.T) {
	rows := conformanceRows(t)
	for _, r := range rows {
		id := ruleID.FindStringSubmatch(r.cells[0])
		if n, _ := strconv.Atoi(id[2]); n < 1 || n > ruleGroups[id[1]] {
			t.Errorf("line %d: there is no rule %s", r.line, r.cells[0])
		}
	}
	checkRows(t, rows)
}

// TestOwnRules does the same for the rules that are the program's own: no page has a group
// of another one.
func TestOwnRules(t *testing.T) {
	groups := map[string]string{}
	for _, page := range []string{"routing-rules.md", "service-rules.md"} {
		t.Run(page, func(t *testing.T) {
			rows := pageRows(t, page)
			if len(rows) == 0 {
				t.Fatal("no rows: not read right")
			}
			for _, r := range rows {
				id := ruleID.FindStringSubmatch(r.cells[0])
				if ruleGroups[id[1]] != 0 || groups[id[1]] != "" && groups[id[1]] != page {
					t.Errorf("line %d: another page has rules of the group %s", r.line, id[1])
				}
				groups[id[1]] = page
			}
			checkRows(t, rows)
		})
	}
}

// checkRows checks the cells of rows.
func checkRows(t *testing.T, rows []row) {
	t.Helper()
	seen := map[string]int{}
	tests := map[string]string{} // package to the text of its tests
	for _, r := range rows {
		if len(r.cells) != 5 {
			t.Errorf("line %d: %d cells, want id, rule, source, where, test", r.line, len(r.cells))
			continue
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
		checkWhere(t, r)
		checkTests(t, r, tests)
	}
}

// TestConformanceComplete checks that every rule has a row or stands in the
// closing list of those that are not shown yet, and not in both.
func TestConformanceComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range conformanceRows(t) {
		seen[r.cells[0]] = true
	}
	for i, line := range conformanceLines(t) {
		m := unshown.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		count := 0
		for _, span := range strings.Split(m[3], ", ") {
			first, last, isRange := strings.Cut(span, "-")
			if !isRange {
				last = first
			}
			from, err1 := strconv.Atoi(first)
			to, err2 := strconv.Atoi(last)
			if err1 != nil || err2 != nil || from > to || to > ruleGroups[m[1]] {
				t.Fatalf("line %d: %q are no rules of %s", i+1, span, m[1])
			}
			for n := from; n <= to; n++ {
				count++
				if id := ruleName(m[1], n); seen[id] {
					t.Errorf("line %d: %s is listed already", i+1, id)
				} else {
					seen[id] = true
				}
			}
		}
		if m[2] != strconv.Itoa(count) {
			t.Errorf("line %d: %d rules, the line says %s", i+1, count, m[2])
		}
	}
	for group, rules := range ruleGroups {
		for n := 1; n <= rules; n++ {
			if id := ruleName(group, n); !seen[id] {
				t.Errorf("%s has no row and is not in the closing list", id)
			}
		}
	}
}

// onlyUnitTests bounds the list of rules that nothing shows but unit tests: make it
// smaller with the list.
const onlyUnitTests = 8

var (
	// runnable is what a reader can run, or sees at work in the whole program.
	runnable = regexp.MustCompile("`(scenarios/|internal/app/cli (TestScripts|TestSM17Priority)\\b|simfabric Example|(test/(simtest|ibsimtest|umadtest)|internal/simserve/ibsimd) Test)")
	// unitTestsOnly is an entry of the list: "- QP-13: reason".
	unitTestsOnly = regexp.MustCompile(`^- ([A-Z]{2}-\d{2,3}): (.{20,})$`)
)

// TestRulesCanBeSeen checks that every row names something to run beside unit tests,
// or stands in the list of those that do not, and not both.
func TestRulesCanBeSeen(t *testing.T) {
	listed, inList := map[string]int{}, false
	for i, line := range conformanceLines(t) {
		if strings.HasPrefix(line, "## ") {
			inList = line == "## Shown by unit tests only"
			continue
		}
		if !inList || !strings.HasPrefix(line, "- ") {
			continue
		}
		m := unitTestsOnly.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("line %d: %q, want \"- RULE: reason\"", i+1, line)
		} else if listed[m[1]] != 0 {
			t.Errorf("line %d: %s is listed on line %d already", i+1, m[1], listed[m[1]])
		} else {
			listed[m[1]] = i + 1
		}
	}
	rules := 0
	for _, r := range conformanceRows(t) {
		rule, seen := r.cells[0], runnable.MatchString(r.cells[4])
		rules++
		if at := listed[rule]; seen && at != 0 {
			t.Errorf("line %d: %s is listed, and line %d names something to run", at, rule, r.line)
		} else if !seen && at == 0 {
			t.Errorf("line %d: %s names no story, script, example or test of the whole program; want one, or a reason in the list", r.line, rule)
		}
		if listed[rule] != 0 {
			delete(listed, rule)
			rules--
		}
	}
	for rule, line := range listed {
		t.Errorf("line %d: %s has no row", line, rule)
	}
	alone := len(conformanceRows(t)) - rules
	t.Logf("%d rules are shown by something to run, %d by unit tests only", rules, alone)
	if alone != onlyUnitTests {
		t.Errorf("%d rules are shown by unit tests only, want %d: when there are fewer, say so here", alone, onlyUnitTests)
	}
}

func ruleName(group string, n int) string { return fmt.Sprintf("%s-%02d", group, n) }

// checkWhere looks for the places of a row: a code span is a file or package,
// or a name that stands in the file or package before it.
func checkWhere(t *testing.T, r row) {
	t.Helper()
	source := ""
	for _, span := range codeSpan.FindAllStringSubmatch(r.cells[3], -1) {
		if strings.Contains(span[1], "/") {
			source = sourceOf(filepath.Join("..", "..", filepath.FromSlash(span[1])))
			if source == "" {
				t.Errorf("line %d: %s: there is no %s", r.line, r.cells[0], span[1])
			}
		} else if !hasWord(source, "", span[1]) {
			t.Errorf("line %d: %s: no %s there", r.line, r.cells[0], span[1])
		}
	}
	if source == "" {
		t.Errorf("line %d: %s names no place", r.line, r.cells[0])
	}
}

// hasWord reports whether word stands in text where no word goes on behind it,
// nor before it; with before, one of these characters stands before it. (A
// regular expression for each of some thousand words took most of the time.)
func hasWord(text, before, word string) bool {
	inWord := func(b byte) bool {
		return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
	}
	ends := inWord(word[len(word)-1])
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		i += from
		from = i + 1
		behind := i + len(word)
		if behind < len(text) && ends && inWord(text[behind]) {
			continue
		}
		if before == "" && (i == 0 || !inWord(text[i-1])) || before != "" && i > 0 && strings.IndexByte(before, text[i-1]) >= 0 {
			return true
		}
	}
}

// sourceOf is the text of a file, or of a package's files but its tests; empty
// when there is none.
func sourceOf(path string) string {
	if text, ok := sourceTexts[path]; ok {
		return text
	}
	files := []string{path}
	if filepath.Ext(path) != ".go" {
		files, _ = filepath.Glob(filepath.Join(path, "*.go")) // the pattern is well-formed
	}
	var b strings.Builder
	for _, f := range files {
		if data, err := os.ReadFile(f); err == nil && !strings.HasSuffix(f, "_test.go") {
			b.Write(data)
		}
	}
	sourceTexts[path] = b.String()
	return b.String()
}

// sourceTexts are those that sourceOf has read.
var sourceTexts = map[string]string{}

// checkStory looks for a scenario script, which internal/lab/scenario runs, and in it
// for a section about the rule.
func checkStory(t *testing.T, r row, path string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(path)))
	if err != nil {
		t.Errorf("line %d: %s: %v", r.line, r.cells[0], err)
		return
	}
	if !regexp.MustCompile(`(?m)^rule [^"]*\b` + r.cells[0] + `\b`).Match(data) {
		t.Errorf("line %d: %s: %s has no section about it", r.line, r.cells[0], path)
	}
}

// checkTests looks for each test of a row, written `package TestName`, `package
// TestName/part` or `package ExampleName`; the part must begin a string in the package's tests.
// A scenario script is named by its path.
func checkTests(t *testing.T, r row, tests map[string]string) {
	t.Helper()
	spans := codeSpan.FindAllStringSubmatch(r.cells[4], -1)
	if len(spans) == 0 {
		t.Errorf("line %d: %s names no test", r.line, r.cells[0])
	}
	for _, span := range spans {
		if strings.HasPrefix(span[1], "scenarios/") {
			checkStory(t, r, span[1])
			continue
		}
		pkg, name, ok := strings.Cut(span[1], " ")
		name, part, _ := strings.Cut(name, "/")
		head := "func " + name + "(t *testing.T)"
		if strings.HasPrefix(name, "Example") {
			head = "func " + name + "()"
		}
		if !ok || !strings.HasPrefix(name, "Test") && !strings.HasPrefix(name, "Example") {
			t.Errorf("line %d: %q, want `package TestName` or `package ExampleName`", r.line, span[1])
			continue
		}
		if _, read := tests[pkg]; !read {
			tests[pkg] = testsOf(t, pkg)
		}
		if !strings.Contains(tests[pkg], head) {
			t.Errorf("line %d: %s: no %s in %s", r.line, r.cells[0], name, pkg)
		} else if part != "" && isScript(pkg, name, part) {
			continue
		} else if part != "" && !hasWord(tests[pkg], "\"`/", part) {
			t.Errorf("line %d: %s: nothing in the tests of %s is called %q", r.line, r.cells[0], pkg, part)
		}
	}
}

// isScript reports whether the part of a test is a script of commands.
func isScript(pkg, name, part string) bool {
	_, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(pkg), "testdata", "script", part+".txtar"))
	return name == "TestScripts" && err == nil
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
