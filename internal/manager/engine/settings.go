package engine

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/desired/partition"
	"github.com/ibwarden/ibwarden/internal/manager/desired/qos"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/settings"
)

// sameSettings reports whether two policies ask the same of links and devices.
func sameSettings(p, q *policy.Policy) bool {
	a, b := p.Asked(), q.Asked()
	return a.Equal(&b) && slices.EqualFunc(p.Links, q.Links, func(x, y policy.LinkLimit) bool {
		return x.At == y.At && x.Width == y.Width && x.Speed == y.Speed
	})
}

// gidPrefix is the subnet prefix: the policy's, or what the manager was told.
func (e *Engine) gidPrefix(s *settings.Settings) uint64 {
	if s.GIDPrefix != 0 {
		return s.GIDPrefix
	}
	return e.config.GIDPrefix
}

// mkeyGuard is M_KeyProtectBits and the lease that ports with an M_Key get. A
// policy may ask for more protection than the profile, and not for less.
func (e *Engine) mkeyGuard(p *policy.Policy) (bits uint8, lease uint16) {
	least := uint8(mkeyProtectBits)
	if e.keys.Config != nil {
		least = e.config.Profile.MKeyProtectBits()
	}
	s := p.Asked()
	return max(least, s.MKeyProtectBits), s.MKeyLeasePeriod
}

// guardsOtherwise reports whether ports with an M_Key of their own are to be
// guarded otherwise under one policy than under another.
func (e *Engine) guardsOtherwise(p, q *policy.Policy) bool {
	if !e.givesKeys() || q == nil {
		return false
	}
	bits, lease := e.mkeyGuard(p)
	was, wasLease := e.mkeyGuard(q)
	return bits != was || lease != wasLease
}

// settings wants the rest of PortInfo, and the links Active.
func (d *desired) settings(e *Engine, p *policy.Policy) {
	self := d.tables.Port(e.fabric.Self).Info.LID
	bits, lease := e.mkeyGuard(p)
	for _, n := range e.fabric.Nodes {
		for i := range n.Ports {
			port := &n.Ports[i]
			want := d.tables.Port(port)
			want.Activate = (port.IsJoined() || port.IsInner()) && !e.isFenced(port)
			if !port.Reached || !port.IsEnd() {
				continue
			}
			want.Elements |= observed.ElementGIDPrefix | observed.ElementMasterSMLID |
				observed.ElementMasterSMSL | observed.ElementSubnetTimeOut
			want.Info.GIDPrefix, want.Info.MasterSMLID = e.gidPrefix(&d.asked), self
			want.Info.MasterSMSL, want.Info.SubnetTimeOut = d.asked.MasterSMSL, d.asked.SubnetTimeOut
			want.Reregister = e.config.Reregister && !e.renewed && port.Node.Switch == nil && port.Info.PortState == smp.PortActive
			if e.config.MKey != 0 {
				want.Elements |= observed.ElementMKey | observed.ElementMKeyProtectBits | observed.ElementMKeyLeasePeriod
				want.Info.MKey, want.Info.MKeyProtectBits, want.Info.MKeyLeasePeriod = e.config.MKey, bits, lease
			}
		}
	}
	d.limitLinks(e, p)
	d.weigh(e, bits, lease)
}

// limitLinks wants both ends of single links to be no wider or faster than the
// policy says.
func (d *desired) limitLinks(e *Engine, p *policy.Policy) {
	for _, l := range p.Links {
		at := facts.PortAt(e.fabric, l.At)
		if at == nil {
			d.warn("links: no port %s", l.At)
			continue
		}
		for _, end := range []*observed.Port{at, at.Peer} {
			if end != nil && end.Reached && !qos.Limit(end, l.Width, l.Speed, d.tables) {
				d.warn("links: %s supports nothing as narrow or slow as %s, %s: left as it is", end, l.Width, l.Speed)
			}
		}
	}
}

// weigh says what it costs to ask for less than the profile would have.
func (d *desired) weigh(e *Engine, bits uint8, lease uint16) {
	if asked := d.asked.MKeyProtectBits; asked != 0 && asked < bits {
		d.warn("m_key_protection_level %d is less than profile %s asks: ports get %d", asked, e.config.Profile, bits)
	}
	if lease != 0 && (e.config.MKey != 0 || e.keys.Config != nil) {
		d.warn("m_key_lease_period %d: who sends a port one packet with a wrong M_Key, and keeps the manager from it for %d s, reads its key", lease, lease)
	}
}

// directions are those in which a switch port before an end port is to check.
func (d *desired) directions(x *partition.SwitchPort) (in, out bool) {
	return x.Inbound && d.asked.EnforceInbound, x.Outbound && d.asked.EnforceOutbound
}
