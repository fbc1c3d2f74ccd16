package cli

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/run"
	"github.com/ibwarden/ibwarden/internal/app/telemetry"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/mastership"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// fabricFlags are the flags that choose a fabric and a place in it.
type fabricFlags struct {
	spec, guid, keyFile string
	// mKey goes into every request, once open has succeeded.
	mKey ib.MKey
	// self is the port to work from, as its own machine names it.
	self       mkey.ID
	quarantine time.Duration
	reads      readsFlags
	// rate is the most requests of a reading in a second; 0 for any number.
	rate   int
	opened bool // once at least
}

// fabricVariable names the fabric of commands that are not told of one.
const fabricVariable = "IBWARDEN_FABRIC"

func (f *fabricFlags) add(flags *pflag.FlagSet) {
	spec := os.Getenv(fabricVariable)
	if spec == "" {
		spec = daemon.Demonstration
	}
	flags.StringVar(&f.spec, "fabric", spec, "the fabric: sim, ibsim[:SOCKNAME] or umad[:DEVICE[/PORT]], as listed above ("+fabricVariable+" names another default)")
	flags.StringVar(&f.guid, "guid", "", "GUID of the local port to use (default: the fabric's own first port)")
	flags.StringVar(&f.keyFile, "m-key-file", "", "file with the M_Key of the fabric, a 64-bit number; only its owner may be able to read it")
}

// quarantineFlag adds the flag for the time in which packets of a manager that was here
// before may still be under way.
func (f *fabricFlags) quarantineFlag(flags *pflag.FlagSet) {
	flags.DurationVar(&f.quarantine, "quarantine", daemon.Quarantine(),
		"time to wait before tables are read; packets of a killed manager may be in flight (0s where there was none, as on sim)")
}

// pause is how long to wait for those packets.
func (f *fabricFlags) pause() (time.Duration, error) {
	switch {
	case f.quarantine < 0:
		return 0, misuse(fmt.Errorf("--quarantine %v: want a time that is not negative", f.quarantine))
	case daemon.Fresh(f.spec):
		return 0, nil
	}
	return f.quarantine, nil
}

// open opens the fabric for a command, and says so where it is the embedded one without
// anybody's choice.
func (f *fabricFlags) open(c *cobra.Command) (link.Link, error) {
	if !f.opened {
		f.opened = true
		sayDemonstration(c)
	}
	if f.keyFile != "" {
		key, err := daemon.LoadMKey(f.keyFile)
		if err != nil {
			return nil, misuse(fmt.Errorf("--m-key-file: %w", err))
		}
		f.mKey = key
	}
	var guid ib.PortGUID
	if f.guid != "" {
		g, err := ib.ParsePortGUID(f.guid)
		if err != nil {
			return nil, misuse(fmt.Errorf("--guid: %w", err))
		}
		guid = g
	}
	to, err := daemon.Open(f.spec, guid)
	if errors.Is(err, daemon.ErrUnreachable) {
		return nil, bad(err)
	}
	if err != nil {
		return nil, misuse(err)
	}
	if placed, ok := to.(link.Placed); ok {
		f.self.Node, f.self.Port = placed.Own()
	}
	return to, nil
}

// runFlags are the flags of `ibwarden run`: what they say is in the configuration of the manager, what
// has to be read first beside it.
type runFlags struct {
	config         configured
	readOnly, json bool
	where          fabricFlags
	manager        run.Config
	smKey, saKey   string
	profile        string
	trusted        []string
}

// runLongRest begins what of the description is left to the manual page.
const runLongRest = "With a list of cables"

func newRun() *cobra.Command {
	_, c := newRunOf()
	return c
}

