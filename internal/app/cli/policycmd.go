package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/run"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
)

func newPolicy() *cobra.Command {
	cmd := &cobra.Command{
		Use: "policy check|convert|export|schema", Short: "Check and convert policy files, and print the policy in force", Args: commandOf,
		RunE: needsCommand,
	}
	var o policyfile.Options
	check := &cobra.Command{
		Use: "check FILE", Short: "Report every fault of a policy file", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			p, _, err := run.ReadPolicy(args[0], o, c.ErrOrStderr())
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: good: %s, %s, %s, %s\n", args[0], terminal.Count(len(p.Partitions), "partition"),
				terminal.Count(len(p.Services), "service"), terminal.Count(len(p.Groups), "group"), terminal.Count(len(p.Warnings), "warning"))
			return nil
		},
	}
	convert := &cobra.Command{
		Use:   "convert FILE",
		Short: "Turn a partitions.conf into YAML, and YAML into a partitions.conf",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			data, err := run.ReadBounded(args[0])
			if err != nil {
				return misuse(err)
			}
			out, warnings, err := policyfile.Convert(data, args[0], o)
			if err != nil {
				return run.Refused(args[0], err, c.ErrOrStderr())
			}
			run.Warn(c.ErrOrStderr(), args[0], warnings)
			_, err = c.OutOrStdout().Write(out)
			return err
		},
	}
	for _, c := range []*cobra.Command{check, convert} {
		c.Flags().BoolVar(&o.AllowBoth, "allow-both", false, allowBothHelp)
	}
	cmd.AddCommand(check, convert, &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of policies in YAML, for editors", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := c.OutOrStdout().Write(policyfile.Schema)
			return err
		},
	})
	return cmd
}

const allowBothHelp = "in a partitions.conf, =both gives the full and the limited key (OpenSM's -W)"
