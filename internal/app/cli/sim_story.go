package cli

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/lab/scenario"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// scriptFileMax is the most bytes of a script, and of a file that it names.
const scriptFileMax = 64 << 20

// story runs a scenario. Files that it names are looked for in its directory.
func (f *simFlags) story(c *cobra.Command, spec string) (result error) {
	text, err := files.Read(f.script, scriptFileMax)
	if err != nil {
		return terminal.WithMisuse(err)
	}
	beside := func(name string) string {
		if filepath.IsAbs(name) {
			return name
		}
		return filepath.Join(filepath.Dir(f.script), name)
	}
	source := scenario.Source{
		Name: f.script, Text: text, Seed: f.seed,
		Load: func(name string) (*topology.Netlist, error) {
			if _, err := os.Stat(beside(name)); err == nil {
				name = beside(name)
			}
			return f.topology(c, name)
		},
		Read: func(name string) ([]byte, error) { return files.Read(beside(name), scriptFileMax) },
	}
	if spec != "" {
		if source.Fabric, err = f.topology(c, spec); err != nil {
			return terminal.WithMisuse(err)
		}
	}
	if scenario.IsAttack(text) {
		return f.attack(c, source)
	}
	script, err := scenario.Compile(source)
	if err != nil {
		return terminal.WithMisuse(err)
	}
	if f.capture != "" {
		finish, err := f.record(script)
		if err != nil {
			return terminal.WithMisuse(err)
		}
		defer func() {
			if closed := finish(); result == nil && closed != nil {
				result = terminal.WithBad(closed)
			}
		}()
	}
	report, err := script.Run()
	if report != nil {
		if _, err := report.WriteTo(c.OutOrStdout()); err != nil {
			return terminal.WithBad(err)
		}
	}
	switch {
	case err != nil:
		return terminal.WithMisuse(err)
	case !report.Good():
		return terminal.WithBad(nil)
	}
	return nil
}

// attack runs a script of the catalogue of attacks under every profile of
// protection.
func (f *simFlags) attack(c *cobra.Command, source scenario.Source) error {
	if f.capture != "" {
		return terminal.WithMisuse(errors.New("--capture: want a script that runs once; one of an attack runs under every profile"))
	}
	a, err := scenario.Parse(source.Name, source.Text)
	if err != nil {
		return terminal.WithMisuse(err)
	}
	good := true
	for _, p := range scenario.AttackProfiles() {
		source.Text, source.Profile = a.Under(p), p
		script, err := scenario.Compile(source)
		if err != nil {
			return terminal.WithMisuse(err)
		}
		report, err := script.Run()
		if err != nil {
			return terminal.WithMisuse(err)
		}
		outcome, err := scenario.Judge(report)
		word := "as the script says"
		if outcome != a.Expected(p) || err != nil {
			word, good = fmt.Sprintf("want %v", a.Expected(p)), false
		}
		fmt.Fprintf(c.OutOrStdout(), "profile %v: %v; %s\n", p, outcome, word)
		if _, err := report.WriteTo(c.OutOrStdout()); err != nil {
			return terminal.WithBad(err)
		}
	}
	if !good {
		return terminal.WithBad(nil)
	}
	return nil
}

// record lets the packets of a scenario be written to the capture file. Finish is to
// be called at the end. A scenario's time begins with the year 2000, so that the same
// seed gives the same file.
func (f *simFlags) record(script *scenario.Script) (finish func() error, err error) {
	file, err := os.Create(f.capture)
	if err != nil {
		return nil, err
	}
	buffered := bufio.NewWriter(file)
	r, err := fabric.NewRecorder(buffered, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	script.Watch(fabric.Config{Trace: r.Management, DataTrace: r.Data})
	return func() error { return errors.Join(r.Err(), buffered.Flush(), file.Close()) }, nil
}
