package simtest

import (
	"fmt"
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
	"github.com/ibwarden/ibwarden/internal/manager/watch"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// mute lets the agent of a node fall silent, or speak again.
func (w *world) mute(id string, on bool) {
	w.t.Helper()
	w.must(w.fabric.SetFault(w.node(id).GUID, fabric.Fault{Mute: on}))
}

// deaf makes a node lose what it is asked to set of one attribute, or of all
// that it is asked to do with it.
func (w *world) deaf(id string, attribute mad.AttributeID, setOnly bool) {
	w.t.Helper()
	w.must(w.fabric.SetFault(w.node(id).GUID, fabric.Fault{
		Drop: func(_ time.Duration, _ ib.PortNum, m *[mad.Size]byte) bool {
			var p mad.SMP
			return p.UnmarshalBinary(m[:]) == nil && !p.Direction && p.AttributeID == attribute &&
				(p.Method == mad.MethodSet || !setOnly)
		},
	}))
}

// mentions reports whether an event of a type names all these.
func mentions[E event.Event](w *world, names ...string) bool {
	return slices.ContainsFunc(all[E](w), func(e E) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return !strings.Contains(e.String(), name) })
	})
}

// A device that is silent from the start is reported, the rest comes up, its
// link stays down, and nothing is said of what rests on it. When it speaks it
// comes up too.
func TestSilentFromTheStart(t *testing.T) {
	for _, id := range []string{"red-1", "spine-2", "leaf-3"} {
		t.Run(id, func(t *testing.T) {
			list := topology.Demo()
			y := halves(hosts(list))
			w := newWorld(t, setup{list: list, policy: y.policy()})
			w.mute(id, true)
			w.settle()
			unreached := []string{id}
			if id == "leaf-3" {
				unreached = append(unreached, "storage-2", "red-3", "blue-1", "blue-5")
			}
			w.checkRest(y, unreached)
			if !mentions[event.SweepFault](w, "node behind", "no answer") {
				t.Errorf("nobody says that %s does not answer: %v", id, w.events)
			}
			for _, n := range unreached {
				for num := 1; num < len(w.node(n).Ports); num++ {
					at := place{w.node(n).GUID, ib.PortNum(num)}
					if far, ok := w.peer(at); ok && w.info(far).PortState != smp.PortInit && !slices.Contains(unreached, id) {
						t.Errorf("the link to %s is %v, want Initialize", n, w.info(far).PortState)
					}
				}
			}
			w.mute(id, false)
			w.run(engine.DefaultSweepInterval + 3*time.Second)
			w.settle()
			w.checkUp(y)
			w.checkResult()
		})
	}
}

// A device that falls silent at any moment of bring-up does not keep the rest
// from coming up, and gets its share when it speaks again.
func TestSilentDuringBringUp(t *testing.T) {
	for after := 20 * time.Microsecond; after < 360*time.Microsecond; after += 40 * time.Microsecond {
		for _, id := range []string{"red-1", "spine-2"} {
			t.Run(id+" after "+after.String(), func(t *testing.T) {
				t.Parallel()
				list := topology.Demo()
				y := halves(hosts(list))
				w := newWorld(t, setup{list: list, policy: y.policy()})
				w.fabric.At(after, func() { w.mute(id, true) })
				active := w.neverActiveWithoutKeys(y)
				w.settle()
				w.run(engine.DefaultSweepInterval + 3*time.Second)
				w.settle()
				w.checkRest(y, []string{id})
				if !mentions[event.SweepFault](w, "no answer") && !mentions[event.Failed](w, "no answer") {
					t.Errorf("nobody says that %s does not answer: %v", id, w.events)
				}
				if r := w.result(); id == "red-1" && mentions[event.Failed](w, "PKeyTable") && r.Proof.Verdict.Holds() {
					t.Errorf("verdict %v", r.Proof.Verdict)
				}
				if mentions[event.Drifted](w) {
					t.Errorf("drift was reported: %v", all[event.Drifted](w))
				}
				w.mute(id, false)
				w.run(engine.DefaultDriftPeriod + 2*engine.DefaultSweepInterval)
				w.settle()
				active()
				w.checkUp(y)
				w.checkResult()
			})
		}
	}
}

// neverActiveWithoutKeys watches that no link of a host goes Active before the
// host holds what the model gives it. The answer ends the watch.
func (w *world) neverActiveWithoutKeys(y tenancy) (end func()) {
	self := w.list.Nodes[0].Ports[1].GUID
	w.watch = func(a arrival) {
		var info smp.PortInfo
		if !isSet(a) || a.AttributeID != smp.AttrPortInfo || info.UnmarshalBinary(a.Data[:]) != nil || info.PortState != smp.PortActive {
			return
		}
		at := place{a.node, a.in}
		if w.agent(a.node).SwitchInfo() != nil {
			at, _ = w.peer(place{a.node, ib.PortNum(a.AttributeModifier)})
		}
		for _, e := range w.ends() {
			if e.place == at && !slices.Equal(valid(w.table(at)), y.keys(e.guid, self)) {
				w.t.Errorf("%s is brought to Active with keys %v, want %v", e.name, valid(w.table(at)), y.keys(e.guid, self))
			}
		}
	}
	return func() { w.watch = nil }
}

