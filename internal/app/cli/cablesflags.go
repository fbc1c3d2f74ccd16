package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
)

// dataFlag is the flag for the directory that keeps what may not be forgotten.
type dataFlag struct{ path string }

func (f *dataFlag) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.path, "data", "", "data directory, for keys, state and the list of cables; only its owner has access (default: IBWARDEN_DATA; on umad /var/lib/ibwarden, or the user's own state directory; otherwise nothing is kept)")
}

// open makes the directory, if there is one to be.
func (f *dataFlag) open(fabric string) (daemon.DataDir, error) {
	path := f.path
	if path == "" {
		dir, err := daemon.DefaultDataDir(fabric)
		if err != nil || dir == "" {
			return "", orMisuse(err)
		}
		path = string(dir)
	}
	dir, err := daemon.OpenDataDir(path)
	return dir, orMisuse(err)
}

// orMisuse is misuse for an error that there may be none of.
func orMisuse(err error) error {
	if err == nil {
		return nil
	}
	return misuse(err)
}

// cablesFlags say which list of cables a command is about.
type cablesFlags struct {
	data dataFlag
	file string
	dir  daemon.DataDir
	list *cables.List
}

func (f *cablesFlags) add(flags *pflag.FlagSet) {
	f.data.add(flags)
	flags.StringVar(&f.file, "cables", "", cablesHelp)
}

const cablesHelp = "file with the list of cables, as ibwarden topology learn or ibnetdiscover writes it (default: cables.topology in the data directory)"

// loadThere reads the list where a manager keeps it, and makes no directory; nil
// when there is none.
func (f *cablesFlags) loadThere(fabric string) (*cables.List, error) {
	if f.file != "" {
		l, err := daemon.LoadCables(f.file)
		return l, orMisuse(err)
	}
	dir, err := daemon.DataDir(f.data.path), error(nil)
	if dir == "" {
		dir, err = daemon.DefaultDataDir(fabric)
	}
	if err != nil {
		return nil, misuse(err)
	}
	l, err := dir.LoadCables()
	return l, orMisuse(err)
}

// path is where the list is, empty when it is nowhere.
func (f *cablesFlags) path() string {
	switch {
	case f.file != "":
		return f.file
	case f.dir != "":
		return f.dir.Cables()
	}
	return ""
}

// load opens the directory and reads the list, if there is one yet. A file that
// was named has to be there.
func (f *cablesFlags) load(fabric string) (err error) {
	if f.dir, err = f.data.open(fabric); err != nil {
		return err
	}
	if f.file == "" {
		f.list, err = f.dir.LoadCables()
	} else {
		f.list, err = daemon.LoadCables(f.file)
	}
	return orMisuse(err)
}

// need is load for commands that are about a list.
func (f *cablesFlags) need(fabric string) error {
	if err := f.load(fabric); err != nil {
		return err
	}
	if f.list != nil {
		return nil
	}
	if f.path() == "" {
		return misuse(errors.New("no list of cables: give --cables FILE or --data DIR"))
	}
	return misuse(fmt.Errorf("%s: there is no list of cables yet: make one with ibwarden topology learn", f.path()))
}

// learns reports whether a manager is to learn a list: where one would be kept.
func (f *cablesFlags) learns() bool { return f.list == nil && f.dir != "" }

// keep keeps a list that was learned, where there is a place for it.
func (f *cablesFlags) keep(l *cables.List) error {
	f.list = l
	if f.dir == "" {
		return nil
	}
	return daemon.SaveCables(f.dir.Cables(), l)
}

// reload reads the list again for a manager that runs. One with a fault changes nothing.
func (f *cablesFlags) reload(engine *engine.Engine, stderr io.Writer) error {
	if f.path() == "" || engine.Cables() == nil {
		return nil
	}
	l, err := daemon.LoadCables(f.path())
	if err != nil {
		return err
	}
	fmt.Fprintln(stderr, "list of cables read again")
	engine.SetCables(l)
	return nil
}
