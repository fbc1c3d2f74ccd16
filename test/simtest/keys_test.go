package simtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// keyed is a manager that gives every port a key of its own.
func keyed() engine.Config {
	return engine.Config{Profile: protect.Tenant, Keys: &mkey.KeyingConfig{Keys: mkey.Keys{Ring: keyRing(1), Book: new(mkey.Book)}}}
}

func keyRing(seed byte) *mkey.Ring {
	var secret [mkey.SecretSize]byte
	secret[0] = seed
	return mkey.NewRing(secret)
}

// wantGuarded checks that every end port holds a key of its own, and obeys no
// other. It gives the keys by port.
func (w *world) wantGuarded() map[place]ib.MKey {
	w.t.Helper()
	keys, owner := make(map[place]ib.MKey), make(map[ib.MKey]string)
	for _, e := range w.ends() {
		info := w.info(e.place)
		if info.MKey == 0 || info.MKeyProtectBits != protect.Tenant.MKeyProtectBits() || info.MKeyLeasePeriod != 0 {
			w.t.Errorf("%s: M_Key %v, M_KeyProtectBits %d, M_KeyLeasePeriod %d", e.name, info.MKey, info.MKeyProtectBits, info.MKeyLeasePeriod)
		}
		if other := owner[info.MKey]; other != "" {
			w.t.Errorf("%s and %s have the same M_Key", e.name, other)
		}
		owner[info.MKey], keys[e.place] = e.name, info.MKey
	}
	return keys
}

// onlyCables reports whether all that a host could change is where no list of
// cables was there to say what belongs.
func (w *world) onlyCables(found []isolation.Finding) bool {
	return len(found) > 0 && !slices.ContainsFunc(found, func(f isolation.Finding) bool { return !strings.Contains(f.Reason, "no list of cables") })
}

// agentOf is the end port whose M_Key guards what a packet reached.
func (w *world) agentOf(a arrival) place {
	if w.agent(a.node).SwitchInfo() != nil {
		return place{a.node, 0}
	}
	return place{a.node, a.in}
}

func TestKeys(t *testing.T) {
	list := generate(t, "random,seed=3,switches=4,hosts=10,routers=2,ca-ports=2")
	y := halves(hosts(list))
	w := newWorld(t, setup{list: list, policy: y.policy(), manager: keyed()})
	given := make(map[place]bool) // ports that have a key
	w.watch = func(a arrival) {
		at := w.agentOf(a)
		var info smp.PortInfo
		if a.Method != mad.MethodSet {
			return
		}
		if a.AttributeID == smp.AttrPortInfo && info.UnmarshalBinary(a.Data[:]) == nil && info.MKey != 0 {
			given[at] = true
		}
		if !given[at] {
			t.Errorf("Set(%s) to node %v before it has a key", smp.AttributeName(a.AttributeID), a.node)
		}
	}
	w.settle()
	w.checkUp(y)
	w.checkResult()
	before := w.wantGuarded()
	t.Run("the next manager with the book writes nothing and shows every key to its port alone", func(t *testing.T) {
		w.restart(y.policy())
		w.watch = nil
		w.settle()
		if n := len(w.sets()); n != 0 {
			t.Errorf("%d Sets: %v", n, w.sets())
		}
		w.run(2 * engine.DefaultSweepInterval)
		for _, a := range w.arrived {
			if want := before[w.agentOf(a)]; a.MKey != want && a.AttributeID != smp.AttrSMInfo && a.Method != mad.MethodTrap {
				t.Fatalf("%v(%s) to node %v port %d with M_Key %v, want %v", a.Method, smp.AttributeName(a.AttributeID), a.node, a.in, a.MKey, want)
			}
		}
		w.checkUp(y)
		w.checkResult()
	})
	t.Run("every port gets another key when all are renewed", func(t *testing.T) {
		if n := w.engine.RenewKeys(); n != len(w.ends()) {
			t.Errorf("%d keys are to be renewed, want %d", n, len(w.ends()))
		}
		w.engine.Expire(w.fabric.Now())
		w.settle()
		after := w.wantGuarded()
		for at, key := range before {
			if after[at] == key {
				t.Errorf("node %v port %d has the same key as before", at.node, at.num)
			}
		}
		w.forget()
		w.restart(y.policy())
		w.settle()
		w.checkUp(y)
		if n := len(w.sets()); n != 0 {
			t.Errorf("%d Sets after a restart", n)
		}
	})
}

// A device that has lost its key, as after a power cut, gets another before
// anything else is written to it.
func TestKeyAfterPowerCut(t *testing.T) {
	list := topology.Demo()
	y := halves(hosts(list))
	w := bringUp(t, setup{list: list, policy: y.policy(), manager: keyed()})
	before := w.wantGuarded()
	for _, id := range []string{"red-3", "leaf-2", "spine-1"} {
		w.must(w.fabric.Reboot(w.node(id).GUID))
	}
	w.run(3*engine.DefaultSweepInterval + 10*time.Second)
	w.settle()
	w.checkUp(y)
	after := w.wantGuarded()
	if h := w.host("red-3"); after[h] == before[h] {
		t.Error("it has the key that it had before its link was down")
	}
}

