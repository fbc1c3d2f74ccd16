package engine

import (
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/observed"
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

// filterRaw wants switch ports to filter raw packets, which carry no P_Key:
// those that an end port or somebody unknown is behind, where the switch can. Ports
// between switches are left alone. A policy that lets raw packets pass wants no
// filter anywhere but at a fence.
func (d *desired) filterRaw(e *Engine, p *policy.Policy) {
	if e.config.Profile == protect.None {
		return
	}
	for _, n := range e.fabric.Switches() {
		for i := 1; i < len(n.Ports); i++ {
			q := &n.Ports[i]
			between := q.Peer != nil && q.Peer.Node.Switch != nil
			on := e.isFenced(q) || !p.AllowRaw && !between && (q.Peer != nil || q.IsUp())
			if !on && !p.AllowRaw {
				continue
			}
			want, info := d.tables.Port(q), &n.Switch.Info
			if info.FilterRawInboundCap {
				want.Elements |= observed.ElementFilterRawInbound
				want.Info.FilterRawInbound = on
			}
			if info.FilterRawOutboundCap {
				want.Elements |= observed.ElementFilterRawOutbound
				want.Info.FilterRawOutbound = on
			}
		}
	}
}
