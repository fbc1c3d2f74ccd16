package completion

import (
	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
)

// words are the values of flags that have few, for shells to complete.
var words = map[string][]string{
	"routing": {string(routing.UpDown), string(routing.MinHop)},
	"fail-on": {"low", "medium", "high", "critical"},
	"profile": {"basic", "strict"},
	"service": {"UD", "RC", "UC", "RD", "raw"},
	"pace":    {"fast", "real"},
}

// Add tells shells the words of flags, of a command and of those below it.
func Add(c *cobra.Command) {
	for name, list := range words {
		if c.Flags().Lookup(name) != nil {
			// An error would mean that it was told twice.
			_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	for _, sub := range c.Commands() {
		Add(sub)
	}
}
