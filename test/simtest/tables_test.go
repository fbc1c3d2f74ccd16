package simtest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// sizes gives devices of the demonstration fabric P_Key tables of these sizes.
func sizes(of map[string]uint16) func(*topology.Node, *sma.Config) {
	return func(n *topology.Node, c *sma.Config) {
		if cap, ok := of[n.ID]; ok {
			c.PartitionCap = cap
		}
		if n.ID == "leaf-2" {
			c.PartitionCap, c.Switch.PartitionEnforcementCap = 8, 40
		}
	}
}

// partitions are so many partitions of one port.
func partitions(g ib.PortGUID, n int, y tenancy) tenancy {
	for i := range n {
		y.tenants = append(y.tenants, tenant{base: ib.PKeyBase(0x1000 + i), full: []ib.PortGUID{g}})
	}
	return y
}

// P_Key tables of different sizes in one fabric are each filled within their
// own; blocks past the end are neither read nor written.
func TestTableSizes(t *testing.T) {
	list := topology.Demo()
	s := setup{list: list}
	s.fabric.Profile = sizes(map[string]uint16{"mgmt-1": 32, "storage-1": 64, "red-1": 1, "red-3": 128, "red-4": 33})
	y := tenancy{}
	y = partitions(guidOf(list, "storage-1"), 39, y) // with the default key as many as its switch port holds
	for i := range y.tenants {
		if x := &y.tenants[i]; i < 31 {
			x.limited = append(x.limited, guidOf(list, "mgmt-1"))
		}
		y.tenants[i].full = append(y.tenants[i].full, guidOf(list, "red-3"))
	}
	s.policy = y.policy()
	w := bringUp(t, s)
	w.checkUp(y)
	w.run(engine.DefaultDriftPeriod)
	t.Run("PT-06 PT-07 PT-08 NI-20 NI-21 sizes", func(t *testing.T) {
		for id, want := range map[string]int{"mgmt-1": 32, "storage-1": 40, "red-1": 1, "red-3": 40, "red-4": 1} {
			if got := len(valid(w.table(w.host(id)))); got != want {
				t.Errorf("%s holds %d keys, want %d", id, got, want)
			}
		}
		if got := len(valid(w.table(w.switchPort("storage-1")))); got != 40 {
			t.Errorf("the switch port of 40 entries before storage-1 holds %d keys, want 40", got)
		}
		if v := w.info(w.switchPort("storage-1")); !v.PartitionEnforcementInbound {
			t.Error("the switch port of 40 entries does not check")
		}
	})
	t.Run("PT-10 PT-14 blocks", func(t *testing.T) {
		asked := 0
		for _, a := range append(w.packets(mad.MethodGet, smp.AttrPKeyTable), w.sets(smp.AttrPKeyTable)...) {
			port, block, ok := smp.SplitPKeyModifier(a.AttributeModifier)
			agent := w.agent(a.node)
			entries := int(agent.NodeInfo(a.in).PartitionCap)
			if s := agent.SwitchInfo(); s != nil && port != 0 {
				entries = int(s.PartitionEnforcementCap)
			}
			if asked++; !ok || int(block)*smp.PKeysPerBlock >= entries {
				t.Errorf("%v(P_KeyTable) modifier 0x%08x of a table of %d entries", a.Method, a.AttributeModifier, entries)
			}
		}
		if asked == 0 {
			t.Error("nobody asked for a P_KeyTable")
		}
	})
	t.Run("PT-10 PT-11 one key in block 1", func(t *testing.T) {
		before := w.tables()
		host := w.host("red-3")
		last := before[host][39]
		next := y.move(guidOf(list, "red-3"), last.Base(), 0)
		w.forget()
		w.change(next.policy())
		w.checkKeys(next)
		now := w.table(host)
		if !slices.Equal(now[:39], before[host][:39]) || now[39].IsValid() {
			t.Errorf("table %v, was %v", now, before[host])
		}
		for _, a := range w.sets() {
			if a.AttributeID != smp.AttrPKeyTable || a.node == host.node && a.AttributeModifier != 1 {
				t.Errorf("Set(%s) modifier 0x%08x to node %v", smp.AttributeName(a.AttributeID), a.AttributeModifier, a.node)
			}
		}
	})
	t.Run("PT-08 NI-20 one key too many", func(t *testing.T) {
		for id, n := range map[string]string{"red-1": "1", "red-4": "33", "mgmt-1": "32"} {
			bad := partitions(guidOf(list, id), 33, tenancy{})
			w.forget()
			w.change(bad.policy())
			w.checkRefused(w.dump(), []string{guidOf(list, id).String(), n})
		}
	})
}

