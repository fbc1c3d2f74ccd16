package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// home is the page that the site begins with.
const home = "README.md"

//go:embed layout.html
var layoutText string

//go:embed style.css
var style []byte

//go:embed icon.svg
var icon []byte

//go:embed search.js
var searchScript []byte

var layout = template.Must(template.New("layout").Parse(layoutText))

// page is one of the site.
type page struct {
	// Name is the file in the repository, with slashes; empty for what is made from the code.
	Name          string
	Path          string // in the site
	Title         string
	Summary       string
	Headings      []heading
	Body          template.HTML
	Section       *section
	Before, After *page
	read          *document
}

// site is all that is written.
type site struct {
	root     string
	sections []*section
	pages    []*page
	byName   map[string]*page
	files    map[string][]byte // what is no page, by its path in the site
	wanted   []string          // files of the repository that pages lead to and that become pages
}

// build makes the site of the repository at root.
func build(root string) (*site, error) {
	s := &site{root: root, byName: map[string]*page{}, files: map[string][]byte{"style.css": style, "icon.svg": icon, "search.js": searchScript}}
	var err error
	if s.sections, err = readNav(filepath.Join(root, "website", "nav.yaml")); err != nil {
		return nil, err
	}
	if err := s.gather(); err != nil {
		return nil, err
	}
	if s.files[indexFile], err = indexOf(s.pages).script(); err != nil {
		return nil, err
	}
	var faults []error
	for _, p := range s.pages {
		if p.read == nil {
			continue
		}
		if p.Body, err = p.read.html(func(to string) (string, string, error) { return s.lead(p, to) }); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", p.Name, err))
		}
	}
	faults = append(faults, s.sources())
	return s, errors.Join(faults...)
}

// gather reads all pages, and makes those of the code, in the order of the sections.
func (s *site) gather() error {
	first, err := s.file(home)
	if err != nil {
		return err
	}
	s.add(nil, first)
	for _, section := range s.sections {
		var before *page
		for _, name := range section.Names {
			var made []*page
			switch name {
			case commandsName:
				made, err = commandPages()
			case apiName:
				made, err = apiPages(filepath.Join(s.root, "docs", "openapi.json"))
			default:
				made = make([]*page, 1)
				made[0], err = s.file(name)
			}
			if err != nil {
				return err
			}
			p := made[0]
			section.Pages = append(section.Pages, p)
			if p.Before = before; before != nil {
				before.After = p
			}
			before = p
			s.add(section, made...)
		}
		s.add(section, section.list())
	}
	return nil
}

func (s *site) add(in *section, pages ...*page) {
	for _, p := range pages {
		p.Section = in
		s.pages = append(s.pages, p)
		if p.Name != "" {
			s.byName[p.Name] = p
		}
	}
}

