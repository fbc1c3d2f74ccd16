package scenario_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/lab/scenario"
	"github.com/ibwarden/ibwarden/internal/topology"
)

var root = filepath.Join("..", "..", "..")

// compile reads a script the way the command does.
func compile(name, text string) (*scenario.Script, error) {
	return scenario.Compile(scenario.Source{
		Name: name, Text: []byte(text), Seed: 1, Load: load,
		Read: func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(root, "scenarios", name)) },
	})
}

// load finds a topology beside the stories, else a generator.
func load(name string) (*topology.Netlist, error) {
	data, err := os.ReadFile(filepath.Join(root, "scenarios", name))
	if err != nil {
		return topology.Generate(name)
	}
	l, _, err := topology.Read(data, name, nil)
	return l, err
}

func run(t *testing.T, name, text string) *scenario.Report {
	t.Helper()
	s, err := compile(name, text)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func printed(r *scenario.Report) string {
	var b strings.Builder
	_, _ = r.WriteTo(&b) // a Builder takes everything
	return b.String()
}

// stories are the scripts that ship, by name.
func stories(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "scenarios", "*.ibs"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	out := map[string]string{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(f)] = string(text)
	}
	return out
}

// TestStories runs every script that ships, twice: all expectations hold, and
// the second run prints the same bytes.
func TestStories(t *testing.T) {
	for name, text := range stories(t) {
		t.Run(name, func(t *testing.T) {
			r := run(t, name, text)
			first := printed(r)
			if !r.Good() || r.Held == 0 {
				t.Errorf("\n%s", first)
			}
			if again := printed(run(t, name, text)); again != first {
				t.Errorf("the second run differs:\n%s\n%s", first, again)
			}
		})
	}
}

// TestStoryRules checks that every rule that a story names has a row in
// docs/dev/conformance.md or stands in its closing list.
func TestStoryRules(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "docs", "dev", "conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	known := conformanceRules(string(data))
	if len(known) != 460 {
		t.Fatalf("docs/dev/conformance.md knows %d rules, want the 460 of the checklist", len(known))
	}
	own, err := os.ReadFile("../../../docs/dev/service-rules.md")
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(known, conformanceRules(string(own)))
	for name, text := range stories(t) {
		s, err := compile(name, text)
		if err != nil {
			t.Error(err)
			continue
		}
		if len(s.Rules()) == 0 {
			t.Errorf("%s names no rule", name)
		}
		for _, r := range s.Rules() {
			for _, id := range r.IDs {
				if !known[id] {
					t.Errorf("%s:%d: neither docs/dev/conformance.md nor docs/dev/service-rules.md knows %s", name, r.Line, id)
				}
			}
		}
	}
}

var (
	conformanceRow = regexp.MustCompile(`(?m)^\| ([A-Z]{2}-[0-9]{2,3}) \|`)
	// notShown is a line of the closing list: "- QP, 3: 01, 04-05; reason".
	notShown = regexp.MustCompile(`(?m)^- ([A-Z]{2}), [0-9]+: ([0-9, -]+);`)
)

// conformanceRules are the rules that docs/dev/conformance.md has in a row or in its
// closing list.
func conformanceRules(text string) map[string]bool {
	known := map[string]bool{}
	for _, m := range conformanceRow.FindAllStringSubmatch(text, -1) {
		known[m[1]] = true
	}
	for _, m := range notShown.FindAllStringSubmatch(text, -1) {
		for _, span := range strings.Split(m[2], ", ") {
			first, last, ok := strings.Cut(span, "-")
			if !ok {
				last = first
			}
			from, _ := strconv.Atoi(first) // the pattern has digits only
			to, _ := strconv.Atoi(last)
			for n := from; n <= to; n++ {
				known[fmt.Sprintf("%s-%02d", m[1], n)] = true
			}
		}
	}
	return known
}
