package watch

import (
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// TestChangedLinks enters links, follows them when their time has come, in the order of their places, and
// forgets them.
func TestChangedLinks(t *testing.T) {
	b := subnettest.New()
	leaf := b.Switch(6, "leaf")
	first, second, third := b.Host(leaf, "first").Peer, b.Host(leaf, "second").Peer, b.Host(leaf, "third").Peer
	b.ManagedFrom(b.Host(leaf, "manager"))
	var x ChangedLinks
	if _, some := x.Due(); some || x.Len() != 0 || x.OutOfDate(b.Fabric) || x.Fallen(b.Fabric) {
		t.Error("an empty one has links")
	}
	for _, a := range []struct {
		p      *observed.Port
		reason string
		at     time.Duration
	}{{third, "third", 3}, {second, "second", 5}, {first, "first", 2}, {second, "sooner", 4}, {second, "later", 9}} {
		if x.Add(1, a.p, a.reason, a.at) {
			t.Errorf("%s is left alone", a.reason)
		}
	}
	if at, some := x.Due(); at != 2 || !some || x.Len() != 3 || !x.OutOfDate(b.Fabric) {
		t.Errorf("due at %d, %v, %d of them", at, some, x.Len())
	}
	if due, reason := x.Follow(b.Fabric, 1); due != nil || reason != "" {
		t.Errorf("followed before their time: %v, %q", due, reason)
	}
	if due, reason := x.Follow(b.Fabric, 3); !slices.Equal(due, []*observed.Port{first, third}) || reason != "first" {
		t.Errorf("followed at 3: %v, %q", due, reason)
	}
	x.Interrupted(4)
	if at, _ := x.Due(); at != 4 {
		t.Errorf("interrupted ones are due at %d", at)
	}
	x.Interrupted(3)
	if due, _ := x.Follow(b.Fabric, 4); !slices.Equal(due, []*observed.Port{first, second, third}) || x.at[second.Place()].reason != "sooner" {
		t.Errorf("followed at 4: %v", due)
	}
	x.Forget([]*observed.Port{second})
	again := x.Followed(b.Fabric)
	var names []string
	for _, l := range again.Links {
		names = append(names, l.A.Name+" "+l.B.Name)
	}
	if want := []string{"leaf:1 first", "leaf:3 third"}; !slices.Equal(names, want) || again.Reason != "first" || x.Len() != 0 {
		t.Errorf("again %q, %q, %d left after they were followed", names, again.Reason, x.Len())
	}
	x.Add(10, first, "again", 10)
	x.Clear()
	if x.Len() != 0 || x.OutOfDate(b.Fabric) {
		t.Error("some are left after all were forgotten")
	}
}

// TestOften tells once that a link is left alone, for as long as it is.
func TestOften(t *testing.T) {
	b := subnettest.New()
	leaf := b.Switch(6, "leaf")
	p := b.Host(leaf, "host").Peer
	b.ManagedFrom(b.Host(leaf, "manager"))
	var x ChangedLinks
	var now time.Duration
	for range 100 {
		now += 10 * time.Millisecond
		if x.Add(now, p, "flaps", now) {
			break
		}
		x.Follow(b.Fabric, now)
		x.Followed(b.Fabric)
	}
	at, _ := x.Due()
	if x.Len() != 1 || at <= now {
		t.Fatalf("%d of them, due at %v at %v: it is never left alone", x.Len(), at, now)
	}
	if x.Add(now, p, "flaps", now) {
		t.Error("told twice that it is left alone")
	}
}

// TestGone forgets a port that a snapshot has no more, or has not reached.
func TestGone(t *testing.T) {
	b := subnettest.New()
	leaf := b.Switch(6, "leaf")
	first, second, third := b.Host(leaf, "first").Peer, b.Host(leaf, "second").Peer, &leaf.Ports[6]
	b.ManagedFrom(b.Host(leaf, "manager"))
	var x ChangedLinks
	for _, p := range []*observed.Port{first, second, third} {
		x.Add(0, p, "moved", 0)
	}
	second.Reached = false
	if got := x.Ports(b.Fabric); !slices.Equal(got, []*observed.Port{first, third}) || x.Len() != 2 {
		t.Errorf("%v, %d left", got, x.Len())
	}
	x.Forget([]*observed.Port{first})
	if x.OutOfDate(b.Fabric) {
		t.Error("a port without a device behind it is out of date")
	}
	if got := x.Ports(observed.NewFabric()); got != nil || x.Len() != 0 {
		t.Errorf("%v of a fabric without devices, %d left", got, x.Len())
	}
}

// TestFallen is true once for a link between switches that went down.
func TestFallen(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(between, host *observed.Port) *observed.Port
		want   bool
	}{
		{"a link between switches", func(between, _ *observed.Port) *observed.Port { return between }, true},
		{"seen from the other end", func(between, _ *observed.Port) *observed.Port { return between.Peer }, true},
		{"a link that is up", func(between, _ *observed.Port) *observed.Port {
			subnettest.SetLink(between, smp.PortActive, smp.PhysLinkUp)
			return between
		}, false},
		{"a link of a host", func(_, host *observed.Port) *observed.Port { return host.Peer }, false},
		{"a host", func(_, host *observed.Port) *observed.Port { return host }, false},
		{"a switch", func(between, _ *observed.Port) *observed.Port { return &between.Node.Ports[0] }, false},
		{"no cable", func(between, _ *observed.Port) *observed.Port { return &between.Node.Ports[6] }, false},
	} {
		b := subnettest.New()
		leaf := b.Switch(6, "leaf")
		host, between := b.Host(leaf, "host"), subnettest.Join(leaf, b.Switch(6, "other"))
		b.ManagedFrom(b.Host(leaf, "manager"))
		subnettest.SetLink(host, smp.PortDown, smp.PhysPolling)
		subnettest.SetLink(between, smp.PortDown, smp.PhysPolling)
		leaf.Ports[0].Info.PortState, leaf.Ports[0].Info.PortPhysicalState = smp.PortDown, smp.PhysPolling
		var x ChangedLinks
		x.Add(0, c.change(between, host), "moved", 0)
		if got := x.Fallen(b.Fabric); got != c.want {
			t.Errorf("%s: fallen %v, want %v", c.name, got, c.want)
		}
		if x.Fallen(b.Fabric) {
			t.Errorf("%s: told twice", c.name)
		}
	}
}
