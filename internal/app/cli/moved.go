package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// movedCommand is a command that had another name in the release before.
type movedCommand struct {
	old string
	// now is what it is called, with the flags that the old name implied.
	now string
}

// movedCommands go on working under their old names for a release.
var movedCommands = []movedCommand{
	{"backup", "store backup"},
	{"config", "run config"},
	{"console", "show console"},
	{"devices", "show adapters"},
	{"drained", "drain list"},
	{"events", "show events"},
	{"exec", "keys exec"},
	{"export", "policy export"},
	{"get", "device get"},
	{"led", "device led"},
	{"managers", "show managers"},
	{"matrix", "show matrix"},
	{"member", "partition member"},
	{"pool", "port pool"},
	{"reach", "show reach"},
	{"restore", "store restore"},
	{"set", "device set"},
	{"sweeps", "show sweeps"},
	{"token", "tenant token"},
	{"undrain", "drain end"},
	{"watch", "show events --follow"},
}

// mayBeMoved reports whether a word of a command line may be an old name: most have none, and the trees
// that addMoved makes take longer than all else that happens before a command runs.
func mayBeMoved(word string) bool {
	return slices.ContainsFunc(movedCommands, func(m movedCommand) bool { return m.old == word })
}

// addMoved adds the old names to the top level, hidden. A command has one parent, so each is taken
// out of a tree of its own that make makes, and works as it does there.
func addMoved(root *cobra.Command, make func() *cobra.Command) {
	tree, last := make(), map[string]bool{}
	for _, m := range movedCommands {
		words := strings.Fields(m.now)
		path, flags := words, []string(nil)
		for i, w := range words {
			if strings.HasPrefix(w, "--") {
				path, flags = words[:i], words[i:]
				break
			}
		}
		if name := strings.Join(path, " "); last[name] {
			tree = make() // what is there was taken for another old name
		} else {
			last[name] = true
		}
		c, rest, err := tree.Find(path)
		if err != nil || len(rest) > 0 || c.Parent() == nil {
			panic(fmt.Sprintf("%q is moved to %q, which is no command", m.old, m.now))
		}
		c.Parent().RemoveCommand(c)
		_, arguments, _ := strings.Cut(c.Use, " ")
		c.Use, c.Hidden, c.GroupID = strings.TrimSpace(m.old+" "+arguments), true, ""
		for _, f := range flags {
			if err := c.Flags().Set(strings.TrimPrefix(f, "--"), "true"); err != nil {
				panic(fmt.Sprintf("%q is moved to %q: %v", m.old, m.now, err))
			}
		}
		sayMoved(c, m.old, m.now)
		root.AddCommand(c)
	}
}

// sayMoved has a command, and those below it, say their new names before they do anything. That
// goes to standard error, and is no part of what a script reads.
func sayMoved(c *cobra.Command, old, now string) {
	c.Long = fmt.Sprintf("%s\n\nThis is the old name of ibwarden %s.", strings.TrimRight(longOf(c), "\n"), now)
	if run := c.RunE; run != nil {
		c.RunE = func(c *cobra.Command, args []string) error {
			fmt.Fprintf(c.ErrOrStderr(), "ibwarden: %q is now %q\n", old, now)
			return run(c, args)
		}
	}
	for _, sub := range c.Commands() {
		sayMoved(sub, old+" "+sub.Name(), now+" "+sub.Name())
	}
}

func longOf(c *cobra.Command) string {
	if c.Long != "" {
		return c.Long
	}
	return c.Short
}
