package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMutantsApply checks that every mutant of this repository is where it says,
// in code that the row of its rule names.
func TestMutantsApply(t *testing.T) {
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	c, err := readCatalogue(root)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := readRows(root)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSources(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range check(s, c, rows) {
		t.Error(fault)
	}
}

// TestScoreIsOfTheseMutants: the score in docs/dev/conformance.md was made with the rows
// and mutants that there are now; make mutate makes it.
func TestScoreIsOfTheseMutants(t *testing.T) {
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	c, err := readCatalogue(root)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := readRows(root)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, conformance))
	if err != nil {
		t.Fatal(err)
	}
	_, scored, _ := strings.Cut(string(text), scoreBegin)
	results := make([]*result, len(c.mutants))
	for i, m := range c.mutants {
		results[i] = &result{mutant: m, caughtBy: "not looked at here"}
	}
	was := readPrevious(scored, nil).scores
	groups, now := scores(rows, results)
	for _, g := range groups {
		s := was[g]
		if s == nil {
			t.Errorf("%s has no score", g)
		} else if s.rules != now[g].rules || s.broken != now[g].broken || s.mutants != now[g].mutants {
			t.Errorf("%s has %d rules, %d of them with a break, and %d breaks; the score says %d, %d and %d: go run ./test/mutate -write -rule %s",
				g, now[g].rules, now[g].broken, now[g].mutants, s.rules, s.broken, s.mutants, g)
		}
	}
}

// A module of two packages, one with code that is broken, one with tests.
var small = map[string]string{
	"go.mod": "module small.test\n\ngo 1.26\n",
	"code/code.go": `// Package code has a function of every form.
package code

import "strings"

// Limit is a constant, Names a variable.
const Limit = 4

var Names, other = []string{"a", "b"}, 1

type pile[K comparable] struct{ in map[K]int }

func (p *pile[K]) Put(k K, _ int) (n int) { p.in[k]++; return p.in[k] }

func (pile[K]) Kind() string { return "pile" }

func Join(sep string, words ...string) string {
	return strings.Join(words, sep)
}

func First[T any](in []T, _ bool) (T, bool) {
	if len(in) == 0 {
		var zero T
		return zero, false
	}
	return in[0], true
}

func Count(to *int) {
	for range Limit {
		*to += other
	}
}

func Skip(int, string) bool { return true }
`,
	"code/code_test.go": `package code

import "testing"

func TestPile(t *testing.T) {
	p := &pile[string]{in: map[string]int{}}
	p.Put("x", 0)
	if p.Put("x", 0) != 2 {
		t.Error("not two")
	}
	if p.Kind() != "pile" {
		t.Error("no pile")
	}
}

func TestWords(t *testing.T) {
	t.Run("XX-02 joined", func(t *testing.T) {
		if Join("-", Names...) != "a-b" {
			t.Error("not joined")
		}
	})
	t.Run("XX-03", func(t *testing.T) {
		if v, ok := First(Names, true); v != "a" || !ok {
			t.Error("not the first")
		}
	})
	t.Run("XX-04", func(t *testing.T) {
		if !Skip(1, "") {
			t.Error("not skipped")
		}
	})
}

func TestCount(t *testing.T) {
	n := 0
	if Count(&n); n != 4 {
		t.Error("not four")
	}
}

func TestNothing(t *testing.T) { _ = Limit }

func TestSkipped(t *testing.T) { t.Skip("not here") }

func TestFails(t *testing.T) { t.Error("always") }
`,
	"docs/dev/conformance.md": "" +
		"| XX-01 | a | b | `code/code.go` `Put` | `code TestPile` |\n" +
		"| XX-02 | a | b | `code/code.go` | `code TestWords/XX-02` |\n" +
		"| XX-03 | a | b | `code/code.go` | `code TestWords/XX-03` |\n" +
		"| XX-04 | a | b | `code/code.go` | `code TestWords/XX-03`, `code TestWords/XX-04` |\n" +
		"| XX-05 | a | b | `code/code.go` | `code TestCount` |\n" +
		"| XX-06 | a | b | `code/code.go` | `code TestNothing` |\n" +
		scoreBegin + "\nold\n" + scoreEnd + "\nthe end\n",
	"docs/dev/routing-rules.md": "| XX-07 | a | b | `code/code.go` | `code TestSkipped`, `code TestFails` |\n",
	"docs/dev/service-rules.md": "| XX-08 | a | b | `code/code.go` | `code TestPile` |\n",
	mutantsDir + "/XX.txt": `# Comments and empty lines say nothing.

XX-01 counts twice
@ code pile.Put
- p.in[k]++
+ p.in[k] += 2

XX-01 is no pile
@ code pile.Kind
- "pile"
+ "heap"

XX-02 the separator is lost
@ code Join
- strings.Join(words,
-   sep)
+ strings.Join(words, "")

XX-02 a name is another
@ code Names
- "b"
+ "c"

XX-03 the last, not the first
@ code First #1 alone
- in[0]
+ in[len(in)-1]

XX-04 not skipped
@ code Skip
- true
+ false

XX-05 one more
@ code Limit
- 4
+ 5

XX-05 counts another way, in two places
@ code Count
- other
+ other + 0
@ code other
- 1
+ 7

XX-06 nobody looks
@ code Count
- range Limit
+ range 3

XX-07 no test says anything
@ code Count
- range Limit
+ range 3

XX-08 is no pile, by the rule of another page
@ code pile.Kind
- "pile"
+ ""
`,
}

