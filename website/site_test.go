package main

import (
	"bytes"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/yuin/goldmark/ast"
	"golang.org/x/net/html"

	"github.com/ibwarden/ibwarden/test/need"
)

// root is that of the repository.
const root = ".."

var built = sync.OnceValues(func() (map[string][]byte, error) {
	s, err := build(root)
	if err != nil {
		return nil, err
	}
	return s.render()
})

func files(t *testing.T) map[string][]byte {
	t.Helper()
	all, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// element is one of a page, with its attributes.
type element struct {
	tag  string
	attr map[string]string
	text string // what follows its beginning
}

func elements(t *testing.T, name string, text []byte) (out []element) {
	t.Helper()
	z := html.NewTokenizer(bytes.NewReader(text))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return out
		case html.TextToken:
			if len(out) > 0 {
				out[len(out)-1].text += string(z.Text())
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			token := z.Token()
			e := element{tag: token.Data, attr: map[string]string{}}
			for _, a := range token.Attr {
				if _, twice := e.attr[a.Key]; twice {
					t.Errorf("%s: <%s> has %s twice", name, e.tag, a.Key)
				}
				e.attr[a.Key] = a.Val
			}
			out = append(out, e)
		}
	}
}

// TestLinks: every link, anchor and image of the site leads to something in the site. Links to other
// hosts are listed, and not followed.
func TestLinks(t *testing.T) {
	all := files(t)
	ids := map[string]map[string]bool{}
	pages := map[string][]element{}
	for name, text := range all {
		if path.Ext(name) != ".html" {
			continue
		}
		pages[name] = elements(t, name, text)
		ids[name] = map[string]bool{}
		for _, e := range pages[name] {
			if id := e.attr["id"]; id != "" {
				if ids[name][id] {
					t.Errorf("%s: two elements have the id %q", name, id)
				}
				ids[name][id] = true
			}
		}
	}
	links, others := 0, map[string]bool{}
	for name, found := range pages {
		for _, e := range found {
			for _, key := range []string{"href", "src"} {
				to, ok := e.attr[key]
				if !ok {
					continue
				}
				links++
				u, err := url.Parse(to)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				if u.Host != "" {
					if e.tag != "a" {
						t.Errorf("%s: <%s> is fetched from %s", name, e.tag, u.Host)
					}
					others[to] = true
					continue
				}
				at := name
				if u.Path != "" {
					at = path.Join(path.Dir(name), u.Path)
				}
				if all[at] == nil {
					t.Errorf("%s: %s leads to %s, which is not there", name, to, at)
				} else if u.Fragment != "" && !ids[at][u.Fragment] {
					t.Errorf("%s: %s: %s has no such anchor", name, to, at)
				}
			}
		}
	}
	if len(pages) < 150 || links < 5000 {
		t.Errorf("%d links of %d pages: looking for the wrong thing", links, len(pages))
	}
	t.Logf("%d links of %d pages; to other hosts, not followed:\n%s", links, len(pages), strings.Join(slices.Sorted(maps.Keys(others)), "\n"))
}

// TestPagesArePlain: a page has one heading of the first level, landmarks and a way past them, a text
// for each picture, no style of its own, and no script but that of the search.
func TestPagesArePlain(t *testing.T) {
	for name, text := range files(t) {
		if path.Ext(name) != ".html" {
			if bytes.Contains(text, []byte("@import")) || path.Ext(name) == ".css" && bytes.Contains(text, []byte("url(")) {
				t.Errorf("%s fetches something", name)
			}
			continue
		}
		if !bytes.HasPrefix(text, []byte("<!DOCTYPE html>\n<html lang=\"en\">")) {
			t.Errorf("%s does not begin as a page in English", name)
		}
		count := map[string]int{}
		level := 0
		for _, e := range elements(t, name, text) {
			count[e.tag]++
			if len(e.tag) == 2 && e.tag[0] == 'h' && e.tag[1] >= '1' && e.tag[1] <= '6' {
				if now := int(e.tag[1] - '0'); now > level+1 {
					t.Errorf("%s: a heading of level %d below one of level %d", name, now, level)
				} else {
					level = now
				}
			}
			if e.tag == "img" && strings.TrimSpace(e.attr["alt"]) == "" {
				t.Errorf("%s: the image %s has no text", name, e.attr["src"])
			}
			if e.tag == "title" && strings.TrimSpace(e.text) == "" {
				t.Errorf("%s has no title", name)
			}
			for key := range e.attr {
				if key == "style" || strings.HasPrefix(key, "on") {
					t.Errorf("%s: <%s> has %s: no page has style or script of its own", name, e.tag, key)
				}
			}
		}
		if count["script"] != 1 || bytes.Count(text, []byte("search.js\" defer></script>")) != 1 {
			t.Errorf("%s: %d of <script>, want that of the search", name, count["script"])
		}
		for _, tag := range []string{"style", "iframe", "object", "embed", "form", "base"} {
			if count[tag] > 0 {
				t.Errorf("%s has <%s>", name, tag)
			}
		}
		for _, tag := range []string{"h1", "main", "header", "title"} {
			if count[tag] != 1 {
				t.Errorf("%s: %d of <%s>, want one", name, count[tag], tag)
			}
		}
		if count["nav"] == 0 || !bytes.Contains(text, []byte(`<a class="skip" href="#content">`)) {
			t.Errorf("%s has no navigation, or no way past it", name)
		}
	}
}

