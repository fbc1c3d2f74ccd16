package simtest

import (
	"fmt"
	"os"
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
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// revoked gives the manager a policy that takes a partition from a host and tells
// how long it takes until the switch port before the host holds it no more.
func (w *world) revoked(y tenancy, victim string, base ib.PKeyBase) time.Duration {
	w.t.Helper()
	guard := w.switchPort(victim)
	if holds(w.table(guard), base) == outsider {
		w.t.Fatalf("the switch port before %s does not hold %v to begin with", victim, base)
	}
	start := w.fabric.Now()
	w.engine.SetPolicy(y.policy())
	w.engine.Expire(start)
	w.until("the key is taken away", func() bool { return holds(w.table(guard), base) == outsider })
	return w.fabric.Now() - start
}

// flood lets somebody do something again and again, every so often, until the
// time is over.
func (w *world) flood(every, total time.Duration, do func()) {
	end := w.fabric.Now() + total
	var turn func()
	turn = func() {
		if do(); w.fabric.Now()+every < end {
			w.fabric.At(w.fabric.Now()+every, turn)
		}
	}
	w.fabric.At(w.fabric.Now()+every, turn)
}

// What one host sends, forged or not, keeps no revocation waiting: it takes at
// most twice as long as on a fabric at peace.
func TestFloodsKeepNobodyWaiting(t *testing.T) {
	need.Long(t, "floods at full rate")
	spec := "fattree,radix=12,levels=2"
	if os.Getenv("IBWARDEN_SOAK") != "" {
		spec = "fattree,radix=36,levels=2"
	}
	forged := func(w *world, s *stranger, number smp.TrapNumber, d smp.TrapDetails, issuer ib.LID) {
		n, err := smp.NewTrap(number, smp.ProducerSwitch, issuer, d)
		w.must(err)
		p := s.packet(mad.ClassSubnLID, mad.MethodTrap, smp.AttrNotice, 0)
		w.encode(&n, &p.Data)
		s.send(&p, w.info(w.self).LID)
	}
	aSwitch := func(w *world) ib.LID {
		i := slices.IndexFunc(w.list.Nodes, func(n *topology.Node) bool { return n.Type == ib.NodeSwitch })
		return w.info(place{w.list.Nodes[i].GUID, 0}).LID
	}
	floods := []struct {
		name  string
		every time.Duration
		do    func(w *world, s *stranger)
	}{
		{"nothing", time.Second, func(*world, *stranger) {}},
		{"a trap in the name of a switch, each second", time.Second, func(w *world, s *stranger) {
			forged(w, s, smp.TrapLinkStateChanged, &smp.LinkStateDetails{LID: aSwitch(w)}, aSwitch(w))
		}},
		{"traps in the name of a switch, at full rate", 10 * time.Microsecond, func(w *world, s *stranger) {
			forged(w, s, smp.TrapLinkStateChanged, &smp.LinkStateDetails{LID: aSwitch(w)}, aSwitch(w))
		}},
		{"its own traps, at full rate", 10 * time.Microsecond, func(w *world, s *stranger) { s.localChange() }},
		{"answers that nobody asked for", 10 * time.Microsecond, func(w *world, s *stranger) {
			p := s.packet(mad.ClassSubnLID, mad.MethodGetResp, smp.AttrPKeyTable, 0)
			s.send(&p, w.info(w.self).LID)
		}},
		{"its manager comes and goes", 20 * time.Millisecond, func(w *world, s *stranger) {
			s.SetIsSM(s.tid%2 == 0)
			s.tid++
		}},
	}
	usual := time.Duration(0)
	for _, x := range floods {
		list := generate(t, spec)
		all := hosts(list)
		y := halves(all)
		w := bringUp(t, setup{list: list, policy: y.policy(), manager: engine.Config{Profile: protect.Tenant}})
		w.calm()
		w.run(3 * time.Second)
		ids := []string{}
		for _, n := range list.Nodes {
			if n.Type == ib.NodeCA {
				ids = append(ids, n.ID)
			}
		}
		s := w.stranger(ids[len(ids)-1])
		w.flood(x.every, 3*time.Second, func() { x.do(w, s) })
		w.run(1500 * time.Millisecond)
		w.forget()
		victim, guid := ids[1], guidOf(list, ids[1])
		base := ib.PKeyBase(0x10)
		took := w.revoked(y.move(guid, base, 0), victim, base)
		if usual == 0 {
			usual = took
		}
		t.Logf("%s: %v", x.name, took)
		if took > 2*usual {
			t.Errorf("%s: a revocation takes %v, usually %v", x.name, took, usual)
		}
		if n := len(wholeSweeps(w)); n > 0 {
			t.Errorf("%s: %d sweeps", x.name, n)
		}
	}
}

// wholeSweeps are the sweeps of the whole subnet.
func wholeSweeps(w *world) (out []event.Resweeping) {
	for _, e := range all[event.Resweeping](w) {
		if e.Links == 0 {
			out = append(out, e)
		}
	}
	return out
}

// What a policy takes away is written at once though the subnet is being read
// again and a device does not answer.
func TestRevocationBeforeSweep(t *testing.T) {
	for _, silent := range []bool{false, true} {
		t.Run(fmt.Sprint("silent device ", silent), func(t *testing.T) {
			list := topology.Demo()
			y := halves(hosts(list))
			base := holdsOf(y, guidOf(list, "red-1"))
			next := y.move(guidOf(list, "red-1"), base, 0)
			quiet := bringUp(t, setup{list: topology.Demo(), policy: y.policy()})
			usual := quiet.revoked(next, "red-1", base)

			var all []time.Duration
			for moment := 10 * time.Microsecond; moment <= 200*time.Microsecond; moment += 10 * time.Microsecond {
				w := bringUp(t, setup{list: list, policy: y.policy()})
				w.calm()
				if silent {
					w.mute("blue-3", true)
				}
				safety := w.watchSafety(y, next)
				w.engine.SetCables(nil) // has the whole subnet read again
				w.until("a sweep is under way", func() bool { return len(wholeSweeps(w)) > 0 })
				w.run(moment)
				took := w.revoked(next, "red-1", base)
				all = append(all, took)
				if took > 3*usual { // what the sweep has asked for by then is answered first
					t.Errorf("%v into a sweep a revocation takes %v, usually %v", moment, took, usual)
				}
				w.settle()
				safety.look()
				w.watch = nil
			}
			t.Logf("%v, usually %v", all, usual)
		})
	}
}

// holdsOf is the partition, other than the default one, that a port is in.
func holdsOf(y tenancy, g ib.PortGUID) ib.PKeyBase {
	for _, k := range y.keys(g, 0) {
		if k.Base() != ib.PKeyBaseDefault {
			return k.Base()
		}
	}
	return 0
}

// A foreign change of a guard is seen and put right within a second, and the host
// that profits by it again and again is fenced; the others are served. Where no key
// guards the guard nobody is fenced: anybody could have done it.
func TestGuardsAreWatched(t *testing.T) {
	for _, x := range []struct {
		name  string
		spoil func(w *world, guard place)
	}{
		{"a key is added", func(w *world, guard place) {
			w.setKeys(guard, func(t *smp.PKeyTable) { t.Keys[9] = 0x8020 })
		}},
		{"enforcement is turned off", func(w *world, guard place) {
			w.setPortInfo(guard, func(i *smp.PortInfo) { i.PartitionEnforcementInbound = false })
		}},
	} {
		for _, guarded := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, M_Keys %v", x.name, guarded), func(t *testing.T) {
				list := topology.Demo()
				y := halves(hosts(list))
				s := setup{list: list, policy: y.policy(), manager: engine.Config{Profile: protect.Tenant}}
				if guarded {
					s.manager = keyed()
				}
				w := bringUp(t, s)
				w.calm()
				guard := w.switchPort("red-1")
				before := w.isolating()
				for i := range 3 {
					w.forget()
					x.spoil(w, guard)
					w.run(engine.DefaultGuardPeriod + 50*time.Millisecond)
					w.settle()
					if !mentions[event.Drifted](w, "leaf-1:2") {
						t.Errorf("change %d is not reported: %v", i, w.events)
					}
					last := guarded && i == 2
					if d := firstDifference(before, w.isolating()); d != "" && !last {
						t.Errorf("change %d is not put right: %s", i, d)
					}
					for _, a := range w.sets() {
						if a.node != guard.node && !last {
							t.Errorf("Set(%s) at node %v", smp.AttributeName(a.AttributeID), a.node)
						}
					}
				}
				if !guarded {
					// Anybody could have done it, to have red-1 fenced.
					if n := len(all[event.Fenced](w)); n > 0 {
						t.Errorf("%d fenced", n)
					}
					w.checkUp(y)
					return
				}
				if !mentions[event.Fenced](w, "leaf-1:2", "were overwritten") || len(valid(w.table(guard))) > 0 {
					t.Errorf("not fenced: %v, the switch port holds %v", w.events, valid(w.table(guard)))
				}
				w.checkRest(y, []string{"red-1"})
			})
		}
	}
}

