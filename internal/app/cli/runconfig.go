package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/run"
	"github.com/ibwarden/ibwarden/internal/app/telemetry"
)

// configVariable names the configuration file of a run that is not told of one.
const configVariable = "IBWARDEN_CONFIG"

// environment are the variables that set flags of a run.
var environment = run.Environment{"fabric": fabricVariable, "metrics": telemetry.Variable, "data": daemon.DataVariable}

// configured is where a run has its settings from.
type configured struct {
	path     string
	print    bool
	settings *run.Settings     // nil without a file
	origins  map[string]string // of each flag
}

func (f *configured) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.path, "config", os.Getenv(configVariable), "configuration file, YAML: what flags say, each under its name ("+configVariable+" names another); the .yaml files of conf.d beside it are read after it")
	flags.BoolVar(&f.print, "print-config", false, "print every setting and where its value comes from, and exit")
}

// scratchRun is a run that reads values and does nothing.
func scratchRun() (*runFlags, *cobra.Command) {
	f, c := newRunOf()
	root := new(cobra.Command)
	new(telemetry.LogOptions).Add(root.PersistentFlags())
	root.AddCommand(c)
	c.InheritedFlags() // merges them into those of c
	return f, c
}

// begin is what a run does before anything else: it takes the settings of its file, and then
// does what every command does, since cobra runs the nearer of the two only.
func (f *configured) begin(c *cobra.Command, args []string) error {
	if err := f.enter(c); err != nil {
		return err
	}
	return c.Root().PersistentPreRunE(c, args)
}

// enter reads the file, and sets what neither flags nor the environment set.
func (f *configured) enter(c *cobra.Command) (err error) {
	if f.path != "" {
		_, scratch := scratchRun()
		if f.settings, err = run.Read(f.path, scratch.Flags()); err != nil {
			return misuse(err)
		}
	}
	f.origins, err = f.settings.Enter(c.Flags(), environment)
	return terminal.OrMisuse(err)
}

func (f *configured) printed(c *cobra.Command) error {
	return run.Print(c.OutOrStdout(), c.Flags(), f.origins, environment)
}

// checkConfig checks a configuration file as `ibwarden run --config` would, and the files
// that it names; nothing is made or sent. It returns the files that were read.
func checkConfig(c *cobra.Command, path string) (files []string, err error) {
	f, scratch := scratchRun()
	f.config.path = path
	scratch.SetErr(c.ErrOrStderr())
	if err := f.config.enter(scratch); err != nil {
		return nil, err
	}
	if err := f.check(scratch); err != nil {
		return nil, err
	}
	m := &f.manager
	if m.Cables.File != "" {
		if _, err := daemon.LoadCables(m.Cables.File); err != nil {
			return nil, misuse(fmt.Errorf("cables: %w", err))
		}
	}
	_, _, err = m.Policy.Load(m.Fabric, scratch.ErrOrStderr())
	return f.config.settings.Files, err
}

// reconfigure reads the configuration again. What can change while a manager runs is
// changed: the file of the policy, how its =both is read, periods, and what is logged; of
// anything else it is said that it waits for the next start. A file with a fault changes
// nothing.
func (f *runFlags) reconfigure(c *cobra.Command) error {
	if f.config.path == "" {
		return nil
	}
	stderr := c.ErrOrStderr()
	fresh, scratch := scratchRun()
	settings, err := run.Read(f.config.path, scratch.Flags())
	if err == nil {
		// What the command line says still goes first, and has to fit what the files say now.
		fresh, scratch = scratchRun()
		c.Flags().Visit(func(x *pflag.Flag) {
			if f.config.origins[x.Name] != "--"+x.Name {
				return
			}
			own := scratch.Flags().Lookup(x.Name)
			if own.Changed = true; own.Value.Type() == "duration" {
				_ = own.Value.Set(x.Value.String()) // it has been one
			}
		})
		_, err = settings.Enter(scratch.Flags(), environment)
	}
	if err == nil {
		err = run.CheckPeriods(fresh.manager.Periods)
	}
	if level := scratch.Flags().Lookup("log-level"); err == nil && level != nil {
		if err = new(telemetry.LogOptions).Default(io.Discard).SetLevel(level.Value.String()); err != nil {
			err = fmt.Errorf("%s: log-level: %w", f.config.path, err)
		}
	}
	if err != nil {
		return err
	}
	var waiting []string
	for _, name := range run.Names(scratch.Flags()) {
		if !run.Changed(f.config.settings, settings, name) || f.config.origins[name] == "--"+name || environment.By(name) != "" {
			continue
		}
		flag := scratch.Flags().Lookup(name)
		switch name {
		case "policy":
			f.manager.Policy.File = fresh.manager.Policy.File
		case "allow-both":
			f.manager.Policy.Options = fresh.manager.Policy.Options
		case "sweep-interval":
			f.manager.Periods.Sweep = fresh.manager.Periods.Sweep
		case "drift-period":
			f.manager.Periods.Drift = fresh.manager.Periods.Drift
		case "guard-period":
			f.manager.Periods.Guard = fresh.manager.Periods.Guard
		case "log-level":
			_ = telemetry.LogOf(c.Context()).SetLevel(flag.Value.String()) // it is one of the levels
		default:
			waiting = append(waiting, name)
		}
	}
	f.config.settings = settings
	if waiting != nil {
		fmt.Fprintln(stderr, "ibwarden: these settings count when ibwarden is started again:", strings.Join(waiting, ", "))
	}
	fmt.Fprintln(stderr, "configuration read again")
	return nil
}

// forConfig is a run for ibwarden run config.
func forConfig() Run {
	return Run{Variable: configVariable, Check: checkConfig, Flags: func() *pflag.FlagSet {
		_, c := scratchRun()
		return c.Flags()
	}}
}