// TestNavNamesEveryPage: each page of docs is in the list, and nothing that is not there.
func TestNavNamesEveryPage(t *testing.T) {
	sections, err := readNav("nav.yaml")
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, s := range sections {
		for _, n := range s.Names {
			count[n]++
		}
	}
	for folder, least := range map[string]int{"docs": 25, "docs/dev": 10} {
		there, err := filepath.Glob(filepath.Join(root, folder, "*.md"))
		if err != nil || len(there) < least {
			t.Fatalf("%d pages in %s (%v)", len(there), folder, err)
		}
		for _, f := range there {
			if name := folder + "/" + filepath.Base(f); count[name] != 1 {
				t.Errorf("nav.yaml names %s %d times, want once", name, count[name])
			}
		}
	}
	var titles []string
	for _, s := range sections {
		titles = append(titles, s.Title)
	}
	if want := []string{"Tutorials", "How-to guides", "Reference", "Explanation", "Development"}; !slices.Equal(titles, want) {
		t.Errorf("sections %q, want %q", titles, want)
	}
}

// TestSameBytes: the same sources give the same site.
func TestSameBytes(t *testing.T) {
	first := files(t)
	s, err := build(root)
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.render()
	if err != nil {
		t.Fatal(err)
	}
	if !maps.EqualFunc(first, second, bytes.Equal) {
		t.Error("two sites of the same sources differ")
	}
}

// TestMarkdown: the links of every Markdown file of the repository lead somewhere as GitHub shows
// them: to a file or directory, and where one names an anchor, to a heading.
func TestMarkdown(t *testing.T) {
	git := need.Program(t, "git")
	listed, err := exec.Command(git, "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md").Output()
	if err != nil {
		t.Fatal(err)
	}
	links := 0
	read := map[string]*document{}
	open := func(name string) *document {
		if read[name] == nil {
			text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
			if err != nil {
				t.Fatal(err)
			}
			read[name] = parse(text)
		}
		return read[name]
	}
	for _, name := range strings.Split(strings.Trim(string(listed), "\x00"), "\x00") {
		d := open(name)
		ast.Walk(d.root, func(n ast.Node, enter bool) (ast.WalkStatus, error) {
			var to string
			switch n := n.(type) {
			case *ast.Link:
				to = string(n.Destination)
			case *ast.Image:
				if to = string(n.Destination); plain(n, d.source) == "" {
					t.Errorf("%s: the image %s has no text", name, to)
				}
			}
			if !enter || to == "" {
				return ast.WalkContinue, nil
			}
			links++
			u, err := url.Parse(to)
			if err != nil || u.Scheme != "" && u.Scheme != "https" {
				t.Errorf("%s: %s is no link (%v)", name, to, err)
			} else if u.Host == "" {
				checkRelative(t, name, u, open)
			}
			return ast.WalkContinue, nil
		})
	}
	if links < 150 {
		t.Errorf("%d links: looking for the wrong thing", links)
	}
}

func checkRelative(t *testing.T, name string, u *url.URL, open func(string) *document) {
	t.Helper()
	at := name
	if u.Path != "" {
		at = path.Join(path.Dir(name), u.Path)
	}
	if !fs.ValidPath(at) {
		t.Errorf("%s: %s leads out of the repository", name, u)
		return
	}
	if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(at))); err != nil {
		t.Errorf("%s: %s: %v", name, u, err)
		return
	}
	if u.Fragment == "" {
		return
	}
	if path.Ext(at) != ".md" || !slices.ContainsFunc(open(at).headings, func(h heading) bool { return h.ID == u.Fragment }) {
		t.Errorf("%s: %s: %s has no such heading", name, u, at)
	}
}

// What a page may not have is refused when the site is made.
func TestRefused(t *testing.T) {
	for _, x := range []struct{ text, says string }{
		{"# A\n\n<script>alert(1)</script>\n", "HTML"},
		{"# A\n\nb <img src=x onerror=alert(1)> c\n", "HTML"},
		{"# A\n\n<div onclick=x>\n", "HTML"},
		{"# A\n\n[a](nowhere.md)\n", "nowhere.md"},
		{"# A\n\n[a](../../secret)\n", "out of"},
		{"# A\n\n[a](/etc/passwd)\n", "out of"},
		{"# A\n\n[a](javascript:alert(1))\n", "https"},
		{"# A\n\n![](images/x.png)\n", "no text"},
	} {
		s := &site{root: root, byName: map[string]*page{}, files: map[string][]byte{}}
		p := &page{Name: "docs/x.md", Path: "x.html", read: parse([]byte(x.text))}
		body, err := p.read.html(func(to string) (string, string, error) { return s.lead(p, to) })
		if err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%q: %q, %v: want an error about %q", x.text, body, err, x.says)
		}
		if len(s.wanted) > 0 {
			t.Errorf("%q: takes %v into the site", x.text, s.wanted)
		}
	}
}

// A directory that holds something else is not replaced.
func TestWriteKeepsWhatIsNoSite(t *testing.T) {
	s := &site{files: map[string][]byte{"style.css": []byte("a"), "x/y": []byte("b")}}
	dir := t.TempDir()
	for range 2 {
		if err := s.write(dir); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "x", "y")); err != nil || string(text) != "b" {
		t.Errorf("%q, %v", text, err)
	}
	other := t.TempDir()
	kept := filepath.Join(other, "letter")
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.write(other); err == nil {
		t.Error("a directory with other files is replaced")
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
}
