package simtest

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/watch"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// misfortune is something that happens to the demonstration fabric, and that
// can be undone.
type misfortune struct {
	name     string
	do, undo func(*world) error
	// gone are nodes that can be reached no more.
	gone []string
}

var misfortunes = []misfortune{
	{
		name: "cable to a spine pulled and laid again",
		do:   func(w *world) error { return w.fabric.Unlink(w.node("leaf-1").GUID, 5) },
		undo: func(w *world) error { return w.fabric.Link(w.node("leaf-1").GUID, 5, w.node("spine-1").GUID, 1) },
	},
	{
		name: "cable to a host pulled and laid again",
		do:   func(w *world) error { return w.fabric.Unlink(w.node("red-1").GUID, 1) },
		undo: func(w *world) error {
			return w.fabric.Link(w.node("red-1").GUID, 1, w.node("leaf-1").GUID, 2)
		},
		gone: []string{"red-1"},
	},
	{
		name: "host off and on",
		do:   func(w *world) error { return w.fabric.PowerOff(w.node("blue-2").GUID) },
		undo: func(w *world) error { return w.fabric.PowerOn(w.node("blue-2").GUID) },
		gone: []string{"blue-2"},
	},
	{
		name: "spine off and on",
		do:   func(w *world) error { return w.fabric.PowerOff(w.node("spine-2").GUID) },
		undo: func(w *world) error { return w.fabric.PowerOn(w.node("spine-2").GUID) },
		gone: []string{"spine-2"},
	},
	{
		name: "leaf off and on",
		do:   func(w *world) error { return w.fabric.PowerOff(w.node("leaf-2").GUID) },
		undo: func(w *world) error { return w.fabric.PowerOn(w.node("leaf-2").GUID) },
		gone: []string{"leaf-2", "storage-1", "red-2", "red-6", "blue-4"},
	},
	{
		name: "host moved to another leaf's free port and back",
		do:   func(w *world) error { return w.swap("red-1", "blue-6") },
		undo: func(w *world) error { return w.swap("red-1", "blue-6") },
	},
}

// swap exchanges the cables of two hosts.
func (w *world) swap(a, b string) error {
	w.t.Helper()
	x, y := w.switchPort(a), w.switchPort(b)
	w.must(w.fabric.Unlink(x.node, x.num))
	w.must(w.fabric.Unlink(y.node, y.num))
	w.must(w.fabric.Link(w.host(a).node, 1, y.node, y.num))
	return w.fabric.Link(w.host(b).node, 1, x.node, x.num)
}

// Links and devices that come and go are noticed, by a trap at once and else by
// the next light sweep; routes and tables follow, and who comes back finds its
// address and its keys.
func TestWatching(t *testing.T) {
	for _, m := range misfortunes {
		for _, way := range []struct {
			name   string
			within time.Duration
			caps   smp.CapabilityMask // taken from every device
		}{
			{"SI-17 by trap 128", 2 * time.Second, 0},
			{"SI-17 by PortStateChange", engine.DefaultSweepInterval + 2*time.Second, smp.CapTrapSupported},
		} {
			t.Run(m.name+"/"+way.name, func(t *testing.T) {
				t.Parallel()
				list := topology.Demo()
				y := halves(hosts(list))
				s := setup{list: list, policy: y.policy()}
				s.fabric.Profile = func(_ *topology.Node, c *sma.Config) {
					for i := range c.Ports {
						c.Ports[i].CapabilityMask &^= way.caps
					}
					if c.Switch != nil {
						c.Switch.Port0.CapabilityMask &^= way.caps
					}
				}
				w := bringUp(t, s)
				lids := w.lids()
				w.run(engine.DefaultSweepInterval) // be it in the middle of watching
				w.must(m.do(w))
				w.run(way.within)
				w.settle()
				w.checkRest(y, m.gone)
				w.checkGone(m.gone)
				w.must(m.undo(w))
				w.run(way.within)
				w.settle()
				w.checkUp(y)
				w.checkResult()
				if now := w.lids(); !maps.Equal(lids, now) {
					t.Errorf("LIDs %v, were %v", now, lids)
				}
			})
		}
	}
}