// newRunOf is `ibwarden run` and what its flags are read into.
func newRunOf() (*runFlags, *cobra.Command) {
	f := &runFlags{}
	c := &cobra.Command{
		Use:   "run",
		Short: "Bring up a fabric, keep its tenants apart, and prove it",
		Long: `Bring up a fabric, keep its tenants apart, and prove it.

It sweeps the fabric, checks that the whole policy fits, writes what differs,
reads it back, and prints who is isolated from whom. Then it watches: a changed
link, a new node, or a table that somebody else changed is noticed and corrected.
SIGHUP reads the configuration, the policy file, the list of cables, --racks and --lfts-file again;
if one has a fault, the old one stays in force.

--config names a file that says what flags say, for all but those of a single run:
docs/configuration.md. Flags count before variables of the environment, these before files.

` + runLongRest + ` (--cables, or learned at first start into --data) a device
that is cabled elsewhere than the list says is not admitted, whoever it claims to
be: see ibwarden topology.

Other subnet managers count only if they are named (--trusted-sm) and answer from
the port that they claim to be at. Any other raises an alarm: it is told nothing,
ibwarden never yields to it, and with profile strict its port is fenced. A run that
has not managed the fabric before, by its state file, does not take it from a master
that is not named: it says who that is, and exits.

Without --policy the demonstration fabric gets the demonstration policy, and
every other fabric only the default partition, with all ports but the
manager's as limited members: nobody reaches anybody but the manager. If ports hold
keys of other partitions, this needs --policy none.

` + fabricHelp,
		Args:              cobra.NoArgs,
		PersistentPreRunE: f.config.begin,
		RunE:              func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	addRunHelp(c)
	flags := c.Flags()
	f.config.add(flags)
	f.where.add(flags)
	f.where.quarantineFlag(flags)
	m := &f.manager
	m.Cables.Add(flags)
	run.AddSecret(flags, &m.Keys.Secret)
	m.Telemetry.Add(flags)
	m.Serves.Add(flags)
	flags.StringVar(&m.Policy.File, "policy", "", "policy file, partitions.conf or YAML; none for the default partition only")
	flags.BoolVar(&m.Policy.Options.AllowBoth, "allow-both", false, allowBothHelp)
	flags.BoolVar(&f.readOnly, "read-only", false, "write nothing: audit a fabric that others manage, every --drift-period, and say what changes (with --policy, for ibwarden show shadow too)")
	flags.IntVar(&f.where.rate, "reads-per-second", ReadsPerSecond, fmt.Sprintf("most requests a second with --read-only (1 to %d)", ReadsPerSecondMax))
	flags.BoolVar(&m.Once, "once", false, "exit after the first verdict")
	flags.BoolVar(&f.json, "json", false, "print one JSON document for each verdict on standard output")
	flags.Uint8Var((*uint8)(&m.LMC), "lmc", 0, "give every CA and router port 2^LMC LIDs, 0 to 7")
	m.Routing.Add(flags)
	flags.Uint8Var(&m.Election.Priority, "priority", 0, "SM priority, 0 to 15; the manager with the highest becomes master")
	flags.StringVar(&f.smKey, "sm-key", "0", "SM_Key, shown to trusted managers only (--trusted-sm); OpenSM ignores managers that do not show its own, which is 1 by default")
	flags.StringVar(&f.profile, "profile", protect.Default.String(), "protection against hosts whose root is not trusted: basic, tenant or strict")
	flags.StringSliceVar(&f.trusted, "trusted-sm", nil, "port GUIDs of the other managers that take part in the election (default: none)")
	flags.BoolVar(&m.TakeOver, "take-over", false, "become master even if a manager that is not trusted is master")
	flags.BoolVar(&m.Election.AcceptPolicy, "accept-policy", false, "after a takeover from another manager, grant at once what its tables did not (not where it is known to have had another policy)")
	flags.StringVar(&f.saKey, "sa-key", "0", "SA_Key of trusted queries to subnet administration; 0 trusts none (default with --data: derived from the master secret; ibwarden keys export shows it)")
	flags.StringVar(&m.State, "state", "", "file that keeps LIDs, allocated P_Keys, fences and registrations of hosts between runs (default: state.json in the data directory)")
	flags.DurationVar(&m.Election.MasterTimeout, "master-timeout", mastership.DefaultMasterTimeout, "time within which a standby gives up a master of the same secret that does not answer")
	flags.DurationVar(&m.Periods.Sweep, "sweep-interval", engine.DefaultSweepInterval, "time between light sweeps")
	flags.IntVar(&m.Window, "max-smps", 0, fmt.Sprintf("most subnet management requests of a sweep under way at once, 1 to %d; 0 for what suits the link, %d on an adapter", transact.WindowMax, transact.DefaultLimits().Window))
	flags.DurationVar(&m.Periods.Guard, "guard-period", engine.DefaultGuardPeriod, "time within which a foreign change to isolation is noticed and undone")
	flags.DurationVar(&m.Periods.Drift, "drift-period", engine.DefaultDriftPeriod, "time within which every table is read back once")
	return f, c
}

// check checks what flags say, as far as that opens nothing and makes nothing.
func (f *runFlags) check(c *cobra.Command) error {
	if err := f.fill(c); err != nil {
		return err
	}
	return f.manager.Check()
}

// fill enters in the configuration what flags say in words.
func (f *runFlags) fill(c *cobra.Command) (err error) {
	m := &f.manager
	m.Fabric = f.where.spec
	key, err := parseKey("sm-key", f.smKey)
	if err != nil {
		return err
	}
	m.Election.SMKey = key
	if m.Profile, err = protect.Parse(f.profile); err != nil {
		return misuse(fmt.Errorf("--profile: %w", err))
	}
	for _, text := range f.trusted {
		guid, err := ib.ParsePortGUID(text)
		if err != nil {
			return misuse(fmt.Errorf("--trusted-sm: %w", err))
		}
		m.Election.Trusted = append(m.Election.Trusted, guid)
	}
	if key, err = parseKey("sa-key", f.saKey); err != nil {
		return err
	}
	if c.Flags().Changed("sa-key") {
		m.SAKey = &key
	}
	return nil
}

// parseKey reads an SM_Key or SA_Key.
func parseKey(flag, text string) (ib.SMKey, error) {
	key, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		return 0, misuse(fmt.Errorf("--%s %q: want a 64-bit number, decimal or with 0x", flag, text))
	}
	return ib.SMKey(key), nil
}

func (f *runFlags) run(c *cobra.Command) error {
	switch {
	case f.config.print:
		return terminal.OrBad(f.config.printed(c))
	case f.readOnly:
		return f.watch(c)
	}
	err := f.fill(c)
	if err != nil {
		return err
	}
	m := f.manager // which Run checks
	if m.Pause, err = f.where.pause(); err != nil {
		return err
	}
	m.Open = func() (run.Port, error) {
		link, err := f.where.open(c)
		return run.Port{Link: link, MKey: f.where.mKey, Self: f.where.self}, err
	}
	m.Reread = func() (run.Policy, engine.Periods, error) {
		err := f.reconfigure(c)
		return f.manager.Policy, f.manager.Periods, err
	}
	return run.Run(c.Context(), m, newVerdictPrinter(c.OutOrStdout(), telemetry.LogOf(c.Context()), f.json), c.ErrOrStderr())
}
