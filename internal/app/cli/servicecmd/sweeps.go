package servicecmd

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
)

// Sweeps is `ibwarden show sweeps`.
func Sweeps() *cobra.Command {
	var limit int
	c := reader("sweeps", "List the last sweeps of the manager, with the time and the packets of each phase", cobra.NoArgs, func(c *cobra.Command, f *serverFlags, to *client.Client, _ []string) error {
		if limit < 1 {
			return terminal.WithMisuse(fmt.Errorf("--limit %d: want 1 or more", limit))
		}
		list, err := client.Page[views.Sweep](c.Context(), to, "/sweeps", limit, nil)
		if err != nil {
			return err
		}
		if f.json {
			return terminal.JSON(c.OutOrStdout(), map[string]any{"sweeps": list})
		}
		for i := range list {
			if err := printSweep(c, &list[i]); err != nil {
				return err
			}
		}
		return nil
	})
	c.Flags().IntVar(&limit, "limit", 1, "at most this many")
	c.Long = c.Short + `.

A sweep is everything from one rest of the manager to the next: discovery, the computation of
tables, their writing and the proof. Light sweeps, which ask for changes only, are not listed.
FABRIC is the time by the fabric, which is another one where the fabric is simulated. LEAST is how
many packets would have done: who and how each device and port is, and each table, read once,
what differs written once, and what isolates read back once.`
	return c
}

func printSweep(c *cobra.Command, s *views.Sweep) error {
	reason, open := s.Reason, ""
	if reason != "" {
		reason = ": " + terminal.Plain(reason)
	}
	if !s.Done {
		open = ", under way"
	}
	fmt.Fprintf(c.OutOrStdout(), "sweep %d, %s%s%s\n", s.Number, s.Began.UTC().Format(time.RFC3339), open, reason)
	t := terminal.NewTable("phase", "seconds", "fabric", "sent", "least", "answered", "repeated", "lost")
	for _, p := range s.Phases {
		addCost(&t, terminal.Plain(p.Name), p.Cost)
	}
	addCost(&t, "all", s.Cost)
	return t.Print(c.OutOrStdout(), "", false)
}

func addCost(t *terminal.Table, name string, x views.Cost) {
	t.Add(name, fmt.Sprintf("%.4f", x.Seconds), fmt.Sprintf("%.6f", x.FabricSeconds), x.Sent, x.Least, x.Answered, x.Repeated, x.Lost)
}
