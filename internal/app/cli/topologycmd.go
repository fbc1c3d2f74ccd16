package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/app/cli/look"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/run"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
)

const topologyHelp = `The list of cables says which port of which device leads to which. The manager
enforces it: a device that is cabled elsewhere, or is not on the list, gets no
partition, whoever it claims to be, and its switch port is fenced until somebody
accepts it here.

The list is the file of --cables, or cables.topology in the data directory. A
running manager reads it again on SIGHUP.

`

// topologyFlags are those of all commands about the list of cables.
type topologyFlags struct {
	where  fabricFlags
	cables run.Cables
	json   bool
}

func newTopology() *cobra.Command {
	var f topologyFlags
	c := &cobra.Command{
		Use:   "topology learn|show|diff|accept",
		Short: "Manage the list of cables that the manager enforces: learn, show, compare, accept",
		Long:  "Manage the list of cables that the manager enforces: learn, show, compare, accept.\n\n" + topologyHelp + fabricHelp,
		Args:  commandOf,
		RunE: func(*cobra.Command, []string) error {
			return misuse(errors.New("topology needs a command: learn, show, diff or accept"))
		},
	}
	f.where.add(c.PersistentFlags())
	f.cables.Add(c.PersistentFlags())
	c.PersistentFlags().BoolVar(&f.json, "json", false, "print one JSON document")
	c.AddCommand(f.learn(), f.show(), f.diff(), f.accept())
	return c
}

// read sweeps the fabric as it is, asking everybody twice, and coming to some ports
// last.
func (f *topologyFlags) read(c *cobra.Command, last map[observed.Place]bool) (*daemon.Reading, error) {
	link, err := f.where.open(c)
	if err != nil {
		return nil, err
	}
	defer link.Close()
	o := sweep.Options{Verify: true, Last: last}
	f.where.reads.data = f.cables.Data
	if err := f.where.asks(&o); err != nil {
		return nil, err
	}
	r, err := look.Live(c, link, o)
	if err != nil {
		return nil, err
	}
	for i, x := range r.Faults {
		if i == remarksMax {
			fmt.Fprintf(c.ErrOrStderr(), "ibwarden: %d more are not shown\n", len(r.Faults)-i)
			break
		}
		fmt.Fprintln(c.ErrOrStderr(), "ibwarden:", terminal.Plain(x))
	}
	return &r, nil
}

func (f *topologyFlags) learn() *cobra.Command {
	var output string
	var replace bool
	c := &cobra.Command{
		Use:   "learn",
		Short: "Make the list of cables from the fabric as it is now",
		Long: `Make the list of cables from the fabric as it is now. What is doubtful is left out
and named: a device that claims the identity of another, or changes its answers, or
a switch that leads nowhere. Whatever is plugged in now counts as right from then
on: look through the list (ibwarden topology show) before you trust it.

Only SubnGet is sent. With neither -o nor a data directory the list is printed.
`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.cables.File != "" {
				return misuse(errors.New("--cables: use -o FILE for the list that is to be made"))
			}
			dir, err := run.OpenData(f.cables.Data, f.where.spec)
			if err != nil {
				return err
			}
			if output == "" && dir != "" {
				output = dir.Cables()
			}
			if _, err := os.Stat(output); output != "" && err == nil && !replace {
				return misuse(fmt.Errorf("%s exists: --replace makes it again and accepts all that has changed; ibwarden topology diff shows what", output))
			}
			r, err := f.read(c, nil)
			if err != nil {
				return err
			}
			l, left, err := cables.Learn(r.Fabric, r.Contradiction)
			if len(r.Disputed) > 0 { // the other one may be the one that is genuine
				again, e := f.read(c, r.Disputed)
				if e != nil {
					return e
				}
				if other, out, e := cables.Learn(again.Fabric, again.Contradiction); e == nil && (err != nil || other.Cables() > l.Cables()) {
					l, left, err = other, out, nil
				}
			}
			if err != nil {
				return bad(err)
			}
			for _, x := range left {
				fmt.Fprintln(c.ErrOrStderr(), "ibwarden:", terminal.Plain(l.Name(x.At)+" is left out: "+x.Reason))
			}
			if output == "" {
				return l.Write(c.OutOrStdout())
			}
			if err := daemon.SaveCables(output, l); err != nil {
				return bad(err)
			}
			return f.reportLearned(c, output, l, left)
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "file to write")
	c.Flags().BoolVar(&replace, "replace", false, "replace an existing list")
	return c
}

// learnReport is what `ibwarden topology learn --json` prints.
type learnReport struct {
	File    string              `json:"file"`
	Cables  int                 `json:"cables"`
	Devices int                 `json:"devices"`
	Left    []look.ReadingFault `json:"left"`
}

