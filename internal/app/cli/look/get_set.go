package look

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
)

// NewSet is `ibwarden device set`. Add adds the flags that name a fabric, and returns what opens it.
func NewSet(add func(*pflag.FlagSet) func(*cobra.Command) (link.Link, sweep.Options, error), help string) *cobra.Command {
	c := &cobra.Command{
		Use:   "set DEVICE[:PORT] ATTRIBUTE FIELD=0...",
		Short: "Set counters of a device back to zero",
		Long: `Set counters of a device back to zero; no other field can be set. A counter stops
at its highest value, and counts again once it was set back.

PortInfo has MKeyViolations, PKeyViolations and QKeyViolations: SubnSet(PortInfo)
writes these, and all else as it was read just before. It takes the key of the port
(--data), and is refused where the port belongs to another subnet manager: one behind
another port than the one that this command works from, without a key of it here.
PortCounters, PortCountersExtended, PortRcvErrorDetails and PortXmitDiscardDetails
have the performance counters, which no key guards; all=0 sets all of an attribute
back. DEVICE and ATTRIBUTE are those of ibwarden device get.

A running manager resets by itself those violation counters that have stopped.

` + help,
		Args: cobra.MinimumNArgs(3),
	}
	open := add(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		k, err := FindAttribute(args[1])
		if err != nil {
			return terminal.WithMisuse(err)
		}
		counters, err := k.Counters(args[2:])
		if err != nil {
			return terminal.WithMisuse(err)
		}
		to, reads, err := open(c)
		if err != nil {
			return err
		}
		defer to.Close()
		found, err := Live(c, to, reads)
		if err != nil {
			return err
		}
		t, err := located(found.Fabric, args[0], len(found.Faults))
		if err != nil {
			return err
		}
		before, after, err := ResetAttribute(c.Context(), to, found.Fabric, t, k, counters)
		if err != nil {
			return terminal.WithBad(err)
		}
		out := terminal.NewTable("field", "before", "after")
		for _, name := range counters {
			out.Add(name, valueOf(before, name), valueOf(after, name))
		}
		return terminal.OrBad(out.Print(c.OutOrStdout(), "counters", false))
	}
	return c
}

// valueOf is the value of a field of what was read.
func valueOf(r AttributeResult, name string) any {
	fields := r.Answers[0].Fields
	i := slices.IndexFunc(fields, func(f ib.Explained) bool { return f.Name == name })
	if i < 0 {
		return fmt.Sprintf("no %s", name)
	}
	return fields[i].Value
}
