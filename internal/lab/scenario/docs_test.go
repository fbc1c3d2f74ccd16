package scenario_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/lab/scenario"
	"github.com/ibwarden/ibwarden/internal/lab/scenario/property"
)

// TestDocumentation runs every example of docs/dev/scenarios.md, and checks that
// the page shows every statement.
func TestDocumentation(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "docs", "dev", "scenarios.md"))
	if err != nil {
		t.Fatal(err)
	}
	var examples strings.Builder
	found := regexp.MustCompile("(?s)```ibs\n(.*?)```").FindAllStringSubmatch(string(data), -1)
	if len(found) < 5 {
		t.Fatalf("%d examples: not read right", len(found))
	}
	for _, m := range found {
		examples.WriteString(m[1])
		if r := run(t, "example", m[1]); !r.Good() {
			t.Errorf("%s\n%s", m[1], printed(r))
		}
	}
	for _, v := range scenario.Usage() {
		if !regexp.MustCompile(`(?m)^` + v[0] + `( |$)`).MatchString(examples.String()) {
			t.Errorf("no example shows %s", v[0])
		}
		if v[2] == "" {
			t.Errorf("%s says nothing of itself", v[0])
		}
	}
}

// The page names every word that a device line knows.
func TestDeviceWordsAreDocumented(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "docs", "dev", "scenarios.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name := range property.All() {
		if !strings.Contains(string(data), "`"+name+"`") {
			t.Errorf("docs/dev/scenarios.md does not name %s", name)
		}
	}
}
