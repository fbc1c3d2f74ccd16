package simtest

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// lie makes a device answer NodeInfo otherwise than it is.
func lie(guid ib.NodeGUID, change func(*smp.NodeInfo)) func(time.Duration, *[mad.Size]byte) bool {
	return func(_ time.Duration, m *[mad.Size]byte) bool {
		var p mad.SMP
		var info smp.NodeInfo
		if p.UnmarshalBinary(m[:]) == nil && p.Method == mad.MethodGetResp && p.AttributeID == smp.AttrNodeInfo &&
			info.UnmarshalBinary(p.Data[:]) == nil && info.NodeGUID == guid {
			change(&info)
			if info.Encode(&p.Data) == nil && p.Encode(m) != nil {
				return true
			}
		}
		return false
	}
}

// Devices whose NodeInfo makes no sense, or is that of another device, are
// reported and left out; the rest comes up, their links stay down, and the
// manager comes to rest. When they tell the truth they come up too.
func TestStrangeNodeInfo(t *testing.T) {
	demo := topology.Demo()
	id := func(name string) ib.NodeGUID {
		return demo.Nodes[slices.IndexFunc(demo.Nodes, func(n *topology.Node) bool { return n.ID == name })].GUID
	}
	r := rand.New(rand.NewPCG(7, 7))
	for _, x := range []struct {
		name   string
		change func(*smp.NodeInfo)
		says   string
		// contested is who is no longer told from the liar, which is red-1 where
		// nothing else stands.
		contested, liar string
	}{
		{name: "NI-12 type 0", change: func(i *smp.NodeInfo) { i.NodeType = 0 }, says: "node type 0"},
		{name: "NI-12 type 4", change: func(i *smp.NodeInfo) { i.NodeType = 4 }, says: "node type 4"},
		{name: "NI-12 type 255", change: func(i *smp.NodeInfo) { i.NodeType = 255 }, says: "node type 255"},
		{name: "no ports", change: func(i *smp.NodeInfo) { i.NumPorts = 0 }, says: "0 ports"},
		{name: "255 ports", change: func(i *smp.NodeInfo) { i.NumPorts = 255 }, says: "255 ports"},
		{name: "port out of range", change: func(i *smp.NodeInfo) { i.LocalPortNum = 2 }, says: "LocalPortNum 2"},
		{name: "port 0", change: func(i *smp.NodeInfo) { i.LocalPortNum = 0 }, says: "LocalPortNum 0"},
		{name: "a CA that says it is a switch", change: func(i *smp.NodeInfo) { i.NodeType, i.NumPorts = ib.NodeSwitch, 200 }, says: "SwitchInfo"},
		{name: "GUID of the manager's node", change: func(i *smp.NodeInfo) { i.NodeGUID = id("mgmt-1") }, says: "second device"},
		{name: "GUID of a host found later", change: func(i *smp.NodeInfo) { i.NodeGUID = id("blue-6") }, says: "second device", contested: "blue-6"},
		{name: "GUID of a host found before", change: func(i *smp.NodeInfo) { i.NodeGUID = id("red-1") }, says: "second device", contested: "red-1", liar: "blue-6"},
		{name: "GUID of another host, other ports", change: func(i *smp.NodeInfo) { i.NodeGUID, i.NumPorts = id("blue-6"), 2 }, says: "different device", contested: "blue-6"},
		{name: "GUID of a switch", change: func(i *smp.NodeInfo) { i.NodeGUID = id("spine-1") }, says: "different device", contested: "spine-1"},
		{name: "another GUID each time", change: func(i *smp.NodeInfo) { i.NodeGUID = ib.NodeGUID(r.Uint64()) }},
		{name: "anything each time", change: func(i *smp.NodeInfo) {
			i.NodeType, i.NumPorts = ib.NodeType(r.IntN(5)), uint8(r.IntN(256))
			i.NodeGUID, i.LocalPortNum = ib.NodeGUID(r.Uint64()), ib.PortNum(r.IntN(4))
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			list := topology.Demo()
			y := halves(hosts(list))
			liar := cmp.Or(x.liar, "red-1")
			without := []string{liar}
			s := setup{list: list, policy: y.policy()}
			lies := true
			tell := lie(id(liar), x.change)
			s.fabric.Drop = func(now time.Duration, m *[mad.Size]byte) bool { return lies && tell(now, m) }
			w := bringUp(t, s)
			if x.says != "" && !mentions[event.SweepFault](w, x.says) {
				t.Errorf("nobody says %q: %v", x.says, all[event.SweepFault](w))
			}
			if x.contested != "" {
				without = append(without, x.contested)
			} else if x.says != "" && w.info(w.switchPort(liar)).PortState == smp.PortActive {
				t.Error("its link is Active")
			}
			for _, id := range without {
				if x.contested != "" && w.node(id).Type == ib.NodeCA && len(valid(w.table(w.host(id)))) > 1 {
					t.Errorf("%s holds %v", id, valid(w.table(w.host(id))))
				}
			}
			w.checkRest(y, without)
			w.forget()
			w.run(2 * engine.DefaultDriftPeriod)
			if n := len(all[event.Completed](w)); n > int(2*engine.DefaultDriftPeriod/engine.DefaultSweepInterval)+1 {
				t.Errorf("%d passes in %v", n, 2*engine.DefaultDriftPeriod)
			}
			w.checkRest(y, without)
			lies = false
			w.run(engine.DefaultDriftPeriod + 3*time.Second)
			w.settle()
			w.checkUp(halves(hosts(list)))
			w.checkResult()
		})
	}
}

