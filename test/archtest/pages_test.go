package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// roots are the folders whose paths the pages name.
var roots = []string{"ib", "internal", "test", "docs", "cmd", "examples", "scenarios", "packaging", "scripts"}

// identifier is what a page may name in a source: a Go identifier.
var identifier = regexp.MustCompile(`^[A-Za-z_]\w*$`)

// TestPlacesOnPages checks that every path which ARCHITECTURE.md, CONTRIBUTING.md and
// docs/glossary.md name exists, and that in their tables of places an identifier
// behind a path stands in a source there.
func TestPlacesOnPages(t *testing.T) {
	for _, page := range []struct {
		file   string
		tables []string // headings below which every row names a place
		least  int      // rows in them
	}{
		{"ARCHITECTURE.md", []string{"## Where a thing is"}, 40},
		{"CONTRIBUTING.md", nil, 0},
		{"docs/glossary.md", nil, 0},
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(page.file)))
		if err != nil {
			t.Fatal(err)
		}
		table, rows := false, 0
		for i, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(line, "## ") {
				table = slices.Contains(page.tables, line)
			}
			named := checkPlaces(t, page.file, i+1, line, table && strings.HasPrefix(line, "|"))
			if cells := strings.Split(line, "|"); table && len(cells) > 3 && !strings.HasPrefix(cells[1], "---") && strings.Contains(line, "`") {
				if rows++; !named {
					t.Errorf("%s:%d: the row names no place", page.file, i+1)
				}
			}
		}
		if rows < page.least {
			t.Errorf("%s: %d rows of places, want %d or more", page.file, rows, page.least)
		}
	}
}

// checkPlaces looks at the code spans of a line, and reports whether one is a path.
func checkPlaces(t *testing.T, file string, number int, line string, inTable bool) (named bool) {
	t.Helper()
	source := ""
	for _, span := range codeSpan.FindAllStringSubmatch(line, -1) {
		first, _, deep := strings.Cut(span[1], "/")
		switch {
		case deep && slices.Contains(roots, first) && !strings.ContainsAny(span[1], " *<"):
			path := filepath.Join("..", "..", filepath.FromSlash(span[1]))
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s:%d: there is no %s", file, number, span[1])
			}
			source, named = sourceOf(path), true
			if data, err := os.ReadFile(path); err == nil && strings.HasSuffix(path, "_test.go") {
				source = string(data)
			}
		case inTable && source != "" && identifier.MatchString(span[1]) && !hasWord(source, "", span[1]):
			t.Errorf("%s:%d: no %s there", file, number, span[1])
		}
	}
	return named
}
