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
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// settingsPolicy is red and blue of the demonstration fabric, by place, with settings.
func settingsPolicy(t *testing.T, w *topology.Netlist, text string) *policy.Policy {
	t.Helper()
	members := func(name string) string {
		var list []string
		for i := 1; i <= 6; i++ {
			list = append(list, fmt.Sprintf("0x%016x", uint64(guidOf(w, fmt.Sprintf("%s-%d", name, i)))))
		}
		return strings.Join(list, ", ")
	}
	p, err := policyfile.ReadYAML([]byte(fmt.Sprintf("version: 1\ndefault: none\n%spartitions:\n"+
		"  - {name: red, pkey: 0x10, members: {full: [%s]}}\n  - {name: blue, pkey: 0x20, members: {full: [%s]}}\n",
		text, members("red"), members("blue"))), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// quiet wants the manager to write nothing for as long as it takes to look at
// everything.
func (w *world) quiet() {
	w.t.Helper()
	w.calm()
	w.forget()
	w.run(2 * engine.DefaultDriftPeriod)
	for _, a := range w.sets() {
		w.t.Errorf("Set(%s) to node %v, modifier 0x%x, though nothing changed", smp.AttributeName(a.AttributeID), a.node, a.AttributeModifier)
	}
}

// PI-119, SI-38, SI-39, VA-12: what a policy asks of links and devices is what they
// hold, and is written once.
func TestSettingsStand(t *testing.T) {
	list := topology.Demo()
	const told = 0xfe80000000000055
	w := bringUp(t, setup{list: list, policy: settingsPolicy(t, list, ""), manager: engine.Config{GIDPrefix: told}})
	for _, e := range w.ends() {
		if i := w.info(e.place); i.GIDPrefix != told {
			t.Errorf("%v: GidPrefix %x, want %x, which the manager was told", e.place, i.GIDPrefix, uint64(told))
		}
	}
	w.change(settingsPolicy(t, list, `settings:
  packet_life_time: 17
  head_of_queue_lifetime: 14
  leaf_head_of_queue_lifetime: 12
  vl_stall_count: 6
  leaf_vl_stall_count: 5
  max_op_vls: 2
  overrun_errors_threshold: 3
  local_phy_errors_threshold: 4
  qos_high_limit: 7
  qos_vlarb_high: "1:9"
  qos_vlarb_low: "0:3,1:1"
  subnet_timeout: 16
  subnet_prefix: 0xfe80000000000077
  sm_sl: 1
`))
	for _, n := range list.Nodes {
		a := w.agent(n.GUID)
		if s := a.SwitchInfo(); s != nil && s.LifeTimeValue != 17 {
			t.Errorf("%s: LifeTimeValue %d", n.ID, s.LifeTimeValue)
		}
		for num := range n.Ports {
			info := a.Port(ib.PortNum(num))
			if info == nil {
				continue
			}
			at := fmt.Sprintf("%s:%d", n.ID, num)
			if n.IsEndPort(num) && (info.GIDPrefix != 0xfe80000000000077 || info.SubnetTimeOut != 16 || info.MasterSMSL != 1) {
				t.Errorf("%s: GidPrefix %x, SubnetTimeOut %d, MasterSMSL %d", at, info.GIDPrefix, info.SubnetTimeOut, info.MasterSMSL)
			}
			if num == 0 || info.PortPhysicalState != smp.PhysLinkUp {
				continue
			}
			if info.OverrunErrors != 3 || info.LocalPhyErrors != 4 || info.OperationalVLs != 2 || info.VLHighLimit != 7 {
				t.Errorf("%s: OverrunErrors %d, LocalPhyErrors %d, OperationalVLs %d, VLHighLimit %d", at, info.OverrunErrors, info.LocalPhyErrors, info.OperationalVLs, info.VLHighLimit)
			}
			high, low := a.VLArbitration(ib.PortNum(num))
			if !sameTurns(high, smp.VLArbitrationEntry{VL: 1, Weight: 9}) || !sameTurns(low, smp.VLArbitrationEntry{Weight: 3}, smp.VLArbitrationEntry{VL: 1, Weight: 1}) {
				t.Errorf("%s: arbitration high %v, low %v", at, high, low)
			}
			hoq, stall := ib.TimeValue(14), uint8(6)
			if n.Ports[num].Peer.Type != ib.NodeSwitch {
				hoq, stall = 12, 5
			}
			if n.Type == ib.NodeSwitch && (info.HOQLife != hoq || info.VLStallCount != stall) {
				t.Errorf("%s: HOQLife %d, VLStallCount %d; want %d, %d", at, info.HOQLife, info.VLStallCount, hoq, stall)
			}
		}
	}
	if n := w.result().Inactive; n != 0 {
		t.Errorf("%d links are not Active", n)
	}
	w.quiet()
	for _, e := range w.events {
		if c, moved := e.Event.(event.Resweeping); moved {
			t.Errorf("a link moved: %v", c)
		}
	}
}

// sameTurns reports whether the entries of a table that have a weight are these.
func sameTurns(table []smp.VLArbitrationEntry, want ...smp.VLArbitrationEntry) bool {
	return slices.Equal(slices.DeleteFunc(slices.Clone(table), func(e smp.VLArbitrationEntry) bool { return e.Weight == 0 }), want)
}

// PI-119: every end port has what a policy asks of it: each of a host's two, those of
// routers, and port 0 of switches.
func TestPI119EveryEndPort(t *testing.T) {
	list := generate(t, "random,seed=6,switches=5,hosts=12,routers=2,ca-ports=2")
	asked := policy.DefaultSettings()
	asked.SubnetTimeOut, asked.GIDPrefix, asked.MasterSMSL = 15, 0xfe80000000000099, 1
	w := bringUp(t, setup{list: list, policy: &policy.Policy{Default: policy.Full, Settings: &asked}})
	count := map[string]int{}
	for _, e := range w.ends() {
		i := w.info(e.place)
		count[fmt.Sprintf("%v:%d", w.nodeOf(e.node).Type, e.num)]++
		if i.SubnetTimeOut != 15 || i.GIDPrefix != asked.GIDPrefix || i.MasterSMSL != 1 {
			t.Errorf("%v: SubnetTimeOut %d, GidPrefix %x, MasterSMSL %d", e.place, i.SubnetTimeOut, i.GIDPrefix, i.MasterSMSL)
		}
	}
	for _, kind := range []string{"CA:1", "CA:2", "router:1", "switch:0"} {
		if count[kind] == 0 {
			t.Errorf("no end port %s: %v", kind, count)
		}
	}
}

// SI-39: at a port that takes nothing the limits act in order, as the manager leaves
// them: heads of the queue are given up first, then the virtual lane stalls, and nothing
// grows as old as the switch lets it. So it is before a host, and before a switch.
func TestSI39LimitsActInOrder(t *testing.T) {
	for name, before := range map[string]ib.NodeType{"before a host": ib.NodeCA, "before a switch": ib.NodeSwitch} {
		t.Run(name, func(t *testing.T) { limitsActInOrder(t, before) })
	}
}

func limitsActInOrder(t *testing.T, before ib.NodeType) {
	w := bringUp(t, setup{list: generate(t, "fattree,radix=4,levels=2"), policy: &policy.Policy{Default: policy.Full}, fabric: fabric.Config{WireTime: true}})
	l := newLoad(w, 100)
	last := len(l.hosts) - 1
	if before == ib.NodeCA {
		w.must(w.fabric.Withhold(l.hosts[last].port.node, 1, true))
	} else { // what the leaf of the first host sends up
		leaf, _ := w.peer(l.hosts[0].port)
		for _, p := range w.nodeOf(leaf.node).Ports {
			if p.Peer != nil && p.Peer.Type == ib.NodeSwitch {
				w.must(w.fabric.Withhold(p.Peer.GUID, p.PeerPort, true))
			}
		}
	}
	l.hosts[0].to = slices.Repeat([]int{last}, 60)
	arrived, posted, took := l.run()
	n := func(f fabric.Outcome) uint64 { return w.fabric.DataCounts()[f] - l.before[f] }
	t.Logf("%d of %d arrived, all over after %v; %v", arrived, posted, took, l.drops())
	if n(fabric.OutcomeHeadTooOld) < 7 || n(fabric.OutcomeStalled) == 0 {
		t.Errorf("%d heads of the queue given up, %d packets of a stalled VL; want 7 or more, and some", n(fabric.OutcomeHeadTooOld), n(fabric.OutcomeStalled))
	}
	if n(fabric.OutcomeTooOld) > 0 {
		t.Errorf("%d packets lived as long as their switch let them: the other limits are to act before", n(fabric.OutcomeTooOld))
	}
	if before != ib.NodeCA {
		return
	}
	// Nobody else notices for longer than it takes.
	for _, h := range l.hosts {
		h.qp.Destroy()
	}
	others := newLoad(w, 50)
	others.allToAll(1, 4)
	others.hosts[last-1].to = nil // sends to the one who takes nothing
	others.end("between the others")
}

// forge gives a host's device a key and tells where it stands.
func (w *world) forge(at place, k ib.PKey) (index uint16) {
	w.setKeys(at, func(t *smp.PKeyTable) { t.Keys[9] = k })
	return 9
}

// datagram sends one datagram under the keys at these indexes, and reports whether it was taken.
func (w *world) datagram(from, to place, index, toIndex uint16) bool {
	w.t.Helper()
	l := &load{world: w, buffer: make([]byte, loadBytes+endpoint.GRHSize)}
	a, b := l.newQP(from.node, index), l.newQP(to.node, toIndex)
	defer a.Destroy()
	defer b.Destroy()
	w.must(a.PostSend(endpoint.SendRequest{
		ID: sendID, Data: l.bytes[:], RemoteQP: b.Number(), RemoteQKey: loadKey, To: endpoint.Address{DLID: w.info(to).LID},
	}))
	w.fabric.AdvanceTo(w.fabric.Now() + time.Millisecond)
	var done [2]endpoint.Completion
	return b.Poll(done[:]) == 1
}

// SW-32: the policy chooses the directions in which switch ports check keys; what
// the other would have stopped is left to the hosts, and the proof says so.
func TestSW32DirectionsOfEnforcement(t *testing.T) {
	for _, c := range []struct {
		text        string
		in, out     bool
		verdict     isolation.Verdict
		sends, gets bool // of who forged its table: red-1, to and from blue-2
		gap         string
	}{
		{"", true, true, isolation.Isolated, false, false, ""},
		{"settings: {part_enforce: both}\n", true, true, isolation.Isolated, false, false, ""},
		{"settings: {part_enforce: in}\n", true, false, isolation.ByEndPorts, false, true, "PartitionEnforcementOutbound is 0"},
		{"settings: {part_enforce: out}\n", false, true, isolation.ByEndPorts, false, false, "PartitionEnforcementInbound is 0"},
	} {
		t.Run(c.text, func(t *testing.T) {
			list := topology.Demo()
			w := bringUp(t, setup{list: list, policy: settingsPolicy(t, list, c.text)})
			red, blue := w.host("red-1"), w.host("blue-2")
			for _, host := range []place{red, blue} {
				guard, _ := w.peer(host)
				if i := w.info(guard); i.PartitionEnforcementInbound != c.in || i.PartitionEnforcementOutbound != c.out {
					t.Errorf("inbound %v, outbound %v before %v", i.PartitionEnforcementInbound, i.PartitionEnforcementOutbound, host)
				}
			}
			proof := w.result().Proof
			if proof.Verdict != c.verdict {
				t.Errorf("verdict %v: %v", proof.Verdict, proof.Reasons)
			}
			if !strings.Contains(strings.Join(proof.Reasons, "\n"), c.gap) {
				t.Errorf("the reasons do not say %q: %v", c.gap, proof.Reasons)
			}
			index := w.forge(red, 0x8020)
			own := uint16(slices.Index(w.table(blue), ib.PKey(0x8020)))
			// With out alone what red-1 forges passes its own switch port, and is
			// stopped nowhere: blue's switch port lets the key of blue pass.
			sends := c.sends || !c.in
			if got := w.datagram(red, blue, index, own); got != sends {
				t.Errorf("red-1 reaches blue-2 with a forged key: %v, want %v", got, sends)
			}
			if got := w.datagram(blue, red, own, index); got != c.gets {
				t.Errorf("blue-2 reaches red-1, which forged its table: %v, want %v", got, c.gets)
			}
		})
	}
}

// Ports between switches check keys where the policy asks, and stop nothing that it
// allows; a switch behind which nobody is in a partition passes none of it.
func TestEnforcementBetweenSwitches(t *testing.T) {
	list := generate(t, "torus,x=3,y=1,hosts=2") // a chain would do; in a ring everybody is behind every port
	chain, _, err := topology.Read([]byte(chainFabric), "chain.net", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]*topology.Netlist{"ring": list, "chain": chain} {
		t.Run(name, func(t *testing.T) {
			all := hosts(l)
			y := halves(all)
			if name == "chain" { // each behind a switch of its own
				y.tenants[0].full = []ib.PortGUID{guidOf(l, "A1"), guidOf(l, "A2")}
				y.tenants[1].full = []ib.PortGUID{guidOf(l, "B1"), guidOf(l, "B2")}
			}
			p := y.policy()
			w := bringUp(t, setup{list: l, policy: p})
			asked := *p
			s := p.Asked()
			s.EnforceBetweenSwitches = true
			asked.Settings = &s
			w.change(&asked)
			var between []place
			for _, n := range l.Nodes {
				for num := 1; n.Type == ib.NodeSwitch && num < len(n.Ports); num++ {
					if peer := n.Ports[num].Peer; peer == nil || peer.Type != ib.NodeSwitch {
						continue
					}
					at := place{n.GUID, ib.PortNum(num)}
					if i := w.info(at); !i.PartitionEnforcementInbound || !i.PartitionEnforcementOutbound {
						t.Errorf("%s:%d does not check", n.ID, num)
					}
					between = append(between, at)
				}
			}
			if len(between) == 0 {
				t.Fatal("no ports between switches")
			}
			w.everyPair(y)
			if name == "chain" {
				for at, not := range map[string]ib.PKeyBase{"S1": y.tenants[0].base, "S3": y.tenants[1].base} {
					table := w.table(place{w.node(at).GUID, 8})
					if slices.Contains(table, not.Full()) || !slices.Contains(table, ib.PKeyBaseDefault.Full()) {
						t.Errorf("%s:8 holds %v: nobody behind it is in %v", at, table, not)
					}
				}
			}
			if v := w.result().Proof.Verdict; v != isolation.Isolated {
				t.Errorf("verdict %v", v)
			}
			w.quiet()
			for _, out := range []bool{false, true} {
				one := *p
				s := *asked.Settings
				s.EnforceInbound, s.EnforceOutbound = !out, out
				one.Settings = &s
				w.change(&one)
				for _, at := range between {
					if i := w.info(at); i.PartitionEnforcementInbound == out || i.PartitionEnforcementOutbound != out {
						t.Errorf("%v: inbound %v, outbound %v", at, i.PartitionEnforcementInbound, i.PartitionEnforcementOutbound)
					}
				}
			}
			w.change(p)
			for _, at := range between {
				if i := w.info(at); i.PartitionEnforcementInbound || i.PartitionEnforcementOutbound {
					t.Errorf("%v checks, which nobody asks for any more", at)
				}
			}
			w.everyPair(y)
			for _, e := range w.ends() {
				if guard, ok := w.peer(e.place); ok && w.agent(guard.node).SwitchInfo() != nil && e.num != 0 && !w.info(guard).PartitionEnforcementInbound {
					t.Errorf("%v checks nothing any more", guard)
				}
			}
		})
	}
}

// everyPair sends a datagram from every host to every other under each key that
// both have: all arrive.
func (w *world) everyPair(y tenancy) {
	w.t.Helper()
	for _, x := range y.tenants {
		var ports []place
		for _, n := range w.list.Nodes {
			if n.Type == ib.NodeCA && slices.Contains(w.table(place{n.GUID, 1}), x.base.Full()) {
				ports = append(ports, place{n.GUID, 1})
			}
		}
		if len(ports) < 2 {
			w.t.Fatalf("tenant %v has %d members", x.base, len(ports))
		}
		for _, a := range ports {
			for _, b := range ports {
				i, j := slices.Index(w.table(a), x.base.Full()), slices.Index(w.table(b), x.base.Full())
				if a != b && !w.datagram(a, b, uint16(i), uint16(j)) {
					w.t.Errorf("%v does not reach %v under %v", a.node, b.node, x.base.Full())
				}
			}
		}
	}
}

// chainFabric has a switch for each of two tenants, and one between them.
const chainFabric = `Switch 8 "S1"
[1] "A1"[1]
[2] "A2"[1]
[8] "S2"[1]

Switch 8 "S2"
[1] "S1"[8]
[2] "S3"[8]
[3] "M"[1]

Switch 8 "S3"
[1] "B1"[1]
[2] "B2"[1]
[8] "S2"[2]

Hca 1 "M"
[1] "S2"[3]

Hca 1 "A1"
[1] "S1"[1]

Hca 1 "A2"
[1] "S1"[2]

Hca 1 "B1"
[1] "S3"[1]

Hca 1 "B2"
[1] "S3"[2]
`

// MK-08: key, protection and lease are those of manager and policy; the lease runs
// out as set, once somebody has tried a wrong key and the manager does not come.
func TestMK08ProtectionAndLease(t *testing.T) {
	list := topology.Demo()
	c := keyed()
	c.Periods.Sweep, c.Periods.Drift, c.Periods.Guard = time.Hour, 2*time.Hour, time.Hour
	w := bringUp(t, setup{list: list, policy: settingsPolicy(t, list, ""), manager: c})
	red := w.host("red-1")
	if i := w.info(red); i.MKey == 0 || i.MKeyProtectBits != 2 || i.MKeyLeasePeriod != 0 {
		t.Fatalf("M_Key %v, M_KeyProtectBits %d, M_KeyLeasePeriod %d", i.MKey, i.MKeyProtectBits, i.MKeyLeasePeriod)
	}
	w.change(settingsPolicy(t, list, "settings: {m_key_protection_level: 3, m_key_lease_period: 15}\n"))
	key := w.info(red).MKey
	for _, e := range w.ends() {
		if i := w.info(e.place); i.MKey == 0 || i.MKeyProtectBits != 3 || i.MKeyLeasePeriod != 15 {
			t.Errorf("%v: M_Key %v, M_KeyProtectBits %d, M_KeyLeasePeriod %d", e.place, i.MKey, i.MKeyProtectBits, i.MKeyLeasePeriod)
		}
	}
	warned := false
	for _, x := range all[event.Warned](w) {
		warned = warned || strings.Contains(x.Text, "m_key_lease_period 15")
	}
	if !warned {
		t.Error("the manager does not say what a lease costs")
	}
	attack := w.stranger("blue-6")
	p := attack.packet(mad.ClassSubnLID, mad.MethodGet, smp.AttrPortInfo, 0)
	p.MKey = 0x666
	attack.send(&p, w.info(red).LID)
	w.fabric.AdvanceTo(w.fabric.Now() + 14*time.Second)
	read := func() ib.MKey {
		q := attack.packet(mad.ClassSubnLID, mad.MethodGet, smp.AttrPortInfo, 0)
		var info smp.PortInfo
		attack.send(&q, w.info(red).LID)
		w.fabric.AdvanceTo(w.fabric.Now() + 100*time.Millisecond)
		for {
			var d fabric.Delivery
			if !attack.Receive(&d) {
				return info.MKey
			}
			var answer mad.SMP
			if answer.UnmarshalBinary(d.MAD[:]) == nil && answer.AttributeID == smp.AttrPortInfo {
				w.must(info.UnmarshalBinary(answer.Data[:]))
			}
		}
	}
	if got := read(); got != 0 {
		t.Errorf("before the lease is over %v can be read", got)
	}
	w.fabric.AdvanceTo(w.fabric.Now() + 2*time.Second)
	if got := read(); got != key {
		t.Errorf("after the lease %v can be read, want %v", got, key)
	}
	// Less protection than the profile's is not given; a lease may be hours.
	w2 := bringUp(t, setup{list: list, policy: settingsPolicy(t, list, "settings: {m_key_protection_level: 1, m_key_lease_period: 65534}\n"), manager: keyed()})
	if i := w2.info(red); i.MKeyProtectBits != protect.Tenant.MKeyProtectBits() || i.MKeyLeasePeriod != 65534 {
		t.Errorf("M_KeyProtectBits %d, M_KeyLeasePeriod %d", i.MKeyProtectBits, i.MKeyLeasePeriod)
	}
}

// PI-118: a link is limited at both ends, stays up, and trains so the next time.
func TestPI118LinksTrainAsLimited(t *testing.T) {
	list := topology.Demo()
	w := bringUp(t, setup{list: list, policy: settingsPolicy(t, list, "")})
	w.calm()
	red := w.host("red-1")
	guard, _ := w.peer(red)
	node := w.nodeOf(guard.node)
	before := *w.info(red)
	if before.LinkWidthActive == smp.LinkWidth1X {
		t.Fatal("the link is 1x anyway")
	}
	w.forget()
	w.change(settingsPolicy(t, list, fmt.Sprintf("settings: {links: [{at: \"0x%016x:%d\", width: 1x, speed: sdr}]}\n", uint64(node.GUID), guard.num)))
	for _, p := range []place{red, guard} {
		if i := w.info(p); i.LinkWidthEnabled != smp.LinkWidth1X || i.LinkSpeedEnabled != smp.LinkSpeedSDR || i.LinkSpeedExtEnabled != 0 {
			t.Errorf("%v: enabled are %v, %v, %v", p, i.LinkWidthEnabled, i.LinkSpeedEnabled, i.LinkSpeedExtEnabled)
		}
		if i := w.info(p); i.PortState != smp.PortActive || i.LinkWidthActive != before.LinkWidthActive {
			t.Errorf("%v: %v at %v: it went down by a setting", p, i.PortState, i.LinkWidthActive)
		}
	}
	w.quiet()
	w.must(w.fabric.PowerOff(red.node))
	w.must(w.fabric.PowerOn(red.node))
	w.calm()
	w.calm()
	for _, p := range []place{red, guard} {
		if i := w.info(p); i.PortState != smp.PortActive || i.LinkWidthActive != smp.LinkWidth1X || i.LinkSpeedActive != smp.LinkSpeedSDR {
			t.Errorf("%v: %v at %v, %v", p, i.PortState, i.LinkWidthActive, i.LinkSpeedActive)
		}
	}
	w.quiet()
}

// VA-12: the weights of the policy show in the traffic: two hosts that send as fast
// as they can to a third, on two virtual lanes, get through as three to one.
func TestVA12WeightsShowInTraffic(t *testing.T) {
	list := topology.Demo()
	for _, weights := range [][2]int{{198, 66}, {66, 198}} {
		asked := policy.DefaultSettings()
		asked.MaxOperationalVLs = 2
		asked.VLArbLow = []smp.VLArbitrationEntry{{VL: 0, Weight: uint8(weights[0])}, {VL: 1, Weight: uint8(weights[1])}}
		w := bringUp(t, setup{
			list: list, policy: &policy.Policy{Default: policy.Full, Settings: &asked}, fabric: fabric.Config{Profile: slow, WireTime: true},
		})
		l := newLoad(w, 100)
		sends := func(id string) *loadHost {
			return l.hosts[slices.IndexFunc(l.hosts, func(h *loadHost) bool { return h.port == w.host(id) })]
		}
		to := slices.Index(l.hosts, sends("red-1"))
		for sl, id := range []string{"red-2", "red-3"} {
			h := sends(id)
			h.sl, h.to = ib.SL(sl), slices.Repeat([]int{to}, 400)
		}
		l.end(fmt.Sprint("weights ", weights))
		const look = 300 // as long as both have something to send
		first := 0
		for _, sl := range l.levels[:look] {
			if sl == 0 {
				first++
			}
		}
		want := look * weights[0] / (weights[0] + weights[1])
		if first < want-look/20 || first > want+look/20 {
			t.Errorf("weights %v: %d of the first %d datagrams came by VL 0, want about %d", weights, first, look, want)
		}
	}
}
