package desired

import "github.com/ibwarden/ibwarden/internal/observed"

// FilterRaw sets the raw packet filters of switch ports, since raw packets carry no
// P_Key: at ports with an end port or an unknown device behind, where the switch can
// filter. Ports between switches are left alone. A policy that lets raw packets pass
// (allow) wants no filter except at a fence.
func FilterRaw(f *observed.Fabric, allow bool, isFenced func(*observed.Port) bool, d *observed.Desired) {
	for _, n := range f.Switches() {
		for i := 1; i < len(n.Ports); i++ {
			q := &n.Ports[i]
			between := q.Peer != nil && q.Peer.Node.Switch != nil
			on := isFenced(q) || !allow && !between && (q.Peer != nil || q.IsUp())
			if !on && !allow {
				continue
			}
			want, info := d.Port(q), &n.Switch.Info
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