// Only P_KeyTable in subnet-management packets changes a P_Key table, and the
// manager uses no other means.
func TestKeysAreWrittenBySMP(t *testing.T) {
	list := topology.Demo()
	y := halves(hosts(list))
	w := newWorld(t, setup{list: list, policy: y.policy()})
	keys := func() string {
		var b strings.Builder
		for _, n := range list.Nodes {
			for num := range n.Ports {
				fmt.Fprint(&b, n.ID, num, trimmed(w.agent(n.GUID).PKeys(ib.PortNum(num))))
			}
		}
		return b.String()
	}
	before, writing := keys(), false
	w.watch = func(a arrival) {
		if now := keys(); now != before {
			if !writing {
				t.Error("a table changed without Set(P_KeyTable)")
			}
			before = now
		}
		writing = isSet(a) && a.AttributeID == smp.AttrPKeyTable
	}
	w.settle()
	w.watch = nil
	w.checkKeys(y)
	t.Run("PK-29 PT-12", func(t *testing.T) {
		if len(w.sets(smp.AttrPKeyTable)) == 0 || len(w.packets(mad.MethodGet, smp.AttrPKeyTable)) == 0 {
			t.Error("no Get or no Set of attribute 0x0016")
		}
		for _, a := range w.arrived {
			if a.Class != mad.ClassSubnDirected && a.Class != mad.ClassSubnLID || a.Method != mad.MethodGet && a.Method != mad.MethodSet {
				t.Errorf("%v(%s) of class 0x%02x", a.Method, smp.AttributeName(a.AttributeID), a.Class)
			}
		}
	})
}

// A port that a policy makes full and limited member of one partition holds
// both keys where the policy says that this is meant, and else the full one.
func TestBothMemberships(t *testing.T) {
	for _, both := range []bool{false, true} {
		t.Run(fmt.Sprintf("PK-20 allowed %v", both), func(t *testing.T) {
			list := topology.Demo()
			p := &policy.Policy{Default: policy.Limited, AllowBoth: both, Partitions: []policy.Partition{
				{Name: "both", PKey: 1, Members: []policy.Member{member(guidOf(list, "red-1"), policy.Both)}},
			}}
			w := bringUp(t, setup{list: list, policy: p})
			want := []ib.PKey{0x7fff, 0x8001}
			if both {
				want = []ib.PKey{0x0001, 0x7fff, 0x8001}
			}
			if got := valid(w.table(w.host("red-1"))); !slices.Equal(got, want) {
				t.Errorf("holds %v, want %v", got, want)
			}
			w.checkGuards()
		})
	}
}

// With a partition on another service level than 0 every level has a virtual lane of
// those in use and every virtual lane its turn; else nobody touches these tables.
func TestLanes(t *testing.T) {
	list := generate(t, "random,seed=9,switches=5,hosts=14,routers=2")
	for _, sl := range []ib.SL{0, 3} {
		y := halves(hosts(list))
		y.tenants[1].sl = sl
		s := setup{list: list, policy: y.policy()}
		s.fabric.Profile = mixed(9, 256)
		w := bringUp(t, s)
		w.checkUp(y)
		t.Run(fmt.Sprintf("SV-04 VA-02 VA-04 SL %d", sl), func(t *testing.T) {
			touched := len(w.sets(smp.AttrSLToVLMappingTable, smp.AttrVLArbitrationTable)) +
				len(w.packets(mad.MethodGet, smp.AttrSLToVLMappingTable, smp.AttrVLArbitrationTable))
			if sl == 0 {
				if touched != 0 {
					t.Errorf("%d packets about tables that no policy needs", touched)
				}
				return
			}
			for _, n := range list.Nodes {
				for num := 1; num < len(n.Ports); num++ {
					if at := (place{n.GUID, ib.PortNum(num)}); w.info(at).PortState == smp.PortActive && w.info(at).VLCap > 1 {
						w.t = t
						w.checkLanes(n, at)
					}
				}
			}
		})
	}
}

func (w *world) checkLanes(n *topology.Node, at place) {
	w.t.Helper()
	agent, info := w.agent(at.node), w.info(at)
	_, low := agent.VLArbitration(at.num)
	served := map[ib.VL]bool{}
	for _, e := range low {
		served[e.VL] = served[e.VL] || e.Weight > 0
	}
	for in := range n.Ports {
		from := place{n.GUID, ib.PortNum(in)}
		if in == int(at.num) || in > 0 && (n.Type != ib.NodeSwitch || w.info(from).PortState != smp.PortActive) {
			continue
		}
		used := map[ib.VL]bool{}
		for sl := range ib.SL(smp.SLCount) {
			vl := agent.VL(from.num, at.num, sl)
			if int(vl) >= smp.DataVLs(info.OperationalVLs) || !served[vl] {
				w.t.Errorf("%s: from port %d to %d SL %d takes VL %d; %d VLs, served %v", n.ID, in, at.num, sl, vl, smp.DataVLs(info.OperationalVLs), served)
			}
			used[vl] = true
		}
		if lanes := min(smp.DataVLs(info.OperationalVLs), int(info.VLArbitrationLowCap)); len(used) != lanes {
			w.t.Errorf("%s: from port %d to %d the levels use %d VLs, want %d", n.ID, in, at.num, len(used), lanes)
		}
	}
}