// What is taken from a host by somebody else fences nobody: who would be a victim
// of that is not the offender.
func TestVictimsAreNotFenced(t *testing.T) {
	list := topology.Demo()
	y := halves(hosts(list))
	w := bringUp(t, setup{list: list, policy: y.policy(), manager: engine.Config{Profile: protect.Tenant}})
	w.calm()
	for range 5 {
		w.setKeys(w.switchPort("red-1"), func(t *smp.PKeyTable) { *t = smp.PKeyTable{} })
		w.run(engine.DefaultGuardPeriod + 50*time.Millisecond)
		w.settle()
	}
	if n := len(all[event.Fenced](w)); n > 0 {
		t.Errorf("%d fenced", n)
	}
	w.checkUp(y)
}

// A link that goes up and down without end costs a few looks behind it, and then
// nothing: nobody else's policy waits, and when it has come to rest it is up again.
func TestLinkThatFlaps(t *testing.T) {
	list := topology.Demo()
	y := halves(hosts(list))
	w := bringUp(t, setup{list: list, policy: y.policy()})
	w.calm()
	at := w.switchPort("red-1")
	up := true
	w.forget()
	w.flood(20*time.Millisecond, 20*time.Second, func() {
		if up = !up; up {
			w.must(w.fabric.Link(w.host("red-1").node, 1, at.node, at.num))
		} else {
			w.must(w.fabric.Unlink(at.node, at.num))
		}
	})
	w.run(21 * time.Second)
	if n := len(all[event.Resweeping](w)); n == 0 || n > 10 || len(wholeSweeps(w)) > 0 {
		t.Errorf("looked again %d times, %d of them at everything", n, len(wholeSweeps(w)))
	}
	if n := len(all[event.Flooded](w)); n == 0 || !mentions[event.Flooded](w, "leaf-1:2") {
		t.Errorf("told %d times: %v", n, all[event.Flooded](w))
	}
	if !up {
		w.must(w.fabric.Link(w.host("red-1").node, 1, at.node, at.num))
	}
	w.run(2 * time.Minute)
	w.settle()
	w.checkUp(y)
}

// A pass that waits for a device that has fallen silent gives way to a policy that
// takes something away.
func TestSilentDeviceHoldsUpNoPolicy(t *testing.T) {
	list := topology.Demo()
	y := halves(hosts(list))
	w := bringUp(t, setup{list: list, policy: y.policy()})
	w.calm()
	base := holdsOf(y, guidOf(list, "red-2"))
	w.mute("red-1", true)
	first := y.move(guidOf(list, "red-1"), holdsOf(y, guidOf(list, "red-1")), 0)
	second := first.move(guidOf(list, "red-2"), base, 0)
	safety := w.watchSafety(y, second)
	w.engine.SetPolicy(first.policy())
	w.engine.Expire(w.fabric.Now())
	w.run(2 * time.Millisecond) // it asks the silent host again and again
	if took := w.revoked(second, "red-2", base); took > time.Millisecond {
		t.Errorf("a revocation waits %v for a device that does not answer", took)
	}
	w.settle()
	safety.look()
	w.watch = nil
	w.must(w.fabric.SetFault(w.node("red-1").GUID, fabric.Fault{}))
	w.run(engine.DefaultDriftPeriod + 2*engine.DefaultSweepInterval)
	w.settle()
	w.checkUp(second)
}
