package terminal

import (
	"github.com/spf13/cobra"
)

// VersionCommand is ibwarden version.
func VersionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "version", Short: "Print version and build", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if asJSON {
				return JSON(c.OutOrStdout(), ThisProgram())
			}
			return ThisProgram().Print(c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}
