package master

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/sa/server"
)

// Guard is what holds a subnet against its hosts, besides the policy: the one
// place where a daemon and a story say what a profile gets.
type Guard struct {
	Profile protect.Profile
	// Keys make an M_Key for each port, and the keys by which managers know each
	// other; nil for none of these.
	Keys *mkey.KeyingConfig
	// MKey is the key of every port where Keys is nil, and the one that ports hold
	// so far where it is not; 0 for none.
	MKey ib.MKey
	// Cables is the list to hold to; with none, Learn learns it from the first
	// sweep.
	Cables *cables.List
	Learn  bool
	// SAKey opens all of subnet administration; 0 for none.
	SAKey ib.SMKey
}

// Configure adds to the configurations of a manager and its administration what
// the guard has.
func (g Guard) Configure(c *engine.Config, a *server.Config) {
	c.Profile, a.Profile, a.SAKey = g.Profile, g.Profile, g.SAKey
	c.Cables, c.LearnCables = g.Cables, g.Learn
	if g.Keys == nil {
		c.MKey = g.MKey
		return
	}
	c.Keys, c.Election.SMKeys, c.Election.Vouches = g.Keys, g.Keys.Ring.SMKey, g.Keys.Ring
	if g.MKey != 0 {
		c.Keys.Foreign.Everywhere = []ib.MKey{g.MKey}
	}
}

// KeysOf makes keys of a master secret, with a key book; keep says that the book is
// stored.
func KeysOf(ring *mkey.Ring, book *mkey.Book, keep bool) *mkey.KeyingConfig {
	return &mkey.KeyingConfig{Keys: mkey.Keys{Ring: ring, Book: book}, Keep: keep}
}
