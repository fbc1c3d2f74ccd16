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
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// held is a manager that learns the cables of its subnet and holds to them.
func held() engine.Config { return engine.Config{Profile: protect.Tenant, LearnCables: true} }

// knowing is one that was given the list of a topology.
func knowing(l *topology.Netlist) engine.Config {
	return engine.Config{Profile: protect.Tenant, Cables: cables.Of(l)}
}

// checkFenced: behind this switch port nobody is let in, it is named, and nobody
// is among the nodes who is not listed.
func (w *world) checkFenced(at place, says string) {
	w.t.Helper()
	info := w.info(at)
	if got := valid(w.table(at)); len(got) != 0 || !info.PartitionEnforcementInbound || !info.PartitionEnforcementOutbound {
		w.t.Errorf("%v holds %v, checks %v and %v, want a port that lets nothing pass", at, got, info.PartitionEnforcementInbound, info.PartitionEnforcementOutbound)
	}
	fences := w.result().Fences
	i := slices.IndexFunc(fences, func(f facts.Fence) bool { return f.At == smPlace(at) })
	if i < 0 || !strings.Contains(fences[i].Reason, says) {
		w.t.Errorf("%v is not fenced for %q: %+v", at, says, fences)
	}
	for _, n := range w.engine.Fabric().Nodes {
		if p := n.Port(at.num); n.GUID() == at.node && p.Peer != nil {
			w.t.Errorf("%v is taken to lead to %s", at, p.Peer)
		}
	}
}

// A fabric that learns its cables comes up as any other, and again from the list,
// without a word about them.
func TestLearnedBringUp(t *testing.T) {
	need.Long(t, "seconds of processor time")
	for _, spec := range topologies() {
		t.Run(spec, func(t *testing.T) {
			list := generate(t, spec)
			y := halves(hosts(list))
			w := bringUp(t, setup{list: list, policy: y.policy(), manager: held()})
			w.checkUp(y)
			learned := all[event.Learned](w)
			if len(learned) != 1 || len(learned[0].Left) != 0 || learned[0].List.Cables() != len(list.Links()) {
				t.Fatalf("learned %v of %d cables", learned, len(list.Links()))
			}
			for i, h := range w.events {
				if _, ok := h.Event.(event.Learned); ok {
					for _, later := range w.events[:i] {
						if _, wrote := later.Event.(event.Completed); wrote {
							t.Error("a pass was completed before the list was there to be kept")
						}
					}
				}
			}
			w.manager.LearnCables, w.manager.Cables = false, learned[0].List
			w.restart(y.policy())
			w.calm()
			w.checkUp(y)
			if r := w.result(); len(r.Fences) != 0 || len(all[event.Learned](w)) != 0 || len(all[event.SweepFault](w)) != 0 {
				t.Errorf("with the list: fences %v, complaints %v", r.Fences, all[event.SweepFault](w))
			}
		})
	}
}

// Nothing is written before the list has been told.
func TestLearnedBeforeAnySet(t *testing.T) {
	list := topology.Demo()
	w := newWorld(t, setup{list: list, policy: halves(hosts(list)).policy(), manager: held()})
	first := time.Duration(-1)
	w.watch = func(a arrival) {
		if first < 0 && isSet(a) {
			first = a.at
		}
	}
	w.settle()
	at := time.Duration(-1)
	for _, h := range w.events {
		if _, ok := h.Event.(event.Learned); ok {
			at = h.at
		}
	}
	if at < 0 || first < at {
		t.Errorf("first Set at %v, learned at %v", first, at)
	}
}

