package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/app/telemetry"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/partitionsconf"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
	"github.com/ibwarden/ibwarden/internal/policy/policyyaml"
)

// readPolicy reads a policy file; its faults and warnings go to w, a line
// each, with file, line and column.
func readPolicy(path string, o policyfile.Options, w io.Writer) (*policy.Policy, error) {
	data, err := readBounded(path)
	if err != nil {
		return nil, misuse(err)
	}
	p, err := policyfile.Read(data, path, o)
	if err != nil {
		return nil, refused(path, err, w)
	}
	warn(w, path, p.Warnings)
	return p, nil
}

func warn(w io.Writer, path string, warnings []policy.Fault) {
	for _, f := range warnings {
		fmt.Fprintf(telemetry.LogAt(w, slog.LevelWarn), "%s:%s (warning)\n", path, f)
	}
}

// refused says every fault and sums them up.
func refused(path string, err error, w io.Writer) error {
	var faults *policy.Error
	if !errors.As(err, &faults) {
		return misuse(err)
	}
	fmt.Fprintln(telemetry.LogAt(w, slog.LevelError), faults)
	return misuse(fmt.Errorf("%s: %s; the whole policy is refused", path, terminal.Count(len(faults.Faults), "fault")))
}

// readBounded reads a file that is not larger than any policy may be.
func readBounded(path string) ([]byte, error) {
	return files.Read(path, partitionsconf.FileSizeMax)
}

func newPolicy() *cobra.Command {
	cmd := &cobra.Command{
		Use: "policy check|convert|export|schema", Short: "Check and convert policy files, and print the policy in force", Args: commandOf,
		RunE: needsCommand,
	}
	var o policyfile.Options
	check := &cobra.Command{
		Use: "check FILE", Short: "Report every fault of a policy file", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := readPolicy(args[0], o, c.ErrOrStderr())
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
			data, err := readBounded(args[0])
			if err != nil {
				return misuse(err)
			}
			out, warnings, err := policyfile.Convert(data, args[0], o)
			if err != nil {
				return refused(args[0], err, c.ErrOrStderr())
			}
			warn(c.ErrOrStderr(), args[0], warnings)
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
			_, err := c.OutOrStdout().Write(policyyaml.Schema)
			return err
		},
	})
	return cmd
}

const allowBothHelp = "in a partitions.conf, =both gives the full and the limited key (OpenSM's -W)"
