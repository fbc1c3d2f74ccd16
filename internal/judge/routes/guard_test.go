package routes

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// A level that a host is to send on and that its switch drops is found, and so is an exit by
// which others pass; what comes from other switches does not count.
func TestGuarded(t *testing.T) {
	b := subnettest.New()
	b.PortInfo.VLCap, b.PortInfo.OperationalVLs, b.PortInfo.VLArbitrationLowCap = 4, 4, 8
	left, right := b.Switch(3, "left"), b.Switch(3, "right")
	subnettest.Join(left, right)
	host, other := b.Host(left, "a"), b.Host(left, "b")
	sends := func(end *observed.Port) SLs {
		if end == other {
			return AllSLs
		}
		return SL(0) | SL(2)
	}
	open, held := &smp.SLToVLMappingTable{}, &smp.SLToVLMappingTable{}
	for sl := range held.VLs {
		if sl != 0 && sl != 2 {
			held.VLs[sl] = ib.VLManagement
		}
	}
	input := func(toRight, toOther [4]*smp.SLToVLMappingTable) *Input {
		d := observed.NewDesired(b.Fabric)
		d.Port(&left.Ports[1]).SLToVL = toRight[:]
		d.Port(other.Peer).SLToVL = toOther[:]
		d.Port(host.Peer).SLToVL = []*smp.SLToVLMappingTable{open}
		return Wanted(b.Fabric, d)
	}
	good := [4]*smp.SLToVLMappingTable{open, open, held, open}
	if host.Peer.Num != 2 || other.Peer.Num != 3 {
		t.Fatalf("hosts at %d and %d", host.Peer.Num, other.Peer.Num)
	}
	if stopped, passes := Guarded(input(good, good), sends); stopped != nil || passes != nil {
		t.Errorf("stopped %v, open %v", stopped, passes)
	}
	if stopped, passes := Guarded(input(good, [4]*smp.SLToVLMappingTable{open, open, open, open}), sends); stopped != nil || len(passes) != 1 || passes[0] != other.Peer {
		t.Errorf("stopped %v, open %v", stopped, passes)
	}
	less := *held
	less.VLs[2] = ib.VLManagement
	stopped, passes := Guarded(input([4]*smp.SLToVLMappingTable{open, open, &less, open}, good), sends)
	if len(stopped) != 1 || stopped[0].Out != &left.Ports[1] || stopped[0].In != 2 || stopped[0].SL != 2 || passes != nil {
		t.Errorf("stopped %v, open %v", stopped, passes)
	}
	if stopped, _ = Guarded(input(good, [4]*smp.SLToVLMappingTable{held, held, held, held}), func(*observed.Port) SLs { return AllSLs }); len(stopped) != 28 {
		t.Errorf("%d levels are found to be stopped at two exits, want 28", len(stopped))
	}
	b.PortInfo.VLCap = 1
	for i := range left.Ports {
		left.Ports[i].Info.OperationalVLs = 1
	}
	d := observed.NewDesired(b.Fabric)
	if stopped, passes := Guarded(Wanted(b.Fabric, d), sends); stopped != nil || len(passes) != 2 {
		t.Errorf("one VL: stopped %v, open %v", stopped, passes)
	}
}