func writeSmall(t *testing.T, replace map[string]string) string {
	t.Helper()
	files := maps.Clone(small)
	maps.Copy(files, replace)
	return writeFiles(t, files)
}

func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// open reads the small module and makes its lab.
func open(t *testing.T, root string) (*lab, *catalogue, []row, error) {
	t.Helper()
	c, err := readCatalogue(root)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := readRows(root)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSources(root)
	if err != nil {
		t.Fatal(err)
	}
	if faults := check(s, c, rows); len(faults) > 0 {
		return nil, c, rows, faults[0]
	}
	l, err := newLab(root, t.TempDir(), s, c.mutants)
	return l, c, rows, err
}

// TestSmallModule breaks functions of every form, a variable and a constant.
func TestSmallModule(t *testing.T) {
	root := writeSmall(t, nil)
	l, c, rows, err := open(t, root)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"XX-01": "code TestPile", "XX-01/2": "code TestPile",
		"XX-02": "code TestWords/XX-02", "XX-02/2": "code TestWords/XX-02", "XX-03": "code TestWords/XX-03",
		"XX-04": "code TestWords/XX-04", "XX-05": "code TestCount", "XX-05/2": "code TestCount",
		"XX-06": "", "XX-07": "error", "XX-08": "code TestPile",
	}
	results := tryAll(l, c.mutants, rows, options{workers: 2})
	for i, r := range results {
		got := r.caughtBy
		if r.err != nil {
			got = "error"
			if want[r.mutant.name] != "error" {
				t.Log(r.err)
			}
		}
		if got != want[r.mutant.name] {
			t.Errorf("%s: caught by %q, want %q", r.mutant.name, got, want[r.mutant.name])
		}
		if r.mutant.name == "XX-06" && r.reached {
			t.Error("XX-06: no test comes to Count")
		}
		if r.mutant.name == "XX-03" && !r.reached {
			t.Error("XX-03: a test comes to First")
		}
		results[i].err = nil
	}
	written := func(old string) string {
		if old != "old\n" {
			t.Errorf("the old score is %q", old)
		}
		return page(rows, c, results, old)
	}
	if err := writePage(root, written); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, conformance))
	if err != nil {
		t.Fatal(err)
	}
	if known, err := knownSurvivors(root); err != nil || len(known) != 2 || !known["XX-06"] || !known["XX-07"] {
		t.Errorf("known survivors: %v, %v", known, err)
	}
	for _, line := range []string{"| XX | 8 | 8 | 6 | 11 | 9 |", "- XX-06: nobody looks", "Every rule has a break.", scoreEnd, "the end"} {
		if !strings.Contains(string(text), line+"\n") {
			t.Errorf("the page has no line %q:\n%s", line, text)
		}
	}
}

