// This file implements `ibwarden show adapters`: the adapters of this machine.

package look

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
)

// DevicesCommand returns the command.
func DevicesCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "adapters",
		Short: "List the adapters of this machine and their ports",
		Long: `List the adapters of this machine and their ports, as --fabric umad:DEVICE/PORT
names them. Only /sys is read. A port can be managed when its link layer is
InfiniBand, it has a MAD file, and it is not DOWN.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			devices, err := daemon.Devices()
			if err != nil {
				return terminal.WithBad(err)
			}
			if err := terminal.Devices(devices).Print(c.OutOrStdout(), "ports", asJSON); err != nil {
				return terminal.WithBad(err)
			}
			if len(devices) == 0 {
				return terminal.WithBad(fmt.Errorf("%w", umad.ErrNoDevice))
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}
