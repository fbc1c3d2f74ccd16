package cli

import (
	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/app/cli/about"
	"github.com/ibwarden/ibwarden/internal/app/cli/table"
)

func newVersion() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "version", Short: "Print version and build", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if asJSON {
				return table.JSON(c.OutOrStdout(), about.This())
			}
			return about.This().Print(c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}
