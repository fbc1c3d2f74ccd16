package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var example = regexp.MustCompile(`(?m)^func Example\w*\(\) \{`)

// TestPublicPackagesHaveExamples checks that every package that strangers may import
// shows how it is used, in code that runs: an Example with the output that it has.
func TestPublicPackagesHaveExamples(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range sources(t) {
		if (inside(s.pkg, "ib") || s.pkg == "simfabric") && !strings.Contains(s.pkg, "/internal/") {
			seen[s.pkg] = true
		}
	}
	// Its examples are those of simfabric, which has a fabric to run them on.
	delete(seen, "ib/verbs")
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

// TestIBStandsAlone checks that the packages below ib need nothing but the standard library and
// golang.org/x/sys, and their tests no library of others besides, but for one.
func TestIBStandsAlone(t *testing.T) {
	const sys, module = "golang.org/x/sys/", "github.com/ibwarden/ibwarden/"
	// internal/topology, from which tests make fabrics, proposes similar names by it.
	const inTests = "github.com/agnivade/levenshtein"
	for _, x := range []struct {
		name string
		args []string
		may  func(path string) bool
	}{
		{"packages", nil, func(path string) bool { return path == module+"ib" || strings.HasPrefix(path, module+"ib/") }},
		{"tests", []string{"-test"}, func(path string) bool { return strings.HasPrefix(path, module) || path == inTests }},
	} {
		args := slices.Concat([]string{"list", "-deps"}, x.args, []string{"-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./ib/..."})
		list := exec.CommandContext(t.Context(), "go", args...)
		list.Dir = filepath.Join("..", "..")
		out, err := list.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		paths := strings.Split(strings.TrimSpace(string(out)), "\n")
		if len(paths) < 10 {
			t.Fatalf("%s of ib: only %d packages", x.name, len(paths))
		}
		for _, path := range paths {
			if !x.may(path) && !strings.HasPrefix(path, sys) {
				t.Errorf("%s of ib need %s", x.name, path)
			}
		}
	}
}
