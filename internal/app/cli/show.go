package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/app/cli/look"
	"github.com/ibwarden/ibwarden/internal/app/cli/servicecmd"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// cliViews are what `ibwarden show` can show: a table for people and the rows
// behind it for programs.
var cliViews = []struct {
	name, about string
	rows        func(*observed.Fabric) terminal.Table
	reads       sweep.Options // besides what every sweep reads
}{
	{"nodes", "devices", terminal.Nodes, sweep.Options{}},
	{"ports", "cabled ports and end ports", terminal.Ports, sweep.Options{}},
	{"links", "cables", terminal.Links, sweep.Options{}},
	{"lids", "addresses of end ports", terminal.LIDs, sweep.Options{}},
	{"routes", "forwarding tables", terminal.Routes, sweep.Options{Forwarding: true}},
	{"pkeys", "partition key tables", terminal.PKeys, sweep.Options{}},
	{"aliases", "alias GUIDs of end ports", terminal.Aliases, sweep.Options{Aliases: true}},
	{"settings", "packet lifetimes and VL arbitration of ports", terminal.Settings, sweep.Options{QoS: true}},
	{"diagnostics", "end ports that report a fault, and their vendor's diagnostics", terminal.Diagnostics, sweep.Options{}},
	{"partitions", "partitions and their members, from the tables of end ports", terminal.Partitions, sweep.Options{}},
}

func newShow() *cobra.Command {
	show := &cobra.Command{
		Use:   "show nodes|ports|links|topology|lids|routes|routing|pkeys|aliases|settings|diagnostics|partitions",
		Short: "Read a fabric without writing to it",
		Long:  "Read a fabric without writing to it: only SubnGet is sent.\n\n" + fabricHelp,
		Args:  commandOf,
		RunE: func(*cobra.Command, []string) error {
			return misuse(fmt.Errorf("show needs one of nodes, ports, links, topology, lids, routes, routing, pkeys, aliases, settings, diagnostics or partitions"))
		},
	}
	var where fabricFlags
	asJSON := show.PersistentFlags().Bool("json", false, "print one JSON document")
	where.add(show.PersistentFlags())
	where.reads.add(show.PersistentFlags())
	var server servicecmd.Named
	server.Add(show.PersistentFlags())
	add, read := forOthers()
	show.AddCommand(look.RoutingCommand(add, read, fabricHelp), look.NetCommand(add, read, fabricHelp))
	for _, v := range cliViews {
		show.AddCommand(&cobra.Command{
			Use: v.name, Short: "Show " + v.about, Args: cobra.NoArgs,
			RunE: func(c *cobra.Command, _ []string) error {
				asks, err := byService(c, &server)
				if err != nil {
					return err
				}
				if asks {
					return server.Show(c, v.reads, func(f *observed.Fabric) error {
						return v.rows(f).Print(c.OutOrStdout(), v.name, *asJSON)
					})
				}
				link, err := where.open(c)
				if err != nil {
					return err
				}
				defer link.Close()
				reads := v.reads
				if err := where.asks(&reads); err != nil {
					return err
				}
				r, err := look.Live(c, link, reads)
				if err != nil {
					return err
				}
				for _, f := range r.Faults {
					fmt.Fprintln(c.ErrOrStderr(), "ibwarden:", terminal.Plain(f))
				}
				if err := v.rows(r.Fabric).Print(c.OutOrStdout(), v.name, *asJSON); err != nil {
					return bad(err)
				}
				if n := unreadable(r.Faults); n > 0 {
					return bad(fmt.Errorf("%s could not be read", terminal.Count(n, "place")))
				}
				return nil
			},
		})
	}
	return show
}

// unreadable counts the faults that are more than what a port says of its own health.
func unreadable(faults []sweep.Fault) (n int) {
	for _, f := range faults {
		if !errors.Is(f, sweep.ErrDiagnosis) {
			n++
		}
	}
	return n
}
