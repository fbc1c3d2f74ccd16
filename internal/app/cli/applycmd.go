package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/app/cli/servicecmd"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/app/run"
	"github.com/ibwarden/ibwarden/internal/app/telemetry"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/sa/server"
)

// applyFlags are the flags of `ibwarden apply`.
type applyFlags struct {
	changeFlags
	yes, resume, rollback bool
	keepRoutes            bool
	batch                 int
	canary, journal       string
}

// defaultJournal is where a change is written down without --journal.
const defaultJournal = "ibwarden.journal"

func newApply() *cobra.Command {
	var f applyFlags
	c := &cobra.Command{
		Use:   "apply --policy FILE",
		Short: "Change a fabric to a new policy, step by step, and prove it",
		Long: `Change a fabric to a new policy, step by step, and prove it.

It shows what plan shows, and asks. What the policy takes away is removed first,
at the switch, and read back before anything else; what it grants is added last,
at the switch. At no moment can two hosts talk unless the old policy or the new
one allows it, not even with forged tables. The first write that is refused or
lost, or does not read back, stops the change with exit status 1.

Before the first write the change is recorded in the journal. After a stop or a
crash --resume finishes it and --rollback undoes it, starting from what the
devices hold then. If that is neither the old state, nor the new one, nor one in
between, nothing is written. --rollback undoes a finished change too.

--canary GROUP changes the hosts of that group of the policy first, and goes on
once that is proved. --batch N changes N hosts at a time. A key that another
host has yet to lose is granted when that host has lost it.

Exit status: 0 changed and proved, or nothing to change; 1 stopped, not proved,
or declined; 2 bad input, no terminal to ask and no --yes, or a policy that does
not fit, and then nothing was written.

` + fabricHelp,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	f.add(c)
	flags := c.Flags()
	f.where.quarantineFlag(flags)
	flags.BoolVar(&f.yes, "yes", false, "do not ask")
	flags.IntVar(&f.batch, "batch", 0, "change this many hosts at a time, 0 for all at once")
	flags.StringVar(&f.canary, "canary", "", "change this group of the policy first")
	flags.StringVar(&f.journal, "journal", defaultJournal, "journal file of the change")
	flags.BoolVar(&f.keepRoutes, "keep-routes", false, "neither read nor write forwarding tables")
	flags.BoolVar(&f.resume, "resume", false, "finish the change in the journal")
	flags.BoolVar(&f.rollback, "rollback", false, "undo the change in the journal")
	return c
}

func (f *applyFlags) check(c *cobra.Command) error {
	f.policyOptional = f.resume || f.rollback
	switch {
	case f.resume && f.rollback:
		return misuse(errors.New("--resume and --rollback: use one of them"))
	case f.policyOptional && (f.policy != "" || f.canary != ""):
		return misuse(errors.New("--policy and --canary cannot be used with --resume or --rollback: the journal says what to do"))
	case f.keepRoutes && f.policyOptional:
		return misuse(errors.New("--keep-routes cannot be used with --resume or --rollback: they go by what the devices hold"))
	case f.batch < 0:
		return misuse(fmt.Errorf("--batch %d: want 0 or more", f.batch))
	case f.journal == "":
		return misuse(errors.New("--journal: want a file"))
	case !f.yes && !terminal.IsTerminal(c.InOrStdin()):
		return misuse(errors.New("standard input is not a terminal: use --yes to apply without asking"))
	}
	if err := f.load(c.ErrOrStderr()); err != nil || f.state == "" {
		return err
	}
	return terminal.OrMisuse(files.CheckState(f.state))
}

func (f *applyFlags) direction() daemon.Direction {
	switch {
	case f.resume:
		return daemon.Resume
	case f.rollback:
		return daemon.Rollback
	}
	return daemon.Forward
}

func (f *applyFlags) run(c *cobra.Command) error {
	if err := f.check(c); err != nil {
		return err
	}
	asks, err := byService(c, &f.server)
	if err != nil {
		return err
	}
	if asks {
		var approve func() error
		if !f.yes {
			approve = func() error { return servicecmd.Ask(c.Context(), c.InOrStdin(), c.ErrOrStderr()) }
		}
		return f.server.Apply(c, f.policy, f.policyOptions.AllowBoth, f.json, approve)
	}
	pause, err := f.where.pause()
	if err != nil {
		return err
	}
	f.config.Pause = pause
	journal := daemon.FileJournal{Path: f.journal}
	config, err := daemon.HeldConfig(f.config, journal)
	if err != nil {
		return misuse(err)
	}
	config.KeepRoutes = f.keepRoutes
	link, err := f.where.open(c)
	if err != nil {
		return err
	}
	defer link.Close()
	if config.Keys, err = f.where.keys(); err != nil {
		return err
	}
	if config.MKey = f.where.mKey; config.Keys != nil {
		config.MKey = 0 // it is among the keys
	}
	p := f.loadedPolicy
	if p == nil {
		p = &policy.Policy{Default: policy.Limited}
	}
	// The document has both the plan and its outcome.
	var d applyDocument
	r := &applying{ctx: c.Context()}
	r.runner = daemon.NewRunner(link, config, server.Config{}, p, r)
	out, err := daemon.Apply(c.Context(), r.runner, daemon.ApplyOptions{
		Direction: f.direction(), Policy: p, Batch: f.batch, Canary: f.canary, Journal: journal,
		Approve: func(x *daemon.Proposal) (bool, error) { return f.approve(c, x, r, &d) },
		Before:  f.keepState(r),
		Step: func(s daemon.Step) {
			fmt.Fprintf(c.ErrOrStderr(), "%s: %s, %s, %s\n", s.Name, terminal.Count(s.Hosts, "host"), terminal.Count(s.Writes, "write"), s.Verdict)
		},
	})
	return f.outcome(c, out, err, r, &d)
}

// applying is what a change of the fabric is doing.
type applying struct {
	ctx     context.Context
	runner  *daemon.Runner
	refused bool
}

// Event says what happens.
func (a *applying) Event(e event.Event) {
	run.LogEvent(telemetry.LogOf(a.ctx), e)
	if _, is := e.(event.Refused); is {
		a.refused = true
	}
}

// Progress says that a long phase goes on.
func (a *applying) Progress(phase string, answered uint64) {
	run.LogProgress(a.ctx, slog.LevelInfo, phase, answered)
}

// keepState keeps LIDs and P_Keys before the first write, so that nothing that
// was given is ever forgotten.
func (f *applyFlags) keepState(r *applying) func(desired.Assigned) error {
	if f.state == "" {
		return nil
	}
	return func(a desired.Assigned) error {
		a.Forgets = f.config.Known.Forgets
		return files.SaveState(f.state, a)
	}
}

// approve shows the change and asks, unless told not to.
func (f *applyFlags) approve(c *cobra.Command, x *daemon.Proposal, r *applying, d *applyDocument) (bool, error) {
	registered := f.registered
	if x.Direction != daemon.Forward {
		registered = nil // an older journal says nothing of groups, and none of those before the change
	}
	p, err := cliLook(x.Fabric, x.Desired, registered)
	if err != nil {
		return false, err
	}
	d.Plan = &planDocument{countsOf(x.Fabric.Count()), p, append([]string{}, x.Desired.Warnings...), r.runner.SMPs(), 0}
	w := c.OutOrStdout()
	if f.json {
		w = c.ErrOrStderr()
	}
	if x.Status != nil {
		fmt.Fprintf(w, "the fabric is %s: %d blocks are as before, %d in between, %d as planned\n\n",
			x.Status.Position.InWords(), x.Status.Old, x.Status.Between, x.Status.New)
	}
	if !f.json || !f.yes {
		if err := printPlan(w, d.Plan); err != nil {
			return false, err
		}
	}
	if f.yes {
		return false, nil
	}
	return true, servicecmd.Ask(c.Context(), c.InOrStdin(), c.ErrOrStderr())
}

// applyDocument is what apply --json prints.
type applyDocument struct {
	Plan *planDocument `json:"plan"`
	*daemon.Report
}

// outcome prints how it ended.
func (f *applyFlags) outcome(c *cobra.Command, out *daemon.Applied, err error, r *applying, d *applyDocument) error {
	d.Report = daemon.NewReport(out, err, r.runner)
	var said error
	if f.json {
		said = terminal.JSON(c.OutOrStdout(), d)
	} else if out != nil {
		said = d.Print(c.OutOrStdout(), f.journal)
	}
	switch {
	case out == nil && (errors.Is(err, context.Canceled) || errors.Is(err, terminal.ErrInterrupted)):
		return bad(terminal.ExitInterrupted("the fabric was being read, or the change shown; nothing was written"))
	case errors.Is(err, context.Canceled):
		return bad(terminal.ExitInterrupted(fmt.Sprintf("%v; nobody can reach more than the old or the new tables allow; to finish: apply --resume, to undo: apply --rollback", err)))
	case err == nil && said != nil:
		return bad(said)
	case err == nil && !out.Proof.Verdict.Holds():
		return bad(terminal.ErrNotProved)
	case err == nil:
		return nil
	case errors.Is(err, daemon.ErrRefused) && r.refused:
		return misuse(nil)
	case errors.Is(err, daemon.ErrRefused), errors.Is(err, daemon.ErrGroup), errors.Is(err, daemon.ErrNoJournal), errors.Is(err, daemon.ErrDone):
		return misuse(err)
	}
	return bad(err)
}