// A real switch in the place of a host, with hosts of its own behind it: fenced,
// and nobody behind it is let in. Without a list the guard goes off and all of it
// is part of the fabric: the control.
func TestHostIsSwitch(t *testing.T) {
	for _, listed := range []bool{true, false} {
		t.Run(fmt.Sprint("listed ", listed), func(t *testing.T) {
			honest, list := topology.Demo(), topology.Demo()
			y := halves(hosts(honest))
			rogue := topology.NewNode(ib.NodeSwitch, "rogue", 0xbad0, 8)
			replace(list, "red-1", rogue, 1)
			behind := topology.NewNode(ib.NodeCA, "behind", 0xbad8, 1)
			behind.Ports[1].GUID = guidOf(honest, "red-1") // the host that was there, now behind it
			list.Nodes = append(list.Nodes, behind)
			if err := topology.Connect(rogue, 2, behind, 1); err != nil {
				t.Fatal(err)
			}
			s := setup{list: list, policy: y.policy()}
			if listed {
				s.manager = knowing(honest)
			}
			w := bringUp(t, s)
			w.calm()
			at, _ := w.peer(place{rogue.GUID, 1})
			info := w.info(at)
			if !listed {
				if info.PartitionEnforcementInbound || info.PortState != smp.PortActive || w.engine.Fabric().Node(rogue.GUID) == nil {
					t.Errorf("control: the attack does not work: enforcing %v, %v", info.PartitionEnforcementInbound, info.PortState)
				}
				return
			}
			w.checkFenced(at, "expected red-1 HCA-1")
			if info.PortState != smp.PortInit {
				t.Errorf("its link is %v", info.PortState)
			}
			for _, guid := range []ib.NodeGUID{rogue.GUID, behind.GUID} {
				if w.engine.Fabric().Node(guid) != nil {
					t.Errorf("%v was let in", guid)
				}
			}
			w.checkRest(y, []string{"rogue", "behind"})
			if !w.result().Reached() {
				t.Errorf("not reached: %v", all[event.Failed](w))
			}
		})
	}
}

// transit counts the switch ports of the honest fabric to a place, by which
// forwarding tables lead to somebody else.
func (w *world) transit(to map[place]ib.PortGUID) (n int) {
	for _, x := range w.list.Nodes {
		s := w.agent(x.GUID).SwitchInfo()
		if s == nil {
			continue
		}
		for _, e := range w.ends() {
			lid := w.info(e.place).LID
			out := w.engine.Fabric().Node(x.GUID)
			if out == nil || int(lid) >= len(out.Switch.LFT) {
				continue
			}
			at := place{x.GUID, out.Switch.LFT[lid]}
			if owner, watched := to[at]; watched && owner != e.guid {
				n++
			}
		}
	}
	return n
}

// Four devices that pose as one spine, each where a host was: no forwarding table
// leads through them. Without a list some do: the control.
func TestPosingSpine(t *testing.T) {
	for _, listed := range []bool{true, false} {
		t.Run(fmt.Sprint("listed ", listed), func(t *testing.T) {
			honest, list := topology.Demo(), topology.Demo()
			y := halves(hosts(honest))
			spine := topology.NewNode(ib.NodeSwitch, "poser", 0xbad0, 8)
			ids := []string{"red-1", "red-2", "red-3", "red-4"} // of four leafs
			for i, id := range ids {
				replace(list, id, spine, ib.PortNum(i+1))
			}
			s := setup{list: list, policy: y.policy()}
			if listed {
				s.manager = knowing(honest)
			}
			w := bringUp(t, s)
			w.calm()
			posing := map[place]ib.PortGUID{}
			for i := range ids {
				at, _ := w.peer(place{spine.GUID, ib.PortNum(i + 1)})
				posing[at] = spine.Ports[0].GUID
			}
			n := w.transit(posing)
			if !listed {
				if n == 0 {
					t.Error("control: nothing leads through the posers")
				}
				return
			}
			if n != 0 {
				t.Errorf("%d routes lead through the posers", n)
			}
			for at := range posing {
				w.checkFenced(at, "not on the cable list")
			}
			w.checkRest(y, []string{"poser"})
		})
	}
}

// switchLie makes a host answer NodeInfo as a switch, and SwitchInfo as one too.
func switchLie(guid ib.NodeGUID, num ib.PortNum) func(*mad.SMP) {
	return func(p *mad.SMP) {
		switch p.AttributeID {
		case smp.AttrNodeInfo:
			var info smp.NodeInfo
			if info.UnmarshalBinary(p.Data[:]) == nil {
				info.NodeType, info.NodeGUID, info.PortGUID, info.NumPorts, info.LocalPortNum = ib.NodeSwitch, guid, ib.PortGUID(guid), 4, num
				_ = info.Encode(&p.Data)
			}
		case smp.AttrSwitchInfo:
			p.Status = 0
			_ = (&smp.SwitchInfo{LinearFDBCap: 1024, PartitionEnforcementCap: 32, InboundEnforcementCap: true, OutboundEnforcementCap: true}).Encode(&p.Data)
		}
	}
}

