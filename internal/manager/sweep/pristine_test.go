package sweep

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// fresh is a subnet as it comes up: two switches, and a host at each.
func fresh() (f *observed.Fabric, leaf *observed.Node, host, between *observed.Port) {
	b := subnettest.New()
	leaf = b.Switch(4, "leaf")
	other := b.Switch(4, "other")
	host = b.Host(leaf, "host")
	b.Host(other, "peer")
	between = subnettest.Join(leaf, other)
	for _, n := range b.Fabric.Nodes {
		for i := range n.Ports {
			p := &n.Ports[i]
			p.Info.LID, p.Info.PortState = 0, smp.PortInit
			p.Info.PartitionEnforcementInbound, p.Info.PartitionEnforcementOutbound = false, false
		}
	}
	return b.Fabric, leaf, host, between
}

// TestUntouched leaves one trace of a manager at a time in a subnet that has just come up, and
// takes what was not read for one.
func TestUntouched(t *testing.T) {
	if f, _, _, _ := fresh(); !Untouched(f) {
		t.Fatal("a fresh subnet has traces of a manager")
	}
	for _, x := range []struct {
		name  string
		leave func(leaf *observed.Node, host, between *observed.Port)
		want  bool
	}{
		{"a switch that was not read", func(leaf *observed.Node, _, _ *observed.Port) { leaf.Switch.InfoRead = false }, false},
		{"a top of the forwarding table", func(leaf *observed.Node, _, _ *observed.Port) { leaf.Switch.Info.LinearFDBTop = 1 }, false},
		{"a host that was not read", func(_ *observed.Node, host, _ *observed.Port) { host.InfoRead = false }, false},
		{"a switch port that was not read", func(_ *observed.Node, _, p *observed.Port) { p.InfoRead = false }, false},
		{"a port that was not reached", func(_ *observed.Node, host, _ *observed.Port) {
			host.Reached, host.InfoRead, host.Info.LID = false, false, 3
		}, true},
		{"port 0 of a host, which there is not", func(_ *observed.Node, host, _ *observed.Port) {
			host.Node.Ports[0].Reached, host.Node.Ports[0].Info.MKey = true, 5
		}, true},
		{"a LID of a host", func(_ *observed.Node, host, _ *observed.Port) { host.Info.LID = 3 }, false},
		{"a LID of a switch", func(leaf *observed.Node, _, _ *observed.Port) { leaf.Ports[0].Info.LID = 3 }, false},
		{"a LID of a switch port, which has none", func(_ *observed.Node, _, p *observed.Port) { p.Info.LID, p.Info.MasterSMLID = 3, 4 }, true},
		{"a master", func(_ *observed.Node, host, _ *observed.Port) { host.Info.MasterSMLID = 3 }, false},
		{"an M_Key", func(_ *observed.Node, host, _ *observed.Port) { host.Info.MKey = 3 }, false},
		{"an M_Key of a switch", func(leaf *observed.Node, _, _ *observed.Port) { leaf.Ports[0].Info.MKey = 3 }, false},
		{"a protected M_Key", func(_ *observed.Node, host, _ *observed.Port) { host.Info.MKeyProtectBits = 1 }, false},
		{"a check on the way in", func(leaf *observed.Node, _, _ *observed.Port) { leaf.Ports[1].Info.PartitionEnforcementInbound = true }, false},
		{"a check on the way out", func(leaf *observed.Node, _, _ *observed.Port) { leaf.Ports[1].Info.PartitionEnforcementOutbound = true }, false},
		{"an armed link", func(_ *observed.Node, _, p *observed.Port) { p.Info.PortState = smp.PortArmed }, false},
		{"a link that carries data", func(_ *observed.Node, host, _ *observed.Port) { host.Info.PortState = smp.PortActive }, false},
		{"port 0 of a switch, which is always active", func(leaf *observed.Node, _, _ *observed.Port) { leaf.Ports[0].Info.PortState = smp.PortActive }, true},
		{"a link that is down", func(_ *observed.Node, _, p *observed.Port) { p.Info.PortState = smp.PortDown }, true},
	} {
		f, leaf, host, between := fresh()
		x.leave(leaf, host, between)
		if got := Untouched(f); got != x.want {
			t.Errorf("%s: untouched %v, want %v", x.name, got, x.want)
		}
	}
}

// TestPowerUpKeys puts one P_Key at a time where devices come up with the default partition alone.
func TestPowerUpKeys(t *testing.T) {
	for _, x := range []struct {
		name string
		put  func(leaf *observed.Node, host, between *observed.Port)
		want bool
	}{
		{"none", func(*observed.Node, *observed.Port, *observed.Port) {}, true},
		{"the default partition, full and limited", func(_ *observed.Node, host, _ *observed.Port) {
			subnettest.SetPKeysThrough(host, ib.PKeyBaseDefault.Full(), ib.PKeyBaseDefault.Limited())
		}, true},
		{"another at a host", func(_ *observed.Node, host, _ *observed.Port) { subnettest.SetPKeys(host, 0xFFFF, 0x8010) }, false},
		{"another at the port before it", func(_ *observed.Node, host, _ *observed.Port) { subnettest.SetPKeys(host.Peer, 0x10) }, false},
		{"another at a switch", func(leaf *observed.Node, _, _ *observed.Port) { subnettest.SetPKeys(&leaf.Ports[0], 0x8010) }, false},
		{"another between switches, which does not matter", func(_ *observed.Node, _, p *observed.Port) { subnettest.SetPKeys(p, 0x8010) }, true},
		{"one that is not valid", func(_ *observed.Node, host, _ *observed.Port) { subnettest.SetPKeys(host, 0x8000) }, true},
		{"a block that was not read", func(_ *observed.Node, host, _ *observed.Port) { host.PKeysRead[0] = false }, false},
		{"a port that was not reached", func(_ *observed.Node, host, _ *observed.Port) { host.Reached, host.PKeysRead[0] = false, false }, true},
		{"port 0 of a host, which there is not", func(_ *observed.Node, host, _ *observed.Port) { host.Node.Ports[0].Reached = true }, true},
	} {
		f, leaf, host, between := fresh()
		x.put(leaf, host, between)
		if got := PowerUpKeys(f); got != x.want {
			t.Errorf("%s: %v, want %v", x.name, got, x.want)
		}
	}
}
