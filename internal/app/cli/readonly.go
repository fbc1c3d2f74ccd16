package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/app/cli/look"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/app/run"
	"github.com/ibwarden/ibwarden/internal/app/telemetry"
	"github.com/ibwarden/ibwarden/internal/judge/audit"
	"github.com/ibwarden/ibwarden/internal/judge/shadow"
)

// readOnlyUses are the settings that count for a run that only reads.
var readOnlyUses = []string{
	"read-only", "fabric", "guid", "m-key-file", "data", "secret-file", "policy", "allow-both", "cables", "profile", "state", "drift-period",
	"reads-per-second", "routing", "lfts-file", "lmc", "metrics", "log-level", "log-format", "verbose", "config",
}

const (
	// ReadsPerSecond and ReadsPerSecondMax are the requests that a run that only reads sends in a
	// second, and the most that it can be told to. 1,000 are less than 0.2 % of the slowest
	// link there is, 2 Gb/s, in each direction.
	ReadsPerSecond, ReadsPerSecondMax = 1000, 1_000_000
)

// watch audits the fabric again and again, and writes nothing to it: no service is opened, and no
// more made of files than the records of package shadow, where there is a policy.
func (f *runFlags) watch(c *cobra.Command) error {
	w := watching{runFlags: f, command: c, said: map[string]bool{}}
	defer w.close()
	switch {
	case f.where.rate < 1 || f.where.rate > ReadsPerSecondMax:
		return misuse(fmt.Errorf("--reads-per-second %d: want 1 to %d", f.where.rate, ReadsPerSecondMax))
	case f.manager.Once:
		return misuse(errors.New("--read-only and --once: want one of them; ibwarden audit reads a fabric once"))
	case f.json:
		return misuse(errors.New("--read-only and --json: want one of them; ibwarden audit --json prints a document"))
	case daemon.Fresh(f.where.spec):
		return misuse(fmt.Errorf("--read-only --fabric %s: a fabric of this process alone has no other manager: want umad or ibsim", f.where.spec))
	}
	if err := f.check(c); err != nil {
		return err
	}
	if err := w.load(); err != nil {
		return err
	}
	var idle []string
	c.Flags().Visit(func(x *pflag.Flag) {
		if !slices.Contains(readOnlyUses, x.Name) {
			idle = append(idle, x.Name)
		}
	})
	if idle != nil {
		fmt.Fprintf(c.ErrOrStderr(), "ibwarden: read-only: these settings have no effect: %s\n", strings.Join(idle, ", "))
	}
	fmt.Fprintf(c.ErrOrStderr(), "ibwarden: read-only: auditing %s every %v; nothing is written to it\n", f.where.spec, f.manager.Periods.Drift)
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	return terminal.OrBad(RunReadOnly(c.Context(), ReadOnlyOptions{
		Read: w.read, Show: look.PrintAudit, Every: func() time.Duration { return f.manager.Periods.Drift }, Hangup: hangup, Reload: w.reload,
		Metrics: f.manager.Telemetry.Address(), Out: c.OutOrStdout(), Log: c.ErrOrStderr(), Now: time.Now,
	}))
}

// watching is a run that only reads.
type watching struct {
	*runFlags
	command *cobra.Command
	policy  policyFlags
	options audit.Options
	intent  audit.Intent
	// said are the warnings about the policy that were printed: each is printed once.
	said map[string]bool
	// ledger has what was judged, records is where it is kept; nil without a policy, or without a
	// directory.
	ledger  *shadow.Ledger
	records *files.Store
}

// saidMax bounds the warnings about the policy that are printed.
const saidMax = 1000

// Write prints a warning that was not printed before.
func (w *watching) Write(line []byte) (int, error) {
	if text := string(line); !w.said[text] && len(w.said) < saidMax {
		w.said[text] = true
		return w.command.ErrOrStderr().Write(line)
	}
	return len(line), nil
}

// load reads the files that an audit needs; where one has a fault, nothing changes.
func (w *watching) load() (err error) {
	m := &w.manager
	p := policyFlags{state: m.State, options: m.Policy.Options, inForce: true}
	if m.Policy.File != run.NoPolicy {
		p.file = m.Policy.File
	}
	if err := p.load(w.command); err != nil {
		return err
	}
	profile, err := audit.ParseProfile(w.profile)
	if err != nil {
		return misuse(fmt.Errorf("--profile: %w", err))
	}
	var cables []audit.Cable
	if m.Cables.File != "" {
		if cables, err = look.ReadCables(m.Cables.File); err != nil {
			return misuse(fmt.Errorf("--cables: %w", err))
		}
	}
	w.policy, w.options.Profile, w.intent.Cables = p, profile, cables
	w.where.reads = readsFlags{data: m.Cables.Data, secret: m.Keys.Secret, keyless: m.Keys.Secret == ""}
	return w.keep()
}

// read reads the fabric once, audits it, and keeps what was found.
func (w *watching) read(ctx context.Context) (report *audit.Report, err error) {
	defer func() {
		if err != nil && w.ledger != nil {
			w.ledger.Failed(err.Error())
		}
	}()
	o := look.Reads(w.options.Profile)
	o.Aliases = w.policy.loaded != nil && w.policy.assigned.KeepsAliases(w.policy.loaded)
	began := time.Now()
	snap, smps, err := w.where.read(ctx, w.command, o, nil)
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	look.SayGuarded(w, snap.Fabric, false)
	intent := w.intent
	partitions, aliases, some, err := w.policy.audited(w, snap.Fabric)
	if err != nil {
		return nil, err
	}
	if some {
		intent.Partitions, intent.Aliases = partitions, aliases
	}
	report = look.JudgeAudit(snap, intent, w.options)
	if some && w.records != nil {
		w.record(snap, partitions, smps, took)
	}
	return report, nil
}

// reload reads the configuration and the files that it names again.
func (w *watching) reload() {
	stderr := w.command.ErrOrStderr()
	log := telemetry.LogOf(w.command.Context())
	if err := w.reconfigure(w.command); err != nil {
		log.ReloadFailed("configuration", err)
	}
	if err := w.load(); err != nil {
		log.ReloadFailed("policy and list of cables", err)
		return
	}
	fmt.Fprintln(stderr, "policy and cables read again")
}
