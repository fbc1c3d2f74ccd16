package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/ufm"
	"github.com/ibwarden/ibwarden/internal/app/cli/look"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/app/serve"
	"github.com/ibwarden/ibwarden/internal/app/telemetry"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/mastership"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/master"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/sa/server"
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
	opened     bool // once at least
}

// fabricVariable names the fabric of commands that are not told of one.
const fabricVariable = "IBWARDEN_FABRIC"

// demonstration is the fabric that is embedded.
const demonstration = "sim"

func (f *fabricFlags) add(flags *pflag.FlagSet) {
	spec := os.Getenv(fabricVariable)
	if spec == "" {
		spec = demonstration
	}
	flags.StringVar(&f.spec, "fabric", spec, "the fabric, as listed above ("+fabricVariable+" names another default)")
	flags.StringVar(&f.guid, "guid", "", "GUID of the local port to use (default: the fabric's own first port)")
	flags.StringVar(&f.keyFile, "m-key-file", "", "file with the M_Key of the fabric, a 64-bit number; only its owner may be able to read it")
}

// quarantineFlag adds the flag for the time in which packets of a manager that was here
// before may still be under way.
func (f *fabricFlags) quarantineFlag(flags *pflag.FlagSet) {
	flags.DurationVar(&f.quarantine, "quarantine", daemon.Quarantine(),
		"time to wait before tables are read and anything is written, since packets of a killed manager may still be in flight; 0s where there was none, as on sim")
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

// runFlags are the flags of `ibwarden run`.
type runFlags struct {
	config                      configured
	readOnly                    bool
	where                       fabricFlags
	cables                      cablesFlags
	keys                        keysFlags
	telemetry                   telemetry.Flags
	serves                      serve.Flags
	service                     *serve.Service
	shared                      *serve.Shared
	policy, state               string
	routing                     look.Flags
	lmc, priority               uint8
	smKey                       string
	trusted                     []string
	takeOver                    bool
	acceptPolicy                bool
	profile                     string
	saKey                       string
	once, json                  bool
	sweep, drift, masterTimeout time.Duration
	maxSMPs                     int
	guard                       time.Duration
	policyOptions               policyfile.Options
	given
}

// given is what the flags of `ibwarden run`, and the files that they name, were found to say.
type given struct {
	parsedSMKey    ib.SMKey
	parsedTrusted  []ib.PortGUID
	parsedProfile  protect.Profile
	parsedSAKey    ib.SMKey
	loadedPolicy   *policy.Policy
	loadedAssigned desired.Assigned
	registered     files.Registered
	// forgot reports whether nothing is known of what hosts registered before.
	forgot bool
}

func newRun() *cobra.Command {
	_, c := newRunOf()
	return c
}

// newRunOf is `ibwarden run` and what its flags are read into.
func newRunOf() (*runFlags, *cobra.Command) {
	f := &runFlags{given: given{forgot: true}}
	c := &cobra.Command{
		Use:   "run",
		Short: "Bring up a fabric, keep its tenants apart, and prove it",
		Long: `Bring up a fabric, keep its tenants apart, and prove it.

It sweeps the fabric, checks that the whole policy fits, writes what differs,
reads it back, and prints who is isolated from whom. Then it watches: a changed
link, a new node, or a table that somebody else changed is noticed and corrected.
SIGHUP reads the configuration, the policy file, the list of cables and --lfts-file again;
if one has a fault, the old one stays in force.

--config names a file that says what flags say, for all but those of a single run:
docs/configuration.md. Flags count before variables of the environment, these before files.

With a list of cables (--cables, or learned at first start into --data) a device
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
	flags := c.Flags()
	f.config.add(flags)
	f.where.add(flags)
	f.where.quarantineFlag(flags)
	f.cables.add(flags)
	f.keys.add(flags)
	f.telemetry.Add(flags)
	f.serves.Add(flags)
	flags.StringVar(&f.policy, "policy", "", "policy file, partitions.conf or YAML; none for the default partition only")
	flags.BoolVar(&f.policyOptions.AllowBoth, "allow-both", false, allowBothHelp)
	flags.BoolVar(&f.readOnly, "read-only", false, "write nothing: audit the fabric, which others manage, again and again (every --drift-period), and say what changes")
	flags.BoolVar(&f.once, "once", false, "exit after the first verdict")
	flags.BoolVar(&f.json, "json", false, "print one JSON document for each verdict on standard output")
	flags.Uint8Var(&f.lmc, "lmc", 0, "give every CA and router port 2^LMC LIDs, 0 to 7")
	f.routing.Add(flags)
	flags.Uint8Var(&f.priority, "priority", 0, "SM priority, 0 to 15; the manager with the highest becomes master")
	flags.StringVar(&f.smKey, "sm-key", "0", "SM_Key, shown to trusted managers only (--trusted-sm); OpenSM ignores managers that do not show its own, which is 1 by default")
	flags.StringVar(&f.profile, "profile", protect.Default.String(), "protection against hosts whose root is not trusted: basic, tenant or strict")
	flags.StringSliceVar(&f.trusted, "trusted-sm", nil, "port GUIDs of the other managers that take part in the election (default: none)")
	flags.BoolVar(&f.takeOver, "take-over", false, "become master even if a manager that is not trusted is master")
	flags.BoolVar(&f.acceptPolicy, "accept-policy", false, "after a takeover from another manager, grant at once what its tables did not (not where it is known to have had another policy)")
	flags.StringVar(&f.saKey, "sa-key", "0", "SA_Key of trusted queries to subnet administration; 0 trusts none (default with --data: derived from the master secret; ibwarden keys export shows it)")
	flags.StringVar(&f.state, "state", "", "file that keeps LIDs, allocated P_Keys, fences and registrations of hosts between runs (default: state.json in the data directory)")
	flags.DurationVar(&f.masterTimeout, "master-timeout", mastership.DefaultMasterTimeout, "time within which a standby gives up a master of the same secret that does not answer")
	flags.DurationVar(&f.sweep, "sweep-interval", engine.DefaultSweepInterval, "time between light sweeps")
	flags.IntVar(&f.maxSMPs, "max-smps", 0, fmt.Sprintf("most subnet management requests of a sweep under way at once, 1 to %d; 0 for what suits the link, %d on an adapter", transact.WindowMax, transact.DefaultLimits().Window))
	flags.DurationVar(&f.guard, "guard-period", engine.DefaultGuardPeriod, "time within which a foreign change to isolation is noticed and undone")
	flags.DurationVar(&f.drift, "drift-period", engine.DefaultDriftPeriod, "time within which every table is read back once")
	return f, c
}

// check checks the values of flags, and reads the files that they name, as far as that
// opens nothing and makes nothing.
func (f *runFlags) check() (err error) {
	if err := f.routing.Load(); err != nil {
		return err
	}
	key, err := strconv.ParseUint(f.smKey, 0, 64)
	if err != nil {
		return misuse(fmt.Errorf("--sm-key %q: want a 64-bit number, decimal or with 0x", f.smKey))
	}
	f.parsedSMKey = ib.SMKey(key)
	if f.parsedProfile, err = protect.Parse(f.profile); err != nil {
		return misuse(fmt.Errorf("--profile: %w", err))
	}
	for _, text := range f.trusted {
		guid, err := ib.ParsePortGUID(text)
		if err != nil {
			return misuse(fmt.Errorf("--trusted-sm: %w", err))
		}
		f.parsedTrusted = append(f.parsedTrusted, guid)
	}
	if key, err = strconv.ParseUint(f.saKey, 0, 64); err != nil {
		return misuse(fmt.Errorf("--sa-key %q: want a 64-bit number, decimal or with 0x", f.saKey))
	}
	f.parsedSAKey = ib.SMKey(key)
	switch {
	case f.lmc > uint8(ib.LMCMax):
		return misuse(fmt.Errorf("--lmc %d: want 0 to %d", f.lmc, ib.LMCMax))
	case f.priority > 15:
		return misuse(fmt.Errorf("--priority %d: want 0 to 15", f.priority))
	case f.masterTimeout < mastership.MinMasterTimeout:
		return misuse(fmt.Errorf("--master-timeout %v: want at least %v", f.masterTimeout, mastership.MinMasterTimeout))
	case f.maxSMPs < 0 || f.maxSMPs > transact.WindowMax:
		return misuse(fmt.Errorf("--max-smps %d: want 0 to %d", f.maxSMPs, transact.WindowMax))
	}
	if err := f.checkPeriods(); err != nil {
		return misuse(err)
	}
	if err := f.telemetry.Check(); err != nil {
		return misuse(err)
	}
	return orMisuse(f.serves.Check())
}

// checkPeriods checks the flags that can change while the manager runs.
func (f *runFlags) checkPeriods() error {
	switch {
	case f.guard < time.Millisecond:
		return fmt.Errorf("--guard-period %v: want at least 1ms", f.guard)
	case f.sweep < time.Millisecond || f.drift < f.sweep:
		return fmt.Errorf("--sweep-interval %v and --drift-period %v: want at least 1ms, and the period not shorter than the interval", f.sweep, f.drift)
	}
	return nil
}

// load checks everything that was given before anything is sent.
func (f *runFlags) load(c *cobra.Command) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	if err := f.cables.load(f.where.spec); err != nil {
		return err
	}
	if err := f.keys.load(f.where.spec, f.cables.dir, f.parsedProfile); err != nil {
		return err
	}
	if err := f.tolerate(c.Context(), f.keys.check()); err != nil {
		return misuse(err)
	}
	if !c.Flags().Changed("sa-key") {
		f.parsedSAKey = f.keys.saKey()
	}
	if f.state == "" && f.cables.dir != "" {
		f.state = f.cables.dir.State()
	}
	if f.state != "" {
		if f.loadedAssigned, err = files.LoadState(f.state); err != nil {
			return misuse(err)
		}
		known := false
		if f.registered, known, err = files.LoadRegistered(f.state, f.parsedSAKey); err != nil {
			return misuse(err)
		}
		f.forgot = !known
		if err := f.tolerate(c.Context(), files.CheckState(f.state)); err != nil {
			return misuse(err)
		}
	}
	return f.loadPolicy(c)
}

// keepCables keeps a list of cables, as far as there is room.
func (f *runFlags) keepCables(ctx context.Context) func(*cables.List) error {
	return func(l *cables.List) error { return f.tolerate(ctx, f.cables.keep(l)) }
}

// tolerate makes a warning of an error that says that there is no room in the data directory:
// a fabric without a manager is worse than one whose manager forgets. Of a single pass it is
// an error.
func (f *runFlags) tolerate(ctx context.Context, err error) error {
	if f.once || !files.IsFull(err) {
		return err
	}
	telemetry.LogOf(ctx).Warn(err.Error())
	return nil
}

// loadPolicy reads the policy, or takes that of a fabric for which none is given.
func (f *runFlags) loadPolicy(c *cobra.Command) (err error) {
	switch {
	case f.policy == policyNone:
		f.loadedPolicy = &policy.Policy{Default: policy.Limited}
	case f.policy != "":
		f.loadedPolicy, err = readPolicy(f.policy, f.policyOptions, c.ErrOrStderr())
	case f.where.spec == "sim":
		f.loadedPolicy, err = daemon.DemoPolicy()
	default:
		f.loadedPolicy = &policy.Policy{Default: policy.Limited}
	}
	return err
}

func (f *runFlags) run(c *cobra.Command) error {
	switch {
	case f.config.print:
		return orBad(f.config.printed(c))
	case f.readOnly:
		return f.watch(c)
	}
	defer f.keys.close()
	if err := f.load(c); err != nil {
		return err
	}
	pause, err := f.where.pause()
	if err != nil {
		return err
	}
	link, err := f.where.open(c)
	if err != nil {
		return err
	}
	defer link.Close()
	if err := daemon.CheckLIDs(link, ib.LMC(f.lmc)); err != nil {
		return misuse(fmt.Errorf("--fabric %s: %w", f.where.spec, err))
	}
	if err := f.serve(c.Context()); err != nil {
		return errors.Join(err, f.service.Close())
	}
	defer f.service.Close()
	if err := f.recall(c.Context()); err != nil {
		return misuse(err)
	}
	if err := f.tenants(c, link); err != nil {
		return err
	}
	r := newReporter(c.OutOrStdout(), telemetry.LogOf(c.Context()), f.json)
	if r.learned = f.keepCables(c.Context()); !f.once {
		r.log.Stamp()
	}
	manager, administration := f.configs(pause)
	revision := uint64(0)
	if r.service = f.service; f.service != nil {
		revision, f.loadedPolicy = f.service.Policy()
	}
	r.runner = daemon.NewRunner(link, manager, administration, f.loadedPolicy, r)
	if r.watched, err = f.telemetry.Start(c.ErrOrStderr(), r.runner); err != nil {
		return misuse(err)
	}
	defer r.watched.Close()
	f.service.Begin(r.runner, revision, f.loadedPolicy)
	if err := f.listen(c.ErrOrStderr(), r); err != nil {
		return err
	}
	if err := f.keep(r); err != nil {
		return misuse(err)
	}
	hangup, stop := daemon.Hangups(link)
	defer stop()
	err = r.runner.Run(c.Context(), func() bool { return f.turned(c, r, hangup) })
	return r.ended(err, f.once)
}

// turned does what is due whenever the engine loop turns. It reports whether the run ends.
func (f *runFlags) turned(c *cobra.Command, r *reporter, hangup <-chan struct{}) bool {
	engine := r.runner.Engine()
	select {
	case <-hangup:
		f.reload(c, r)
		f.keys.look, r.asked = true, true
	default:
	}
	f.service.Turn(engine)
	if r.watched.Turned() {
		r.log.Tick()
	}
	if r.last != nil {
		f.keys.handleRequests(engine, c.ErrOrStderr())
	}
	if r.completed != nil {
		f.keys.replaced(r.completed, c.ErrOrStderr())
	}
	if r.completed != nil && f.state != "" {
		if r.unsaved = f.save(engine, r.runner.Registered()); r.unsaved != nil {
			telemetry.LogOf(c.Context()).Warn(r.unsaved.Error())
		}
		r.completed = nil
	}
	return r.unkept != nil || engine.Settled() && (f.once || r.refused || r.unexpected)
}

// configs are what the manager and the administration are told once.
func (f *runFlags) configs(pause time.Duration) (engine.Config, server.Config) {
	manager, administration := engine.Config{
		LMC: ib.LMC(f.lmc), Routing: f.routing.Engine, RoutingFile: f.routing.Tables, Known: f.loadedAssigned,
		Limits:  transact.Limits{Window: f.maxSMPs},
		Periods: engine.Periods{Sweep: f.sweep, Drift: f.drift, Guard: f.guard},
		Election: engine.Election{Priority: f.priority, SMKey: f.parsedSMKey, ShowSMKey: f.parsedSMKey != 0, Trusted: f.parsedTrusted, MasterTimeout: f.masterTimeout,
			AcceptPolicy: f.acceptPolicy, Lease: f.service.Shares(), Newcomer: !f.takeOver && !daemon.Fresh(f.where.spec)},
		LeaveMulticast: f.once && f.forgot, Pause: pause, Seed: daemon.Secret(),
		// A run that ends with the first verdict answers nobody.
		Reregister: f.forgot && !f.once,
	}, server.Config{Keep: f.state != "" || f.shared != nil}
	master.Guard{
		Profile: f.parsedProfile, Keys: f.keys.config(0, f.where.self), MKey: f.where.mKey, SAKey: f.parsedSAKey,
		Cables: f.cables.list, Learn: f.cables.learns() || daemon.Fresh(f.where.spec),
	}.Configure(&manager, &administration)
	return manager, administration
}

// keep has the book of M_Keys kept, restores what hosts registered and has it kept.
func (f *runFlags) keep(r *reporter) error {
	f.keys.keep(r.runner)
	if f.state == "" && f.shared == nil {
		return nil
	}
	engine := r.runner.Engine()
	r.runner.Recall(files.ReaderOf(f.state, f.parsedSAKey))
	r.runner.Lacks(f.forgot)
	f.shared.Begin(r.runner) // its Recall counts, if there is one
	err := r.runner.Keep(f.registered.State, func(s server.State) error { return f.save(engine, s) })
	if err != nil {
		return fmt.Errorf("state %s: administration: %w", f.state, err)
	}
	return nil
}

// recall takes from the store that managers share what they have kept in it.
func (f *runFlags) recall(ctx context.Context) (err error) {
	var all files.All
	var some bool
	keep := f.keepCables(ctx)
	if f.cables.file != "" {
		keep = nil // its operator named another
	}
	if f.shared, all, some, err = f.service.Kept(ctx, f.parsedSAKey, f.keys.ring, keep); some {
		f.loadedAssigned, f.registered, f.forgot = all.Assigned, all.Registered, all.Registered.Manager == 0
	}
	f.keys.shared = f.shared.SharesKeys()
	return err
}

// save writes the state file. A run that answered nobody and knows of no
// registrations says nothing of them: the next one has to ask for them.
func (f *runFlags) save(engine *engine.Engine, s server.State) error {
	if f.once && f.forgot {
		return files.SaveState(f.state, engine.Assigned())
	}
	return files.SaveStates(f.state, engine.Assigned(), files.Registered{State: s, SAKey: f.parsedSAKey, Manager: daemon.PortOf(engine)})
}

// reload reads the configuration, the list of cables, forwarding tables and the policy file
// again. Of each that has a fault the previous one stays in force.
func (f *runFlags) reload(c *cobra.Command, r *reporter) {
	engine, stderr := r.runner.Engine(), c.ErrOrStderr()
	for _, file := range []struct {
		what string
		read func() error
	}{
		{"configuration", func() error { return f.reconfigure(c, engine) }},
		{"list of cables", func() error { return f.cables.reload(engine, stderr) }},
		{"forwarding tables", func() error { return f.routing.Reload(engine, stderr) }},
		{"policy", func() error { return f.reloadPolicy(c, engine) }},
	} {
		if err := file.read(); err != nil {
			r.log.ReloadFailed(file.what, err)
			r.watched.Count(telemetry.ReloadFailed)
		}
	}
}

// reloadPolicy reads the policy file again, or accepts the policy that there is without one.
func (f *runFlags) reloadPolicy(c *cobra.Command, engine *engine.Engine) error {
	if f.service != nil && f.service.Back() != nil {
		return f.service.Back()
	}
	if f.policy == "" || f.policy == policyNone {
		engine.AcceptPolicy()
		if f.service != nil {
			f.service.Again()
		} else {
			engine.SetPolicy(f.loadedPolicy) // there is no other
		}
		return nil
	}
	p, err := readPolicy(f.policy, f.policyOptions, c.ErrOrStderr())
	if err == nil && f.service != nil {
		if err = f.applyFile(c.Context()); err == nil {
			engine.AcceptPolicy()
			f.service.Again()
		}
	} else if err == nil {
		engine.AcceptPolicy()
		engine.SetPolicy(p)
	}
	if err == nil {
		fmt.Fprintln(c.ErrOrStderr(), "policy read again")
	}
	return err
}

// serve opens the service, and applies the policy file. A run that ends with the first
// verdict and keeps nothing has none.
func (f *runFlags) serve(ctx context.Context) (err error) {
	if f.once && f.serves.Store == "" && f.cables.dir == "" {
		return nil
	}
	base := f.loadedPolicy
	if f.policy != "" {
		base = &policy.Policy{Default: policy.Limited} // the file is the first revision
	}
	f.service, err = serve.Open(ctx, serve.Options{Store: f.serves.Store, Data: f.cables.dir, State: f.state, Fabric: f.where.spec, Base: base, Lease: f.serves.Lease})
	if err == nil && f.policy != "" {
		err = f.applyFile(ctx)
	}
	if waits := new(serve.WaitsError); errors.As(err, &waits) {
		telemetry.LogOf(ctx).Warn(waits.Error()) // what stands is guarded meanwhile
		err = nil
	}
	return orMisuse(err)
}

// listen serves the API. A run that ends with the first verdict serves none.
func (f *runFlags) listen(w io.Writer, r *reporter) error {
	if f.once {
		return nil
	}
	f.service.Watch(r.watched.Telemetry)
	keys := ufm.Keys{DefaultSMKey: f.parsedSMKey == 1, DefaultSAKey: f.parsedSAKey == 1}
	where, err := f.service.Listen(&f.serves, f.cables.dir, keys, r.log.Logger)
	if err != nil {
		return misuse(err)
	}
	for _, at := range where {
		fmt.Fprintln(w, "ibwarden: API:", at)
	}
	return nil
}

// applyFile makes the file of --policy the one in force.
func (f *runFlags) applyFile(ctx context.Context) error {
	if f.policy == policyNone {
		return f.service.ApplyFile(ctx, resource.File{Name: policyNone, Text: "version: 1\ndefault: limited\n"})
	}
	text, err := readBounded(f.policy)
	if err != nil {
		return err
	}
	return f.service.ApplyFile(ctx, resource.File{Name: f.policy, Text: string(text), AllowBoth: f.policyOptions.AllowBoth})
}
