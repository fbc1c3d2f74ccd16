package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/cli/table"
	"github.com/ibwarden/ibwarden/internal/daemon"
	"github.com/ibwarden/ibwarden/internal/subnet"
	"github.com/ibwarden/ibwarden/internal/sweep"
)

// views are what `ibwarden show` can show: a table for people and the rows
// behind it for programs.
var views = []struct {
	name, about string
	rows        func(*subnet.Fabric) table.Table
	forwarding  bool
}{
	{"nodes", "devices", table.Nodes, false},
	{"ports", "ports with a cable, and end ports", table.Ports, false},
	{"links", "cables", table.Links, false},
	{"lids", "addresses of end ports", table.LIDs, false},
	{"routes", "forwarding tables", table.Routes, true},
	{"pkeys", "partition key tables", table.PKeys, false},
	{"partitions", "partitions, as the tables of end ports make them", table.Partitions, false},
}

func newShow() *cobra.Command {
	show := &cobra.Command{
		Use:   "show nodes|ports|links|lids|routes|pkeys|partitions",
		Short: "Read a fabric without writing to it",
		Long:  "Read a fabric without writing to it: only SubnGet is sent.\n\n" + fabricHelp,
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return misuse(fmt.Errorf("show what? nodes, ports, links, lids, routes, pkeys or partitions"))
		},
	}
	var where fabricFlags
	asJSON := show.PersistentFlags().Bool("json", false, "print one JSON document")
	where.add(show.PersistentFlags())
	for _, v := range views {
		show.AddCommand(&cobra.Command{
			Use: v.name, Short: "Show " + v.about, Args: cobra.NoArgs,
			RunE: func(c *cobra.Command, _ []string) error {
				link, err := where.open()
				if err != nil {
					return err
				}
				defer link.Close()
				r, err := daemon.Read(c.Context(), link, sweep.Options{Forwarding: v.forwarding, MKey: where.mKey})
				if err != nil {
					return bad(err)
				}
				for _, f := range r.Faults {
					fmt.Fprintln(c.ErrOrStderr(), "ibwarden:", f)
				}
				if err := v.rows(r.Fabric).Print(c.OutOrStdout(), v.name, *asJSON); err != nil {
					return bad(err)
				}
				if len(r.Faults) > 0 {
					return bad(fmt.Errorf("%d places could not be read", len(r.Faults)))
				}
				return nil
			},
		})
	}
	return show
}
