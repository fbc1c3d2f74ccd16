package observed

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib/smp"
)

func TestEnforcesWhenBothDirectionsAreChecked(t *testing.T) {
	for _, x := range []struct {
		name   string
		change func(*Port)
		want   bool
	}{
		{"all", func(*Port) {}, true},
		{"not read", func(p *Port) { p.InfoRead = false }, false},
		{"inbound only", func(p *Port) { p.Info.PartitionEnforcementOutbound = false }, false},
		{"outbound only", func(p *Port) { p.Info.PartitionEnforcementInbound = false }, false},
		{"no table", func(p *Port) { p.Node.Switch.Info.PartitionEnforcementCap = 0 }, false},
		{"bits that mean nothing", func(p *Port) { p.Node.Switch.Info.InboundEnforcementCap = false }, false},
	} {
		_, sw, ca := pair()
		info := &sw.Switch.Info
		info.InboundEnforcementCap, info.OutboundEnforcementCap = true, true
		p := &sw.Ports[1]
		p.InfoRead = true
		p.Info.PartitionEnforcementInbound, p.Info.PartitionEnforcementOutbound = true, true
		x.change(p)
		if got := p.Enforces(); got != x.want {
			t.Errorf("%s: %v", x.name, got)
		}
		if ca.Ports[1].Enforces() {
			t.Error("a CA enforces")
		}
	}
}

func TestFacesStranger(t *testing.T) {
	_, sw, ca := pair()
	for i := range sw.Ports {
		p := &sw.Ports[i]
		p.Reached, p.InfoRead = true, true
		p.Info.PortState, p.Info.PortPhysicalState = smp.PortInit, smp.PhysLinkUp
	}
	sw.Ports[3].Info.PortState = smp.PortDown
	for i, want := range []bool{false, false, true, false, true} { // port 0, to the CA, to nobody, down, to nobody
		if got := sw.Ports[i].FacesStranger(); got != want {
			t.Errorf("port %d: %v", i, got)
		}
	}
	if ca.Ports[2].FacesStranger() {
		t.Error("a port that was not reached faces a stranger")
	}
	sw.Ports[2].Silent = true
	Connect(&sw.Ports[2], &ca.Ports[2])
	if sw.Ports[2].Silent || sw.Ports[2].FacesStranger() {
		t.Error("still a stranger after it was found")
	}
}
