package cli

import (
	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/app/cli/servicecmd"
)

// byService reports whether a command asks a service; if not, it goes to a fabric, and it
// is said when that is the embedded one without anybody's choice.
func byService(c *cobra.Command, n *servicecmd.Named) (bool, error) {
	asks, err := n.Choose(c, fabricVariable)
	if err == nil && !asks {
		sayDemonstration(c)
	}
	return asks, err
}
