package watch

import (
	"fmt"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

var place = observed.Place{Node: 1, Port: 2}

func TestOffenders(t *testing.T) {
	var x Offenders
	other := observed.Place{Node: 1, Port: 3}
	for i := range Offences {
		if got := x.Count(time.Duration(i)*time.Minute, place); got != (i == Offences-1) {
			t.Errorf("change %d: too often %v", i+1, got)
		}
		x.Count(time.Duration(i)*(OffenceMemory+time.Second), other)
	}
	if x.Count(time.Hour, other) {
		t.Error("changes that are long past count")
	}
	told := 0
	for range 2*attempts + 1 {
		if x.Tried(0, place) {
			told++
		}
	}
	if told != 3 {
		t.Errorf("%d requests told %d times", 2*attempts+1, told)
	}
}

func TestSenders(t *testing.T) {
	var x Senders
	s := x.Of(0, place)
	n := 0
	for s.Allows(0) {
		n++
	}
	if n != trapBurst || x.Of(0, place) != s || x.Of(0, observed.Place{Node: 9}) == s {
		t.Errorf("%d traps at once, want %d of each sender", n, trapBurst)
	}
	if !s.Tell() || s.Tell() {
		t.Error("want a sender named once")
	}
	if s.Allows(0) || !s.Allows(time.Second) || s.Tell() {
		t.Error("a second later some are looked at, and he is not named again before he was quiet")
	}
	if !s.Allows(time.Minute) || !s.Tell() {
		t.Error("after he was quiet he is named again")
	}
	for i := range 3 * accountsMax {
		x.Of(time.Hour, observed.Place{Node: ib.NodeGUID(i)})
	}
	if len(x.at) > accountsMax {
		t.Errorf("%d senders are remembered, at most %d", len(x.at), accountsMax)
	}
}

func TestLinks(t *testing.T) {
	for _, mute := range []bool{false, true} {
		var x Links
		burst, soonest, latest := linkBurst, 30*time.Second, 32*time.Second
		if mute {
			burst, soonest, latest = muteBurst, 1900*time.Millisecond, 2100*time.Millisecond
		}
		for i := range burst {
			if at := x.Next(time.Second, place, mute); at != time.Second {
				t.Errorf("mute %v: time %d is to be followed at %v", mute, i+1, at)
			}
			x.Take(time.Second, place, mute)
		}
		if at := x.Next(time.Second, place, mute); at < soonest || at > latest {
			t.Errorf("mute %v: the next is to be followed at %v, want %v to %v", mute, at, soonest, latest)
		}
		// Who lets his link go up and down gains nothing by silence; who was silent may have his link changed.
		if at := x.Next(time.Second, place, !mute); mute != (at == time.Second) {
			t.Errorf("after %d times with mute %v, the first with %v is to be followed at %v", burst, mute, !mute, at)
		}
	}
}

func TestOwners(t *testing.T) {
	b := subnettest.New()
	var ends []*observed.Port
	for i, lid := range []ib.LID{4, 8, 8, 12} {
		b.LID, b.GUID = lid, ib.NodeGUID(i) // of the ports: 1 to 4
		ends = append(ends, b.Host(nil, ""))
	}
	f := b.Fabric
	ends[0].Info.LMC = 1
	given := Given{LIDs: map[ib.PortGUID]ib.LID{4: 13}}
	var x Owners
	for lid, want := range map[ib.LID]*observed.Port{3: nil, 4: ends[0], 5: ends[0], 6: nil, 8: nil, 12: nil, 13: nil} {
		if got := x.Of(lid, f, 1, ends, given); got != want {
			t.Errorf("LID %d belongs to %v, want %v", lid, got, want)
		}
	}
	ends[0].Info.LID = 20
	if x.Of(4, f, 1, ends, given) != nil || x.Of(20, f, 2, ends, given) != ends[0] {
		t.Error("a LID that a port has no more is nobody's, and with another epoch the new one is its own")
	}
}

// The LID of managers is the master's, whatever that port was given besides, and whoever
// else shows to have it.
func TestOwnersOfTheMasterLID(t *testing.T) {
	b := subnettest.New()
	var ends []*observed.Port
	for i, lid := range []ib.LID{1, 1, 7} {
		b.LID, b.GUID = lid, ib.NodeGUID(i) // of the ports: 1 to 3
		ends = append(ends, b.Host(nil, ""))
	}
	given := Given{LIDs: map[ib.PortGUID]ib.LID{1: 4, 2: 5, 3: 7}, Master: ends[0], MasterLID: 1}
	var x Owners
	for lid, want := range map[ib.LID]*observed.Port{1: ends[0], 4: nil, 5: nil, 7: ends[2]} {
		if got := x.Of(lid, b.Fabric, 1, ends, given); got != want {
			t.Errorf("LID %d belongs to %v, want %v", lid, got, want)
		}
	}
	given.LIDs = nil
	if x.Of(1, b.Fabric, 2, ends, given) != ends[0] {
		t.Error("a port of which nothing is known takes the LID from the master")
	}
	given.Master = nil
	if x.Of(1, b.Fabric, 2, ends, given) != nil {
		t.Error("without a master a LID that two ports show is somebody's")
	}
}

// Each guard is asked for within the period, and none again before it has answered.
func TestGuards(t *testing.T) {
	b := subnettest.New()
	f, sw := b.Fabric, b.Switch(4, "switch")
	var checks []observed.Block
	for i := range 4 {
		p := b.Host(sw, fmt.Sprint("host-", i))
		checks = append(checks,
			observed.Block{Port: p.Peer, Attribute: smp.AttrPKeyTable}, observed.Block{Port: p, Attribute: smp.AttrPKeyTable},
			observed.Block{Port: p.Peer, Attribute: smp.AttrVLArbitrationTable})
	}
	g := Guards{Period: time.Second, Rate: 4096}
	if g.List(f, checks) || g.Near() != 5 || g.Len() != 9 || g.InForce() != time.Second {
		t.Errorf("%d near, %d in all, in %v", g.Near(), g.Len(), g.InForce())
	}
	asked := map[*observed.Port]int{}
	var open []func()
	for now := time.Duration(0); now <= 1100*time.Millisecond; now += 10 * time.Millisecond {
		g.Next(now, func(b observed.Block, done func(bool)) {
			asked[b.Port]++
			open = append(open, func() { done(true) })
		})
	}
	for _, b := range checks {
		if asked[b.Port] != 1 {
			t.Errorf("%s was asked %d times within the period, and never answered", b.Port, asked[b.Port])
		}
	}
	for _, done := range open {
		done()
	}
	before := len(open)
	for now := 1110 * time.Millisecond; now <= 2200*time.Millisecond; now += 10 * time.Millisecond {
		g.Next(now, func(_ observed.Block, done func(bool)) { done(true); before++ })
	}
	if before < 2*g.Len() {
		t.Errorf("%d questions in two periods, want each of %d twice", before, g.Len())
	}
	if read, some := g.Read(); !some || read < 1110*time.Millisecond || read > 2200*time.Millisecond {
		t.Errorf("all were read since %v, %v, want the beginning of the last round", read, some)
	}
	slow := Guards{Period: time.Millisecond, Rate: 100}
	if !slow.List(f, checks) || slow.List(f, checks) || slow.InForce() <= time.Millisecond {
		t.Error("a period that cannot be kept is told once")
	}
}

// A round counts when each of its tables was answered since it began, and no other does.
func TestGuardsRead(t *testing.T) {
	b := subnettest.New()
	sw := b.Switch(4, "switch")
	p := b.Host(sw, "host")
	checks := []observed.Block{{Port: p.Peer, Attribute: smp.AttrPKeyTable}, {Port: p, Attribute: smp.AttrPKeyTable}}
	g := Guards{Period: 100 * time.Millisecond, Rate: 4096}
	g.List(b.Fabric, checks)
	now := time.Duration(0)
	round := func(answer func(done func(bool))) {
		for end := now + 150*time.Millisecond; now < end; now += tick {
			g.Next(now, func(_ observed.Block, done func(bool)) { answer(done) })
		}
	}
	round(func(done func(bool)) { done(false) })
	if _, some := g.Read(); some {
		t.Error("nothing was answered, and all was read")
	}
	round(func(done func(bool)) { done(true) })
	round(func(done func(bool)) { done(true) })
	first, some := g.Read()
	if !some || first == 0 || first >= now {
		t.Errorf("read since %v, %v", first, some)
	}
	asked := 0
	round(func(func(bool)) { asked++ }) // no answer will come
	round(func(func(bool)) { asked++ })
	if read, _ := g.Read(); read > first+100*time.Millisecond || asked > g.Len() {
		t.Errorf("read since %v, %v before, and %d were asked", read, first, asked)
	}
	g.Forget()
	round(func(done func(bool)) { done(true) })
	round(func(done func(bool)) { done(true) })
	if read, _ := g.Read(); read <= first+100*time.Millisecond {
		t.Errorf("read since %v: nothing was read since questions were dropped", read)
	}
}