func (f *topologyFlags) reportLearned(c *cobra.Command, file string, l *cables.List, left []cables.Left) error {
	if !f.json {
		fmt.Fprintf(c.OutOrStdout(), "%s: %d cables between %d devices, %d ports left out\n", file, l.Cables(), len(l.Devices()), len(left))
		return nil
	}
	d := learnReport{file, l.Cables(), len(l.Devices()), []look.ReadingFault{}}
	for _, x := range left {
		d.Left = append(d.Left, look.ReadingFault{Where: l.Name(x.At), Why: x.Reason})
	}
	return terminal.JSON(c.OutOrStdout(), d)
}

func (f *topologyFlags) show() *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Show the list of cables", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.cables.Need(f.where.spec); err != nil {
				return err
			}
			t := terminal.NewTable("port", "leads_to", "type", "node_guid", "port_guid")
			for _, x := range f.cables.List.All() {
				d, _ := f.cables.List.Device(x.To.Node)
				guid := ""
				if g := f.cables.List.PortGUID(x.To); g != 0 {
					guid = g.String()
				}
				t.Add(f.cables.List.Name(x.From), f.cables.List.Name(x.To), d.Type.String(), d.GUID.String(), guid)
			}
			if err := t.Print(c.OutOrStdout(), "cables", f.json); err != nil {
				return bad(err)
			}
			return nil
		},
	}
}

func (f *topologyFlags) diff() *cobra.Command {
	return &cobra.Command{
		Use: "diff", Short: "Show where a fabric differs from the list of cables", Args: cobra.NoArgs,
		Long: "Show where a fabric differs from the list of cables. Only SubnGet is sent. The\nexit status is 1 when there is a difference.\n",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.cables.Need(f.where.spec); err != nil {
				return err
			}
			r, err := f.read(c, nil)
			if err != nil {
				return err
			}
			differences := f.cables.List.Diff(r.Fabric)
			t := terminal.NewTable("where", "what")
			for _, d := range differences {
				t.Add(d.Where, d.What)
			}
			return printDifferences(c, t, len(differences), f.json, "the fabric matches the list of cables")
		},
	}
}

// printDifferences prints a table of differences, and fails where there are any; none says that
// there are none.
func printDifferences(c *cobra.Command, t terminal.Table, n int, asJSON bool, none string) error {
	if n == 0 && !asJSON {
		fmt.Fprintln(c.OutOrStdout(), none)
		return nil
	}
	if err := t.Print(c.OutOrStdout(), "differences", asJSON); err != nil || n > 0 {
		return bad(err)
	}
	return nil
}

func (f *topologyFlags) accept() *cobra.Command {
	return &cobra.Command{
		Use:   "accept PORT...",
		Short: "Accept what is cabled to these ports now into the list of cables",
		Long: `Accept what is cabled to these ports now into the list of cables: what each leads
to, with its GUIDs and its description, or that it leads nowhere. A port is a
device of the list and a number, such as leaf-1:7, or a node GUID and a number.

leaf-1:7=red-1 says that red-1 of the list is there now, and nothing is read: a
host that has an M_Key does not answer at a port where it was not before.

Only SubnGet is sent. An identity that two devices claim, or a device that does not
answer, cannot be accepted. A running manager reads the list again on SIGHUP.
`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, ports []string) error {
			if err := f.cables.Need(f.where.spec); err != nil {
				return err
			}
			var r *daemon.Reading
			l := f.cables.List
			var done []string
			for _, name := range ports {
				next, said, err := f.acceptOne(c, l, &r, name)
				if err != nil {
					return err
				}
				l, done = next, append(done, said...)
			}
			if err := daemon.SaveCables(f.cables.Path(), l); err != nil {
				return bad(err)
			}
			if f.json {
				return terminal.JSON(c.OutOrStdout(), map[string]any{"file": f.cables.Path(), "changes": append([]string{}, done...)})
			}
			if len(done) == 0 {
				done = []string{"the list already says so"}
			}
			fmt.Fprintln(c.OutOrStdout(), terminal.Plain(strings.Join(done, "; ")))
			return nil
		},
	}
}

// acceptOne takes over what stands at one port, or what the command line says of it.
// The fabric is read when that is first needed.
func (f *topologyFlags) acceptOne(c *cobra.Command, l *cables.List, r **daemon.Reading, name string) (*cables.List, []string, error) {
	device, to, moved, err := l.FindMove(name)
	if err != nil {
		return nil, nil, misuse(err)
	}
	if moved {
		next, said, err := l.Move(device, to)
		return next, said, terminal.OrMisuse(err)
	}
	if *r == nil {
		if *r, err = f.read(c, nil); err != nil {
			return nil, nil, err
		}
	}
	at, err := l.Find(name, (*r).Fabric)
	if err != nil {
		return nil, nil, misuse(err)
	}
	next, said, err := l.Accept((*r).Fabric, at)
	if err != nil {
		return nil, nil, bad(err)
	}
	return next, said, nil
}
