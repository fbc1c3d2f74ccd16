package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/cli/look"
	"github.com/ibwarden/ibwarden/internal/app/cli/servicecmd"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/app/run"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/manager/preview"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
	"github.com/ibwarden/ibwarden/internal/sa/server"
)

// changeFlags are the flags that plan and apply have in common: what to change,
// and to what.
type changeFlags struct {
	where         fabricFlags
	server        servicecmd.Named
	policy, state string
	cables        string
	routing       run.Routing
	lmc           uint8
	json          bool
	policyOptions policyfile.Options
	loadedPolicy  *policy.Policy
	config        engine.Config
	// registered is what hosts registered; nil when nothing is known of it.
	registered     *server.State
	policyOptional bool
}

func (f *changeFlags) add(c *cobra.Command) {
	flags := c.Flags()
	f.where.add(flags)
	f.where.reads.add(flags)
	f.server.Add(flags)
	flags.StringVar(&f.cables, "cables", "", run.CablesHelp)
	flags.StringVar(&f.policy, "policy", "", "the new policy: partitions.conf or YAML")
	flags.BoolVar(&f.policyOptions.AllowBoth, "allow-both", false, allowBothHelp)
	flags.BoolVar(&f.json, "json", false, "print one JSON document")
	flags.Uint8Var(&f.lmc, "lmc", 0, "give every CA and router port 2^LMC LIDs, 0 to 7")
	f.routing.Add(flags)
	flags.StringVar(&f.state, "state", "", "file that keeps LIDs and allocated P_Keys between runs")
}

// load checks everything that was given before anything is sent.
func (f *changeFlags) load(w io.Writer) error {
	err := f.routing.Load()
	if err != nil {
		return err
	}
	if f.lmc > uint8(ib.LMCMax) {
		return misuse(fmt.Errorf("--lmc %d: want 0 to %d", f.lmc, ib.LMCMax))
	}
	f.config = engine.Config{LMC: ib.LMC(f.lmc), Routing: f.routing.Engine, RoutingFile: f.routing.Tables, Seed: daemon.Secret()}
	list := run.Cables{Data: f.where.reads.data, File: f.cables}
	if f.config.Cables, err = list.LoadThere(f.where.spec); err != nil {
		return err
	}
	if f.state != "" {
		if f.config.Known, err = files.LoadState(f.state); err != nil {
			return misuse(err)
		}
		known, some, err := files.LoadRegistered(f.state, 0)
		if err != nil {
			return misuse(err)
		}
		if some {
			f.registered = &known.State
		}
	}
	if f.policy == "" {
		if f.policyOptional {
			return nil
		}
		return misuse(errors.New("--policy: want the file of the new policy"))
	}
	f.loadedPolicy, _, err = run.ReadPolicy(f.policy, f.policyOptions, w)
	return err
}

func newPlan() *cobra.Command {
	var f changeFlags
	c := &cobra.Command{
		Use:   "plan --policy FILE",
		Short: "Show what a new policy would change, and change nothing",
		Long: `Show what a new policy would change, and change nothing: only SubnGet is sent.

It reads the fabric and lists, port by port and index by index, which keys are
added, removed and changed; how many packets that takes; how much room is left in
the tables; and which groups of the policy can talk that could not before, and
the reverse.
It names what looks like a mistake: a node that joins two tenants (bridge), a
shared partition whose tenants are full members (shared-full), a key that goes
to others while somebody may still hold it (reused-key), an index 0 that moves
under running jobs (index-0), a switch port that stops checking (guard-off).

Exit status: 0 planned, whether or not there is anything to change; 1 the fabric
could not be read completely; 2 bad input, or a policy that does not fit.

` + fabricHelp,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.plan(c) },
	}
	f.add(c)
	return c
}

// planDocument is what plan --json prints.
type planDocument struct {
	Fabric fabricCounts `json:"fabric"`
	*preview.Preview
	Warnings []string `json:"warnings"`
	// Read is what was sent to find all this out.
	Read   daemon.SMPs `json:"read"`
	Faults int         `json:"faults"`
}

func (f *changeFlags) plan(c *cobra.Command) error {
	if err := f.load(c.ErrOrStderr()); err != nil {
		return err
	}
	asks, err := byService(c, &f.server)
	if err != nil {
		return err
	}
	if asks {
		return f.server.Plan(c, f.policy, f.policyOptions.AllowBoth, f.json)
	}
	link, err := f.where.open(c)
	if err != nil {
		return err
	}
	defer link.Close()
	if f.config.Keys, err = f.where.keys(); err != nil {
		return err
	}
	if f.config.MKey = f.where.mKey; f.config.Keys != nil {
		f.config.MKey = 0 // it is among the keys
	}
	read, err := look.Live(c, link, f.config.Reading(f.loadedPolicy))
	if err != nil {
		return err
	}
	sayFaults(c.ErrOrStderr(), read.Faults)
	want, err := desired.Predict(f.config.Desired(read.Fabric), f.loadedPolicy)
	var absent *policy.AbsentError
	if errors.As(err, &absent) {
		return misuse(err)
	}
	if err != nil {
		return misuse(fmt.Errorf("%s does not fit: %w", f.policy, err))
	}
	p, err := cliLook(read.Fabric, want, f.registered)
	if err != nil {
		return bad(err)
	}
	d := planDocument{countsOf(read.Fabric.Count()), p, append([]string{}, want.Warnings...), read.SMPs, len(read.Faults)}
	if f.json {
		err = terminal.JSON(c.OutOrStdout(), d)
	} else {
		err = printPlan(c.OutOrStdout(), &d)
	}
	switch {
	case err != nil:
		return bad(err)
	case daemon.Unread(read.Faults) > 0:
		return bad(fmt.Errorf("%s could not be read: this may not be all", terminal.Count(daemon.Unread(read.Faults), "place")))
	case p.Unread > 0:
		return bad(fmt.Errorf("%s could not be read whole: this may not be all", terminal.Count(p.Unread, "P_Key table")))
	}
	return nil
}

func sayFaults(w io.Writer, faults []sweep.Fault) {
	for i, f := range faults {
		if i == remarksMax {
			fmt.Fprintln(w, "ibwarden: more of the same is not shown")
			return
		}
		fmt.Fprintln(w, "ibwarden:", terminal.Plain(f))
	}
}

// cliLook previews the writing of desired values.
func cliLook(f *observed.Fabric, s *desired.Result, registered *server.State) (*preview.Preview, error) {
	in := preview.Input{Fabric: f, Desired: s.Tables, Plan: plan.Diff(f, s.Tables)}
	if registered != nil {
		in.Multicast = &registered.Groups
	}
	groups, err := s.Groups()
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		in.Groups = append(in.Groups, preview.Set{Name: g.Name, Ports: g.Ports})
	}
	in.Partitions = s.Resolution.Partitions
	return preview.Look(in)
}

// printPlan prints a plan for people.
func printPlan(w io.Writer, d *planDocument) error {
	if err := d.Print(w); err != nil {
		return err
	}
	for _, text := range d.Warnings {
		fmt.Fprintf(w, "note: %s\n", terminal.Plain(text))
	}
	_, err := fmt.Fprintf(w, "read with %d SubnGet and %d SubnSet\n", d.Read.Get, d.Read.Set)
	return err
}
