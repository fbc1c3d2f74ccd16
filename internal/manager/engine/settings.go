package engine

import (
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/desired/partition"
	"github.com/ibwarden/ibwarden/internal/manager/desired/ports"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// gidPrefix is the subnet prefix: the policy's, or what the manager was told.
func (d *desired) gidPrefix(e *Engine) uint64 {
	if d.asked.GIDPrefix != 0 {
		return d.asked.GIDPrefix
	}
	return e.config.GIDPrefix
}

// guardOf is how ports with an M_Key are guarded under a policy.
func (e *Engine) guardOf(p *policy.Policy) ports.Guard {
	if e.keys.Config == nil {
		return ports.GuardOf(p, mkeyProtectBits)
	}
	return ports.GuardOf(p, e.mkeyProtectBits())
}

// settings wants the rest of PortInfo, and the links Active.
func (d *desired) settings(e *Engine, p *policy.Policy) {
	self := d.tables.Port(e.fabric.Self).Info.LID
	guard := e.guardOf(p)
	for _, n := range e.fabric.Nodes {
		for i := range n.Ports {
			port := &n.Ports[i]
			want := d.tables.Port(port)
			want.Activate = (port.IsJoined() || port.IsInner()) && !e.isFenced(port) && !inoperative(port) && !inoperative(port.Peer)
			if !port.Reached || !port.IsEnd() {
				continue
			}
			ports.End(want, &d.asked, d.gidPrefix(e), self)
			want.Reregister = e.config.Reregister && !e.renewed && port.Node.Switch == nil && port.Info.PortState == smp.PortActive
			if e.config.MKey != 0 {
				guard.Give(want, e.config.MKey)
			}
		}
	}
	if e.config.MKey != 0 || e.keys.Config != nil {
		d.warnings = append(d.warnings, guard.Warnings(&d.asked)...)
	}
	d.warnings = append(d.warnings, ports.Limits(e.fabric, p.Links, d.tables)...)
}

// directions are those in which a switch port before an end port is to check.
func (d *desired) directions(x *partition.SwitchPort) (in, out bool) {
	return x.Inbound && d.asked.EnforceInbound, x.Outbound && d.asked.EnforceOutbound
}

// between wants ports between switches to check keys, or not to: there every key
// of whoever is behind has to pass. With a list of cables only what is on it is
// found there; without one devices are believed only where nobody is to be
// protected from them. What stands on a port without a known device behind it
// stays.
func (d *desired) between(e *Engine) {
	if d.asked.EnforceBetweenSwitches {
		d.warnings = append(d.warnings, ports.Between(e.fabric, d.asked.EnforceInbound, d.asked.EnforceOutbound, d.tables)...)
		return
	}
	if e.cabling.list != nil || e.config.Profile == protect.None {
		ports.Unchecked(e.fabric, d.tables)
	}
}

// inoperative reports whether an end port says by its DiagCode that it carries no
// data: its link is left in Initialize, in which it can be asked how it is.
func inoperative(p *observed.Port) bool {
	return p != nil && p.IsEnd() && p.InfoRead && !p.Info.DiagCode.IsOperative()
}
