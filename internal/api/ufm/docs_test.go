package ufm

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocs: docs/ufm.md has every call and no other, and its limits are those of the code.
func TestDocs(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "ufm.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	var documented, there []string
	for _, m := range regexp.MustCompile("`((?:GET|POST|PUT|DELETE) [^`]*)`").FindAllStringSubmatch(page, -1) {
		documented = append(documented, regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(m[1], "{}"))
	}
	for _, r := range routes {
		there = append(there, r.method+" "+r.pattern)
	}
	there = append(there, "POST /"+loginPath)
	slices.Sort(documented)
	slices.Sort(there)
	if documented = slices.Compact(documented); !slices.Equal(documented, there) {
		t.Errorf("docs/ufm.md has the calls\n%s\nwant\n%s", strings.Join(documented, "\n"), strings.Join(there, "\n"))
	}
	for _, text := range []string{
		"`" + Version + "`", "at most 5 s", "for 8 hours", "at most 64 sessions", "lasts 10 years", "kept for an hour", "over 1 MiB",
	} {
		if !strings.Contains(strings.Join(strings.Fields(page), " "), text) { // wherever its lines end
			t.Errorf("docs/ufm.md lacks %q", text)
		}
	}
	if DefaultWait.Seconds() != 5 || SessionLife.Hours() != 8 || SessionsMax != 64 || TokenLife.Hours() != 87600 || JobLife.Hours() != 1 || MaxBody != 1<<20 {
		t.Error("a limit is not the one of docs/ufm.md")
	}
}