// Hosts that pose as switches from the very first sweep are not learned: one by
// itself has nobody behind it, and four that pose as one spine do not lead from one
// to another.
func TestPosersAreNotLearned(t *testing.T) {
	for _, ids := range [][]string{{"red-1"}, {"red-1", "red-2", "red-3", "red-4"}} {
		t.Run(fmt.Sprint(len(ids)), func(t *testing.T) {
			list := topology.Demo()
			y := halves(hosts(list))
			s := setup{list: list, policy: y.policy(), manager: held()}
			by := map[ib.NodeGUID]func(*mad.SMP){}
			for i, id := range ids {
				by[nodeOf(list, id).GUID] = switchLie(0xbad0, ib.PortNum(i+1))
			}
			x := lying(&s, by)
			w := newWorld(t, s)
			x.seat(w)
			w.settle()
			w.calm()
			if _, ok := w.engine.Cables().Device(0xbad0); ok {
				t.Error("the poser is on the list")
			}
			for _, id := range ids {
				w.checkFenced(w.switchPort(id), "not on the cable list")
			}
			w.checkRest(y, ids)
			// A person who knows what should be there accepts it once they are honest.
			clear(by)
			w.engine.SetCables(cables.Of(list))
			w.run(3 * engine.DefaultSweepInterval)
			w.settle()
			w.checkUp(y)
			if r := w.result(); len(r.Fences) != 0 || len(all[event.Unfenced](w)) != len(ids) {
				t.Errorf("still fenced: %v", r.Fences)
			}
		})
	}
}

// The GUID of a host that is switched off, claimed elsewhere: who claims it gets
// nothing, and the owner finds all as it was when it comes back, also while the
// claim stands. Without a list the impostor gets the keys: the control.
func TestGUIDOfAbsentHost(t *testing.T) {
	for _, listed := range []bool{true, false} {
		t.Run(fmt.Sprint("listed ", listed), func(t *testing.T) {
			list := topology.Demo()
			y := halves(hosts(list))
			s := setup{list: list, policy: y.policy()}
			if listed {
				s.manager = held()
			}
			victim, liar := nodeOf(list, "blue-6"), nodeOf(list, "red-1")
			by := map[ib.NodeGUID]func(*mad.SMP){}
			x := lying(&s, by)
			w := newWorld(t, s)
			x.seat(w)
			w.settle()
			at, off := w.switchPort("red-1"), w.switchPort("blue-6")
			w.must(w.fabric.Unlink(off.node, off.num))
			by[liar.GUID] = func(p *mad.SMP) {
				var info smp.NodeInfo
				if p.AttributeID == smp.AttrNodeInfo && info.UnmarshalBinary(p.Data[:]) == nil {
					info.NodeGUID, info.PortGUID = victim.GUID, victim.Ports[1].GUID
					_ = info.Encode(&p.Data)
				}
			}
			w.must(w.fabric.Flap(liar.GUID, 1, 0))
			w.calm()
			if !listed {
				if holds(w.table(at), 0x20) != full {
					t.Errorf("control: the guard of the impostor holds %v", valid(w.table(at)))
				}
				return
			}
			w.checkFenced(at, "expected red-1 HCA-1")
			w.must(w.fabric.Link(off.node, off.num, victim.GUID, 1))
			w.calm()
			w.checkFenced(at, "expected red-1 HCA-1")
			w.checkRest(y, []string{"red-1"})
			if w.engine.Fabric().Node(victim.GUID).Contested {
				t.Error("the owner is contested")
			}
			clear(by)
			w.calm()
			w.checkUp(y)
			if r := w.result(); len(r.Fences) != 0 || !r.Reached() {
				t.Errorf("honest again: %+v", r.Fences)
			}
		})
	}
}

// byName is a policy that goes by descriptions, where it says that it trusts them.
func byName() *policy.Policy {
	p := &policy.Policy{Default: policy.Limited, TrustDescriptions: true}
	for i, name := range []string{"red", "blue"} {
		p.Partitions = append(p.Partitions, policy.Partition{Name: name, PKey: ib.PKeyBase(0x10 * (i + 1)), Members: []policy.Member{
			{Selector: policy.Selector{Kind: policy.SelectPattern, Text: name + "-*"}, Membership: policy.Full},
		}})
	}
	return p
}

