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
	"github.com/ibwarden/ibwarden/internal/app/run"
	"github.com/ibwarden/ibwarden/internal/app/telemetry"
	"github.com/ibwarden/ibwarden/internal/judge/audit"
)

// readOnlyUses are the settings that count for a run that only reads.
var readOnlyUses = []string{
	"read-only", "fabric", "guid", "m-key-file", "data", "secret-file", "policy", "allow-both", "cables", "profile", "state", "drift-period",
	"metrics", "log-level", "log-format", "verbose", "config",
}

// watch audits the fabric again and again, and writes nothing to it: no lock is taken, no
// directory made, no service opened.
func (f *runFlags) watch(c *cobra.Command) error {
	w := watching{runFlags: f, command: c, said: map[string]bool{}}
	switch {
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
	p := policyFlags{state: m.State, options: m.Policy.Options}
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
	w.where.reads = readsFlags{data: m.Cables.Data, secret: m.Keys.Secret}
	return nil
}

// read reads the fabric once, and audits it.
func (w *watching) read(ctx context.Context) (*audit.Report, error) {
	snap, _, err := w.where.read(ctx, w.command, look.Reads(w.options.Profile), nil)
	if err != nil {
		return nil, err
	}
	look.SayGuarded(w, snap.Fabric, false)
	intent := w.intent
	if partitions, aliases, some, err := w.policy.audited(w, snap.Fabric); err != nil {
		return nil, err
	} else if some {
		intent.Partitions, intent.Aliases = partitions, aliases
	}
	return look.JudgeAudit(snap, intent, w.options), nil
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
