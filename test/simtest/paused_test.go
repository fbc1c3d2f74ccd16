package simtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
)

// alone is when a manager was last told that no other is master, and that another is.
func (m *seat) alone() (alone, beside time.Duration) {
	for _, h := range m.events {
		if a, is := h.Event.(event.Asked); is && a.Alone {
			alone = h.at
		} else if is {
			beside = h.at
		}
	}
	return alone, beside
}

func (m *seat) state() smp.SMState { return m.engine.Manager().Status().State }

// A master is stopped, its standby takes over, and the master goes on: it is the only
// master in the end if it ranks higher, else the other is. The one that is has then asked
// all others, and none was master; before that it is told of no such round while the other
// one is.
func TestPausedMaster(t *testing.T) {
	for _, c := range []struct {
		profile        protect.Profile
		higher, killed bool
	}{
		{protect.None, true, false}, {protect.None, true, true},
		{protect.Tenant, true, false}, {protect.Tenant, true, true}, {protect.Tenant, false, false}, {protect.Tenant, false, true},
	} {
		t.Run(fmt.Sprintf("%s, it ranks higher %v, the other is killed meanwhile %v", c.profile, c.higher, c.killed), func(t *testing.T) {
			pausedMaster(t, c.profile, c.higher, c.killed)
		})
	}
}

func pausedMaster(t *testing.T, profile protect.Profile, higher, killed bool) {
	list := generate(t, "demo")
	x := newPair(t, list)
	y := tenantsOf(hosts(list))
	config := func(priority uint8) engine.Config {
		c := engine.Config{Election: engine.Election{Priority: priority}, Profile: profile}
		if profile != protect.None {
			c.Election.SMKeys = ring(1)
		}
		return c
	}
	first := x.sit(0, config(5), x.managed(y, 0, 4))
	x.until("the first proof", time.Minute, func() bool { return first.proved(0) })
	second := x.sit(4, config(0), x.managed(y, 0, 4))
	x.run(30 * time.Second)
	if !higher { // the one that was handed the subnet ranks lower
		if _, err := first.engine.Manager().HandOver(0); err != nil {
			t.Fatal(err)
		}
		x.run(30 * time.Second)
		first, second = second, first
	}
	if first.state() != smp.SMMaster {
		t.Fatalf("the first is %s", first.state())
	}
	since := x.fabric.Now()
	first.asleep = true
	x.until("the other takes over", time.Minute, func() bool { return second.proved(since) })
	x.run(15 * time.Second)
	if killed {
		x.kill(second)
		x.run(time.Second)
	}
	first.asleep = false
	woke := x.fabric.Now()
	x.run(time.Minute)
	master, standby := first, second
	if !higher && !killed {
		master, standby = second, first
	}
	if master.state() != smp.SMMaster || !standby.gone && standby.state() != smp.SMStandby {
		t.Fatalf("one is %s, want master, the other %s, want standby", master.state(), standby.state())
	}
	alone, beside := master.alone()
	if alone < woke || alone < beside {
		t.Errorf("it went on at %v; the master was last told at %v that it is alone, and at %v that it is not", woke, alone, beside)
	}
	if alone, _ := standby.alone(); alone >= woke {
		t.Errorf("it went on at %v; who is not master in the end was told at %v that it is alone", woke, alone)
	}
}

// sleepers lets a master be stopped after so many Sets of a change. Its standby takes over
// and carries out another policy; after a pause the master goes on, and is told that policy, as a
// daemon does whose store another one writes. It returns the P_Key tables of hosts that were
// written after that, other than those of the managers.
func sleepers(t *testing.T, after int, pause time.Duration) (wrong []string) {
	t.Helper()
	list := generate(t, "demo")
	x := newPair(t, list)
	y := tenantsOf(hosts(list))
	moved := tenancy{tenants: slices.Clone(y.tenants)}
	moved.tenants[0].base, moved.tenants[1].base = y.tenants[1].base, y.tenants[0].base
	config := func(priority uint8) engine.Config {
		return engine.Config{Election: engine.Election{Priority: priority, SMKeys: ring(1), AcceptPolicy: true}, Profile: protect.Tenant}
	}
	first := x.sit(0, config(5), x.managed(y, 0, 4))
	first.engine.Manager().AwaitConfirmation()
	x.until("the first proof", time.Minute, func() bool { return first.proved(0) })
	second := x.sit(4, config(0), x.managed(y, 0, 4))
	x.run(30 * time.Second)
	x.forget()
	first.engine.Manager().SetPolicy(x.managed(moved, 0, 4))
	first.engine.Expire(x.fabric.Now())
	x.until("some Sets", time.Minute, func() bool { return x.writes() >= after || first.proved(x.fabric.Now()-time.Millisecond) })
	first.asleep = true
	since := x.fabric.Now()
	x.until("the other takes over", time.Minute, func() bool { return second.proved(since) })
	x.run(pause)
	x.watch = func(p *mad.SMP, s fabric.Sighting) {
		managers := []ib.NodeGUID{x.hostNodes()[0].GUID, x.hostNodes()[4].GUID}
		if p.Method == mad.MethodSet && p.AttributeID == smp.AttrPKeyTable && !slices.Contains(managers, s.Node) {
			wrong = append(wrong, fmt.Sprintf("%v after it went on: %v, port %d", s.At-since, s.Node, s.Port))
		}
	}
	since = x.fabric.Now()
	first.asleep = false
	x.until("it knows that it did not run", time.Minute, func() bool {
		return slices.ContainsFunc(first.events, func(h happened) bool {
			_, is := h.Event.(event.Slept)
			return is && h.at >= since
		})
	})
	x.run(50 * time.Millisecond) // the store takes its time
	first.engine.Manager().SetPolicy(x.managed(y, 0, 4))
	first.engine.Manager().Confirm(true)
	x.run(30 * time.Second)
	if first.state() != smp.SMMaster || second.state() != smp.SMStandby {
		t.Fatalf("one is %s, the other %s", first.state(), second.state())
	}
	return wrong
}

// A master that was stopped writes nothing of an older policy when it goes on, wherever in
// a change it was stopped.
func TestPausedMasterWritesNothingOlder(t *testing.T) {
	seed, soak := soakSeed(t)
	rounds := 6
	if soak {
		rounds = 200
	}
	t.Logf("SOAK_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 18))
	for n := range rounds {
		after, pause := 1+r.IntN(60), time.Duration(r.Int64N(int64(20*time.Second)))
		for _, w := range sleepers(t, after, pause) {
			t.Errorf("round %d, after %d Sets: %s", n, after, w)
		}
	}
}
