package run

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
)

// AddData adds the flag for the directory that keeps what may not be forgotten.
func AddData(flags *pflag.FlagSet, path *string) {
	flags.StringVar(path, "data", "", "data directory, for keys, state and the list of cables; only its owner has access (default: IBWARDEN_DATA; on umad /var/lib/ibwarden, or the user's own state directory; otherwise nothing is kept)")
}

// OpenData makes the data directory, if there is one to be: at path, or where that of the
// fabric is by default.
func OpenData(path, fabric string) (daemon.DataDir, error) {
	if path == "" {
		dir, err := daemon.DefaultDataDir(fabric)
		if err != nil || dir == "" {
			return "", terminal.OrMisuse(err)
		}
		path = string(dir)
	}
	dir, err := daemon.OpenDataDir(path)
	return dir, terminal.OrMisuse(err)
}

// Cables are the data directory, and the list of cables that counts.
type Cables struct {
	Data string // directory, "" for that of the fabric by default
	File string // "" for that in the directory
	// Dir is the directory, and List the list, after Load; "" and nil for none.
	Dir  daemon.DataDir
	List *cables.List
}

// Add adds the flags.
func (f *Cables) Add(flags *pflag.FlagSet) {
	AddData(flags, &f.Data)
	flags.StringVar(&f.File, "cables", "", CablesHelp)
}

// CablesHelp explains --cables.
const CablesHelp = "file with the list of cables, as ibwarden topology learn or ibnetdiscover writes it (default: cables.topology in the data directory)"

// LoadThere reads the list where a manager keeps it, and makes no directory; nil
// when there is none.
func (f *Cables) LoadThere(fabric string) (*cables.List, error) {
	if f.File != "" {
		l, err := daemon.LoadCables(f.File)
		return l, terminal.OrMisuse(err)
	}
	dir, err := daemon.DataDir(f.Data), error(nil)
	if dir == "" {
		dir, err = daemon.DefaultDataDir(fabric)
	}
	if err != nil {
		return nil, terminal.WithMisuse(err)
	}
	l, err := dir.LoadCables()
	return l, terminal.OrMisuse(err)
}

// Path is where the list is, empty when it is nowhere.
func (f *Cables) Path() string {
	switch {
	case f.File != "":
		return f.File
	case f.Dir != "":
		return f.Dir.Cables()
	}
	return ""
}

// Load opens the directory and reads the list, if there is one yet. A file that
// was named has to be there.
func (f *Cables) Load(fabric string) (err error) {
	if f.Dir, err = OpenData(f.Data, fabric); err != nil {
		return err
	}
	if f.File == "" {
		f.List, err = f.Dir.LoadCables()
	} else {
		f.List, err = daemon.LoadCables(f.File)
	}
	return terminal.OrMisuse(err)
}

// Need is Load for commands that are about a list.
func (f *Cables) Need(fabric string) error {
	if err := f.Load(fabric); err != nil {
		return err
	}
	if f.List != nil {
		return nil
	}
	if f.Path() == "" {
		return terminal.WithMisuse(errors.New("no list of cables: give --cables FILE or --data DIR"))
	}
	return terminal.WithMisuse(fmt.Errorf("%s: there is no list of cables yet: make one with ibwarden topology learn", f.Path()))
}

// Learns reports whether a manager is to learn a list: where one would be kept.
func (f *Cables) Learns() bool { return f.List == nil && f.Dir != "" }

// Keep keeps a list that was learned, where there is a place for it.
func (f *Cables) Keep(l *cables.List) error {
	f.List = l
	if f.Dir == "" {
		return nil
	}
	return daemon.SaveCables(f.Dir.Cables(), l)
}

// Reload reads the list again for a manager that runs. One with a fault changes nothing.
func (f *Cables) Reload(engine *engine.Engine, stderr io.Writer) error {
	if f.Path() == "" || engine.Cables() == nil {
		return nil
	}
	l, err := daemon.LoadCables(f.Path())
	if err != nil {
		return err
	}
	fmt.Fprintln(stderr, "list of cables read again")
	engine.SetCables(l)
	return nil
}
