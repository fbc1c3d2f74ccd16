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

// cliView is something of a fabric that `ibwarden show` shows: a table for people and the rows
// behind it for programs.
type cliView struct {
	name, about string
	rows        func(*observed.Fabric) terminal.Table
	reads       sweep.Options // besides what every sweep reads
}

// cliViews are those that are made of a snapshot alone.
var cliViews = []cliView{
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
		Use:   "show WHAT",
		Short: "List what a fabric, a service or this machine has: nodes, links, sweeps, managers, adapters",
		Long: `List what a fabric, a service or this machine has. Nothing is written to a fabric: only
SubnGet is sent.

` + fabricHelp,
		Args: commandOf,
		RunE: needsCommand,
	}
	asJSON := show.PersistentFlags().Bool("json", false, "print one JSON document")
	add, read := forOthers()
	show.AddCommand(look.RoutingCommand(add, read, fabricHelp), look.NetCommand(add, read, fabricHelp))
	for _, v := range cliViews {
		show.AddCommand(v.command(asJSON))
	}
	return show
}

// command is `ibwarden show` of a view.
func (v *cliView) command(asJSON *bool) *cobra.Command {
	var where fabricFlags
	var server servicecmd.Named
	c := &cobra.Command{
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
	}
	where.add(c.Flags())
	where.reads.add(c.Flags())
	server.Add(c.Flags())
	return c
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
