package desired

import (
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// settings wants the rest of PortInfo, and the links Active.
func (r *Result) settings() {
	in := &r.in
	self := r.Tables.Port(in.Fabric.Self).Info.LID
	levels := r.levels.ServiceLevels()
	guard := MKeyGuardOf(in.Policy, in.ProtectBits)
	for _, n := range in.Fabric.Nodes {
		for i := range n.Ports {
			port := &n.Ports[i]
			want := r.Tables.Port(port)
			want.Activate = (port.IsJoined() || port.IsInner()) && !r.fences().Has(port) && !inoperative(port) && !inoperative(port.Peer)
			if !port.Reached || !port.IsEnd() {
				continue
			}
			EnterManager(want, &r.Settings, r.GIDPrefix(), self, levels.Between(r.Settings.MasterSMSL, port, in.Fabric.Self))
			want.Registered = in.Registered
			want.Reregister = in.Reregister && port.Node.Switch == nil && port.Info.PortState == smp.PortActive &&
				(in.Asked == nil || !in.Asked(port.GUID))
			if in.MKey != 0 {
				guard.Give(want, in.MKey)
			}
		}
	}
	if in.MKey != 0 || in.OwnKeys {
		r.Warnings = append(r.Warnings, guard.Warnings(&r.Settings)...)
	}
	r.Warnings = append(r.Warnings, LimitLinks(in.Fabric, in.Policy.Links, r.Tables)...)
}

// inoperative reports whether an end port says by its DiagCode that it carries no
// data: its link is left in Initialize, in which it can be asked how it is.
func inoperative(p *observed.Port) bool {
	return p != nil && p.IsEnd() && p.InfoRead && !p.Info.DiagCode.IsOperative()
}
