package scenario_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/netlist"
	"github.com/ibwarden/ibwarden/internal/scenario"
)

var root = filepath.Join("..", "..")

// compile reads a script the way the command does.
func compile(name, text string) (*scenario.Script, error) {
	return scenario.Compile(scenario.Source{
		Name: name, Text: []byte(text), Seed: 1, Load: load,
		Read: func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(root, "scenarios", name)) },
	})
}

// load finds a topology beside the stories, else a generator.
func load(name string) (*netlist.Netlist, error) {
	data, err := os.ReadFile(filepath.Join(root, "scenarios", name))
	if err != nil {
		return netlist.Generate(name)
	}
	l, _, err := netlist.Read(data, name, nil)
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
// the second run prints the same octets.
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
// docs/conformance.md or stands in its closing list.
func TestStoryRules(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "docs", "conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^\| ([A-Z]{2}-[0-9]{2,3}) \|`)
	known := map[string]bool{}
	for _, m := range row.FindAllStringSubmatch(string(data), -1) {
		known[m[1]] = true
	}
	if len(known) < 50 {
		t.Fatalf("docs/conformance.md has %d rows: not read right", len(known))
	}
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
					t.Errorf("%s:%d: %s has no row in docs/conformance.md", name, r.Line, id)
				}
			}
		}
	}
}
