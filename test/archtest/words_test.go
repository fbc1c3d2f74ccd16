package archtest

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// wordless are the files that the word list is not about: the list itself, and the texts that define
// the system.
var wordless = []string{"docs/glossary.md", "docs/dev/seeds.md"}

// texts are the kinds of files whose words are checked.
var texts = []string{".css", ".go", ".html", ".ibs", ".js", ".json", ".md", ".s", ".service", ".txt", ".txtar", ".yaml"}

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
		text = spaced(text)
		for _, word := range not {
			for _, at := range places(text, word) {
				if !bytes.HasPrefix(text[at:], []byte("octet-stream")) { // a media type
					t.Errorf("%s:%d: %q: docs/glossary.md has the word to use", name, 1+bytes.Count(text[:at], []byte("\n")), word)
				}
			}
		}
		return nil
	})
	if err != nil || seen < 1000 {
		t.Fatalf("%d files read: %v", seen, err)
	}
}

// spaced is a text in small letters, with a space before each word inside an identifier.
func spaced(text []byte) []byte {
	out := make([]byte, 0, len(text)+len(text)/8)
	for i, c := range text {
		if c >= 'A' && c <= 'Z' {
			if i > 0 && (text[i-1] >= 'a' && text[i-1] <= 'z' || text[i-1] >= '0' && text[i-1] <= '9') {
				out = append(out, ' ')
			}
			c += 'a' - 'A'
		}
		out = append(out, c)
	}
	return out
}

// places are where a text has a word as a whole.
func places(text, word []byte) (at []int) {
	inWord := func(i int) bool {
		return i >= 0 && i < len(text) && (text[i] >= 'a' && text[i] <= 'z' || text[i] >= '0' && text[i] <= '9' || text[i] == '_')
	}
	for from := 0; ; {
		i := bytes.Index(text[from:], word)
		if i < 0 {
			return at
		}
		if i += from; !inWord(i-1) && !inWord(i+len(word)) {
			at = append(at, i)
		}
		from = i + 1
	}
}

func TestPlacesOfAWord(t *testing.T) {
	text := spaced([]byte("lanes; fooLanes, bilanes lanes_ an8Lanes\n// lanes"))
	if got := places(text, []byte("lanes")); len(got) != 4 || string(text[got[1]:got[1]+5]) != "lanes" {
		t.Errorf("%q has lanes at %v, want 4 places", text, got)
	}
}

// pagesMost is how many words the pages for users and operators may have in all, README too: what
// serves developers stands in docs/dev.
const pagesMost = 50_000

func TestPagesAreShort(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatal("no pages:", err)
	}
	words := 0
	for _, file := range append(files, filepath.Join("..", "..", "README.md")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		words += len(bytes.Fields(text))
	}
	if words > pagesMost {
		t.Errorf("README.md and docs/*.md have %d words, at most %d", words, pagesMost)
	}
}

// notOurs finds the words in the left column of the table below "Words".
func notOurs(t *testing.T, page string) (words [][]byte) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Words\n")
	for _, line := range strings.Split(table, "\n") {
		if cells := strings.Split(line, "|"); len(cells) == 4 && !strings.HasPrefix(cells[1], "---") && strings.TrimSpace(cells[1]) != "not" {
			for word := range strings.SplitSeq(cells[1], ",") {
				words = append(words, []byte(strings.TrimSpace(word)))
			}
		}
	}
	if len(words) < 10 {
		t.Fatalf("%s: %d words below \"## Words\", want 10 or more", page, len(words))
	}
	return words
}
