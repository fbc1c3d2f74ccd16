package doctest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/ibwarden/ibwarden/internal/app/cli"
)

var (
	ruleOfCell  = regexp.MustCompile(`\b[A-Z]{2}-\d{2,3}\b`)
	ruleOfStory = regexp.MustCompile(`(?m)^\s*rule ((?:[A-Z]{2}-\d{2,3} )+)`)
	goTest      = regexp.MustCompile(`^([a-z][\w/]*) ((?:Test|Example)\w*)`)
)

// commandTree is made once: its hundreds of flags take a while.
var commandTree = sync.OnceValue(cli.Root)

// shortestReason is how many bytes a row that names nothing has to say why.
const shortestReason = 40

// seedsPage reads docs/dev/seeds.md: the rows of its tables, by the text that they are
// about.
func seedsPage(t *testing.T) (p *page, rows map[string][][]string) {
	t.Helper()
	rows = map[string][][]string{}
	text := ""
	for _, candidate := range pages(t) {
		if filepath.Base(candidate.name) == "seeds.md" {
			p = candidate
		}
	}
	if p == nil {
		t.Fatal("docs/dev/seeds.md is missing")
	}
	for i, line := range p.lines {
		if name, ok := strings.CutPrefix(line, "## "); ok {
			text = strings.Trim(name, "`")
		}
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| heading |") || text == "" {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 3 {
			t.Errorf("%s:%d: %d cells, want heading, what it lets a user do, by which", p.name, i+1, len(cells))
			continue
		}
		rows[text] = append(rows[text], cells)
	}
	return p, rows
}

// TestSeedsComplete: every heading of the five texts has a row on the page, and the
// page has no others.
func TestSeedsComplete(t *testing.T) {
	_, rows := seedsPage(t)
	data, err := os.ReadFile(filepath.Join("testdata", "headings.txt"))
	if err != nil {
		t.Fatal(err)
	}
	want, texts := map[string]bool{}, map[string]bool{}
	text := ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "= "); ok {
			text, texts[name] = name, true
		} else if line != "" && !strings.HasPrefix(line, "#") {
			want[text+": "+line] = true
		}
	}
	if len(texts) != 5 || len(want) < 150 {
		t.Fatalf("%d headings of %d texts: not read right", len(want), len(texts))
	}
	has := map[string]bool{}
	for text, of := range rows {
		for _, cells := range of {
			for _, heading := range strings.Split(cells[0], "; ") {
				name := text + ": " + heading
				if has[name] = true; !want[name] {
					t.Errorf("%s has no such heading", name)
				}
			}
		}
	}
	for name := range want {
		if !has[name] {
			t.Errorf("%s has no row", name)
		}
	}
}

// TestSeedsNamed: each row names at least one command, script, example or test, or
// says why there is nothing to do; what is named exists, and is run.
func TestSeedsNamed(t *testing.T) {
	p, rows := seedsPage(t)
	shown := shownCommands(t)
	count := map[string]int{}
	for text, of := range rows {
		for _, cells := range of {
			by := cells[2]
			if why, ok := strings.CutPrefix(by, "nothing: "); ok {
				count["nothing"]++
				if len(why) < shortestReason || code.MatchString(by) {
					t.Errorf("%s: %s: %q is no reason", text, cells[0], why)
				}
				continue
			}
			if len(cells[1]) < shortestReason/2 {
				t.Errorf("%s: %s: the row does not say what a user can do", text, cells[0])
			}
			spans := code.FindAllStringSubmatch(by, -1)
			if len(spans) == 0 {
				t.Errorf("%s: %s: names nothing", text, cells[0])
			}
			rules := ""
			for _, m := range spans {
				kind, rulesOf := checkSeed(t, p, m[1], shown)
				count[kind]++
				rules += rulesOf
				if kind == "test" && !strings.Contains(by, "by test only: ") {
					t.Errorf("%s: %s: %s is a test, without \"by test only: \"", text, cells[0], m[1])
				}
			}
			for _, id := range ruleOfCell.FindAllString(by, -1) {
				if !strings.Contains(rules, id+" ") {
					t.Errorf("%s: %s: %s is shown by no script of the row", text, cells[0], id)
				}
			}
		}
	}
	for kind, least := range map[string]int{"command": 20, "script": 60, "example": 20, "nothing": 1} {
		if count[kind] < least {
			t.Errorf("the page names %d of kind %s: looking for the wrong thing", count[kind], kind)
		}
	}
	if count["test"] > mostByTest {
		t.Errorf("%d things can be seen by test only, %d before", count["test"], mostByTest)
	}
}

// mostByTest is how many rows of the page name a test, for want of a script, command
// or example.
const mostByTest = 3

// shownCommands are the commands that pages show with what they print, which
// TestPages runs, by their names.
func shownCommands(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			for _, c := range b.commands {
				for _, part := range strings.Split(c.text, "ibwarden ")[1:] {
					if found, _, err := commandTree().Find(strings.Fields(part)); err == nil {
						out[found.CommandPath()] = true
					}
				}
			}
		}
	}
	return out
}

// checkSeed looks for what a span of the page names, and returns its kind and, of a
// script, the rules that it shows.
func checkSeed(t *testing.T, p *page, span string, shown map[string]bool) (kind, rules string) {
	t.Helper()
	if own, ok := strings.CutPrefix(span, "ibwarden "); ok {
		c, _, err := commandTree().Find(strings.Fields(own))
		if err != nil {
			t.Errorf("%s: %s: %v", p.name, span, err)
		} else if !shown[c.CommandPath()] {
			t.Errorf("%s: %s: no page shows what %s prints", p.name, span, c.CommandPath())
		}
		return "command", ""
	}
	if strings.HasSuffix(span, ".ibs") {
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(span)))
		if err != nil || !strings.HasPrefix(span, "scenarios/") {
			t.Errorf("%s: %s: no script of scenarios/: %v", p.name, span, err)
		}
		for _, m := range ruleOfStory.FindAllStringSubmatch(string(text), -1) {
			rules += m[1]
		}
		return "script", rules
	}
	m := goTest.FindStringSubmatch(span)
	if m == nil {
		t.Errorf("%s: %q is no command, script, example or test", p.name, span)
		return "", ""
	}
	body := testBody(t, m[1], m[2])
	switch {
	case body == "":
		t.Errorf("%s: %s: there is no %s", p.name, span, m[2])
	case strings.HasPrefix(m[2], "Example"):
		if !strings.Contains(body, "// Output:") && !strings.Contains(body, "// Unordered output:") {
			t.Errorf("%s: %s: the example has no output, and is not run", p.name, span)
		}
		return "example", ""
	}
	return "test", ""
}

// testBody is the text of a test or example, empty where there is none.
func testBody(t *testing.T, dir, name string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(dir), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if _, after, ok := strings.Cut(string(text), "\nfunc "+name+"("); ok {
			body, _, _ := strings.Cut(after, "\n}\n")
			return body
		}
	}
	return ""
}