// A switch gets the forwarding table that it has, base port 0 no LMC, and no
// port is asked to check what its switch cannot.
func TestNothingIsAskedInVain(t *testing.T) {
	list := generate(t, "random,seed=11,switches=9,hosts=14,routers=2")
	y := halves(hosts(list))
	s := setup{list: list, policy: y.policy(), manager: engine.Config{LMC: 2}}
	s.fabric.Profile = mixed(11, 1024)
	w := bringUp(t, s)
	w.checkUp(y)
	t.Run("LF-03", func(t *testing.T) {
		for _, a := range append(w.sets(), w.packets(mad.MethodGet)...) {
			s := w.agent(a.node).SwitchInfo()
			if a.AttributeID == smp.AttrLinearForwardingTable && s.LinearFDBCap == 0 || a.AttributeID == smp.AttrRandomForwardingTable && s.RandomFDBCap == 0 {
				t.Errorf("%v(%s) to node %v, which has the other one", a.Method, smp.AttributeName(a.AttributeID), a.node)
			}
		}
	})
	t.Run("PI-53 SW-14", func(t *testing.T) {
		for _, a := range w.sets(smp.AttrPortInfo) {
			var info smp.PortInfo
			s := w.agent(a.node).SwitchInfo()
			if s == nil || info.UnmarshalBinary(a.Data[:]) != nil {
				continue
			}
			if a.AttributeModifier == 0 && !s.EnhancedPort0 && info.LMC != 0 {
				t.Errorf("node %v: base port 0 is asked for LMC %d", a.node, info.LMC)
			}
			in, out := info.PartitionEnforcementInbound, info.PartitionEnforcementOutbound
			if s.PartitionEnforcementCap == 0 && (in || out) || in && !s.InboundEnforcementCap || out && !s.OutboundEnforcementCap {
				t.Errorf("node %v port %d is asked to check in %v, out %v", a.node, a.AttributeModifier, in, out)
			}
		}
	})
	t.Run("every request is answered", func(t *testing.T) {
		if c := w.engine.Counts(); c.Failed != 0 || c.Retried != 0 || c.Unmatched != 0 {
			t.Errorf("counts %+v", c)
		}
	})
}

