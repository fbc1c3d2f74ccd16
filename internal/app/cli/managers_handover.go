package cli

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/app/cli/servicecmd"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
)

func newHandover() *cobra.Command {
	var server servicecmd.Server
	var to, why string
	var dry, asJSON bool
	c := &cobra.Command{
		Use: "handover", Short: "Hand the subnet over to another subnet manager, as planned", Args: cobra.NoArgs,
		Long: `Hand the subnet over to another subnet manager, as planned.

The service of the present master is asked (--server, or the one on this machine): it
offers mastership to a standby that is trusted, with HANDOVER, and stands by when that
has taken it. From then on it announces a priority below that of the new master, so that
the subnet is not handed back, until it is master again or is restarted: then it uses its
--priority again, and gets the subnet back if that is the highest. To get it back earlier,
ask the new master for a handover.

A standby that does not share the master secret, such as an OpenSM that is named by
--trusted-sm, needs a priority of 1 or more, or the lower port GUID.

Exit status 1 if the subnet was not handed over: this manager is still master, with its
own priority.
`,
	}
	server.Add(c.Flags())
	c.Flags().StringVar(&to, "to", "", "the standby: port GUID, node GUID or node description (default: the one that ranks highest)")
	c.Flags().StringVar(&why, "why", "", "the reason, for the audit log")
	c.Flags().BoolVar(&dry, "dry-run", false, "print who would get the subnet, and hand nothing over")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	c.RunE = func(c *cobra.Command, _ []string) error {
		service, err := server.Open(c)
		if err != nil {
			return err
		}
		var out views.HandedOver
		p := client.Params{DryRun: dry, Why: why}
		if err := service.Write(c.Context(), http.MethodPost, "/managers/handover", p, views.HandOverBody{To: to}, &out); err != nil {
			return server.Failed(err)
		}
		if asJSON {
			err = terminal.JSON(c.OutOrStdout(), out)
		} else {
			_, err = fmt.Fprintln(c.OutOrStdout(), terminal.Plain(out.Text))
		}
		if err != nil {
			return terminal.WithBad(err)
		}
		return nil
	}
	return c
}
