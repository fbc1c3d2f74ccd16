package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/app/cli"
)

// TestPages: every command has a page with its flags and examples, and what Markdown
// would take for its own stands in it as in the help.
func TestPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man")
	if err := write(dir); err != nil {
		t.Fatal(err)
	}
	commands := cli.HelpCommands(cli.Root())
	for _, c := range commands {
		text, err := os.ReadFile(filepath.Join(dir, cli.HelpPage(c)+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		page := strings.ReplaceAll(string(text), `\-`, "-")
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return // for the program itself
			}
			if !strings.Contains(page, "--"+f.Name) || !strings.Contains(page, strings.ReplaceAll(f.Usage, "\\", `\e`)) {
				t.Errorf("the page of %s does not have --%s as in its help", c.CommandPath(), f.Name)
			}
		})
		for line := range strings.Lines(c.Example) {
			if !strings.Contains(page, strings.TrimSpace(line)) {
				t.Errorf("the page of %s does not have the example %q", c.CommandPath(), line)
			}
		}
		if strings.Contains(c.Long, "IBSIM_SERVER_*") && !strings.Contains(page, "IBSIM_SERVER_* are read") {
			t.Errorf("the page of %s has another name than IBSIM_SERVER_*", c.CommandPath())
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(files) != len(commands) || len(files) < 30 {
		t.Errorf("%d files for %d commands (%v)", len(files), len(commands), err)
	}
}

// TestCompletions: each shell has its file; dates and options are as mandoc wants them.
func TestCompletions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "completions")
	if err := completions(dir); err != nil {
		t.Fatal(err)
	}
	for name, has := range map[string]string{"ibwarden.bash": "complete -o default", "_ibwarden": "#compdef ibwarden", "ibwarden.fish": "complete -c ibwarden"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(text), has) {
			t.Errorf("%s has no %q (%v)", name, has, err)
		}
	}
	page := string(asManDoc([]byte(".TH \"A\" \"1\" \"Nov 2026\" \"b\"\n.SH OPTIONS\n\\fB--x\\fP=1\n\twhat it does\n\n.PP\n\\fB--y\\fP=2\n\tmore\n\n"), "2026-11-23"))
	if want := ".TH \"A\" \"1\" \"2026-11-23\" \"b\"\n.SH OPTIONS\n.TP\n\\fB--x\\fP=1\nwhat it does\n.TP\n\\fB--y\\fP=2\nmore\n"; page != want {
		t.Errorf("%q, want %q", page, want)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if _, err := date(); err == nil {
		t.Error("SOURCE_DATE_EPOCH=yesterday is a time")
	}
}
