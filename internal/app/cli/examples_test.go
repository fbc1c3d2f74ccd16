package cli

import (
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/app/telemetry"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// every calls yield for a command and all below it.
func every(c *cobra.Command, yield func(*cobra.Command)) {
	yield(c)
	for _, sub := range c.Commands() {
		every(sub, yield)
	}
}

// isMoved reports whether a command, or one above it, is an old name.
func isMoved(c *cobra.Command) bool {
	for ; c.HasParent(); c = c.Parent() {
		if c.Hidden {
			return true
		}
	}
	return false
}

// TestEveryCommandHasExamples: and each of them is a command that there is, with
// flags and arguments that it takes.
func TestEveryCommandHasExamples(t *testing.T) {
	commands := 0
	every(Root(), func(c *cobra.Command) {
		if isMoved(c) {
			return // the examples are those of its new name
		}
		commands++
		if strings.TrimSpace(c.Example) == "" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		shown := false
		for line := range strings.Lines(c.Example) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "#") {
				continue
			}
			shown = shown || strings.HasPrefix(line, c.CommandPath()) || strings.Contains(line, "<("+c.CommandPath()) || c.Name() == "help"
			checkExample(t, line)
		}
		if !shown {
			t.Errorf("no example of %s is about it", c.CommandPath())
		}
	})
	if commands < 30 || commands != len(examples) {
		t.Errorf("%d commands and examples for %d", commands, len(examples))
	}
}

// checkExample parses a line as the program would, and does not run it.
func checkExample(t *testing.T, line string) {
	t.Helper()
	line = strings.TrimSuffix(strings.TrimPrefix(line, "source <("), ")")
	line, _, _ = strings.Cut(line, " >")
	line, _, _ = strings.Cut(line, " |")
	words := strings.Fields(strings.TrimSuffix(line, "&"))
	if len(words) == 0 || words[0] != "ibwarden" {
		t.Errorf("%q is no command of ibwarden", line)
		return
	}
	root := newTree(new(telemetry.LogOptions)) // without the old names, of which no example is
	c, args, err := root.Find(words[1:])
	if err != nil {
		t.Errorf("%q: %v", line, err)
		return
	}
	if err := c.ParseFlags(args); err != nil {
		t.Errorf("%q: %v", line, err)
		return
	}
	if err := c.ValidateArgs(c.Flags().Args()); err != nil {
		t.Errorf("%q: %v", line, err)
	}
	if err := c.ValidateRequiredFlags(); err != nil {
		t.Errorf("%q: %v", line, err)
	}
	if !c.Runnable() {
		t.Errorf("%q: runs nothing", line)
	}
	c.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.String() == "" {
			t.Errorf("%q: --%s is empty", line, f.Name)
		}
	})
}
