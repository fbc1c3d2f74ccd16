package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// mutant is one break of one rule.
type mutant struct {
	rule   string // like PK-09
	name   string // the rule and, from the second mutant of a rule on, its number: PK-09/2
	what   string // what the broken program does, in a few words
	file   string // the file of mutants, and the line it begins on
	line   int
	places []place
}

// place is a declaration and what changes in it.
type place struct {
	pkg   string // directory of the package, from the root of the repository
	decl  string // function, Type.Method, variable, constant or type
	nth   int    // which occurrence of each hunk's old text changes, from 1; 0 when there must be but one
	alone bool   // a build of its own: for tests that start the program with an environment that says nothing of mutants
	line  int    // where it stands in the file of mutants
	hunks []hunk
}

// hunk is a text and what takes its place.
type hunk struct{ old, new string }

// catalogue is what the files of mutants say.
type catalogue struct {
	mutants []*mutant
	without map[string]string // rule to the reason why it has no mutant
}

// group is the first two letters of a rule.
func group(rule string) string { return rule[:2] }

var (
	headLine  = regexp.MustCompile(`^([A-Z]{2}-\d{2,3}) (.+)$`)
	placeLine = regexp.MustCompile(`^@ (\S+) (\S+)(?: #(\d+))?( alone)?$`)
)

// readCatalogue reads every file of mutants below the root of the repository.
func readCatalogue(root string) (*catalogue, error) {
	files, err := filepath.Glob(filepath.Join(root, mutantsDir, "*.txt"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no mutants in %s", filepath.Join(root, mutantsDir))
	}
	slices.Sort(files)
	c := &catalogue{without: map[string]string{}}
	for _, f := range files {
		if err := c.read(f); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// mutantsDir is where the mutants are, from the root of the repository.
const mutantsDir = "test/mutate/mutants"

// read adds the mutants of one file, whose name is the group.
func (c *catalogue) read(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	only := strings.TrimSuffix(filepath.Base(path), ".txt")
	var (
		m    *mutant
		last byte // first byte of the line before
	)
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimRight(lines.Text(), " \t")
		if line == "" || line[0] == '#' {
			continue
		}
		bad := func(want string) error { return fmt.Errorf("%s:%d: %q: want %s", path, n, line, want) }
		switch line[0] {
		case '@':
			p := placeLine.FindStringSubmatch(line)
			if m == nil || p == nil {
				return bad(`"@ package Function" after a line with the rule`)
			}
			nth, _ := strconv.Atoi(p[3]) // the pattern leaves digits or nothing
			m.places = append(m.places, place{pkg: p[1], decl: p[2], nth: nth, alone: p[4] != "", line: n})
		case '-', '+':
			if m == nil || len(m.places) == 0 {
				return bad("a line with @ before it")
			}
			if !m.places[len(m.places)-1].add(line, last) {
				return bad("a line with - before it")
			}
		default:
			if m, err = c.head(line, only); err != nil {
				return fmt.Errorf("%s:%d: %w", path, n, err)
			} else if m != nil {
				m.file, m.line = path, n
			}
		}
		last = line[0]
	}
	return lines.Err()
}

// add takes a line that begins with - or +, after one that begins with last.
func (p *place) add(line string, last byte) bool {
	text := strings.TrimSpace(line[1:])
	switch {
	case line[0] == '-' && last == '-':
		h := &p.hunks[len(p.hunks)-1]
		h.old += "\n" + text
	case line[0] == '-':
		p.hunks = append(p.hunks, hunk{old: text})
	case len(p.hunks) == 0:
		return false
	default:
		h := &p.hunks[len(p.hunks)-1]
		h.new += text + "\n"
	}
	return true
}

// head begins a mutant, or takes the reason why a rule has none.
func (c *catalogue) head(line, only string) (*mutant, error) {
	h := headLine.FindStringSubmatch(line)
	if h == nil || group(h[1]) != only {
		return nil, fmt.Errorf("%q: want a rule of %s and what breaks", line, only)
	}
	if why, none := strings.CutPrefix(h[2], "none: "); none {
		c.without[h[1]] = why
		return nil, nil
	}
	m := &mutant{rule: h[1], name: h[1], what: h[2]}
	before := 0
	for _, o := range c.mutants {
		if o.rule == m.rule {
			before++
		}
	}
	if before > 0 {
		m.name += "/" + strconv.Itoa(before+1)
	}
	c.mutants = append(c.mutants, m)
	return m, nil
}

// at says where a place of the mutant stands.
func (m *mutant) at(p place) string {
	return fmt.Sprintf("%s:%d: %s: %s %s", m.file, p.line, m.name, p.pkg, p.decl)
}

// ident is the name as a part of a Go identifier.
func (m *mutant) ident() string { return strings.NewReplacer("-", "_", "/", "_").Replace(m.name) }

// apply changes text by the hunks of the place. Between words any white space is
// as good as any other.
func (p place) apply(text string) (string, error) {
	if len(p.hunks) == 0 {
		return "", fmt.Errorf("nothing changes: want lines with - and +")
	}
	for _, h := range p.hunks {
		words := strings.Fields(h.old)
		if len(words) == 0 {
			return "", fmt.Errorf("a line with - is empty")
		}
		for i, w := range words {
			words[i] = regexp.QuoteMeta(w)
		}
		found := regexp.MustCompile(strings.Join(words, `\s+`)).FindAllStringIndex(text, -1)
		nth := max(p.nth, 1)
		switch {
		case len(found) < nth:
			return "", fmt.Errorf("%q occurs %d times there", h.old, len(found))
		case p.nth == 0 && len(found) > 1:
			return "", fmt.Errorf("%q occurs %d times there: say which by #1 to #%d after the name", h.old, len(found), len(found))
		}
		span := found[nth-1]
		changed := text[:span[0]] + strings.TrimSuffix(h.new, "\n") + text[span[1]:]
		if changed == text {
			return "", fmt.Errorf("%q stays as it is", h.old)
		}
		text = changed
	}
	return text, nil
}