// checkRest is checkUp without some nodes.
func (w *world) checkRest(y tenancy, without []string) {
	w.t.Helper()
	all := w.list
	w.list = &topology.Netlist{Nodes: slices.DeleteFunc(slices.Clone(all.Nodes), func(n *topology.Node) bool {
		return slices.Contains(without, n.ID)
	})}
	w.checkUp(y)
	w.list = all
}

// checkGone: each of these was reported as gone.
func (w *world) checkGone(ids []string) {
	w.t.Helper()
	for _, id := range ids {
		guid := w.node(id).GUID
		if !slices.ContainsFunc(all[watch.LinksDown](w), func(e watch.LinksDown) bool {
			return slices.ContainsFunc(e.Gone, func(d watch.Device) bool { return d.GUID == guid })
		}) {
			w.t.Errorf("nobody says that %s has gone", id)
		}
	}
}

// A device that was never there before comes up like the others.
func TestNewDevice(t *testing.T) {
	for _, id := range []string{"red-3", "leaf-3", "spine-1"} {
		t.Run(id, func(t *testing.T) {
			list := topology.Demo()
			y := halves(hosts(list))
			w := newWorld(t, setup{list: list, policy: y.policy()})
			w.must(w.fabric.PowerOff(w.node(id).GUID))
			w.settle()
			w.must(w.fabric.PowerOn(w.node(id).GUID))
			w.run(2 * time.Second)
			w.settle()
			w.checkUp(y)
			w.checkResult()
		})
	}
}

// A cable that is pulled while the fabric is brought up for the first time,
// when no trap has an address to go to, is noticed all the same.
func TestCablePulledDuringBringUp(t *testing.T) {
	for _, after := range []time.Duration{50, 100, 150, 200, 250, 300, 350} {
		t.Run((after * time.Microsecond).String(), func(t *testing.T) {
			t.Parallel()
			list := topology.Demo()
			y := halves(hosts(list))
			w := newWorld(t, setup{list: list, policy: y.policy()})
			w.fabric.At(after*time.Microsecond, func() {
				w.must(w.fabric.Unlink(w.node("leaf-2").GUID, 5))
				w.must(w.fabric.Unlink(w.node("red-1").GUID, 1))
			})
			w.settle()
			w.run(engine.DefaultDriftPeriod + engine.DefaultSweepInterval)
			w.settle()
			w.checkRest(y, []string{"red-1"})
		})
	}
}

// A change of CapabilityMask is looked at where it is: by trap 144 at once, and
// without a trap within a drift period. The rest of the subnet is not read again.
func TestCapabilityMaskChange(t *testing.T) {
	list := topology.Demo()
	y := halves(hosts(list))
	w := bringUp(t, setup{list: list, policy: y.policy()})
	w.calm()
	w.run(3 * time.Second) // past a light sweep
	sees := func(id string, c smp.CapabilityMask) bool {
		return w.engine.Fabric().Node(w.node(id).GUID).Ports[1].Info.CapabilityMask.Has(c)
	}
	t.Run("trap 144", func(t *testing.T) {
		w.forget()
		w.stranger("blue-1").SetIsSM(true)
		w.run(2 * time.Second)
		traps := all[event.Trapped](w)
		if len(traps) != 1 || traps[0].Number != smp.TrapLocalChange || !sees("blue-1", smp.CapIsSM) || len(w.packets(mad.MethodGet, smp.AttrSMInfo)) == 0 {
			t.Errorf("nobody looks at it: %v", w.events)
		}
		for _, a := range w.packets(mad.MethodGet, smp.AttrPortInfo, smp.AttrPKeyTable, smp.AttrNodeInfo) {
			if a.node != w.node("blue-1").GUID {
				t.Errorf("Get(%s) at node %v", smp.AttributeName(a.AttributeID), a.node)
			}
		}
	})
	t.Run("no trap", func(t *testing.T) {
		w.forget()
		w.info(w.host("red-2")).CapabilityMask |= smp.CapDeviceManagement // new firmware
		w.run(engine.DefaultDriftPeriod + engine.DefaultSweepInterval)
		if !mentions[event.Changed](w, "red-2", "CapabilityMask") || !sees("red-2", smp.CapDeviceManagement) || len(all[event.Resweeping](w)) > 0 {
			t.Errorf("nobody looks at it, or at everything: %v", w.events)
		}
	})
}

