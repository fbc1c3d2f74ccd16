package engine

import (
	"testing"

	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// M_Keys wait until the book that has them is stored, where it is stored at all; none that are under way
// do.
func TestKeyingAwaitsTheBook(t *testing.T) {
	for _, x := range []struct {
		name        string
		keep        bool // the book is stored
		kept, begun bool
		ends        bool // there are ports to give keys to
		waits       bool
	}{
		{name: "nobody stores it", ends: true},
		{name: "it is not stored yet", keep: true, ends: true, waits: true},
		{name: "it is stored", keep: true, kept: true, ends: true},
		{name: "there is nothing to write", keep: true},
		{name: "they are under way", keep: true, begun: true, ends: true},
	} {
		b := newBench(t)
		keys := mkey.NewKeying(&mkey.KeyingConfig{Keys: mkey.Keys{Ring: mkey.NewRing([mkey.SecretSize]byte{1}), Book: new(mkey.Book)}, Keep: x.keep})
		var ends []*observed.Port
		if x.ends {
			ends = b.fabric.EndPorts()
		}
		p, err := keys.Want(0, b.fabric, ends, desired.MKeyGuard{})
		if err != nil || (p.Len() > 0) != x.ends {
			t.Fatalf("%s: %d writes, %v", x.name, p.Len(), err)
		}
		if !x.ends { // another manager's book
			keys.Kept++
		}
		if x.kept {
			keys.Keep(keys.Config.Book.Version())
		}
		k := &keying{writing{run: apply.Start(b.window, p, 4)}}
		if x.begun {
			k.goOn()
		}
		if got := k.awaitsKeeping(&keys); got != x.waits {
			t.Errorf("%s: it waits: %v", x.name, got)
		}
	}
}
