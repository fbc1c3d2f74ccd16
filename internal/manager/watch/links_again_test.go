package watch

import (
	"testing"

	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// TestAgainIsTheSameCable: a link is told as one that leads where it led only if a new snapshot has the same cable.
func TestAgainIsTheSameCable(t *testing.T) {
	site := func() (*observed.Fabric, *observed.Node, *observed.Port) {
		b := subnettest.New()
		leaf := b.Switch(4, "leaf")
		host := b.Host(leaf, "host")
		b.Host(leaf, "other")
		return b.Fabric, leaf, host
	}
	for _, x := range []struct {
		name   string
		change func(now *observed.Fabric, leaf *observed.Node, before *observed.Port)
		want   bool
	}{
		{"the same cable", func(*observed.Fabric, *observed.Node, *observed.Port) {}, true},
		{"another device behind it", func(_ *observed.Fabric, leaf *observed.Node, _ *observed.Port) {
			leaf.Ports[1].Peer = leaf.Ports[2].Peer
		}, false},
		{"nothing behind it", func(_ *observed.Fabric, leaf *observed.Node, _ *observed.Port) { leaf.Ports[1].Peer = nil }, false},
		{"no cable before", func(_ *observed.Fabric, _ *observed.Node, before *observed.Port) { before.Peer = nil }, false},
	} {
		now, leaf, _ := site()
		_, _, host := site()
		before := host.Peer
		x.change(now, leaf, before)
		var e LinksAgain
		e.Add(now, before, "a test")
		if got := len(e.Links) == 1; got != x.want || got && e.Reason != "a test" {
			t.Errorf("%s: %+v", x.name, e)
		}
	}
	var e LinksAgain
	_, _, host := site()
	if e.Add(observed.NewFabric(), host.Peer, "a test"); len(e.Links) != 0 {
		t.Errorf("a device that is gone: %+v", e)
	}
}
