// migrate*.go: implements `ibwarden migrate`: what becomes of the configuration of another
// subnet manager, and ibwarden's configuration and policy in its place.

package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/migrate/opensm"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// Names of the files that are written.
const (
	configFile = "ibwarden.yaml"
	policyFile = "policy.yaml"
	mKeyFile   = "m_key"
)

// defaultOutput is where a package has the configuration, for what is only shown.
const defaultOutput = "/etc/ibwarden"

// MigratedFabric adds the flags that choose a fabric, and returns what opens it, with the keys for
// reading it.
type MigratedFabric func(*pflag.FlagSet) (open func(*cobra.Command) (link.Link, sweep.Options, error))

// MigrateCommand returns the command; a word that is no command of it goes to wrong, and help lists what a
// fabric may be.
func MigrateCommand(fabric MigratedFabric, wrong cobra.PositionalArgs, help string) *cobra.Command {
	c := &cobra.Command{
		Use:   "migrate opensm [DIR]",
		Short: "Turn the configuration of OpenSM into ibwarden's",
		Args:  wrong,
		RunE: func(*cobra.Command, []string) error {
			return terminal.WithMisuse(errors.New("migrate: want the manager to come from: ibwarden migrate opensm"))
		},
	}
	c.AddCommand(newOpenSM(fabric, help))
	return c
}

// migrateCommand is one run of `ibwarden migrate opensm`.
type migrateCommand struct {
	output, data string
	force, json  bool
	without      bool
	writes       bool
	reads        func(*cobra.Command) (link.Link, sweep.Options, error)
}

// open opens the fabric that was named.
func (f *migrateCommand) open(c *cobra.Command) (link.Link, sweep.Options, error) {
	if c.Flags().Lookup("fabric").Value.String() == "" {
		return nil, sweep.Options{}, terminal.WithMisuse(errors.New("--fabric: want a fabric"))
	}
	return f.reads(c)
}

func newOpenSM(fabric MigratedFabric, help string) *cobra.Command {
	var f migrateCommand
	c := &cobra.Command{
		Use:   "opensm [DIR]",
		Short: "Say what becomes of every line of OpenSM's files, and write ibwarden's",
		Args:  cobra.MaximumNArgs(1),
		Long: `Say what becomes of every line of OpenSM's files, and write ibwarden's.

It reads opensm.conf in DIR (default: ` + defaultDir + `) and the files that this names, or
that OpenSM finds without it: partitions.conf, the QoS policy, prefix routes, lists of
GUIDs, the node name map, and guid2lid, guid2mkey and neighbors of OpenSM's cache. If DIR
is given, each file is looked for in it first, and those of the cache in it and in
DIR/cache only, so that a copy can be examined on another machine.

Each line is taken, not needed, or not possible, with the reason. Options that are left at
OpenSM's default are counted, and those named where ibwarden does something else. With
--output, ` + configFile + ` and ` + policyFile + ` are written, and ` + mKeyFile + ` if there is an M_Key; with
--write-data, the LIDs and keys of OpenSM's cache into ibwarden's data directory. No key is
printed. With --fabric the fabric is read, with SubnGet only, and it is said what a takeover
would change there: LIDs, routes, P_Keys, who would notice, how the manager of now hands
over, and with --writes each write. A partitions.conf in place of which OpenSM would open the fabric is refused with
its faults, and nothing is written.

Exit status: 0 done; 1 the fabric could not be read; 2 bad input, and nothing was written.

` + strings.Replace(help, " (default)", "", 1),
		RunE: func(c *cobra.Command, args []string) error {
			dir := ""
			if len(args) > 0 {
				dir = args[0]
			}
			return f.run(c, dir)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.output, "output", "", "directory to write "+configFile+" and "+policyFile+" into (default: only the report is printed)")
	flags.StringVar(&f.data, "write-data", "", "ibwarden's data directory to be: write the LIDs of guid2lid and the keys of guid2mkey into it")
	flags.BoolVar(&f.force, "force", false, "overwrite files that are there")
	flags.BoolVar(&f.without, "without-partitions", false, "there is no partitions.conf: write the policy that OpenSM has then, in which everybody reaches everybody")
	flags.BoolVar(&f.writes, "writes", false, "with --fabric, list every write")
	f.reads = fabric(flags)
	named := flags.Lookup("fabric") // none is read unless one is named
	named.DefValue, named.Usage = "", "the fabric to be taken over, as listed above; it is only read"
	_ = named.Value.Set("") // a string takes any
	flags.BoolVar(&f.json, "json", false, "print one JSON document")
	return c
}

// Document is what --json prints.
type Document struct {
	// Files are those that were read, in their order.
	Files []string `json:"files"`
	*opensm.Report
	// Takeover is what --fabric asks for; null without it.
	Takeover *Plan `json:"takeover"`
	// Written are the files that were written.
	Written []string `json:"written"`
}

func (f *migrateCommand) run(c *cobra.Command, dir string) error {
	found, err := locate(dir)
	if err != nil {
		return terminal.WithMisuse(err)
	}
	output := f.output
	if output == "" {
		output = defaultOutput
	}
	if output, err = filepath.Abs(output); err != nil {
		return terminal.WithMisuse(err)
	}
	o := opensm.Options{PolicyPath: filepath.Join(output, policyFile), MKeyPath: filepath.Join(output, mKeyFile)}
	if f.data != "" {
		if o.DataDir, err = filepath.Abs(f.data); err != nil {
			return terminal.WithMisuse(err)
		}
	}
	report, err := opensm.Migrate(found.conf, found.files, o)
	if err != nil {
		return migrateRefused(c.ErrOrStderr(), err)
	}
	d := Document{Files: found.paths, Report: report, Written: []string{}}
	switch named := c.Flags().Lookup("fabric"); {
	case named.Changed:
		if d.Takeover, err = f.plan(c, report); err != nil {
			return err
		}
	case f.writes:
		return terminal.WithMisuse(errNoFabric)
	}
	if d.Written, err = f.write(output, found, report); err != nil {
		return terminal.WithMisuse(err)
	}
	if f.json {
		err = terminal.JSON(c.OutOrStdout(), &d)
	} else {
		err = printReport(c.OutOrStdout(), &d, f.writes)
	}
	if err != nil {
		return terminal.WithBad(err)
	}
	return nil
}

// migrateRefused says every fault of a file.
func migrateRefused(w io.Writer, err error) error {
	var faults *policy.Error
	if !errors.As(err, &faults) {
		return terminal.WithMisuse(err)
	}
	for i := range faults.Faults {
		fmt.Fprintln(w, terminal.Plain(fmt.Sprintf("%s:%s", faults.Name, faults.Faults[i])))
	}
	return terminal.WithMisuse(fmt.Errorf("%s: %s; nothing was written", faults.Name, terminal.Count(len(faults.Faults), "fault")))
}
