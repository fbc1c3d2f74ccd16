package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// wordless are the files that the word list is not about: the list itself, and the texts that define
// the system.
var wordless = []string{"docs/glossary.md", "docs/dev/seeds.md"}

// texts are the kinds of files whose words are checked.
var texts = []string{".css", ".go", ".html", ".ibs", ".js", ".json", ".md", ".s", ".service", ".txt", ".txtar", ".yaml"}

// inner is where a word starts inside an identifier.
var inner = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// TestWords checks that no identifier, message or page has a word in the left column of the
// list in docs/glossary.md.
func TestWords(t *testing.T) {
	root := filepath.Join("..", "..")
	not := notOurs(t, filepath.Join(root, "docs", "glossary.md"))
	seen := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		switch {
		case slices.Contains(wordless, name) || d.IsDir() && (name == "bin" || name == ".git" || d.Name() == "node_modules"):
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case d.IsDir() || !slices.Contains(texts, filepath.Ext(name)):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		seen++
		for i, line := range strings.Split(string(text), "\n") {
			if found := not.FindString(strings.ToLower(inner.ReplaceAllString(line, "$1 $2"))); found != "" && !strings.Contains(line, "application/octet-stream") {
				t.Errorf("%s:%d: %q: docs/glossary.md has the word to use", name, i+1, found)
			}
		}
		return nil
	})
	if err != nil || seen < 1000 {
		t.Fatalf("%d files read: %v", seen, err)
	}
}

// notOurs finds the words in the left column of the table below "Words".
func notOurs(t *testing.T, page string) *regexp.Regexp {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Words\n")
	var words []string
	for _, line := range strings.Split(table, "\n") {
		if cells := strings.Split(line, "|"); len(cells) == 4 && !strings.HasPrefix(cells[1], "---") && strings.TrimSpace(cells[1]) != "not" {
			for word := range strings.SplitSeq(cells[1], ",") {
				words = append(words, regexp.QuoteMeta(strings.TrimSpace(word)))
			}
		}
	}
	if len(words) < 10 {
		t.Fatalf("%s: %d words below \"## Words\", want 10 or more", page, len(words))
	}
	return regexp.MustCompile(`\b(` + strings.Join(words, "|") + `)\b`)
}
