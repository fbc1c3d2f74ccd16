package servicecmd

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
)

// Drain is `ibwarden drain`: of a switch, or one of the commands below it.
func Drain() *cobra.Command {
	c := writer("drain SWITCH", "Take a switch out of the routes of others, for work on it", cobra.ExactArgs(1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		return f.change(c, to, http.MethodPost, "/drains", f.params(""), api.DrainBody{Switch: args[0]})
	})
	c.Long = c.Short + `.

Packets between other switches take other ways. The switch keeps one link, for itself and for
the hosts at it. A switch without which others could not reach each other carries them on, and the
manager warns of it: take a switch out of service when ibwarden drain list has it with 0 routes.

SWITCH is a node GUID, or a node description; a switch called list or end has to be named by its GUID.`
	c.AddCommand(drainList(), drainEnd())
	return c
}

// drainEnd is `ibwarden drain end`.
func drainEnd() *cobra.Command {
	return writer("end SWITCH", "Let a drained switch carry packets again", cobra.ExactArgs(1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		list, err := client.All[api.Drain](c.Context(), to, "/drains", nil)
		if err != nil {
			return err
		}
		guid := ""
		for _, x := range list {
			if x.Switch == args[0] || x.Name == args[0] {
				if guid != "" {
					return terminal.WithMisuse(fmt.Errorf("several drained switches are called %s: name one by its node GUID", terminal.Plain(args[0])))
				}
				guid = x.Switch
			}
		}
		if guid == "" {
			return terminal.WithMisuse(fmt.Errorf("%s is not drained (ibwarden drain list has those that are)", terminal.Plain(args[0])))
		}
		return f.change(c, to, http.MethodDelete, "/drains/"+url.PathEscape(guid), f.params(""), nil)
	})
}

// drainList is `ibwarden drain list`.
func drainList() *cobra.Command {
	return reader("list", "List the drained switches, and how many routes still lead over each", cobra.NoArgs, func(c *cobra.Command, f *serverFlags, to *client.Client, _ []string) error {
		list, err := client.All[api.Drain](c.Context(), to, "/drains", nil)
		if err != nil {
			return err
		}
		if f.json {
			return terminal.JSON(c.OutOrStdout(), map[string]any{"drains": list})
		}
		t := terminal.NewTable("switch", "name", "routes")
		for _, x := range list {
			t.Add(x.Switch, x.Name, x.Routes)
		}
		return t.Print(c.OutOrStdout(), "switches", false)
	})
}
