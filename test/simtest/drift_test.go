package simtest

import (
	"math/rand/v2"
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

// setPortInfo changes PortInfo of a port in its agent.
func (w *world) setPortInfo(at place, change func(*smp.PortInfo)) {
	w.t.Helper()
	info := *w.info(at)
	info.PortState, info.PortPhysicalState = smp.PortStateNoChange, smp.PhysNoChange
	change(&info)
	w.agentSet(at, smp.AttrPortInfo, uint32(at.num), func(data *[mad.DataSize]byte) { w.encode(&info, data) })
}

func (w *world) setKeys(at place, change func(*smp.PKeyTable)) {
	w.t.Helper()
	var t smp.PKeyTable
	copy(t.Keys[:], w.table(at))
	change(&t)
	w.agentSet(at, smp.AttrPKeyTable, smp.PKeyModifier(at.num, 0), func(data *[mad.DataSize]byte) { w.encode(&t, data) })
}

func (w *world) setSwitchInfo(id string, change func(*smp.SwitchInfo)) {
	w.t.Helper()
	at := place{w.node(id).GUID, 0}
	info := *w.agent(at.node).SwitchInfo()
	change(&info)
	w.agentSet(at, smp.AttrSwitchInfo, 0, func(data *[mad.DataSize]byte) { w.encode(&info, data) })
}

// drifts are changes of every kind of table and setting behind the manager's
// back. On the demonstration fabric spine-1 has a random forwarding table here,
// and leaf-1:5 is cabled to a spine.
var drifts = []struct {
	name      string
	attribute mad.AttributeID
	change    func(*world)
}{
	{"P_KeyTable of a host, key added", smp.AttrPKeyTable, func(w *world) {
		w.setKeys(w.host("red-1"), func(t *smp.PKeyTable) { t.Keys[9] = 0x8020 })
	}},
	{"P_KeyTable of a host, all taken", smp.AttrPKeyTable, func(w *world) {
		w.setKeys(w.host("red-1"), func(t *smp.PKeyTable) { *t = smp.PKeyTable{} })
	}},
	{"P_KeyTable of a switch port, key added", smp.AttrPKeyTable, func(w *world) {
		w.setKeys(w.switchPort("red-1"), func(t *smp.PKeyTable) { t.Keys[9] = 0x8020 })
	}},
	{"P_KeyTable of a management port", smp.AttrPKeyTable, func(w *world) {
		w.setKeys(place{w.node("leaf-1").GUID, 0}, func(t *smp.PKeyTable) { t.Keys[9] = 0x8020 })
	}},
	{"enforcement off", smp.AttrPortInfo, func(w *world) {
		w.setPortInfo(w.switchPort("red-1"), func(i *smp.PortInfo) {
			i.PartitionEnforcementInbound, i.PartitionEnforcementOutbound = false, false
		})
	}},
	{"enforcement on between switches", smp.AttrPortInfo, func(w *world) {
		w.setPortInfo(place{w.node("leaf-1").GUID, 5}, func(i *smp.PortInfo) { i.PartitionEnforcementInbound = true })
	}},
	{"NeighborMTU", smp.AttrPortInfo, func(w *world) {
		w.setPortInfo(w.switchPort("red-1"), func(i *smp.PortInfo) { i.NeighborMTU = ib.MTU256 })
	}},
	{"OperationalVLs", smp.AttrPortInfo, func(w *world) {
		w.setPortInfo(w.host("red-1"), func(i *smp.PortInfo) { i.OperationalVLs = 1 })
	}},
	{"HOQLife", smp.AttrPortInfo, func(w *world) {
		w.setPortInfo(w.switchPort("red-1"), func(i *smp.PortInfo) { i.HOQLife = 0 })
	}},
	{"LID of a host", smp.AttrPortInfo, func(w *world) {
		w.setPortInfo(w.host("red-1"), func(i *smp.PortInfo) { i.LID = 0x1234 })
	}},
	{"LID of a switch", smp.AttrPortInfo, func(w *world) {
		w.setPortInfo(place{w.node("spine-2").GUID, 0}, func(i *smp.PortInfo) { i.LID = 0x1234 })
	}},
	{"LMC", smp.AttrPortInfo, func(w *world) {
		w.setPortInfo(w.host("red-1"), func(i *smp.PortInfo) { i.LID, i.LMC = 0x1200, 7 })
	}},
	{"MasterSMLID", smp.AttrPortInfo, func(w *world) {
		w.setPortInfo(w.host("red-1"), func(i *smp.PortInfo) { i.MasterSMLID = 0x1234 })
	}},
	{"GidPrefix", smp.AttrPortInfo, func(w *world) {
		w.setPortInfo(w.host("red-1"), func(i *smp.PortInfo) { i.GIDPrefix = 7 })
	}},
	{"SubnetTimeOut", smp.AttrPortInfo, func(w *world) {
		w.setPortInfo(w.host("red-1"), func(i *smp.PortInfo) { i.SubnetTimeOut = 1 })
	}},
	{"M_Key", smp.AttrPortInfo, func(w *world) {
		w.setPortInfo(w.host("red-1"), func(i *smp.PortInfo) { i.MKeyProtectBits = 0 })
	}},
	{"linear forwarding table", smp.AttrLinearForwardingTable, func(w *world) {
		w.agentSet(place{w.node("leaf-1").GUID, 0}, smp.AttrLinearForwardingTable, 0, func(data *[mad.DataSize]byte) {
			w.encode(&smp.LinearForwardingTable{}, data)
		})
	}},
	{"LinearFDBTop", smp.AttrSwitchInfo, func(w *world) {
		w.setSwitchInfo("leaf-1", func(i *smp.SwitchInfo) { i.LinearFDBTop = 1 })
	}},
	{"random forwarding table", smp.AttrRandomForwardingTable, func(w *world) {
		w.agentSet(place{w.node("spine-1").GUID, 0}, smp.AttrRandomForwardingTable, 1, func(data *[mad.DataSize]byte) {
			t := smp.RandomForwardingTable{}
			t.Entries[3] = smp.RandomEntry{LID: 3, Valid: true, Port: 1}
			w.encode(&t, data)
		})
	}},
	{"DefaultPort", smp.AttrSwitchInfo, func(w *world) {
		w.setSwitchInfo("spine-1", func(i *smp.SwitchInfo) { i.DefaultPort = 1 })
	}},
	{"SLtoVL of a host", smp.AttrSLToVLMappingTable, func(w *world) {
		w.agentSet(w.host("red-1"), smp.AttrSLToVLMappingTable, 0, func(data *[mad.DataSize]byte) {
			w.encode(&smp.SLToVLMappingTable{VLs: [16]ib.VL{15: 3}}, data)
		})
	}},
	{"SLtoVL of a switch", smp.AttrSLToVLMappingTable, func(w *world) {
		w.agentSet(w.switchPort("red-1"), smp.AttrSLToVLMappingTable, smp.SLToVLModifier(5, w.switchPort("red-1").num), func(data *[mad.DataSize]byte) {
			w.encode(&smp.SLToVLMappingTable{}, data)
		})
	}},
	{"VLArbitration", smp.AttrVLArbitrationTable, func(w *world) {
		at := w.switchPort("red-1")
		w.agentSet(at, smp.AttrVLArbitrationTable, smp.VLArbModifier(smp.VLArbLowFirst, at.num), func(data *[mad.DataSize]byte) {
			w.encode(&smp.VLArbitrationTable{}, data)
		})
	}},
}

func driftWorld(t *testing.T) (*world, tenancy) {
	t.Helper()
	list := topology.Demo()
	y := halves(hosts(list))
	y.tenants[0].sl = 1
	s := setup{list: list, policy: y.policy(), manager: engine.Config{MKey: 0x1122334455667788}}
	s.fabric.Profile = func(n *topology.Node, c *sma.Config) {
		if n.ID == "spine-1" {
			c.Switch.LinearFDBCap, c.Switch.RandomFDBCap = 0, 64
		}
	}
	w := bringUp(t, s)
	w.calm()
	return w, y
}

// Whatever somebody else changes is seen within one drift period, reported, and
// put right by writing that and nothing else.
func TestDrift(t *testing.T) {
	for i, d := range drifts {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			seed := uint64(i + 1)
			t.Logf("seed %d", seed)
			w, y := driftWorld(t)
			before := w.dump()
			w.run(time.Duration(rand.New(rand.NewPCG(seed, 6)).Int64N(int64(engine.DefaultDriftPeriod))))
			w.forget()
			d.change(w)
			if firstDifference(before, w.dump()) == "" {
				t.Fatal("the change does not show")
			}
			start := w.fabric.Now()
			w.until("drift is reported", func() bool { return len(all[event.Drifted](w)) > 0 })
			w.settle()
			if took := w.fabric.Now() - start; took > engine.DefaultDriftPeriod+time.Second {
				t.Errorf("put right after %v, want %v at most", took, engine.DefaultDriftPeriod)
			}
			if got := all[event.Drifted](w)[0].Op.Attribute; got != d.attribute {
				t.Errorf("reported %s, want %s", smp.AttributeName(got), smp.AttributeName(d.attribute))
			}
			for _, a := range w.sets() {
				if a.AttributeID != d.attribute {
					t.Errorf("Set(%s) to node %v", smp.AttributeName(a.AttributeID), a.node)
				}
			}
			if diff := firstDifference(before, w.dump()); diff != "" {
				t.Errorf("not as before: %s", diff)
			}
			w.checkUp(y)
			w.forget()
			w.run(2 * engine.DefaultDriftPeriod)
			if n := len(w.sets()); n != 0 {
				t.Errorf("%d Sets after it was put right", n)
			}
		})
	}
}