// Where the book cannot be kept no port is given a key, everything else is written,
// and the result says that the fabric is not as it should be; when it can be kept
// again, the ports get their keys, and the result says so without another sweep.
func TestKeysNotKept(t *testing.T) {
	list := topology.Demo()
	y := halves(hosts(list))
	manager := keyed()
	manager.Keys.Keep = true
	w := newWorld(t, setup{list: list, policy: y.policy(), manager: manager})
	broken := errors.New("disk full")
	var kept []byte
	k := &keeper{Engine: w.engine, kept: &kept, version: w.engine.Keys().Version(), rotating: func() bool { return false }, broken: &broken}
	drive := func(until func() bool) {
		t.Helper()
		end := w.fabric.Now() + limit
		if err := w.link.Drive(context.Background(), k, func() bool { return until() || w.fabric.Now() > end }); err != nil || w.fabric.Now() > end {
			t.Fatalf("%v at %v", err, w.fabric.Now())
		}
	}
	drive(w.engine.Settled)
	for _, e := range w.ends() {
		if info := w.info(e.place); info.MKey != 0 {
			t.Errorf("%s was given a key that is not kept", e.name)
		}
	}
	if r := w.result(); r.Reached() || r.Proof.Verdict == isolation.Isolated || !mentions[event.Warned](w, "disk full") {
		t.Errorf("reached %v, %v", r.Reached(), r.Proof.Verdict)
	}
	broken = nil
	w.engine.SetPolicy(halves(hosts(list)[2:]).policy())
	end := w.fabric.Now() + 2*engine.DefaultDriftPeriod
	drive(func() bool { return w.fabric.Now() > end })
	w.wantGuarded()

	broken = errors.New("disk full")
	w.engine.RenewKeys(w.node("red-3").Ports[1].GUID)
	p := y.policy()
	w.engine.SetPolicy(p)
	drive(func() bool { return w.engine.Settled() && w.result().Policy == p })
	if r := w.result(); r.Failures != 1 {
		t.Errorf("one key is not kept: %d failures", r.Failures)
	}
	broken = nil
	began := w.fabric.Now()
	k.keep()
	drive(func() bool { return w.result().Reached() })
	if took := w.fabric.Now() - began; took >= engine.DefaultSweepInterval {
		t.Errorf("the result says so after %v: want it before the next sweep", took)
	}
	w.wantGuarded()
}

// A host whose port is guarded repeats its traps, which nobody represses: that is
// known, and the subnet is not read again for it.
func TestRepeatedTraps(t *testing.T) {
	list := topology.Demo()
	y := halves(hosts(list))
	w := bringUp(t, setup{list: list, policy: y.policy(), manager: keyed()})
	w.calm()
	w.forget()
	effects, err := w.agent(w.node("blue-3").GUID).SetDescription(w.fabric.Now(), "other")
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	s := w.stranger("blue-3")
	for _, e := range effects {
		if e.Trap != nil {
			for range 60 { // as its agent does
				s.send(&e.Trap.SMP, e.Trap.DLID)
				sent++
				w.run(time.Second)
			}
		}
	}
	if sent != 60 {
		t.Fatalf("%d traps were sent", sent)
	}
	if n := len(all[event.Trapped](w)); n != 1 {
		t.Errorf("%d traps are told of, want 1", n)
	}
	if n := len(all[event.Resweeping](w)); n > 2 {
		t.Errorf("%d sweeps", n)
	}
	if n := len(w.packets(mad.MethodTrapRepress)); n != 0 {
		t.Errorf("%d TrapRepress", n)
	}
}

// TestSilentAtItsKey: a switch that was read, and does not answer while it is given its first M_Key, is slow
// or gone, not another manager's: the manager goes on, and gives it the key when it answers again.
func TestSilentAtItsKey(t *testing.T) {
	for name, takesIt := range map[string]bool{"the write is lost": false, "its answer is lost": true} {
		t.Run(name, func(t *testing.T) {
			list := topology.Demo()
			y := halves(hosts(list))
			w := newWorld(t, setup{list: list, policy: y.policy(), manager: keyed()})
			const silence = 30 * time.Second
			since := time.Duration(-1)
			w.must(w.fabric.SetFault(w.node("leaf-2").GUID, fabric.Fault{Drop: func(now time.Duration, _ ib.PortNum, m *[mad.Size]byte) bool {
				var p mad.SMP
				if p.UnmarshalBinary(m[:]) != nil || p.Direction {
					return false
				}
				if since < 0 && p.Method == mad.MethodSet && p.AttributeID == smp.AttrPortInfo && p.AttributeModifier&0xFF == 0 {
					since = now
					return !takesIt
				}
				return since >= 0 && now < since+silence
			}}))
			w.until("the key is given", func() bool { return since >= 0 })
			w.run(silence)
			if r := all[event.Refused](w); len(r) > 0 {
				t.Fatalf("the manager gives up: %v", r)
			}
			w.run(engine.DefaultSweepInterval + 2*engine.DefaultDriftPeriod)
			w.settle()
			w.checkUp(y)
			w.wantGuarded()
		})
	}
}
