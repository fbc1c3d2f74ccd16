package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/names"
)

// commandOf refuses words after a command that is nothing without one of its own:
// what is misspelt is proposed as it is spelt.
func commandOf(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var all []string
	for _, sub := range c.Commands() {
		all = append(all, sub.Name())
	}
	return fmt.Errorf("unknown command %q for %q%s", args[0], c.CommandPath(), names.DidYouMean(args[0], all))
}

// flagError adds the flag that may have been meant by one that is not there.
func flagError(c *cobra.Command, err error) error {
	var missing *pflag.NotExistError
	if !errors.As(err, &missing) {
		return err
	}
	var all []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			all = append(all, "--"+f.Name)
		}
	})
	return fmt.Errorf("%w%s", err, names.DidYouMean("--"+missing.GetSpecifiedName(), all))
}

// sayDemonstration says that a command is about the embedded fabric, where nobody
// has chosen that.
func sayDemonstration(c *cobra.Command) {
	fabric := c.Flags().Lookup("fabric")
	if fabric == nil || fabric.Changed || fabric.DefValue != daemon.Demonstration || os.Getenv(fabricVariable) != "" {
		return
	}
	fmt.Fprintf(c.ErrOrStderr(), "ibwarden: neither --fabric nor %s names a fabric: this is the embedded demonstration\n", fabricVariable)
}
