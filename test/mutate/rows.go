package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// conformance is the page with the rules of the texts, and with the score, from the root of
// the repository; routingRules has those of the routing engines, serviceRules those of the
// service, in the same form.
const (
	conformance  = "docs/dev/conformance.md"
	routingRules = "docs/dev/routing-rules.md"
	serviceRules = "docs/dev/service-rules.md"
)

// row is what the page says of a rule.
type row struct {
	rule, text string
	where      []string // files and packages
	tests      []test
}

// test is a test that a row names.
type test struct {
	pkg  string // directory, from the root of the repository
	name string // of the function
	part string // of a subtest, or what it begins with; empty when the whole test is meant
}

func (t test) String() string {
	if t.part == "" {
		return t.pkg + " " + t.name
	}
	return t.pkg + " " + t.name + "/" + t.part
}

var (
	rowStart = regexp.MustCompile(`^\| [A-Z]{2}-\d{2,3} \|`)
	codeSpan = regexp.MustCompile("`([^`]+)`")
)

// stories is the test that runs the scripts in scenarios, each as a subtest.
var stories = test{pkg: "internal/lab/scenario", name: "TestStories"}

// readRows reads the rules in the order of the pages.
func readRows(root string) ([]row, error) {
	var out []row
	for _, page := range []string{conformance, routingRules, serviceRules} {
		rules, err := readPage(root, page)
		if err != nil {
			return nil, err
		}
		out = append(out, rules...)
	}
	return out, nil
}

// readPage reads the rules of one page.
func readPage(root, page string) ([]row, error) {
	data, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		return nil, err
	}
	var out []row
	for n, line := range strings.Split(string(data), "\n") {
		if !rowStart.MatchString(line) {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 5 {
			return nil, fmt.Errorf("%s:%d: %d cells, want id, rule, source, where, test", page, n+1, len(cells))
		}
		r := row{rule: cells[0], text: cells[1]}
		for _, span := range codeSpan.FindAllStringSubmatch(cells[3], -1) {
			if strings.Contains(span[1], "/") || span[1] == "ib" {
				r.where = append(r.where, span[1])
			}
		}
		for _, span := range codeSpan.FindAllStringSubmatch(cells[4], -1) {
			r.tests = append(r.tests, testOf(span[1]))
		}
		if len(r.tests) == 0 {
			return nil, fmt.Errorf("%s:%d: %s names no test", page, n+1, r.rule)
		}
		out = append(out, r)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has no rules: not read right", page)
	}
	return out, nil
}

// testOf reads `package TestName`, `package TestName/part` or the path of a script.
func testOf(span string) test {
	if path.Dir(span) == "scenarios" {
		t := stories
		t.part = path.Base(span)
		return t
	}
	pkg, name, _ := strings.Cut(span, " ")
	name, part, _ := strings.Cut(name, "/")
	return test{pkg: pkg, name: name, part: part}
}

// names reports whether the row names the file, or the package that it is in.
func (r row) names(file string) bool {
	return slices.Contains(r.where, file) || slices.Contains(r.where, path.Dir(file))
}

// check says of each mutant whether it applies and is in the code that the row of
// its rule names, and of each rule whether it is spoken of.
func check(s *sources, c *catalogue, rows []row) []error {
	var faults []error
	byRule := map[string]row{}
	for _, r := range rows {
		byRule[r.rule] = r
	}
	has := map[string]bool{}
	for _, m := range c.mutants {
		has[m.rule] = true
		r, known := byRule[m.rule]
		if !known {
			faults = append(faults, fmt.Errorf("%s:%d: %s has no row in %s, %s or %s", m.file, m.line, m.rule, conformance, routingRules, serviceRules))
			continue
		}
		if err := newOverlay(s).change(m); err != nil {
			faults = append(faults, err)
			continue
		}
		for _, p := range m.places {
			if d, _ := s.find(p.pkg, p.decl); !r.names(d.file.rel) { // found by change
				faults = append(faults, fmt.Errorf("%s: the row names other code than %s", m.at(p), d.file.rel))
			}
		}
	}
	for rule := range c.without {
		if _, known := byRule[rule]; !known || has[rule] {
			faults = append(faults, fmt.Errorf("%s is said to be without a mutant: want a rule that has a row and none", rule))
		}
	}
	return faults
}
