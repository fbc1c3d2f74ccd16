package sm

import (
	"github.com/ibwarden/ibwarden/internal/partition"
	"github.com/ibwarden/ibwarden/internal/protect"
	"github.com/ibwarden/ibwarden/internal/sm/facts"
	"github.com/ibwarden/ibwarden/internal/subnet"
)

// incapable says, before anything is written, where the fabric cannot do what
// the profile is about.
func (d *desired) incapable(e *Engine, lacking []partition.NotEnforced) {
	if e.config.Profile == protect.None {
		return
	}
	at := func(x partition.NotEnforced) *subnet.Port { return e.port(Place{x.SwitchGUID, x.PortNum}) }
	for _, text := range facts.Incapable(lacking, at) {
		d.warn("profile %s: %s", e.config.Profile, text)
	}
}
