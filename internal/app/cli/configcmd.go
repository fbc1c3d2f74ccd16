// This file implements `ibwarden run config`: what is wrong with a configuration file,
// and its JSON Schema.

package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/run"
)

// Path is where packages put the configuration file.
const Path = "/etc/ibwarden/ibwarden.yaml"

// Run is what the commands need of `ibwarden run`.
type Run struct {
	// Variable names the configuration file of a run that is not told of one.
	Variable string
	// Check checks a file as a run would, with the files that it names, and returns those
	// that were read.
	Check func(c *cobra.Command, path string) (files []string, err error)
	// Flags are the flags of a run.
	Flags func() *pflag.FlagSet
}

// Command is `ibwarden run config`; group refuses what is no command of a group.
func Command(run Run, group cobra.PositionalArgs) *cobra.Command {
	c := &cobra.Command{
		Use: "config check|schema", Short: "Check configuration files of ibwarden run", Args: group,
		Long: `Check configuration files of ibwarden run, and print their JSON Schema.

What a file may say: docs/configuration.md. ibwarden run --print-config prints every
setting, and where its value comes from.`,
		RunE: needsCommand,
	}
	c.AddCommand(check(run), schema(run))
	return c
}

func check(run Run) *cobra.Command {
	return &cobra.Command{
		Use: "check [FILE]", Short: "Report every fault of a configuration file", Args: cobra.MaximumNArgs(1),
		Long: `Report every fault of a configuration file, of the files of conf.d beside it, and of the
policy, the list of cables and the other files that they name. Nothing is sent, made or
changed.

Without FILE it is the file of ` + run.Variable + `, or ` + Path + `.

Exit status: 0 ibwarden run --config FILE would begin; 2 it would not.`,
		RunE: func(c *cobra.Command, args []string) error {
			path := os.Getenv(run.Variable)
			if path == "" {
				path = Path
			}
			if len(args) > 0 {
				path = args[0]
			}
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
				return terminal.WithMisuse(fmt.Errorf("%s: there is no such file: want a configuration file of ibwarden run", path))
			}
			files, err := run.Check(c, path)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "good: %s\n", strings.Join(files, ", "))
			return nil
		},
	}
}

func schema(r Run) *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of configuration files, for editors", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return exitBad(terminal.JSON(c.OutOrStdout(), run.Schema(r.Flags(), CompletionWords)))
		},
	}
}

func exitBad(err error) error {
	if err == nil {
		return nil
	}
	return terminal.WithBad(err)
}
