// Package run assembles a manager from one Config, and runs it. It reads the data directory with its list
// of cables, keys and state, and the policy, then opens the fabric and the service, makes the engine, and
// begins telemetry and the API. It is `ibwarden run` without its command line.
//
// The files that begin with serve open the service of the manager that runs, and join the two.
//
// # Configuration files
//
// The files that begin with config read the configuration files of `ibwarden run`: what its flags say, in
// YAML, each under the name of its flag.
//
//	Read    what a file and the files of conf.d beside it say, checked against the flags
//	Enter   sets the flags that neither the command line nor the environment has set
//	Print   every setting, and where its value comes from
//	Schema  the JSON Schema of such a file, for editors
//
// A flag on the command line counts before a variable of the environment, this before a
// file of conf.d, this before the file itself, and that before the default.
//
// Whoever can write the files steers the manager: one that everybody can write is an
// error, and so is one with a secret that others can read.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/ufm"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/app/telemetry"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/master"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
	"github.com/ibwarden/ibwarden/internal/sa/server"
)

// manager is one that is being started, and then runs.
type manager struct {
	Config
	ctx    context.Context
	stderr io.Writer
	log    *telemetry.Log
	print  Printer

	// What the files say.
	policy     *policy.Policy
	text       string // of the policy
	saKey      ib.SMKey
	assigned   desired.Assigned
	registered files.Registered
	// forgot reports whether nothing is known of what hosts registered before.
	forgot bool

	// What was opened.
	port    Port
	service *Service
	shared  *Shared
	runner  *daemon.Runner
	watched *telemetry.Run

	outcome
}

// Run starts a manager, and runs it until its work is done, with Once, or ctx ends. Verdicts go
// to out, what a person at the terminal has to know to stderr; the log is that of ctx. The error has the
// exit status of the command.
func Run(ctx context.Context, c Config, out Printer, stderr io.Writer) error {
	m := &manager{Config: c, ctx: ctx, stderr: stderr, log: telemetry.LogOf(ctx), print: out, forgot: true}
	defer m.Keys.close()
	if err := m.load(); err != nil {
		return err
	}
	var err error
	if m.port, err = m.Open(); err != nil {
		return err
	}
	defer m.port.Link.Close()
	if err := daemon.CheckLIDs(m.port.Link, m.LMC); err != nil {
		return terminal.OrMisuse(fmt.Errorf("--fabric %s: %w", m.Fabric, err))
	}
	if err := m.openService(); err != nil {
		return errors.Join(err, m.service.Close())
	}
	defer m.service.Close()
	if err := m.recall(); err != nil {
		return terminal.OrMisuse(err)
	}
	if err := m.tenants(); err != nil {
		return err
	}
	if !m.Once {
		m.log.Stamp()
	}
	config, administration := m.configs()
	revision := uint64(0)
	if m.service != nil {
		revision, m.policy = m.service.Policy()
	}
	m.runner = daemon.NewRunner(m.port.Link, config, administration, m.policy, m)
	if m.watched, err = m.Telemetry.Start(stderr, m.runner); err != nil {
		return terminal.OrMisuse(err)
	}
	defer m.watched.Close()
	m.service.Begin(m.runner, revision, m.policy)
	if err := m.listen(); err != nil {
		return err
	}
	if err := m.keep(); err != nil {
		return terminal.OrMisuse(err)
	}
	hangup, stop := daemon.Hangups(m.port.Link)
	defer stop()
	return m.ended(m.runner.Run(ctx, func() bool { return m.turned(hangup) }))
}

// load reads all files, before anything is sent.
func (m *manager) load() (err error) {
	if err := m.Check(); err != nil {
		return err
	}
	if err := m.Cables.Load(m.Fabric); err != nil {
		return err
	}
	if err := m.Keys.load(m.Fabric, m.Cables.Dir, m.Profile); err != nil {
		return err
	}
	if err := m.tolerate(m.Keys.check()); err != nil {
		return terminal.OrMisuse(err)
	}
	if m.saKey = m.Keys.saKey(); m.SAKey != nil {
		m.saKey = *m.SAKey
	}
	if m.State == "" && m.Cables.Dir != "" {
		m.State = m.Cables.Dir.State()
	}
	if m.State != "" {
		if m.assigned, err = files.LoadState(m.State); err != nil {
			return terminal.OrMisuse(err)
		}
		known := false
		if m.registered, known, err = files.LoadRegistered(m.State, m.saKey); err != nil {
			return terminal.OrMisuse(err)
		}
		m.forgot = !known
		if err := m.tolerate(files.CheckState(m.State)); err != nil {
			return terminal.OrMisuse(err)
		}
	}
	m.policy, m.text, err = m.Policy.Load(m.Fabric, m.stderr)
	return err
}