// A device that takes the GUID of another after the fabric came up takes
// nothing from it but its partitions, and its own switch port lets nothing new
// pass.
func TestHostTakesGUIDOfAnother(t *testing.T) {
	list := topology.Demo()
	y := halves(hosts(list))
	lying := false
	s := setup{list: list, policy: y.policy()}
	victim := list.Nodes[slices.IndexFunc(list.Nodes, func(n *topology.Node) bool { return n.ID == "blue-6" })]
	liar := list.Nodes[slices.IndexFunc(list.Nodes, func(n *topology.Node) bool { return n.ID == "red-1" })]
	tell := lie(liar.GUID, func(i *smp.NodeInfo) { i.NodeGUID, i.PortGUID = victim.GUID, victim.Ports[1].GUID })
	s.fabric.Drop = func(now time.Duration, m *[mad.Size]byte) bool { return lying && tell(now, m) }
	w := bringUp(t, s)
	lying = true
	safety := w.watchSafety(y, y)
	w.stranger("red-1").localChange()
	w.run(10 * time.Second)
	safety.look()
	w.watch = nil
	for _, id := range []string{"red-1", "blue-6"} {
		if at := w.switchPort(id); !w.info(at).PartitionEnforcementInbound || !w.info(at).PartitionEnforcementOutbound {
			t.Errorf("the switch port before %s checks no more", id)
		}
	}
	if !mentions[event.SweepFault](w, "second device") {
		t.Errorf("not reported: %v", all[event.SweepFault](w))
	}
	lying = false
	w.run(engine.DefaultDriftPeriod + 3*time.Second)
	w.checkUp(y)
	w.checkResult()
}

// Two ports that claim one GUID are reported, and neither is in any partition
// but the default one; nothing is written again and again for it. A PortGUID
// that equals its NodeGUID is nothing special.
func TestPortGUIDs(t *testing.T) {
	list := topology.Demo()
	victim := guidOf(list, "blue-6")
	y := halves(hosts(list))
	twice := func(n *topology.Node, c *sma.Config) {
		if n.ID == "red-1" || n.ID == "red-2" {
			c.Ports[0].GUID = victim
		}
	}
	t.Run("NI-17 three ports, one GUID", func(t *testing.T) {
		s := setup{list: list, policy: y.policy()}
		s.fabric.Profile = twice
		w := bringUp(t, s)
		w.calm()
		for _, id := range []string{"red-1", "red-2", "blue-6"} {
			if got := valid(w.table(w.host(id))); !slices.Equal(got, []ib.PKey{ib.PKeyDefaultLimited}) {
				t.Errorf("%s holds %v, want the default key", id, got)
			}
			if !mentions[event.SweepFault](w, id, "claimed by two ports") {
				t.Errorf("not reported of %s: %v", id, all[event.SweepFault](w))
			}
		}
		w.checkLinks()
		w.checkAddresses()
		before := w.dump()
		for range 3 {
			w.visit("storage-1", func(s *stranger) { s.localChange() })
			w.forget()
			w.run(3 * time.Second)
			if n := len(w.sets()); n != 0 {
				t.Errorf("%d Sets in another pass", n)
			}
		}
		w.restart(y.policy())
		w.settle()
		if d := firstDifference(before, w.dump()); d != "" {
			t.Errorf("another manager made it otherwise: %s", d)
		}
	})
	t.Run("NI-17 equal to NodeGUID", func(t *testing.T) {
		list := topology.Demo()
		for _, n := range list.Nodes {
			if n.Type == ib.NodeCA {
				n.Ports[1].GUID = ib.PortGUID(n.GUID)
			}
		}
		y := halves(hosts(list))
		w := bringUp(t, setup{list: list, policy: y.policy()})
		w.checkUp(y)
		w.checkResult()
		if met := all[event.SweepFault](w); len(met) != 0 {
			t.Errorf("complaints: %v", met)
		}
	})
}

// A port that reports a P_Key table of no entries is flagged, given none, and
// does not stop the others.
func TestPartitionCapZero(t *testing.T) {
	list := topology.Demo()
	y := halves(hosts(list)).move(guidOf(list, "red-1"), 0x10, 0)
	guid := list.Nodes[slices.IndexFunc(list.Nodes, func(n *topology.Node) bool { return n.ID == "red-1" })].GUID
	t.Run("NI-22", func(t *testing.T) {
		s := setup{list: list, policy: y.policy()}
		s.fabric.Drop = lie(guid, func(i *smp.NodeInfo) { i.PartitionCap = 0 })
		w := bringUp(t, s)
		if !mentions[event.SweepFault](w, "red-1", "PartitionCap is 0") {
			t.Errorf("not flagged: %v", all[event.SweepFault](w))
		}
		for _, a := range append(w.sets(smp.AttrPKeyTable), w.packets(mad.MethodGet, smp.AttrPKeyTable)...) {
			if a.node == guid {
				t.Errorf("%v(P_KeyTable) to a port without one", a.Method)
			}
		}
		w.checkRest(y, []string{"red-1"})
	})
}