// A trap is answered with TrapRepress, which carries what the trap did, so that its
// sender stops. Where an M_Key guards the sender, a switch gets the answer that has
// its key, and nobody else: a program of a host could ask for such answers.
func TestTrapsAreRepressed(t *testing.T) {
	for _, key := range []ib.MKey{0, 7} {
		t.Run(key.String(), func(t *testing.T) { testTrapsAreRepressed(t, key) })
	}
}

func testTrapsAreRepressed(t *testing.T, key ib.MKey) {
	list := topology.Demo()
	y := halves(hosts(list))
	w := bringUp(t, setup{list: list, policy: y.policy(), manager: engine.Config{MKey: key}})
	t.Run("NO-01 NO-02 any trap", func(t *testing.T) {
		s := w.stranger("blue-1")
		for _, number := range []smp.TrapNumber{smp.TrapLocalChange, smp.TrapLinkStateChanged, smp.TrapBadPKey, 4711} {
			w.forget()
			n := smp.Notice{IsGeneric: true, TrapNumber: number, IssuerLID: w.info(s.at).LID, Details: [smp.NoticeDetailsSize]byte{5: 9}}
			p := s.packet(mad.ClassSubnLID, mad.MethodTrap, smp.AttrNotice, 0)
			w.encode(&n, &p.Data)
			s.send(&p, w.info(w.self).LID)
			s.send(&p, w.info(w.self).LID) // as a device does that nobody answers
			w.run(wait)
			got := w.packets(mad.MethodTrapRepress, smp.AttrNotice)
			answers, told := 2, 2
			if key != 0 {
				answers, told = 0, 1
			}
			if len(got) != answers {
				t.Errorf("trap %d: %d TrapRepress, want %d: %+v", number, len(got), answers, got)
			}
			for _, g := range got {
				if g.node != s.at.node || g.TransactionID != p.TransactionID || g.Data != p.Data || g.MKey != 0 {
					t.Errorf("trap %d: %+v", number, g)
				}
			}
			if traps := all[event.Trapped](w); len(traps) != told || traps[0].Number != number {
				t.Errorf("trap %d: reported %v", number, traps)
			}
			w.run(2 * time.Second)
		}
	})
	t.Run("NO-02 in the name of another port", func(t *testing.T) {
		s := w.stranger("blue-2")
		w.forget()
		n := smp.Notice{IsGeneric: true, TrapNumber: smp.TrapLocalChange, IssuerLID: w.info(w.host("red-1")).LID}
		p := s.packet(mad.ClassSubnLID, mad.MethodTrap, smp.AttrNotice, 0)
		w.encode(&n, &p.Data)
		for range 2 {
			s.send(&p, w.info(w.self).LID)
		}
		w.run(wait)
		if got := w.packets(mad.MethodTrapRepress, smp.AttrNotice); len(got) != 0 {
			t.Errorf("answered: %+v", got)
		}
		if told := all[event.Trapped](w); len(told) != 0 {
			t.Errorf("taken: %v", told)
		}
		if told := all[event.Disbelieved](w); len(told) != 1 || told[0].Issuer != n.IssuerLID || !mentions[event.Disbelieved](w, "blue-2") {
			t.Errorf("told: %v", told)
		}
		w.run(2 * time.Second)
	})
	t.Run("NO-02 a device stops", func(t *testing.T) {
		w.forget()
		w.must(w.fabric.Unlink(w.node("red-1").GUID, 1))
		w.run(time.Minute)
		if n := len(w.packets(mad.MethodTrap)); n != 1 {
			t.Errorf("the switch sent its trap %d times", n)
		}
		for _, a := range w.packets(mad.MethodTrapRepress) {
			if a.node != w.node("leaf-1").GUID || a.MKey != key || key != 0 && a.Class != mad.ClassSubnDirected {
				t.Errorf("node %v got a TrapRepress of class %v with M_Key %v", a.node, a.Class, a.MKey)
			}
		}
	})
	t.Run("NO-02 what is lost is repeated", func(t *testing.T) {
		w.must(w.fabric.SetLoss(0.5))
		w.must(w.fabric.Link(w.node("red-1").GUID, 1, w.node("leaf-1").GUID, 2))
		w.run(time.Minute)
		w.must(w.fabric.SetLoss(0))
		w.run(time.Minute)
		w.forget()
		w.run(time.Minute)
		for _, a := range w.packets(mad.MethodTrap) {
			t.Errorf("node %v is sent traps long after they were repressed", a.node)
		}
		w.checkUp(y)
	})
}

