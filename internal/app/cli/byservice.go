package cli

import (
	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/app/cli/servicecmd"
)

// byService reports whether a command asks a service; if not, it goes to a fabric.
func byService(c *cobra.Command, n *servicecmd.Named) (bool, error) {
	return n.Choose(c, fabricVariable)
}
