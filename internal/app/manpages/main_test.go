package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
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
	pages := 0
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			look(sub)
		}
		if !c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand() {
			return
		}
		pages++
		text, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1"))
		if err != nil {
			t.Error(err)
			return
		}
		page := strings.ReplaceAll(string(text), `\-`, "-")
		c.Flags().VisitAll(func(f *pflag.Flag) {
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
	look(cli.Root())
	files, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(files) != pages || pages < 30 {
		t.Errorf("%d files for %d commands (%v)", len(files), pages, err)
	}
}