// However many traps one host sends, the subnet is not read again for them: they
// cost a look at that host, a few times a second, and one line that names it.
func TestBurstOfTraps(t *testing.T) {
	const most = 10 * time.Second
	list := topology.Demo()
	y := halves(hosts(list))
	w := bringUp(t, setup{list: list, policy: y.policy()})
	w.calm()
	s := w.stranger("blue-1")
	w.forget()
	start := w.fabric.Now()
	for w.fabric.Now() < start+most {
		for range 50 {
			s.localChange()
		}
		w.run(20 * time.Millisecond)
	}
	if n := len(all[event.Resweeping](w)); n > 0 {
		t.Errorf("%d sweeps", n)
	}
	const allowed = 16 + 4*10 // at once, and in ten seconds
	if n := len(w.packets(mad.MethodTrapRepress)); n < allowed/2 || n > allowed {
		t.Errorf("%d traps were answered, want %d", n, allowed)
	}
	asked := 0
	for _, a := range w.packets(mad.MethodGet) {
		if a.node == s.at.node {
			asked++
		}
	}
	if asked > 4*allowed {
		t.Errorf("%d questions to the sender", asked)
	}
	if n := len(all[event.Flooded](w)); n != 1 || !mentions[event.Flooded](w, "blue-1") {
		t.Errorf("told %d times: %v", n, all[event.Flooded](w))
	}
	w.checkUp(y)
}

// A policy that comes while the manager knows that what it has read is out of
// date waits for the sweep that is due: it does not write to whoever has taken
// the old place of somebody else.
func TestPolicyWaitsForSweep(t *testing.T) {
	list := topology.Demo()
	y := halves(hosts(list))
	w := bringUp(t, setup{list: list, policy: y.policy()})
	w.must(w.swap("red-1", "blue-6"))
	w.run(10 * time.Microsecond)
	next := y.move(w.node("red-1").Ports[1].GUID, 0x10, 0x20).move(w.node("blue-6").Ports[1].GUID, 0x20, 0x10)
	safety := w.watchSafety(y, next)
	w.engine.SetPolicy(next.policy())
	w.run(3 * time.Second)
	w.settle()
	safety.look()
	w.watch = nil
	w.checkUp(next)
}

// Light sweeps that follow each other closely do not put off the sweep that a
// change calls for.
func TestShortSweepIntervalPutsOffNothing(t *testing.T) {
	list := topology.Demo()
	w := bringUp(t, setup{list: list, policy: halves(hosts(list)).policy(), manager: engine.Config{Periods: engine.Periods{Sweep: 200 * time.Millisecond}}})
	w.calm()
	w.forget()
	w.must(w.fabric.PowerOff(w.node("red-3").GUID))
	w.run(3 * time.Second)
	if len(all[event.Resweeping](w)) == 0 {
		t.Errorf("a host has gone, and no sweep follows: %v", w.events)
	}
}