// A host that calls itself otherwise is reported and stays in its partition.
// Without a list it gets into the other: the control.
func TestDescriptionOfAnother(t *testing.T) {
	for _, listed := range []bool{true, false} {
		t.Run(fmt.Sprint("listed ", listed), func(t *testing.T) {
			list := topology.Demo()
			s := setup{list: list, policy: byName()}
			if listed {
				s.manager = held()
			}
			w := bringUp(t, s)
			before := valid(w.table(w.host("red-1")))
			if _, err := w.agent(w.node("red-1").GUID).SetDescription(w.fabric.Now(), "blue-7 HCA-1"); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				w.visit("red-1", func(s *stranger) { s.localChange() })
				w.calm()
			}
			for _, at := range []place{w.host("red-1"), w.switchPort("red-1")} {
				if got := holds(w.table(at), 0x20); (got == outsider) != listed {
					t.Errorf("%v holds %v", at, valid(w.table(at)))
				}
			}
			if !listed {
				return
			}
			if got := valid(w.table(w.host("red-1"))); !slices.Equal(got, before) {
				t.Errorf("it holds %v, before %v", got, before)
			}
			said := slices.DeleteFunc(all[event.Warned](w), func(e event.Warned) bool { return !strings.Contains(e.Text, "blue-7 HCA-1") })
			if len(said) != 1 {
				t.Errorf("reported %v, want once", said)
			}
		})
	}
}

// Cables that are moved while the manager runs: both ends are fenced, the rest
// goes on, and what was put back works as before. A new host at a free port waits
// to be accepted.
func TestCablesMovedLive(t *testing.T) {
	list := topology.Demo()
	free := topology.NewNode(ib.NodeCA, "new", 0xeee0, 1)
	y := halves(hosts(list))
	list.Nodes = append(list.Nodes, free)
	w := bringUp(t, setup{list: list, policy: y.policy(), manager: held()})
	red, blue := w.switchPort("red-1"), w.switchPort("blue-6")
	w.must(w.fabric.Swap(red.node, red.num, blue.node, blue.num))
	w.calm()
	w.checkFenced(red, "expected red-1 HCA-1")
	w.checkFenced(blue, "expected blue-6 HCA-1")
	w.checkRest(y, []string{"red-1", "blue-6", "new"})
	if !w.result().Reached() {
		t.Errorf("not reached: %v", all[event.Failed](w))
	}
	w.must(w.fabric.Swap(red.node, red.num, blue.node, blue.num))
	w.calm()
	w.checkRest(y, []string{"new"})
	if r := w.result(); len(r.Fences) != 0 {
		t.Errorf("still fenced: %v", r.Fences)
	}
	w.must(w.fabric.Unlink(red.node, red.num))
	w.must(w.fabric.Link(red.node, red.num, free.GUID, 1))
	w.calm()
	w.checkFenced(red, "expected red-1 HCA-1")
	if !mentions[event.Fenced](w, "topology accept") {
		t.Errorf("nobody says how to accept it: %v", all[event.Fenced](w))
	}
	// As `ibwarden topology accept` does: read, take over, tell the manager.
	next := cables.Of(func() *topology.Netlist {
		l := topology.Demo()
		replace(l, "red-1", topology.NewNode(ib.NodeCA, "new", 0xeee0, 1), 1)
		return l
	}())
	w.engine.SetCables(next)
	w.run(2 * time.Second)
	w.settle()
	if r := w.result(); len(r.Fences) != 0 || w.engine.Fabric().Node(free.GUID) == nil || w.info(red).PortState != smp.PortActive {
		t.Errorf("accepted: fences %v, link %v", r.Fences, w.info(red).PortState)
	}
}

// A cable between switches that is down is nothing to complain about, one that
// leads elsewhere is: neither end carries data.
func TestTrunkMoved(t *testing.T) {
	list := topology.Demo()
	y := halves(hosts(list))
	w := bringUp(t, setup{list: list, policy: y.policy(), manager: held()})
	a, b := place{nodeOf(list, "leaf-1").GUID, 5}, place{nodeOf(list, "leaf-2").GUID, 5}
	farA, _ := w.peer(a)
	w.must(w.fabric.Unlink(a.node, a.num))
	w.calm()
	if r := w.result(); len(r.Fences) != 0 || !r.Reached() {
		t.Errorf("a cable that is down: %+v", r.Fences)
	}
	w.must(w.fabric.Link(a.node, a.num, farA.node, farA.num))
	w.calm()
	w.checkUp(y)
	farB, _ := w.peer(b)
	w.must(w.fabric.Swap(a.node, a.num, b.node, b.num))
	w.calm()
	for _, at := range []place{a, b, farA, farB} {
		w.checkFenced(at, "not on the cable list")
	}
}

