package simcmd

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/cli/exit"
	"github.com/ibwarden/ibwarden/internal/netlist"
	"github.com/ibwarden/ibwarden/internal/scenario"
)

// story runs a scenario. Files that it names are looked for beside it.
func (f *flags) story(c *cobra.Command, spec string) error {
	text, err := os.ReadFile(f.script)
	if err != nil {
		return exit.WithMisuse(err)
	}
	beside := func(name string) string {
		if filepath.IsAbs(name) {
			return name
		}
		return filepath.Join(filepath.Dir(f.script), name)
	}
	source := scenario.Source{
		Name: f.script, Text: text, Seed: f.seed,
		Load: func(name string) (*netlist.Netlist, error) {
			if _, err := os.Stat(beside(name)); err == nil {
				name = beside(name)
			}
			return f.topology(c, name)
		},
		Read: func(name string) ([]byte, error) { return os.ReadFile(beside(name)) },
	}
	if spec != "" {
		if source.Fabric, err = f.topology(c, spec); err != nil {
			return exit.WithMisuse(err)
		}
	}
	script, err := scenario.Compile(source)
	if err != nil {
		return exit.WithMisuse(err)
	}
	report, err := script.Run()
	if report != nil {
		if _, err := report.WriteTo(c.OutOrStdout()); err != nil {
			return exit.WithBad(err)
		}
	}
	switch {
	case err != nil:
		return exit.WithMisuse(err)
	case !report.Good():
		return exit.WithBad(nil)
	}
	return nil
}