// TestScoreOfAGroup: what was not tried stays as it was.
func TestScoreOfAGroup(t *testing.T) {
	rows := []row{{rule: "AA-01"}, {rule: "AA-02"}, {rule: "BB-01"}}
	mutants := []*mutant{{rule: "AA-01", name: "AA-01", what: "one"}, {rule: "AA-02", name: "AA-02", what: "two"}, {rule: "BB-01", name: "BB-01", what: "three"}}
	c := &catalogue{mutants: mutants}
	first := page(rows, c, []*result{{mutant: mutants[0], caughtBy: "x"}, {mutant: mutants[1]}, {mutant: mutants[2]}}, "")
	again := page(rows, c, []*result{{mutant: mutants[2], caughtBy: "x"}}, first)
	for _, line := range []string{"| AA | 2 | 2 | 1 | 2 | 1 |", "| BB | 1 | 1 | 1 | 1 | 1 |", "| all | 3 | 3 | 2 | 3 | 2 |", "- AA-02: two"} {
		if !strings.Contains(again, line+"\n") {
			t.Errorf("no line %q in\n%s", line, again)
		}
	}
	if strings.Contains(again, "three") || !strings.Contains(first, "- BB-01: three\n") {
		t.Errorf("BB-01 is caught now:\n%s\nand was not before:\n%s", again, first)
	}
}

// TestFaults: a mutant that is not what it seems is told of by its name.
func TestFaults(t *testing.T) {
	for name, c := range map[string]struct{ mutants, want string }{
		"gone":           {"XX-01 x\n@ code pile.Put\n- nowhere\n+ x\n", `XX.txt:2: XX-01: code pile.Put: "nowhere" occurs 0 times there`},
		"twice":          {"XX-01 x\n@ code pile.Put\n- p.in\n+ x\n", "say which by #1 to #2"},
		"no function":    {"XX-01 x\n@ code Gone\n- a\n+ b\n", "no Gone in code"},
		"unchanged":      {"XX-01 x\n@ code pile.Put\n- p.in[k]++\n+ p.in[k]++\n", "stays as it is"},
		"empty":          {"XX-01 x\n@ code pile.Put\n", "nothing changes"},
		"no row":         {"XX-99 x\n@ code pile.Put\n- p.in[k]++\n+ \n", "XX-99 has no row"},
		"has one":        {"XX-01 none: so\nXX-01 x\n@ code pile.Put\n- p.in[k]++\n+ \n", "XX-01 is said to be without"},
		"does not build": {"XX-01 x\n@ code pile.Put\n- p.in[k]++\n+ p.gone()\n", "XX.txt:2"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, _, err := open(t, writeSmall(t, map[string]string{mutantsDir + "/XX.txt": c.mutants}))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	for _, text := range []string{"@ code Put\n", "XX-01 x\n- a\n", "XX-01 x\n@ code Put\n+ a\n", "YY-01 x\n", "nonsense\n", "XX-01 x\n@ code\n"} {
		root := writeSmall(t, map[string]string{mutantsDir + "/XX.txt": text})
		if _, err := readCatalogue(root); err == nil || !strings.Contains(err.Error(), "XX.txt:") {
			t.Errorf("%q: %v, want an error that names the line", text, err)
		}
	}
}

// TestShares: the shares of all seeds together are everything.
func TestShares(t *testing.T) {
	s, err := newSources(writeSmall(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	c, err := readCatalogue(s.root)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for seed := range 3 {
		for _, m := range share(s, c.mutants, 3, seed) {
			seen[m.name]++
		}
	}
	for _, m := range c.mutants {
		if seen[m.name] != 1 {
			t.Errorf("%s is in %d shares", m.name, seen[m.name])
		}
	}
	own := fmt.Sprint(share(s, c.mutants, 3, -1))
	if own != fmt.Sprint(share(s, c.mutants, 3, -1)) {
		t.Error("the same code has another share the second time")
	}
}