// The link of a host whose keys, or whose switch port's keys or enforcement,
// cannot be written is not brought to Active.
func TestLinkWithoutKeysStaysDown(t *testing.T) {
	for _, x := range []struct {
		name, deaf string
		attribute  mad.AttributeID
		setOnly    bool
		inactive   []string // hosts
	}{
		{"keys of the host", "red-1", smp.AttrPKeyTable, true, []string{"red-1"}},
		{"keys of the host cannot be read", "red-1", smp.AttrPKeyTable, false, []string{"red-1"}},
		{"keys of switch ports", "leaf-3", smp.AttrPKeyTable, true, []string{"storage-2", "red-3", "blue-1", "blue-5"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			list := topology.Demo()
			y := halves(hosts(list))
			w := newWorld(t, setup{list: list, policy: y.policy()})
			w.deaf(x.deaf, x.attribute, x.setOnly)
			w.settle()
			for _, n := range list.Nodes {
				if n.Type != ib.NodeCA {
					continue
				}
				want := smp.PortActive
				if slices.Contains(x.inactive, n.ID) {
					want = smp.PortArmed
				}
				for _, at := range []place{w.host(n.ID), w.switchPort(n.ID)} {
					if got := w.info(at).PortState; got != want {
						t.Errorf("%s: link is %v, want %v", n.ID, got, want)
					}
				}
			}
			r := w.result()
			if r.Proof.Verdict != isolation.Unknown || r.Failures == 0 || r.Inactive != 2*len(x.inactive) {
				t.Errorf("verdict %v, failures %d, inactive %d; want unknown, some, %d", r.Proof.Verdict, r.Failures, r.Inactive, 2*len(x.inactive))
			}
			if !mentions[event.Failed](w, "PKeyTable", "no answer") {
				t.Errorf("not reported: %v", w.events)
			}
			w.must(w.fabric.SetFault(w.node(x.deaf).GUID, fabric.Fault{}))
			w.run(engine.DefaultDriftPeriod + 2*engine.DefaultSweepInterval)
			w.settle()
			w.checkUp(y)
			w.checkResult()
		})
	}
}

// A host that falls silent after it was brought up, to keep what it has, keeps
// none of it when a policy takes it away: its switch port holds it to the new
// policy. Nothing opens before it.
func TestSilentHostIsHeldByItsSwitchPort(t *testing.T) {
	list := topology.Demo()
	y := halves(hosts(list))
	w := bringUp(t, setup{list: list, policy: y.policy()})
	guard := w.switchPort("red-1")
	before := w.isolating()
	w.mute("red-1", true)
	w.run(engine.DefaultDriftPeriod + 3*time.Second) // and is missed
	if !mentions[watch.LinksDown](w, "red-1", "gone") || !mentions[event.SweepFault](w, "leaf-1:2", "no answer") {
		t.Errorf("nobody says that red-1 has gone: %v", w.events)
	}
	if d := firstDifference(before, w.isolating()); d != "" {
		t.Errorf("silence has changed something: %s", d)
	}
	if v := w.result().Proof.Verdict; v != isolation.Unknown {
		t.Errorf("verdict %v, want unknown", v)
	}
	next := y.move(w.node("red-1").Ports[1].GUID, 0x10, 0x20)
	safety := w.watchSafety(y, next)
	w.change(next.policy())
	safety.look()
	w.watch = nil
	if got := valid(w.table(guard)); slices.Contains(got, ib.PKey(0x8010)) || !w.info(guard).PartitionEnforcementInbound || !w.info(guard).PartitionEnforcementOutbound {
		t.Errorf("the switch port before the silent host holds %v, enforcement %v %v", got,
			w.info(guard).PartitionEnforcementInbound, w.info(guard).PartitionEnforcementOutbound)
	}
	w.forget()
	w.run(2 * engine.DefaultDriftPeriod)
	if n := len(w.sets()); n != 0 {
		t.Errorf("%d Sets while nothing happens", n)
	}
	w.mute("red-1", false)
	w.run(engine.DefaultSweepInterval + 3*time.Second)
	w.settle()
	w.checkUp(next)
	w.checkResult()
}

