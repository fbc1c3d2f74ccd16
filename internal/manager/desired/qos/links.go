package qos

import "github.com/ibwarden/ibwarden/internal/observed"

// Links enters the wanted elements of PortInfo, and of SwitchInfo, in d. It fails when a setting
// is out of its range.
func Links(f *observed.Fabric, s Settings, d *observed.Desired) ([]Fault, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	var faults []Fault
	trained(f, func(p *observed.Port) {
		if p.Info.MTUCap != mtuCap(p) {
			faults = append(faults, Fault{p, "MTUCap", uint8(p.Info.MTUCap), mostMTUCap})
		}
		if p.Info.VLCap != vlCap(p) {
			faults = append(faults, Fault{p, "VLCap", p.Info.VLCap, mostVLCap})
		}
		want := d.Port(p)
		want.Elements |= observed.ElementNeighborMTU | observed.ElementOperationalVLs
		want.Info.NeighborMTU = min(mtuCap(p), mtuCap(p.Peer))
		want.Info.OperationalVLs = min(vlCap(p), vlCap(p.Peer))
		if p.IsEnd() {
			return // CAs and routers make no use of the rest
		}
		want.Elements |= observed.ElementHOQLife | observed.ElementVLStallCount
		want.Info.HOQLife, want.Info.VLStallCount = s.HOQLife, s.VLStallCount
		if p.FacesEnd() {
			want.Info.HOQLife = s.LeafHOQLife
		}
	})
	for _, n := range f.Switches() {
		if n.Switch.InfoRead {
			d.Nodes[n.Index].LifeTimeValue, d.Nodes[n.Index].SetLifeTime = s.LifeTimeValue, true
		}
	}
	return faults, nil
}
