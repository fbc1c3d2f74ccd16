package servicecmd

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
)

// addTenant adds --tenant to a command that is about what a tenant owns. Its old name, --owner, works
// for a release, and says the new one on standard error.
func addTenant(c *cobra.Command, to *string, usage string) {
	const name, old = "tenant", "owner"
	c.Flags().StringVar(to, name, "", usage)
	c.Flags().StringVar(to, old, "", usage)
	_ = c.Flags().MarkHidden(old) // it is there
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		if !c.Flags().Changed(old) {
			return nil
		}
		if c.Flags().Changed(name) {
			return terminal.WithMisuse(errors.New("--tenant and --owner are the same: want --tenant alone"))
		}
		fmt.Fprintf(c.ErrOrStderr(), "ibwarden: %q is now %q\n", "--"+old, "--"+name)
		return nil
	}
}