// Cables that are exchanged at any moment of a bring-up, or of a later sweep:
// the fabric ends as it should, everybody with their own keys.
func TestRecabledDuringSweep(t *testing.T) {
	for after := 5 * time.Microsecond; after < 400*time.Microsecond; after += 25 * time.Microsecond {
		for _, running := range []bool{false, true} {
			name := "bring-up "
			if running {
				name = "later sweep "
			}
			t.Run(name+after.String(), func(t *testing.T) {
				t.Parallel()
				list := topology.Demo()
				y := halves(hosts(list))
				w := newWorld(t, setup{list: list, policy: y.policy()})
				if running {
					w.settle()
					w.run(2 * time.Second)
					w.stranger("blue-1").localChange()
				}
				w.fabric.At(w.fabric.Now()+after, func() {
					w.must(w.swap("red-1", "blue-6"))
					w.must(w.swap("storage-1", "red-5"))
				})
				w.run(engine.DefaultDriftPeriod + engine.DefaultSweepInterval)
				w.settle()
				w.checkUp(y)
				if v := w.result(); !v.Reached() || !v.Proof.Verdict.Holds() {
					t.Errorf("reached %v, verdict %v", v.Reached(), v.Proof.Verdict)
				}
			})
		}
	}
}

// What comes out of order, from nowhere or broken changes nothing: the manager
// takes it in, at rest and in the middle of a sweep, and the fabric ends as it
// should.
func FuzzReceive(f *testing.F) {
	add := func(class mad.Class, m mad.Method, a mad.AttributeID, modifier uint32, at uint16) {
		p := mad.SMP{BaseVersion: 1, ClassVersion: 1, Class: class, Method: m, AttributeID: a, AttributeModifier: modifier, TransactionID: 77,
			DrSLID: ib.LIDPermissive, DrDLID: ib.LIDPermissive}
		var bytes [mad.Size]byte
		if p.Encode(&bytes) == nil {
			f.Add(bytes[:], uint16(3), at)
		}
	}
	for _, m := range []mad.Method{mad.MethodGet, mad.MethodSet, mad.MethodGetResp, mad.MethodTrap, mad.MethodTrapRepress, 0, 0xff} {
		for _, a := range []mad.AttributeID{smp.AttrNotice, smp.AttrSMInfo, smp.AttrPortInfo, smp.AttrPKeyTable, 0xffff} {
			add(mad.ClassSubnLID, m, a, 0, 0)
			add(mad.ClassSubnDirected, m, a, 1, 150)
		}
	}
	// A small fabric: CI runs 20,000 inputs, each of them a whole bring-up.
	list, _, err := topology.Read([]byte(pairOfSwitches), "pair", nil)
	if err != nil {
		f.Fatal(err)
	}
	y := halves(hosts(list))
	f.Fuzz(func(t *testing.T, packets []byte, slid, at uint16) {
		w := newWorld(t, setup{list: list, policy: y.policy()})
		if at == 0 {
			w.settle()
		} else {
			w.run(time.Duration(at%400) * time.Microsecond)
		}
		for ; len(packets) >= mad.Size; packets = packets[mad.Size:] {
			var p mad.SMP
			if p.UnmarshalBinary(packets[:mad.Size]) != nil {
				continue
			}
			p.TransactionID = noTransaction // an answer that was asked for is to be believed
			if p.AttributeID == smp.AttrSMInfo && p.Method == mad.MethodSet {
				continue // a control packet of another manager may well end this one's rule
			}
			w.engine.Receive(w.fabric.Now(), &p, ib.LID(slid))
		}
		w.settle()
		w.calm()
		w.checkKeys(y)
		w.checkGuards()
		w.checkLinks()
		w.forget()
		w.run(2 * engine.DefaultSweepInterval)
		if n := len(w.sets()); n != 0 {
			t.Errorf("%d Sets on a fabric that is as it should be", n)
		}
	})
}

// noTransaction is an identifier that the manager does not give out.
const noTransaction = 0

// pairOfSwitches is two switches with two hosts each.
const pairOfSwitches = `Switch 4 "S1"
[1] "A"[1]
[2] "B"[1]
[3] "S2"[3]
[4] "S2"[4]

Switch 4 "S2"
[1] "C"[1]
[2] "D"[1]
[3] "S1"[3]
[4] "S1"[4]

Ca 1 "A"
[1] "S1"[1]

Ca 1 "B"
[1] "S1"[2]

Ca 1 "C"
[1] "S2"[1]

Ca 1 "D"
[1] "S2"[2]
`