// A port that does not feel well is asked for all it can say about that, and
// what it says is reported.
func TestDiagnosis(t *testing.T) {
	block := func(next uint16, text string) (v smp.VendorDiag) {
		v.NextIndex = next
		copy(v.DiagData[:], text)
		return v
	}
	chain := map[uint16]smp.VendorDiag{1: block(5, "first"), 5: block(9, "second"), 9: block(0, "third"), 2: block(3, "x"), 3: block(2, "y")}
	const cut = 16
	for _, x := range []struct {
		name  string
		code  smp.DiagCode
		reads []uint32
		says  []string
	}{
		{"VD-04 well", 0, nil, nil},
		{"VD-05 VD-06 self-test", 1, nil, []string{"0x0001", "self-test"}},
		{"VD-05 VD-07 initializing", 2, nil, []string{"initializing"}},
		{"VD-10 vendor code", 0x7FF3, nil, []string{"soft error", "0x7ff"}},
		{"VD-10 vendor code, hard", 0x0014, nil, []string{"hard failure", "0x001"}},
		{"VD-11 VD-12 VD-14 VD-15 chain", 0x8014, []uint32{1, 5, 9}, []string{"hard failure", fmt.Sprintf("%x", "first"), fmt.Sprintf("%x", "third")}},
		{"VD-11 VD-12 VD-15 one block", 0x8093, []uint32{9}, []string{"soft error", fmt.Sprintf("%x", "third")}},
		{"VD-15 loop is cut", 0x8024, slices.Repeat([]uint32{2, 3}, cut/2), []string{"cut after 16 blocks"}},
		{"bit 15 without an error", 0x8011, nil, []string{"self-test"}},
		{"reserved code", 0x000F, nil, []string{"unknown code"}},
		{"vendor bits without a code", 0x0010, nil, []string{"unknown code"}},
	} {
		for _, id := range []string{"red-1", "leaf-2"} {
			t.Run(x.name+"/"+id, func(t *testing.T) {
				list := topology.Demo()
				y := halves(hosts(list))
				s := setup{list: list, policy: y.policy()}
				s.fabric.Profile = func(n *topology.Node, c *sma.Config) {
					if n.ID != id {
						return
					}
					at := &c.Ports[0]
					if c.Switch != nil {
						at = &c.Switch.Port0
					}
					at.DiagCode, at.VendorDiag = x.code, chain
				}
				w := bringUp(t, s)
				dead := !x.code.IsOperative() && w.node(id).Type == ib.NodeCA
				if dead {
					w.checkDead(id)
				} else {
					w.checkUp(y)
				}
				var reads []uint32
				for _, a := range w.packets(mad.MethodGet, smp.AttrVendorDiag) {
					reads = append(reads, a.AttributeModifier)
					if a.node != w.node(id).GUID {
						t.Errorf("Get(VendorDiag) to node %v", a.node)
					}
				}
				if !slices.Equal(reads, x.reads) {
					t.Errorf("VendorDiag blocks %v were read, want %v", reads, x.reads)
				}
				if says := len(all[event.SweepFault](w)) != 0; says != (x.says != nil) || says && !mentions[event.SweepFault](w, append(x.says, id)...) {
					t.Errorf("reported %v, want %q of %s", all[event.SweepFault](w), x.says, id)
				}
				if dead { // and is well again
					g := w.node(id).GUID
					if err := cmp.Or(w.fabric.SetDiagCode(g, 1, 0), w.fabric.Flap(g, 1, 0)); err != nil {
						t.Fatal(err)
					}
					w.calm()
					w.checkUp(y)
				}
			})
		}
	}
}

// checkDead checks that a host which carries no data has its settings and keys like
// any other, that nobody tried to bring its link up, and that this is no failure.
func (w *world) checkDead(id string) {
	w.t.Helper()
	info := w.info(place{w.node(id).GUID, 1})
	if info.PortState != smp.PortInit || info.LID == 0 || info.GIDPrefix != ib.DefaultGIDPrefix {
		w.t.Errorf("%s is %v, LID %v, GidPrefix %#x; want Initialize with its settings", id, info.PortState, info.LID, info.GIDPrefix)
	}
	if failed := all[event.Failed](w); len(failed) != 0 {
		w.t.Errorf("failed: %v", failed)
	}
	if r := w.result(); !r.Proof.Verdict.Holds() || r.Inactive != 0 {
		w.t.Errorf("verdict %v, %d links inactive that should not be", r.Proof.Verdict, r.Inactive)
	}
}

// What a manager says of itself.
func TestSMInfo(t *testing.T) {
	list := topology.Demo()
	y := halves(hosts(list))
	w := bringUp(t, setup{list: list, policy: y.policy(), manager: engine.Config{Election: engine.Election{SMKey: 99}}})
	s := w.stranger("blue-1")
	ask := func(modifier uint32) (info smp.SMInfo) {
		t.Helper()
		answer, ok := s.ask(s.packet(mad.ClassSubnLID, mad.MethodGet, smp.AttrSMInfo, modifier), w.info(w.self).LID)
		if !ok || answer.Status != mad.StatusOK || info.UnmarshalBinary(answer.Data[:]) != nil {
			t.Fatalf("no SMInfo: %v, status %v", ok, answer.Status)
		}
		return info
	}
	first := ask(0)
	w.run(engine.DefaultSweepInterval + time.Second)
	second := ask(0x4711)
	t.Run("SM-01 SM-11 SM-19", func(t *testing.T) {
		if first.GUID != w.selfGUID() || first.SMState != smp.SMMaster {
			t.Errorf("%+v, want GUID %v and master", first, w.selfGUID())
		}
	})
	t.Run("SM-04 modifier does not count", func(t *testing.T) {
		if second.GUID != first.GUID || second.SMState != first.SMState {
			t.Errorf("%+v, was %+v", second, first)
		}
	})
	t.Run("SM-13 key is not shown", func(t *testing.T) {
		if first.SMKey != 0 {
			t.Errorf("SM_Key %v", first.SMKey)
		}
	})
	t.Run("SM-14 ActCount grows", func(t *testing.T) {
		if second.ActCount <= first.ActCount {
			t.Errorf("ActCount %d after %d", second.ActCount, first.ActCount)
		}
	})
	t.Run("SM-17 Priority 0", func(t *testing.T) {
		if first.Priority != 0 {
			t.Errorf("Priority %d", first.Priority)
		}
	})
}
