package managed

import (
	"github.com/ibwarden/ibwarden/internal/cables"
	"github.com/ibwarden/ibwarden/internal/mkey"
	"github.com/ibwarden/ibwarden/internal/protect"
	"github.com/ibwarden/ibwarden/internal/saserver"
	"github.com/ibwarden/ibwarden/internal/sm"
)

// Guard is what holds a subnet against its hosts, besides the policy.
type Guard struct {
	Profile protect.Profile
	// Ring makes the keys; nil for none.
	Ring *mkey.Ring
	// Cables is the list to hold to; with none it is learned from the first sweep.
	Cables *cables.List
}

// Configure adds to the configurations of a manager and its administration what
// the profile asks for. With protect.None that is nothing.
func (g Guard) Configure(c *sm.Config, a *saserver.Config) {
	c.Profile, a.Profile = g.Profile, g.Profile
	if g.Profile == protect.None {
		return
	}
	c.Cables, c.LearnCables = g.Cables, g.Cables == nil
	if g.Ring != nil {
		c.SMKeys = g.Ring.SMKey
		if a.SAKey == 0 {
			a.SAKey = g.Ring.SAKey()
		}
	}
}
