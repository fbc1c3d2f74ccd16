package simtest

import (
	"context"
	"errors"
	"testing"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// shines asks the agent of an end port what its light does.
func (w *world) shines(at place) bool {
	w.t.Helper()
	m := mad.SMP{
		BaseVersion: mad.BaseVersion, ClassVersion: mad.ClassVersion, Class: mad.ClassSubnLID,
		Method: mad.MethodGet, AttributeID: smp.AttrLEDInfo, MKey: w.info(at).MKey,
	}
	if v := w.agent(at.node).Handle(w.fabric.Now(), sma.Ingress{Port: at.num}, &m).Verdict; v != sma.Answered || m.Status != mad.StatusOK {
		w.t.Fatalf("LEDInfo of %v: status %v", at, m.Status)
	}
	var l smp.LEDInfo
	w.must(l.UnmarshalBinary(m.Data[:smp.LEDInfoSize]))
	return l.LEDMask
}

// LE-07: whoever has the keys switches the light of a device on and off, and nothing
// else changes; without them nothing shines, and what has no light says so.
func TestLE07LightOfADevice(t *testing.T) {
	list := topology.Demo()
	c := keyed()
	s := setup{list: list, policy: settingsPolicy(t, list, ""), manager: c}
	s.fabric = fabric.Config{Profile: func(n *topology.Node, d *sma.Config) {
		for i := range d.Ports {
			if n.ID != "blue-1" {
				d.Ports[i].CapabilityMask |= smp.CapLEDInfo
			}
		}
		d.LEDStuck = n.ID == "red-2"
		if d.Switch != nil {
			d.Switch.Port0.CapabilityMask |= smp.CapLEDInfo
		}
	}}
	w := bringUp(t, s)
	w.calm()
	w.stop()
	before := w.dump()
	link, err := inproc.New(w.fabric, w.self.node, w.self.num, false)
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	behind := func(o sweep.Options, at place, on bool) error {
		t.Helper()
		r, err := daemon.Read(context.Background(), link, o)
		if err != nil {
			t.Fatal(err)
		}
		p := facts.PortAt(r.Fabric, policy.Place{Switch: at.node, Port: at.num})
		if p == nil || p.Peer == nil {
			return errors.New("not found")
		}
		return daemon.Light(context.Background(), link, p.Peer, on)
	}
	light := func(o sweep.Options, id string, on bool) error {
		t.Helper()
		return behind(o, w.switchPort(id), on)
	}
	red := w.host("red-1")
	with := sweep.Options{Keys: c.Keys.Shown()}
	for _, on := range []bool{true, true, false} {
		if err := light(with, "red-1", on); err != nil || w.shines(red) != on {
			t.Errorf("switched to %v: %v; it shines: %v", on, err, w.shines(red))
		}
	}
	// The light of a switch is that of its port 0, whichever cable leads to it.
	leaf := place{w.node("leaf-1").GUID, 0}
	for _, on := range []bool{true, false} {
		if err := behind(with, place{w.node("spine-1").GUID, 1}, on); err != nil || w.shines(leaf) != on {
			t.Errorf("leaf-1 switched to %v: %v; it shines: %v", on, err, w.shines(leaf))
		}
	}
	if diff := firstDifference(before, w.dump()); diff != "" {
		t.Errorf("something else was written: %s", diff)
	}
	if err := light(sweep.Options{}, "red-1", true); err == nil || w.shines(red) {
		t.Errorf("without its key: %v; it shines: %v", err, w.shines(red))
	}
	if err := light(with, "red-2", true); err == nil || errors.Is(err, daemon.ErrNoLight) {
		t.Errorf("a light that is stuck: %v", err)
	}
	if err := light(with, "blue-1", true); !errors.Is(err, daemon.ErrNoLight) {
		t.Errorf("a device without a light: %v", err)
	}
}
