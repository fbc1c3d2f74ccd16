package doctest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// command is one that a page shows, with the lines that it prints.
type command struct {
	text string
	// from and to are the lines of the page between which the output stands.
	from, to int
	want     []string
}

func (c *command) background() bool { return strings.HasSuffix(c.text, "&") }

// block is a fenced block with commands, or a file that the reader is to have.
type block struct {
	line     int // of its fence, counted from 1
	commands []command
	file     string // its name, after the language on the fence
	text     string
	// notRun is why the page says that nothing can run it.
	notRun string
}

// page is a file of the documentation.
type page struct {
	name   string
	lines  []string
	blocks []block
}

const (
	fence  = "```"
	prompt = "$ "
	notRun = "Not run by the tests: "
)

// pages reads README.md, docs/*.md and docs/dev/*.md.
func pages(t *testing.T) (out []*page) {
	t.Helper()
	root := filepath.Join("..", "..")
	names, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(names) == 0 {
		t.Fatal("no pages in docs:", err)
	}
	forDevelopers, err := filepath.Glob(filepath.Join(root, "docs", "dev", "*.md"))
	if err != nil || len(forDevelopers) == 0 {
		t.Fatal("no pages in docs/dev:", err)
	}
	for _, name := range slices.Concat([]string{filepath.Join(root, "README.md")}, names, forDevelopers) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := parse(name, string(text))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

// parse finds the blocks of a page that have commands.
func parse(name, text string) (*page, error) {
	p := &page{name: name, lines: strings.Split(text, "\n")}
	var b *block
	before := "" // the last line that is not empty
	for i, line := range p.lines {
		isFence := strings.HasPrefix(line, fence)
		switch {
		case isFence && b == nil:
			b = &block{line: i + 1}
			if _, why, ok := strings.Cut(before, notRun); ok {
				b.notRun = why
			}
			if words := strings.Fields(strings.TrimPrefix(line, fence)); len(words) == 2 {
				if b.file = words[1]; !filepath.IsLocal(b.file) {
					return nil, fmt.Errorf("%s:%d: the file %s is elsewhere", name, i+1, b.file)
				}
			}
		case isFence:
			if len(b.commands) > 0 || b.file != "" {
				p.blocks = append(p.blocks, *b)
			}
			b = nil
		case b == nil:
		case b.file != "":
			b.text += line + "\n"
		case strings.HasPrefix(line, prompt):
			b.commands = append(b.commands, command{text: strings.TrimPrefix(line, prompt), from: i + 1, to: i + 1})
		case len(b.commands) > 0:
			c := &b.commands[len(b.commands)-1]
			c.want, c.to = append(c.want, line), i+1
		}
		if line != "" {
			before = line
		}
	}
	if b != nil {
		return nil, fmt.Errorf("%s:%d: the block does not end", name, b.line)
	}
	return p, nil
}

// with is the page with other outputs, by the line at which each begins.
func (p *page) with(printed map[int][]string) string {
	lines := slices.Clone(p.lines)
	for _, b := range slices.Backward(p.blocks) {
		for _, c := range slices.Backward(b.commands) {
			if out, ok := printed[c.from]; ok {
				lines = slices.Replace(lines, c.from, c.to, out...)
			}
		}
	}
	return strings.Join(lines, "\n")
}

// pattern is something that varies from run to run, and what stands for it.
type pattern struct {
	re   *regexp.Regexp
	name string
}

// variable reads the list of what varies.
func variable(t *testing.T) (out []pattern) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "varies.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, expression, ok := strings.Cut(line, " ")
		if !ok {
			t.Fatalf("testdata/varies.txt: %q: want a name and a regular expression", line)
		}
		out = append(out, pattern{regexp.MustCompile(strings.TrimSpace(expression)), "<" + name + ">"})
	}
	return out
}

// plain is a line without what varies.
func plain(line string, vary []pattern) string {
	for _, v := range vary {
		line = v.re.ReplaceAllString(line, v.name)
	}
	return strings.TrimRight(line, " ")
}

// same reports whether lines are those that a page shows. Where begins is set
// more may follow.
func same(want, got []string, vary []pattern, begins bool) bool {
	for i, line := range want {
		if line == "[...]" {
			for skip := 0; skip <= len(got)-i; skip++ {
				if same(want[i+1:], got[i+skip:], vary, begins) {
					return true
				}
			}
			return false
		}
		if i >= len(got) || plain(line, vary) != plain(got[i], vary) {
			return false
		}
	}
	return begins || len(got) == len(want)
}

func TestSame(t *testing.T) {
	vary := []pattern{{regexp.MustCompile(`[0-9.]+ s`), "<time>"}}
	for _, x := range []struct {
		want, got string
		begins    bool
		equal     bool
	}{
		{"a|b", "a|b", false, true},
		{"a|b", "a", false, false},
		{"a", "a|b", false, false},
		{"a", "a|b", true, true},
		{"took 1.2 s", "took 3 s  ", false, true},
		{"took 1.2 ms", "took 3 s", false, false},
		{"a|[...]|d", "a|b|c|d", false, true},
		{"a|[...]|d", "a|d", false, true},
		{"a|[...]|d", "a|b|c", false, false},
		{"a|[...]", "a", false, true},
		{"[...]|b", "a|b|c", true, true},
	} {
		if got := same(strings.Split(x.want, "|"), strings.Split(x.got, "|"), vary, x.begins); got != x.equal {
			t.Errorf("%q and %q: %v, want %v", x.want, x.got, got, x.equal)
		}
	}
}

func TestParse(t *testing.T) {
	const text = "# A\n```\n$ one\n1\n$ two &\n```\ntext\n```yaml\na: 1\n```\nNot run by the tests: no adapter.\n\n```\n$ three\n```\n"
	p, err := parse("x", text)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.blocks) != 2 || len(p.blocks[0].commands) != 2 || !p.blocks[0].commands[1].background() || p.blocks[1].notRun != "no adapter." {
		t.Errorf("%+v", p.blocks)
	}
	if got := p.with(nil); got != text {
		t.Errorf("written as %q", got)
	}
	got := p.with(map[int][]string{3: {"x", "y"}, 14: {"z"}})
	if want := strings.Replace(strings.Replace(text, "\n1\n", "\nx\ny\n", 1), "$ three\n", "$ three\nz\n", 1); got != want {
		t.Errorf("written as %q, want %q", got, want)
	}
	for _, bad := range []string{"```\n$ a\n", "```yaml ../a\n```\n", "```yaml /a\n```\n"} {
		if _, err := parse("x", bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	p, err = parse("x", "```ibs a.ibs\n$ no command\n\n```\n")
	if err != nil || len(p.blocks) != 1 || p.blocks[0].file != "a.ibs" || p.blocks[0].text != "$ no command\n\n" || p.blocks[0].commands != nil {
		t.Errorf("%+v, %v: want a file", p, err)
	}
}
