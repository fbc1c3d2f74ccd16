package engine

import (
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/desired/ports"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// raw is what a proof makes of raw packets under a policy.
func (c *Config) raw(p *policy.Policy) isolation.Raw {
	switch {
	case c.Profile == protect.None:
		return isolation.RawIgnored
	case p.AllowRaw:
		return isolation.RawAllowed
	}
	return isolation.RawDenied
}

// filterRaw wants switch ports to filter raw packets, which carry no P_Key.
func (d *desired) filterRaw(e *Engine, p *policy.Policy) {
	if e.config.Profile != protect.None {
		ports.FilterRaw(e.fabric, p.AllowRaw, e.isFenced, d.tables)
	}
}
