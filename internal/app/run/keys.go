package run

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// Keys says of which master secret the keys of ports are made, and holds them.
type Keys struct {
	Secret string          // file, "" for that in the data directory
	ring   *daemon.Keyring // nil: ports get no keys of their own
	shared bool            // other managers store which port has which key
	// look reports whether a request for other keys may wait, asked that it was taken.
	look, asked bool
	unlock      func() // of the directory, nil without one
}

// AddSecret adds the flag for the master secret.
func AddSecret(flags *pflag.FlagSet, file *string) {
	flags.StringVar(file, "secret-file", "", secretHelp)
}

const secretHelp = "file with the master secret from which all keys are derived, 64 hexadecimal digits; only its owner may be able to read it (default: the systemd credential ibwarden.secret, or secret in the data directory, created at first start)"

// load opens the secret for a manager. The fabric of this process ends with it,
// and so may its keys; any other gets keys where they can be kept.
func (f *Keys) load(fabric string, dir daemon.DataDir, profile protect.Profile) (err error) {
	switch {
	case profile == protect.None: // a key that every port shows to everybody guards nothing
	case dir != "":
		if f.unlock, err = dir.Lock(); err == nil {
			f.ring, err = daemon.OpenKeys(dir, f.Secret, true)
		}
		f.look = true
	case f.Secret != "":
		err = errors.New("--secret-file needs --data DIR, to keep which port has which key")
	case daemon.Fresh(fabric):
		f.ring = daemon.ThrowAwayKeys()
	}
	return terminal.OrMisuse(err)
}

// check reports why the book could not be kept, before anything is sent; nil where it is kept,
// or there is none.
func (f *Keys) check() error {
	if f.ring == nil {
		return nil
	}
	return f.ring.Save(f.ring.Book)
}

// close lets other managers use the directory.
func (f *Keys) close() {
	if f.unlock != nil {
		f.unlock()
	}
}

// Keying is what a manager is told of the keys of a ring; nil for a nil one: then ports get none of
// their own. old is the key of the fabric so far, 0 for none, self the port to work from.
func Keying(ring *daemon.Keyring, old ib.MKey, self mkey.ID) *mkey.KeyingConfig {
	if ring == nil {
		return nil
	}
	c := &mkey.KeyingConfig{Keys: mkey.Keys{Ring: ring.Ring, Book: ring.Book, Self: self}, Keep: ring.Keeps()}
	c.Foreign = ring.Foreign
	if old != 0 {
		c.Foreign.Everywhere = []ib.MKey{old}
	}
	return c
}

// keying is what a manager on a port is told of keys.
func (f *Keys) keying(p Port) *mkey.KeyingConfig {
	c := Keying(f.ring, p.MKey, p.Self)
	if c != nil {
		c.Shared = f.shared
	}
	return c
}

// saKey is the key of trusted queries when none was given; 0 where a secret would
// not outlive the run.
func (f *Keys) saKey() ib.SMKey {
	if f.ring == nil || !f.ring.Keeps() {
		return 0
	}
	return f.ring.Ring.SAKey()
}

// keep has the book kept while a manager runs.
func (f *Keys) keep(r *daemon.Runner) {
	if f.ring != nil && f.ring.Keeps() {
		r.KeepKeys(f.ring.Save)
	}
}

// handleRequests carries out requests for new keys, between passes.
func (f *Keys) handleRequests(engine *engine.Engine, stderr io.Writer) {
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
func (f *Keys) replaced(result *event.Result, stderr io.Writer) {
	if f.ring == nil || !result.Reached() {
		return
	}
	if err := f.ring.DropForeign(); err != nil {
		fmt.Fprintln(stderr, "ibwarden:", err)
	}
}
