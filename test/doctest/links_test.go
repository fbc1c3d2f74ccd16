package doctest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/app/cli"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
	"github.com/spf13/cobra"
)

var (
	link     = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	code     = regexp.MustCompile("`([^`]+)`")
	flagWord = regexp.MustCompile(`--[a-z][a-z-]*`)
)

// TestLinks: what a page refers to is there.
func TestLinks(t *testing.T) {
	links := 0
	for _, p := range pages(t) {
		fenced := false // what programs print is no link
		for i, line := range p.lines {
			if strings.HasPrefix(line, "```") {
				fenced = !fenced
			}
			if fenced {
				continue
			}
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				links++
				if _, err := os.Stat(filepath.Join(filepath.Dir(p.name), m[1])); err != nil {
					t.Errorf("%s:%d: %s: %v", p.name, i+1, m[0], err)
				}
			}
		}
	}
	if links < 30 {
		t.Errorf("%d links: looking for the wrong thing", links)
	}
}

// TestUsage: commands and flags that pages speak of, in code and in indented lines,
// are there.
func TestUsage(t *testing.T) {
	checked, root := 0, cli.Root()
	for _, p := range pages(t) {
		for i, line := range p.lines {
			var spoken []string
			if rest, ok := strings.CutPrefix(line, "    "); ok {
				spoken = append(spoken, rest)
			}
			for _, m := range code.FindAllStringSubmatch(line, -1) {
				spoken = append(spoken, m[1])
			}
			for _, text := range spoken {
				rest, ok := strings.CutPrefix(text, "ibwarden ")
				if !ok || strings.HasPrefix(rest, "COMMAND") {
					continue
				}
				checked++
				checkUsage(t, root, p, i+1, rest)
			}
		}
	}
	if checked < 30 {
		t.Errorf("%d commands: looking for the wrong thing", checked)
	}
}

func checkUsage(t *testing.T, root *cobra.Command, p *page, line int, text string) {
	t.Helper()
	own, _, _ := strings.Cut(text, " -- ")
	own, _, _ = strings.Cut(own, " # ")
	c, rest, err := root.Find(strings.Fields(own))
	switch {
	case err != nil:
		t.Errorf("%s:%d: ibwarden %s: %v", p.name, line, text, err)
	case len(rest) > 0 && c.HasSubCommands() && !c.HasParent() && !strings.HasPrefix(rest[0], "-"):
		t.Errorf("%s:%d: ibwarden %s: no such command", p.name, line, text)
	}
	for _, name := range flagWord.FindAllString(own, -1) {
		name = strings.TrimPrefix(name, "--")
		if err == nil && name != "help" && c.Flags().Lookup(name) == nil && c.InheritedFlags().Lookup(name) == nil {
			t.Errorf("%s:%d: ibwarden %s: %s has no --%s", p.name, line, text, c.CommandPath(), name)
		}
	}
}

// TestPolicies: policies on the pages, and those among the examples, are good.
func TestPolicies(t *testing.T) {
	policies := 0
	check := func(name, text string) {
		policies++
		if _, err := policyfile.Read([]byte(text), "page.yaml", policyfile.Options{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, p := range pages(t) {
		for _, block := range regexp.MustCompile("(?s)```yaml\n(version:.*?)```").FindAllStringSubmatch(strings.Join(p.lines, "\n"), -1) {
			check(p.name, block[1])
		}
	}
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		check(f, string(text))
	}
	if policies < 5 {
		t.Errorf("%d policies: looking for the wrong thing", policies)
	}
	demo, err := os.ReadFile(filepath.Join("..", "..", "internal", "app", "daemon", "demo.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	tenants, err := os.ReadFile(filepath.Join("..", "..", "examples", "tenants.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if string(demo) != string(tenants) {
		t.Error("examples/tenants.yaml is not the policy of the demonstration")
	}
}
