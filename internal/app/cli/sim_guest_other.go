//go:build !linux

package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
)

// newGuest is `ibwarden sim guest`.
func newGuest() *cobra.Command {
	return &cobra.Command{
		Use:   "guest",
		Short: "Boot Linux machines in the place of hosts of a served fabric",
		RunE: func(*cobra.Command, []string) error {
			return terminal.WithMisuse(fmt.Errorf("Linux machines run on Linux, and this is %s", runtime.GOOS))
		},
	}
}