// A table that somebody changes again and again, be it the very first that is
// read, does not keep the manager from looking at the others.
func TestDriftOfOneDoesNotHideOthers(t *testing.T) {
	for _, d := range drifts {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			w, _ := driftWorld(t)
			before := w.dump()
			d.change(w)
			for range engine.DefaultDriftPeriod/engine.DefaultSweepInterval + 1 {
				w.setKeys(w.self, func(t *smp.PKeyTable) { t.Keys[9] = 0x8abc })
				w.run(engine.DefaultSweepInterval)
			}
			w.setKeys(w.self, func(t *smp.PKeyTable) { t.Keys[9] = 0 })
			if diff := firstDifference(before, w.dump()); diff != "" {
				t.Errorf("not put right in %v: %s", engine.DefaultDriftPeriod, diff)
			}
		})
	}
}

// Without an M_Key anybody with access to a management queue pair can write to
// others: the manager puts that right too.
func TestHostileSet(t *testing.T) {
	list := topology.Demo()
	y := halves(hosts(list))
	w := bringUp(t, setup{list: list, policy: y.policy()})
	w.calm()
	before := w.dump()
	s := w.stranger("blue-6")
	guard := w.switchPort("red-1")
	info := *w.info(guard)
	info.PortState, info.PortPhysicalState = smp.PortStateNoChange, smp.PhysNoChange
	info.PartitionEnforcementInbound = false
	var data [mad.DataSize]byte
	w.encode(&info, &data)
	if _, ok := s.write(guard, smp.AttrPortInfo, uint32(guard.num), data); !ok || w.info(guard).PartitionEnforcementInbound {
		t.Fatal("the attack failed by itself")
	}
	w.forget()
	w.run(engine.DefaultDriftPeriod + engine.DefaultSweepInterval)
	if len(all[event.Drifted](w)) == 0 {
		t.Error("no drift is reported")
	}
	if diff := firstDifference(before, w.dump()); diff != "" {
		t.Errorf("not as before: %s", diff)
	}
}
