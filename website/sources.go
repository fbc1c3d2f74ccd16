package main

import (
	"fmt"
	"html/template"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// sourcePath is where the site shows a file or directory of the repository that is no page.
func sourcePath(name string) string { return "files/" + name + ".html" }

// sources adds a page for each file and directory that pages lead to, and for all within
// directories.
func (s *site) sources() error {
	done := map[string]bool{}
	for len(s.wanted) > 0 {
		name := s.wanted[0]
		s.wanted = s.wanted[1:]
		if done[name] {
			continue
		}
		done[name] = true
		p, err := s.source(name)
		if err != nil {
			return err
		}
		s.add(nil, p)
	}
	return nil
}

func (s *site) source(name string) (*page, error) {
	file := filepath.Join(s.root, filepath.FromSlash(name))
	p := &page{Path: sourcePath(name), Title: name, Summary: "A file of the repository: " + name}
	head := "<h1><code>" + template.HTMLEscapeString(name) + "</code></h1>\n"
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if !utf8.Valid(text) {
			return nil, fmt.Errorf("%s is not text: it cannot be a page", name)
		}
		p.Body = template.HTML(head + "<pre tabindex=\"0\"><code>" + template.HTMLEscapeString(string(text)) + "</code></pre>\n")
		return p, nil
	}
	entries, err := os.ReadDir(file)
	if err != nil {
		return nil, err
	}
	p.Summary = "A directory of the repository: " + name
	var b strings.Builder
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		at, err := s.place(path.Join(name, e.Name()))
		if err != nil {
			return nil, err
		}
		shown := e.Name()
		if e.IsDir() {
			shown += "/"
		}
		fmt.Fprintf(&b, "<li><a href=\"%s\">%s</a></li>\n", template.HTMLEscapeString(relative(p.Path, at)), template.HTMLEscapeString(shown))
	}
	p.Body = template.HTML(head + "<ul>\n" + b.String() + "</ul>\n")
	return p, nil
}
