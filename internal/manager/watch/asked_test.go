package watch

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// Who has answered is not asked again; who has not, at intervals that double up to askedLast; and who
// was not up when the others were asked, not at all.
func TestAsked(t *testing.T) {
	b := subnettest.New()
	leaf := b.Switch(8, "leaf")
	answers, mute, down := b.Host(leaf, "answers"), b.Host(leaf, "mute"), b.Host(leaf, "down")
	down.Info.PortState = smp.PortInit
	ends := []*observed.Port{answers, mute, down}
	tables := observed.NewDesired(b.Fabric)
	for _, p := range ends[:2] {
		tables.Port(p).Reregister = true
	}
	var x Asked
	if _, some := x.Next(); some || x.Has(mute.GUID) {
		t.Error("somebody was asked before the first pass")
	}
	failed := map[*observed.Port]bool{mute: true, down: true}
	x.Enter(0, ends, tables, failed)
	for _, p := range ends {
		if !x.Has(p.GUID) || tables.Port(p).Reregister {
			t.Errorf("%s would be asked by the next pass", p)
		}
	}
	down.Info.PortState = smp.PortActive
	wait := askedFirst
	now := time.Duration(0)
	for range 12 {
		at, some := x.Next()
		if !some || at != now+wait {
			t.Fatalf("at %v the next is at %v, want %v later", now, at, wait)
		}
		x.Again(at-1, ends, tables)
		if tables.Port(mute).Reregister {
			t.Errorf("asked before %v", at)
		}
		x.Again(at, ends, tables)
		if !tables.Port(mute).Reregister || tables.Port(answers).Reregister || tables.Port(down).Reregister {
			t.Errorf("at %v the wrong hosts are asked", at)
		}
		x.Enter(at+time.Millisecond, ends, tables, failed)
		now, wait = at, min(2*wait, askedLast)
	}
	for _, spoil := range []func(){func() { mute.InfoRead = false }, func() { mute.InfoRead, mute.Info.PortState = true, smp.PortInit }} {
		spoil()
		at, _ := x.Next()
		if x.Again(at, ends, tables); tables.Port(mute).Reregister {
			t.Error("asked though it is not known to be up")
		}
		if next, some := x.Next(); !some || next <= at {
			t.Errorf("after %v it waits until %v", at, next)
		}
	}
	mute.Info.PortState = smp.PortActive
	at, _ := x.Next()
	x.Again(at, ends, tables)
	x.Enter(at, ends, tables, nil)
	if _, some := x.Next(); some || !x.Has(mute.GUID) {
		t.Error("it has answered, and would be asked again")
	}
}
