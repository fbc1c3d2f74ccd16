package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/run"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
)

// readsFlags say where a command that reads a fabric finds its keys.
type readsFlags struct {
	data, secret string
	// keyless takes a directory that has no keys, and records only.
	keyless bool
}

func (f *readsFlags) add(flags *pflag.FlagSet) {
	run.AddData(flags, &f.data)
	run.AddSecret(flags, &f.secret)
}

// load reads the keys and the list of cables as a manager keeps them; nil where
// none are kept.
func (f *readsFlags) load(fabric string) (*daemon.Keyring, *cables.List, error) {
	dir := daemon.DataDir(f.data)
	if dir == "" {
		var err error
		if dir, err = daemon.DefaultDataDir(fabric); err != nil || dir == "" {
			return nil, nil, terminal.OrMisuse(err)
		}
	}
	ring, err := daemon.OpenKeys(dir, f.secret, false)
	if errors.Is(err, daemon.ErrNoSecret) && (f.data == "" || f.keyless) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, misuse(fmt.Errorf("--data: %w", err))
	}
	list, err := dir.LoadCables()
	return ring, list, terminal.OrMisuse(err)
}

// keys are those for reading the fabric; nil where one key, or none, is that of
// every port. It is for after open.
func (f *fabricFlags) keys() (*mkey.KeyingConfig, error) {
	ring, list, err := f.reads.load(f.spec)
	if err != nil {
		return nil, err
	}
	c := run.Keying(ring, f.mKey, f.self)
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
