package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// keysFlags say of which master secret keys are made.
type keysFlags struct {
	secret string
	ring   *daemon.Keyring // nil: ports get no keys of their own
	shared bool            // other managers store which port has which key
	// look reports whether a request for other keys may wait, asked that it was taken.
	look, asked bool
	unlock      func() // of the directory, nil without one
}

func (f *keysFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.secret, "secret-file", "", secretHelp)
}

const secretHelp = "file with the master secret from which all keys are derived, 64 hexadecimal digits; only its owner may be able to read it (default: the systemd credential ibwarden.secret, or secret in the data directory, created at first start)"

// load opens the secret for a manager. The fabric of this process ends with it,
// and so may its keys; any other gets keys where they can be kept.
func (f *keysFlags) load(fabric string, dir daemon.DataDir, profile protect.Profile) (err error) {
	switch {
	case profile == protect.None: // a key that every port shows to everybody guards nothing
	case dir != "":
		if f.unlock, err = dir.Lock(); err == nil {
			f.ring, err = daemon.OpenKeys(dir, f.secret, true)
		}
		f.look = true
	case f.secret != "":
		err = errors.New("--secret-file needs --data DIR, to keep which port has which key")
	case daemon.Fresh(fabric):
		f.ring = daemon.ThrowAwayKeys()
	}
	return orMisuse(err)
}

// check reports why the book could not be kept, before anything is sent; nil where it is kept,
// or there is none.
func (f *keysFlags) check() error {
	if f.ring == nil {
		return nil
	}
	return f.ring.Save(f.ring.Book)
}

// close lets other managers use the directory.
func (f *keysFlags) close() {
	if f.unlock != nil {
		f.unlock()
	}
}

// config is what a manager is told of keys; nil when ports get none of their own.
// old is the key of the fabric so far, 0 for none, self the port to work from.
func (f *keysFlags) config(old ib.MKey, self mkey.ID) *mkey.KeyingConfig {
	if f.ring == nil {
		return nil
	}
	c := &mkey.KeyingConfig{Keys: mkey.Keys{Ring: f.ring.Ring, Book: f.ring.Book, Self: self}, Keep: f.ring.Keeps(), Shared: f.shared}
	c.Foreign = f.ring.Foreign
	if old != 0 {
		c.Foreign.Everywhere = []ib.MKey{old}
	}
	return c
}

// saKey is the key of trusted queries when none was given; 0 where a secret would
// not outlive the run.
func (f *keysFlags) saKey() ib.SMKey {
	if f.ring == nil || !f.ring.Keeps() {
		return 0
	}
	return f.ring.Ring.SAKey()
}

// keep has the book kept while a manager runs.
func (f *keysFlags) keep(r *daemon.Runner) {
	if f.ring != nil && f.ring.Keeps() {
		r.KeepKeys(f.ring.Save)
	}
}

// handleRequests carries out requests for new keys, between passes.
func (f *keysFlags) handleRequests(engine *engine.Engine, stderr io.Writer) {
	if f.ring == nil || !engine.Settled() {
		return
	}
	if f.asked {
		f.asked = false
		if err := f.ring.Rotated(); err != nil {
			fmt.Fprintln(stderr, "ibwarden:", err)
		}
	}
	if !f.look {
		return
	}
	f.look = false
	r, err := f.ring.AskedRotation()
	if err != nil {
		fmt.Fprintln(stderr, "ibwarden:", err)
	} else if r != nil {
		f.asked = true
		fmt.Fprintf(stderr, "new M_Keys are requested: %s\n", terminal.Count(engine.RenewKeys(r.Ports...), "port"))
	}
}

// replaced forgets the keys of another manager when all are replaced.
func (f *keysFlags) replaced(result *event.Result, stderr io.Writer) {
	if f.ring == nil || !result.Reached() {
		return
	}
	if err := f.ring.DropForeign(); err != nil {
		fmt.Fprintln(stderr, "ibwarden:", err)
	}
}

// readsFlags say where a command that reads a fabric finds its keys.
type readsFlags struct {
	data   dataFlag
	secret string
}

func (f *readsFlags) add(flags *pflag.FlagSet) {
	f.data.add(flags)
	flags.StringVar(&f.secret, "secret-file", "", secretHelp)
}

// load reads the keys and the list of cables as a manager keeps them; nil where
// none are kept.
func (f *readsFlags) load(fabric string) (*daemon.Keyring, *cables.List, error) {
	dir := daemon.DataDir(f.data.path)
	if dir == "" {
		var err error
		if dir, err = daemon.DefaultDataDir(fabric); err != nil || dir == "" {
			return nil, nil, orMisuse(err)
		}
	}
	ring, err := daemon.OpenKeys(dir, f.secret, false)
	if errors.Is(err, daemon.ErrNoSecret) && f.data.path == "" {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, misuse(fmt.Errorf("--data: %w", err))
	}
	list, err := dir.LoadCables()
	return ring, list, orMisuse(err)
}

// keys are those for reading the fabric; nil where one key, or none, is that of
// every port. It is for after open.
func (f *fabricFlags) keys() (*mkey.KeyingConfig, error) {
	ring, list, err := f.reads.load(f.spec)
	if err != nil {
		return nil, err
	}
	k := keysFlags{ring: ring}
	c := k.config(f.mKey, f.self)
	if c != nil {
		c.Declared = mkey.Declared(func() *cables.List { return list })
	}
	return c, nil
}

// asks enters the keys with which a fabric is read.
func (f *fabricFlags) asks(o *sweep.Options) error {
	k, err := f.keys()
	o.Keys, o.MKey = k.Shown(), f.mKey
	return err
}
