package run

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// maxLFTsFile bounds a file of forwarding tables, in bytes: some 85 for an entry.
const maxLFTsFile = 4 << 30

// Routing says how to route.
type Routing struct {
	name, file string
	// Engine and Tables are what they say, after Load.
	Engine routing.Engine
	Tables *observed.LFTs
}

// Add adds the flags.
func (f *Routing) Add(flags *pflag.FlagSet) {
	flags.StringVar(&f.name, "routing", string(routing.UpDown), routing.Help())
	flags.StringVar(&f.file, "lfts-file", "", "forwarding tables for --routing file, as OpenSM dumps them (opensm-lfts.dump) and as ibwarden show routing --lfts prints them")
}

// RoutingOf is how engines and a file, as --routing and --lfts-file name them, say to route.
func RoutingOf(engines, file string) *Routing { return &Routing{name: engines, file: file} }

// Load checks what was given, and reads the file.
func (f *Routing) Load() (err error) {
	if f.Engine, err = routing.ParseEngine(f.name); err != nil {
		return terminal.WithMisuse(fmt.Errorf("--routing: %w", err))
	}
	switch uses := f.Engine.Has(routing.File); {
	case uses && f.file == "":
		return terminal.WithMisuse(errors.New("--lfts-file: want the forwarding tables for --routing file"))
	case !uses && f.file != "":
		return terminal.WithMisuse(fmt.Errorf("--lfts-file: --routing %s takes no file", f.name))
	case uses:
		if f.Tables, err = readLFTs(f.file); err != nil {
			return terminal.WithMisuse(fmt.Errorf("--lfts-file: %w", err))
		}
	}
	return nil
}

// Reload reads the file again for a manager that runs.
func (f *Routing) Reload(e *engine.Engine, w io.Writer) error {
	if f.Tables == nil {
		return nil
	}
	tables, err := readLFTs(f.file)
	if err != nil {
		return err
	}
	f.Tables = tables
	e.SetRoutingFile(tables)
	fmt.Fprintln(w, "forwarding tables read again")
	return nil
}

func readLFTs(path string) (*observed.LFTs, error) {
	file, err := files.Open(path, maxLFTsFile)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	tables, err := observed.ParseLFTs(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return tables, nil
}