// Behind a fenced port that is shut nobody has a say in what others get: a policy
// that gives partitions again is carried out, at the ports that it concerns only.
func TestFencedWithholdsNothing(t *testing.T) {
	list := topology.Demo()
	y := halves(hosts(list))
	s := setup{list: list, policy: y.policy(), manager: held()}
	by := map[ib.NodeGUID]func(*mad.SMP){}
	x := lying(&s, by)
	w := newWorld(t, s)
	x.seat(w)
	w.settle()
	by[nodeOf(list, "red-1").GUID] = switchLie(0xbad0, 1) // with a link that is Active, and keys
	w.run(engine.DefaultDriftPeriod)                      // nobody tells of it
	w.calm()
	w.checkFenced(w.switchPort("red-1"), "not on the cable list")
	for i := range 3 {
		y = y.move(guidOf(list, "blue-1"), ib.PKeyBase(0x20-0x10*(i%2)), ib.PKeyBase(0x10+0x10*(i%2)))
		w.change(y.policy())
		w.checkRest(y, []string{"red-1"})
		if r := w.result(); !r.Reached() || i > 0 && r.Compiled > 2 {
			t.Errorf("move %d: reached %v, %d ports compiled", i, r.Reached(), r.Compiled)
		}
	}
}

// A host that claims to be a switch, and is found before it, does not keep that from
// being learned: the switch leads on, and the host does not.
func TestGUIDOfSwitchAtLearning(t *testing.T) {
	for _, victim := range []string{"leaf-1", "leaf-3", "spine-1"} {
		for _, as := range []ib.NodeType{ib.NodeCA, ib.NodeSwitch} {
			t.Run(fmt.Sprint(victim, " by a ", as), func(t *testing.T) {
				list := topology.Demo()
				y := halves(hosts(list))
				s := setup{list: list, policy: y.policy(), manager: held()}
				guid := nodeOf(list, victim).GUID
				x := lying(&s, map[ib.NodeGUID]func(*mad.SMP){nodeOf(list, "red-1").GUID: func(p *mad.SMP) {
					var info smp.NodeInfo
					switch {
					case p.AttributeID == smp.AttrNodeInfo && info.UnmarshalBinary(p.Data[:]) == nil:
						info.NodeType, info.NodeGUID, info.PortGUID = as, guid, ib.PortGUID(guid)
						if as == ib.NodeSwitch {
							info.NumPorts, info.LocalPortNum = 8, 8
						}
						_ = info.Encode(&p.Data)
					case p.AttributeID == smp.AttrSwitchInfo:
						switchLie(guid, 8)(p)
					}
				}})
				w := newWorld(t, s)
				x.seat(w)
				w.settle()
				w.calm()
				if d, ok := w.engine.Cables().Device(guid); !ok || d.Type != ib.NodeSwitch {
					t.Fatalf("%s is not learned: %v", victim, all[event.Learned](w))
				}
				w.checkFenced(w.switchPort("red-1"), "not on the cable list")
				w.checkRest(y, []string{"red-1"})
			})
		}
	}
}

// Nothing is learned, and nothing written, while the manager's own cable raises a
// doubt; when it does not any more all comes up.
func TestOwnCableContradicted(t *testing.T) {
	list := topology.Demo()
	y := halves(hosts(list))
	s := setup{list: list, policy: y.policy(), manager: held()}
	caps := uint16(0)
	by := map[ib.NodeGUID]func(*mad.SMP){nodeOf(list, "leaf-1").GUID: func(p *mad.SMP) {
		var info smp.NodeInfo
		if p.AttributeID == smp.AttrNodeInfo && info.UnmarshalBinary(p.Data[:]) == nil {
			caps++
			info.PartitionCap = caps
			_ = info.Encode(&p.Data)
		}
	}}
	x := lying(&s, by)
	w := newWorld(t, s)
	x.seat(w)
	w.settle()
	if len(all[event.Learned](w)) != 0 || !mentions[event.Refused](w, "own cable is contradicted") || len(w.sets()) != 0 {
		t.Errorf("learned %v, refused %v, %d Sets", all[event.Learned](w), all[event.Refused](w), len(w.sets()))
	}
	w.run(engine.DefaultSweepInterval)
	clear(by)
	w.run(engine.DefaultDriftPeriod + engine.DefaultSweepInterval)
	w.settle()
	w.checkUp(y)
	if len(all[event.Learned](w)) != 1 {
		t.Errorf("learned %v", all[event.Learned](w))
	}
}