// keepCables keeps a list of cables, as far as there is room.
func (m *manager) keepCables(l *cables.List) error { return m.tolerate(m.Cables.Keep(l)) }

// tolerate makes a warning of an error that says that there is no room in the data directory:
// a fabric without a manager is worse than one whose manager forgets. Of a single pass it is
// an error.
func (m *manager) tolerate(err error) error {
	if m.Once || !files.IsFull(err) {
		return err
	}
	m.log.Warn(err.Error())
	return nil
}

// openService opens the service, and applies the policy file. A run that ends with the first
// verdict and keeps nothing has none.
func (m *manager) openService() (err error) {
	if m.Once && m.Serves.Store == "" && m.Cables.Dir == "" {
		return nil
	}
	base := m.policy
	if m.Policy.File != "" {
		base = defaultOnly() // the file is the first revision
	}
	m.service, err = Open(m.ctx, Options{Store: m.Serves.Store, Data: m.Cables.Dir, State: m.State, Fabric: m.Fabric, Base: base, Lease: m.Serves.Lease})
	if err == nil && m.Policy.File != "" {
		err = m.service.ApplyFile(m.ctx, m.Policy.resource(m.text))
	}
	if waits := new(WaitsError); errors.As(err, &waits) {
		m.log.Warn(waits.Error()) // what stands is guarded meanwhile
		err = nil
	}
	return terminal.OrMisuse(err)
}

// recall takes from the store that managers share what they have kept in it.
func (m *manager) recall() (err error) {
	keep := m.keepCables
	if m.Cables.File != "" {
		keep = nil // its operator named another
	}
	var all files.All
	var some bool
	if m.shared, all, some, err = m.service.Kept(m.ctx, m.saKey, m.Keys.ring, keep); some {
		m.assigned, m.registered, m.forgot = all.Assigned, all.Registered, all.Registered.Manager == 0
	}
	m.Keys.shared = m.shared.SharesKeys()
	return err
}

// configs are what the engine and the administration are told once.
func (m *manager) configs() (engine.Config, server.Config) {
	fresh, election := daemon.Fresh(m.Fabric), m.Election
	election.ShowSMKey, election.Lease, election.Newcomer = election.SMKey != 0, m.service.Shares(), !m.TakeOver && !fresh
	config, administration := engine.Config{
		LMC: m.LMC, Routing: m.Routing.Engine, RoutingFile: m.Routing.Tables, Known: m.assigned,
		Limits:  transact.Limits{Window: m.Window},
		Periods: m.Periods, Election: election,
		LeaveMulticast: m.Once && m.forgot, Pause: m.Pause, Seed: daemon.Secret(),
		// A run that ends with the first verdict answers nobody.
		Reregister: m.forgot && !m.Once,
	}, server.Config{Keep: m.State != "" || m.shared != nil}
	master.Guard{
		Profile: m.Profile, Keys: m.Keys.keying(m.port), MKey: m.port.MKey, SAKey: m.saKey,
		Cables: m.Cables.List, Learn: m.Cables.Learns() || fresh,
	}.Configure(&config, &administration)
	return config, administration
}

// listen serves the API. A run that ends with the first verdict serves none.
func (m *manager) listen() error {
	if m.Once {
		return nil
	}
	m.service.Watch(m.watched.Telemetry)
	m.service.Alert(m.watched.Alertmanagers)
	keys := ufm.Keys{DefaultSMKey: m.Election.SMKey == 1, DefaultSAKey: m.saKey == 1}
	where, err := m.service.Listen(&m.Serves, m.Cables.Dir, keys, m.watched.Address(), m.log.Logger)
	if err != nil {
		return terminal.OrMisuse(err)
	}
	for _, at := range where {
		fmt.Fprintln(m.stderr, "ibwarden: API:", at)
	}
	return nil
}