// file is the page that a Markdown file of the repository becomes.
func (s *site) file(name string) (*page, error) {
	text, err := os.ReadFile(filepath.Join(s.root, filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	p := &page{Name: name, Path: sitePath(name)}
	return p, p.take(text)
}

// take reads the Markdown of a page.
func (p *page) take(text []byte) error {
	p.read = parse(text)
	p.Title, p.Summary, p.Headings = p.read.title, p.read.summary, p.read.headings
	if n := len(slices.Collect(levels(p.Headings, 1))); n != 1 {
		return fmt.Errorf("%s%s: %d headings of the first level, want one", p.Name, p.Path, n)
	}
	return nil
}

// levels are the headings of a level.
func levels(all []heading, level int) func(func(heading) bool) {
	return func(yield func(heading) bool) {
		for _, h := range all {
			if h.Level == level && !yield(h) {
				return
			}
		}
	}
}

// list is the page of a section, which names its pages.
func (s *section) list() *page {
	var b strings.Builder
	for _, p := range s.Pages {
		fmt.Fprintf(&b, "<dt><a href=\"%s\">%s</a></dt>\n<dd>%s</dd>\n", template.HTMLEscapeString(p.Path), template.HTMLEscapeString(p.Title), template.HTMLEscapeString(p.Summary))
	}
	body := fmt.Sprintf("<h1>%s</h1>\n<p>%s</p>\n<dl>\n%s</dl>\n", template.HTMLEscapeString(s.Title), template.HTMLEscapeString(s.About), b.String())
	return &page{Path: s.Path + ".html", Title: s.Title, Summary: s.About, Body: template.HTML(body)}
}

// lead is where a link of a page leads in the site, and the title of the page there, if it is
// one. What it names in the repository becomes part of the site.
func (s *site) lead(p *page, to string) (where, title string, err error) {
	u, err := url.Parse(to)
	if err != nil {
		return "", "", err
	}
	if u.Scheme != "" || u.Host != "" {
		if u.Scheme != "https" {
			return "", "", fmt.Errorf("link %s: want https", to)
		}
		return to, "", nil
	}
	if u.Path == "" || p.Name == "" { // what is made here names paths of the site
		return to, "", nil
	}
	name := pathOf(p.Name, u.Path)
	if strings.HasPrefix(u.Path, "/") || !filepath.IsLocal(filepath.FromSlash(name)) {
		return "", "", fmt.Errorf("link %s leads out of the repository", to)
	}
	at, err := s.place(name)
	if err != nil {
		return "", "", fmt.Errorf("link %s: %w", to, err)
	}
	if there := s.byName[name]; there != nil {
		title = there.Title
	}
	u.Path = relative(p.Path, at)
	return u.String(), title, nil
}

// pathOf is what a link of a file names in the repository.
func pathOf(file, to string) string { return path.Join(path.Dir(file), to) }

// copied are the kinds of files that stand in the site as they are.
var copied = map[string]bool{".png": true, ".json": true}

// place is the path in the site of a file or directory of the repository.
func (s *site) place(name string) (string, error) {
	if p := s.byName[name]; p != nil {
		return p.Path, nil
	}
	file := filepath.Join(s.root, filepath.FromSlash(name))
	info, err := os.Stat(file)
	if err != nil {
		return "", err
	}
	if !info.IsDir() && copied[path.Ext(name)] {
		at := strings.TrimPrefix(name, "docs/")
		s.files[at], err = os.ReadFile(file)
		return at, err
	}
	s.wanted = append(s.wanted, name)
	return sourcePath(name), nil
}

// relative is the way from one path of the site to another.
func relative(from, to string) string {
	up := strings.Count(from, "/")
	return strings.Repeat("../", up) + to
}

// view is what the layout is filled with.
type view struct {
	*site
	Page *page
}

// Sections are those of the whole site.
func (v view) Sections() []*section { return v.sections }

// Home reports whether this is the first page.
func (v view) Home() bool { return v.Page.Name == home }

// Link is the way from this page to a path of the site.
func (v view) Link(to string) string { return relative(v.Page.Path, to) }

// fewHeadings is up to how many parts a page needs no list of them.
const fewHeadings = 3

// Contents are the parts of this page, where there are several.
func (v view) Contents() []heading {
	out := slices.Collect(levels(v.Page.Headings, 2))
	if len(out) < fewHeadings {
		return nil
	}
	return out
}

// render is the site as files.
func (s *site) render() (map[string][]byte, error) {
	out := maps.Clone(s.files)
	for _, p := range s.pages {
		if _, twice := out[p.Path]; twice {
			return nil, fmt.Errorf("%s: two pages have this path", p.Path)
		}
		var b bytes.Buffer
		if err := layout.Execute(&b, view{s, p}); err != nil {
			return nil, fmt.Errorf("%s: %w", p.Path, err)
		}
		out[p.Path] = b.Bytes()
	}
	return out, nil
}

// write replaces a directory by the site. It removes only one that a site was written into.
func (s *site) write(dir string) error {
	all, err := s.render()
	if err != nil {
		return err
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(dir, "style.css")); err != nil {
			return fmt.Errorf("%s is not empty, and no site: name another directory", dir)
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, all[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}
