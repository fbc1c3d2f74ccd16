package desired

import (
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// EnterLinks enters the wanted elements of PortInfo, and of SwitchInfo, in d. It fails when a setting
// is out of its range.
func EnterLinks(f *observed.Fabric, s *policy.Settings, d *observed.Desired) ([]CapabilityFault, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	var faults []CapabilityFault
	trained(f, func(p *observed.Port) {
		if p.Info.MTUCap != mtuCap(p) {
			faults = append(faults, CapabilityFault{p, "MTUCap", uint8(p.Info.MTUCap), mostMTUCap})
		}
		if p.Info.VLCap != vlCap(p) {
			faults = append(faults, CapabilityFault{p, "VLCap", p.Info.VLCap, mostVLCap})
		}
		want := d.Port(p)
		want.Elements |= observed.ElementNeighborMTU | observed.ElementOperationalVLs |
			observed.ElementOverrunErrors | observed.ElementLocalPhyErrors
		want.Info.NeighborMTU = min(mtuCap(p), mtuCap(p.Peer))
		want.Info.OperationalVLs = operationalVLs(p, s)
		want.Info.OverrunErrors, want.Info.LocalPhyErrors = s.OverrunErrors, s.LocalPhyErrors
		LimitLink(p, s.LinkWidth, s.LinkSpeed, d)
		if p.IsEnd() {
			return // CAs and routers make no use of the rest
		}
		want.Elements |= observed.ElementHOQLife | observed.ElementVLStallCount
		want.Info.HOQLife, want.Info.VLStallCount = s.HOQLife, s.VLStallCount
		if p.FacesEnd() {
			want.Info.HOQLife, want.Info.VLStallCount = s.LeafHOQLife, s.LeafVLStallCount
		}
	})
	for _, n := range f.Switches() {
		if n.Switch.InfoRead {
			d.Nodes[n.Index].LifeTimeValue, d.Nodes[n.Index].SetLifeTime = s.LifeTimeValue, true
		}
	}
	return faults, nil
}

// operationalVLs is the code of the virtual lanes that both ends of p's link have, and
// the settings allow.
func operationalVLs(p *observed.Port, s *policy.Settings) uint8 {
	return min(vlCap(p), vlCap(p.Peer), s.MaxOperationalVLs)
}
