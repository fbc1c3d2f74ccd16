package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/app/cli/look"
)

// newDevice is `ibwarden device`: what is asked of a single device, and set in it.
func newDevice() *cobra.Command {
	add, read := forOthers()
	c := &cobra.Command{
		Use: "device get|set|led|report", Short: "Read the attributes of a device, set its counters back, find it by its light", Args: commandOf,
	}
	c.AddCommand(look.ReportCommand(add, read, fabricHelp), look.GetCommand(forGet()), look.NewSet(addFabric, fabricHelp), look.LedCommand(addFabric, commandOf, fabricHelp))
	c.RunE = needsCommand
	return c
}

// needsCommand is what a command does that is nothing without one of those below it.
func needsCommand(c *cobra.Command, _ []string) error {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	text, last := names[len(names)-1], len(names)-1
	if last > 0 {
		text = strings.Join(names[:last], ", ") + " or " + text
	}
	return misuse(fmt.Errorf("%s needs a command: %s", c.Name(), text))
}

// withoutJSON is a command that does not print what it is asked for as JSON, below one whose other
// commands do.
func withoutJSON(c *cobra.Command, why string) *cobra.Command {
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if as := c.Flags().Lookup("json"); as != nil && as.Changed {
			return misuse(fmt.Errorf("--json: %s", why))
		}
		return run(c, args)
	}
	return c
}
