package engine

import (
	"github.com/ibwarden/ibwarden/internal/manager/desired/partition"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// incapable says, before anything is written, where the fabric cannot do what
// the profile is about.
func (d *desired) incapable(e *Engine, lacking []partition.NotEnforced) {
	if e.config.Profile == protect.None {
		return
	}
	at := func(x partition.NotEnforced) *observed.Port { return e.port(Place{x.SwitchGUID, x.PortNum}) }
	for _, text := range facts.Incapable(lacking, at) {
		d.warn("profile %s: %s", e.config.Profile, text)
	}
}
