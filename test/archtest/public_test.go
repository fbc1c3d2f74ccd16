package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var example = regexp.MustCompile(`(?m)^func Example\w*\(\) \{`)

// TestPublicPackagesHaveExamples checks that every package that strangers may import
// shows how it is used, in code that runs: an Example with the output that it has.
func TestPublicPackagesHaveExamples(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range sources(t) {
		if inside(s.pkg, "ib") && !strings.Contains(s.pkg, "/internal/") {
			seen[s.pkg] = true
		}
	}
	// Its examples are those of ib/verbs, which is used with it.
	delete(seen, "ib/verbs/simfabric")
	if len(seen) < 8 {
		t.Fatalf("only %d public packages", len(seen))
	}
	for pkg := range seen {
		files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pkg), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		runs := false
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			runs = runs || example.Match(text) && strings.Contains(string(text), "// Output:")
		}
		if !runs {
			t.Errorf("%s has no Example that runs", pkg)
		}
	}
}
