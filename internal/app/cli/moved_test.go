package cli

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// topMost bounds the commands that `ibwarden --help` lists.
const topMost = 31

// TestTopIsShort: whoever reads the help can read all of it.
func TestTopIsShort(t *testing.T) {
	n := 0
	for _, c := range Root().Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			n++
		}
	}
	if n > topMost || n < topMost/2 {
		t.Errorf("ibwarden --help lists %d commands: want %d at most", n, topMost)
	}
}

// TestMovedCommands: under its old name a command is not listed, takes the same flags, and does what
// it does under its new name, after one line on standard error.
func TestMovedCommands(t *testing.T) {
	root, seen := Root(), 0
	t.Chdir(t.TempDir())
	for _, m := range movedCommands {
		c, rest, err := root.Find([]string{m.old})
		if err != nil || len(rest) > 0 || c.Parent() != root || !c.Hidden {
			t.Errorf("%s: %v, %v, hidden %v", m.old, err, rest, c.Hidden)
			continue
		}
		path, flags, _ := strings.Cut(m.now, " --")
		every(c, func(c *cobra.Command) {
			old := strings.TrimPrefix(c.CommandPath(), "ibwarden ")
			below := strings.TrimPrefix(old, m.old)
			sameFlags(t, root, c, path+below)
			if c.HasSubCommands() {
				return
			}
			seen++
			args := lineOf(t, c, path+below)
			if flags != "" {
				flags = "--" + flags
			}
			hint := fmt.Sprintf("ibwarden: %q is now %q\n", old, m.now+below)
			sameRun(t, append(strings.Fields(old), args...), append(append(strings.Fields(path+below), strings.Fields(flags)...), args...), hint)
		})
	}
	if seen < len(movedCommands) {
		t.Errorf("only %d commands were run", seen)
	}
}

// sameFlags compares the flags of a command with those that it has under its new name.
func sameFlags(t *testing.T, root, c *cobra.Command, now string) {
	t.Helper()
	is, _, err := root.Find(strings.Fields(now))
	if err != nil {
		t.Fatalf("%s: %v", now, err)
	}
	c.InheritedFlags()
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if is.InheritedFlags(); is.Flags().Lookup(f.Name) == nil {
			t.Errorf("%s has --%s, and %s does not", c.CommandPath(), f.Name, now)
		}
	})
	is.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if g := c.Flags().Lookup(f.Name); g == nil || g.DefValue != f.DefValue || g.Usage != f.Usage {
			t.Errorf("%s has another --%s than %s", c.CommandPath(), f.Name, now)
		}
	})
}

// lineOf is what stands after the name of a command in its first example, with a service and a
// fabric that are not there.
func lineOf(t *testing.T, c *cobra.Command, now string) []string {
	t.Helper()
	line := ""
	for l := range strings.Lines(examples[now]) {
		if l = strings.TrimSpace(l); strings.HasPrefix(l, "ibwarden "+now) {
			line, _, _ = strings.Cut(strings.TrimPrefix(l, "ibwarden "+now), " >")
			break
		}
	}
	args := strings.Fields(line)
	var missing []string
	if c.Flags().Lookup("fabric") != nil {
		missing = append(missing, "--fabric", "sim:"+filepath.Join(t.TempDir(), "none"))
	} else if c.Flags().Lookup("server") != nil {
		missing = append(missing, "--server", "unix:none.sock")
	}
	if i := slices.Index(args, "--"); i >= 0 {
		return slices.Insert(args, i, missing...)
	}
	return append(args, missing...)
}

// sameRun runs a command under both names: but for the hint they do the same.
func sameRun(t *testing.T, old, now []string, hint string) {
	t.Helper()
	var out, errs, outNow, errsNow bytes.Buffer
	status, statusNow := Main(old, &out, &errs), Main(now, &outNow, &errsNow)
	if status != statusNow || out.String() != outNow.String() || errs.String() != hint+errsNow.String() {
		t.Errorf("%v: status %d, %q, %q\n%v: status %d, %q, %q\nwant the same after %q", old, status, out.String(), errs.String(), now, statusNow, outNow.String(), errsNow.String(), hint)
	}
}