// While nothing takes a partition from a device that has fallen silent, nobody
// else is given it: neither in the pass in which that is noticed nor in later
// ones. When the device is gone for good, or speaks again, it is given out.
func TestWithheldFromOthers(t *testing.T) {
	unguarded := func(n *topology.Node, c *sma.Config) {
		if c.Switch != nil {
			c.Switch.PartitionEnforcementCap = 0
		}
	}
	moments := need.Share(2, 8) // a host that is asked again every second is being asked at some of them
	for _, x := range []struct {
		name    string
		silent  string // falls silent
		keys    bool   // only when it is asked about its P_Key table
		noticed bool   // before the policy changes
		profile func(*topology.Node, *sma.Config)
	}{
		{"host, while the policy changes", "red-1", false, false, unguarded},
		{"host, noticed before", "red-1", false, true, unguarded},
		{"host that hides its keys, noticed before", "red-1", true, true, unguarded},
		{"host and its switch, noticed before", "leaf-1", false, true, unguarded},
		{"switch of a guarded host, noticed before", "leaf-1", false, true, nil},
	} {
		for moment := range 2 * moments {
			end := []string{"speaks again", "goes"}[moment%2]
			after := time.Duration(moment/2) * 2 * time.Second / time.Duration(moments)
			if !x.noticed && after > 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s/%v", x.name, end, after), func(t *testing.T) {
				list := topology.Demo()
				red, blue := guidOf(list, "red-1"), guidOf(list, "blue-2")
				old := tenancy{tenants: []tenant{{base: 0x10, full: []ib.PortGUID{red}}, {base: 0x20, full: []ib.PortGUID{blue}}}}
				next := tenancy{tenants: []tenant{{base: 0x10, full: []ib.PortGUID{blue}}, {base: 0x20, full: []ib.PortGUID{red, blue}}}}
				s := setup{list: list, at: "blue-6", policy: old.policy()}
				s.fabric.Profile = x.profile
				w := bringUp(t, s)
				if w.mute(x.silent, true); x.keys {
					w.deaf(x.silent, smp.AttrPKeyTable, false)
				}
				if x.noticed {
					w.run(engine.DefaultDriftPeriod + 5*time.Second + after)
				}
				safety := w.watchSafety(old, next)
				w.change(next.policy())
				withheld := func(when string) {
					t.Helper()
					if got := holds(w.table(w.host("blue-2")), 0x10); got != outsider {
						t.Errorf("%s: the partition was given out", when)
					}
				}
				withheld("at once")
				w.run(3 * engine.DefaultDriftPeriod)
				withheld("later")
				if end == "goes" {
					w.must(w.fabric.PowerOff(w.node(x.silent).GUID))
				} else {
					w.mute(x.silent, false)
				}
				w.run(engine.DefaultDriftPeriod + 2*engine.DefaultSweepInterval)
				w.settle()
				safety.look()
				w.watch = nil
				if end == "goes" {
					gone := []string{x.silent}
					if x.silent == "leaf-1" {
						gone = append(gone, "mgmt-1", "red-1", "red-5", "blue-3")
					}
					w.checkRest(next, gone)
				} else {
					w.checkUp(next)
				}
			})
		}
	}
}

// The wait for an answer contains what the agent says it may take (PortInfo
// RespTimeValue): one that is as slow as it says is managed like the others.
func TestSlowAgents(t *testing.T) {
	for _, x := range []struct {
		name    string
		respond ib.TimeValue
		late    time.Duration
		reached bool
	}{
		{"PI-114 a quarter of a second, as usual", 16, 250 * time.Millisecond, true},
		{"PI-114 a second", 18, time.Second, true},
		{"PI-114 later than it says", 14, time.Second, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			list := topology.Demo()
			y := halves(hosts(list))
			s := setup{list: list, policy: y.policy()}
			s.fabric.Profile = func(n *topology.Node, c *sma.Config) {
				for i := range c.Ports {
					c.Ports[i].RespTimeValue = x.respond
				}
			}
			w := bringUp(t, s)
			w.must(w.fabric.SetFault(w.host("red-1").node, fabric.Fault{Late: x.late}))
			w.forget()
			next := y.move(guidOf(list, "red-1"), 0x10, 0x20)
			w.change(next.policy())
			if w.result().Reached() != x.reached {
				t.Errorf("%d failures: %v", w.result().Failures, all[event.Failed](w))
			}
			if x.reached {
				w.checkKeys(next)
			}
		})
	}
	t.Run("PI-114 from the first question on", func(t *testing.T) {
		list := topology.Demo()
		y := halves(hosts(list))
		w := newWorld(t, setup{list: list, policy: y.policy()})
		w.must(w.fabric.SetFault(w.host("red-1").node, fabric.Fault{Late: 250 * time.Millisecond}))
		w.settle()
		w.checkUp(y)
	})
}
