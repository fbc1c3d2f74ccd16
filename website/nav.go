package main

import (
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/goccy/go-yaml"
)

// section is a part of the site: a list of pages for one kind of question.
type section struct {
	Title string
	// Path is that of the page that lists the section, without its ending; of the title
	// where nothing is said.
	Path  string
	About string
	// Aside is a section that stands at the foot of pages, not at their head.
	Aside bool
	Names []string `yaml:"pages"`
	Pages []*page  `yaml:"-"`
}

// Made from the code, not from a file.
const (
	commandsName = "commands"
	apiName      = "api"
)

// readNav reads the list of sections, and refuses what it does not know.
func readNav(file string) ([]*section, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []*section
	if err := yaml.UnmarshalWithOptions(text, &out, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	seen := map[string]bool{}
	for _, s := range out {
		if s.Title == "" || s.About == "" || len(s.Names) == 0 {
			return nil, fmt.Errorf("%s: section %q: want title, about and pages", file, s.Title)
		}
		if s.Path == "" {
			s.Path = strings.ToLower(s.Title)
		}
		for _, n := range s.Names {
			if seen[n] {
				return nil, fmt.Errorf("%s: section %q: %s is there twice", file, s.Title, n)
			}
			seen[n] = true
		}
	}
	return out, nil
}

// sitePath is where the site has a page of the repository.
func sitePath(name string) string {
	if name == home {
		return "index.html"
	}
	return strings.ToLower(strings.TrimSuffix(path.Base(name), ".md")) + ".html"
}