// keep has the book of M_Keys kept, restores what hosts registered and has it kept.
func (m *manager) keep() error {
	m.Keys.keep(m.runner)
	if m.State == "" && m.shared == nil {
		return nil
	}
	m.runner.Recall(files.ReaderOf(m.State, m.saKey))
	m.runner.Lacks(m.forgot)
	m.shared.Begin(m.runner) // its Recall counts, if there is one
	if err := m.runner.Keep(m.registered.State, m.save); err != nil {
		return fmt.Errorf("state %s: administration: %w", m.State, err)
	}
	return nil
}

// save writes the state file. A run that answered nobody and knows of no
// registrations says nothing of them: the next one has to ask for them.
func (m *manager) save(s server.State) error {
	assigned := m.runner.Engine().Assigned()
	if m.Once && m.forgot {
		return files.SaveState(m.State, assigned)
	}
	return files.SaveStates(m.State, assigned, files.Registered{State: s, SAKey: m.saKey, Manager: daemon.PortOf(m.runner.Engine())})
}

// turned does what is due whenever the engine loop turns. It reports whether the run ends.
func (m *manager) turned(hangup <-chan struct{}) bool {
	engine := m.runner.Engine()
	select {
	case <-hangup:
		m.reload()
		m.Keys.look = true
		m.print.Again()
	default:
	}
	m.service.Turn(engine)
	if m.watched.Turned() {
		m.log.Tick()
	}
	if m.last != nil {
		m.Keys.handleRequests(engine, m.stderr)
	}
	if m.completed != nil {
		m.Keys.replaced(m.completed, m.stderr)
	}
	if m.completed != nil && m.State != "" {
		if m.unsaved = m.save(m.runner.Registered()); m.unsaved != nil {
			m.log.Warn(m.unsaved.Error())
		}
		m.completed = nil
	}
	return m.unkept != nil || engine.Settled() && (m.Once || m.refused || m.unexpected)
}

// reload reads the configuration, the list of cables, forwarding tables, racks and the policy file
// again. Of each that has a fault the previous one stays in force.
func (m *manager) reload() {
	engine := m.runner.Engine()
	for _, file := range []struct {
		what string
		read func() error
	}{
		{"configuration", m.reread},
		{"list of cables", func() error { return m.Cables.Reload(engine, m.stderr) }},
		{"forwarding tables", func() error { return m.Routing.Reload(engine, m.stderr) }},
		{"racks", func() error { return m.service.reloadRacks(&m.Serves, m.stderr) }},
		{"policy", m.reloadPolicy},
	} {
		if err := file.read(); err != nil {
			m.log.ReloadFailed(file.what, err)
			m.watched.Count(telemetry.ReloadFailed)
		}
	}
}

// reread reads the configuration again.
func (m *manager) reread() error {
	if m.Reread == nil {
		return nil
	}
	policy, periods, err := m.Reread()
	if err != nil {
		return err
	}
	m.Policy, m.Periods = policy, periods
	m.runner.Engine().SetPeriods(periods.Sweep, periods.Drift, periods.Guard)
	return nil
}

// reloadPolicy reads the policy file again, or accepts the policy that there is without one.
func (m *manager) reloadPolicy() error {
	if m.service != nil && m.service.Back() != nil {
		return m.service.Back()
	}
	engine, given := m.runner.Engine(), m.Policy.File != "" && m.Policy.File != NoPolicy
	if given {
		p, text, err := m.Policy.Load(m.Fabric, m.stderr)
		if err != nil {
			return err
		}
		if m.service != nil {
			if err := m.service.ApplyFile(m.ctx, m.Policy.resource(text)); err != nil {
				return err
			}
		}
		m.policy = p
	}
	engine.AcceptPolicy()
	if m.service != nil {
		m.service.Again()
	} else {
		engine.SetPolicy(m.policy)
	}
	if given {
		fmt.Fprintln(m.stderr, "policy read again")
	}
	return nil
}
