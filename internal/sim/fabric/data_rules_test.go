package fabric_test

import (
	"bytes"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// star is a switch, node 0 with LID 1, with a host at each of ports 1 to 3,
// which have LIDs 2 to 4.
func star(t testing.TB) *topology.Netlist {
	t.Helper()
	l := &topology.Netlist{Nodes: []*topology.Node{topology.NewNode(ib.NodeSwitch, "s", switchGUID(0), 4)}}
	for i := range 3 {
		h := topology.NewNode(ib.NodeCA, "h", hostGUID(i+1), 1)
		h.ID += string(rune('1' + i))
		if err := topology.Connect(l.Nodes[0], ib.PortNum(i+1), h, 1); err != nil {
			t.Fatal(err)
		}
		l.Nodes = append(l.Nodes, h)
	}
	return l
}

// bytesOf is a sealed packet from LID 2 for a QP, raw when key is 0.
func bytesOf(t testing.TB, dlid ib.LID, qpn ib.QPN, key ib.PKey, qkey ib.QKey, size int) []byte {
	t.Helper()
	var b []byte
	if key == 0 {
		b = make([]byte, packet.LRHSize+packet.RWHSize+size+packet.VCRCSize)
		h := (*packet.LRH)(b)
		h.SetPktLen(uint16((len(b) - packet.VCRCSize) / 4))
		h.SetSLID(2)
		h.SetDLID(dlid)
	} else {
		var v packet.View
		var err error
		b, v, err = packet.Append(nil, packet.MakeOpCode(packet.UD, packet.SendOnly), dlid.IsMulticast(), make([]byte, size))
		if err != nil {
			t.Fatal(err)
		}
		if v.GRH != nil {
			v.GRH.SetDGID(group)
		}
		v.LRH.SetSLID(2)
		v.LRH.SetDLID(dlid)
		v.BTH.SetPKey(key)
		v.BTH.SetDestQP(qpn)
		v.DETH.SetQKey(qkey)
		v.DETH.SetSrcQP(77)
	}
	if err := packet.Seal(b); err != nil {
		t.Fatal(err)
	}
	return b
}

var group = ib.GID{0xFF, 0x12, 15: 1}

// try injects a packet at host 1 and tells the outcome of the first that ended
// without getting anywhere, OutcomeTaken if none did.
func (b *bench) try(raw []byte) fabric.Outcome { return b.tryFrom(1, raw) }

// tryFrom does that at another host.
func (b *bench) tryFrom(host int, raw []byte) fabric.Outcome {
	b.t.Helper()
	b.dropped, b.left = nil, nil
	b.must(b.Inject(hostGUID(host), 1, raw))
	b.idle()
	if len(b.dropped) > 0 {
		return b.dropped[0].Outcome
	}
	return fabric.OutcomeTaken
}

func (b *bench) want(id string, raw []byte, want fabric.Outcome) {
	b.t.Helper()
	if got := b.try(raw); got != want {
		b.t.Errorf("%s: %v, want %v", id, got, want)
	}
}

func (b *bench) wantFrom(id string, host int, raw []byte, want fabric.Outcome) {
	b.t.Helper()
	if got := b.tryFrom(host, raw); got != want {
		b.t.Errorf("%s: %v, want %v", id, got, want)
	}
}

func (b *bench) enforce(num ib.PortNum, in, out bool) {
	b.t.Helper()
	b.change(switchGUID(0), num, func(p *smp.PortInfo) { p.PartitionEnforcementInbound, p.PartitionEnforcementOutbound = in, out })
}

func (b *bench) violations(g ib.NodeGUID, num ib.PortNum) uint16 {
	return b.Agent(g).Port(num).PKeyViolations
}

// The rules of switches that enforce partitions, each with the packets that its
// checklist names.
func TestEnforcement(t *testing.T) {
	const good, foreign = ib.PKey(0x8005), ib.PKey(0x8006)
	sw := switchGUID(0)
	setUp := func(t *testing.T) (*bench, func(key ib.PKey, dlid ib.LID) []byte) {
		c := fabric.DefaultConfig()
		c.Profile = func(_ *topology.Node, d *sma.Config) { d.TrapSends = 1 } // nobody represses them
		b := newBench(t, star(t), c)
		qpn := ib.QPN(0)
		for i := range 3 {
			b.keys(hostGUID(i+1), 1, good, foreign, 0x0005)
			qpn = b.qp(hostGUID(i+1), 0, 7, 64).Number()
			b.keys(sw, ib.PortNum(i+1), 0x8001, good)
		}
		return b, func(key ib.PKey, dlid ib.LID) []byte { return bytesOf(t, dlid, qpn, key, 7, 64) }
	}
	t.Run("SW-01 SW-02 SW-11 SW-13 SW-15 SW-16 four settings", func(t *testing.T) {
		b, p := setUp(t)
		for _, c := range []struct {
			in, out bool
			want    fabric.Outcome
		}{
			{false, false, fabric.OutcomeRefused}, {true, false, fabric.OutcomeEntryPKey},
			{false, true, fabric.OutcomeExitPKey}, {true, true, fabric.OutcomeEntryPKey}, {false, false, fabric.OutcomeRefused},
		} {
			b.enforce(1, c.in, false)
			b.enforce(2, false, c.out)
			b.want("foreign", p(foreign, 3), c.want)
			b.want("good", p(good, 3), fabric.OutcomeTaken)
		}
		b.enforce(1, false, true)
		b.enforce(2, true, false)
		b.want("SW-11 other port, other direction", p(foreign, 3), fabric.OutcomeRefused)
		b.enforce(1, false, false)
		b.wantFrom("SW-11 the other port's packets", 2, p(foreign, 4), fabric.OutcomeEntryPKey)
		b.enforce(2, false, false)
		b.enforce(3, false, true)
		b.wantFrom("SW-13 the third port's packets", 2, p(foreign, 4), fabric.OutcomeExitPKey)
	})
	t.Run("SW-04 SW-20 SW-24 silent drop, counted on arrival", func(t *testing.T) {
		b, p := setUp(t)
		b.enforce(1, true, false)
		b.want("SW-04", p(foreign, 3), fabric.OutcomeEntryPKey)
		if len(b.left) != 1 || b.left[0].Node != hostGUID(1) {
			t.Errorf("SW-04: %d packets left a node, want the first alone", len(b.left))
		}
		if b.violations(sw, 1) != 1 || b.violations(sw, 2) != 0 || b.violations(hostGUID(2), 1) != 0 {
			t.Errorf("SW-20, SW-24: violations %d at the entry, %d at the exit, %d at the host; want 1, 0, 0",
				b.violations(sw, 1), b.violations(sw, 2), b.violations(hostGUID(2), 1))
		}
		if c := b.Counters(sw).Port(1).PortRcvConstraintErrors; c != 1 {
			t.Errorf("PortRcvConstraintErrors %d, want 1", c)
		}
	})
	t.Run("SW-05 spoiled instead", func(t *testing.T) {
		b, p := setUp(t)
		b.must(b.SetSpoiling(sw, true))
		for _, way := range [][2]bool{{true, false}, {false, true}} {
			b.enforce(1, way[0], false)
			b.enforce(2, false, way[1])
			b.want("SW-05", p(foreign, 3), fabric.OutcomeVCRC)
			if n := len(b.dropped); n != 1 || b.dropped[0].Node != hostGUID(2) || len(b.left) != 2 {
				t.Errorf("SW-05: dropped %d, left %d times; want once, at the far host", n, len(b.left))
			}
		}
	})
	t.Run("SW-07 SW-17 SW-18 SW-22 any entry, one table", func(t *testing.T) {
		b, p := setUp(t)
		keys := make([]ib.PKey, 32)
		for i := range keys {
			keys[i] = ib.PKey(0x8100 + i)
		}
		keys[31] = 0x0005
		b.keys(sw, 1, keys...)
		b.keys(sw, 2, keys...)
		b.enforce(1, true, true)
		b.enforce(2, true, true)
		b.want("SW-17 last entry, full and limited", p(good, 3), fabric.OutcomeTaken)
		if len(b.left) != 2 || b.left[1].Port != 2 {
			t.Error("SW-18: the packet did not leave by port 2")
		}
		b.want("SW-17 limited both", p(0x0005, 3), fabric.OutcomeEntryPKey)
		b.keys(sw, 1, 0x8001, foreign)
		b.want("SW-17 in another port's table", p(good, 3), fabric.OutcomeEntryPKey)
		b.want("base 0", p(0x8000, 3), fabric.OutcomeEntryPKey)
	})
	t.Run("SW-19 before any forwarding", func(t *testing.T) {
		b, p := setUp(t)
		b.enforce(1, true, false)
		b.want("SW-19", p(foreign, 60), fabric.OutcomeEntryPKey)
		b.want("SW-19 passes", p(good, 60), fabric.OutcomeNoRoute)
	})
	t.Run("SW-21 SW-23 after forwarding, by the exit, uncounted", func(t *testing.T) {
		b, p := setUp(t)
		b.keys(sw, 2, foreign)
		b.enforce(2, false, true)
		b.enforce(3, false, true)
		b.want("SW-21 refused", p(good, 3), fabric.OutcomeExitPKey)
		b.want("SW-21 passes", p(good, 4), fabric.OutcomeTaken)
		if b.violations(sw, 1) != 0 || b.violations(sw, 2) != 0 {
			t.Errorf("SW-23: violations %d and %d, want none", b.violations(sw, 1), b.violations(sw, 2))
		}
		if c := b.Counters(sw).Port(2).PortXmitConstraintErrors; c != 1 {
			t.Errorf("PortXmitConstraintErrors %d, want 1", c)
		}
	})
	t.Run("SW-26 SW-28 SW-29 SW-30 raw filters", func(t *testing.T) {
		b, _ := setUp(t)
		for _, lnh := range []packet.LNH{packet.LNHRaw, packet.LNHRawIPv6} {
			raw := bytesOf(t, 3, 0, 0, 0, 64)
			(*packet.LRH)(raw).SetLNH(lnh)
			packet.SealVCRC(raw)
			for _, c := range []struct {
				num     ib.PortNum
				in, out bool
				want    fabric.Outcome
			}{
				{1, true, false, fabric.OutcomeEntryRaw}, {1, false, true, fabric.OutcomeRefused},
				{2, false, true, fabric.OutcomeExitRaw}, {2, true, false, fabric.OutcomeRefused},
			} {
				b.change(sw, c.num, func(p *smp.PortInfo) { p.FilterRawInbound, p.FilterRawOutbound = c.in, c.out })
				b.want("raw", raw, c.want)
				b.change(sw, c.num, func(p *smp.PortInfo) { p.FilterRawInbound, p.FilterRawOutbound = false, false })
			}
			to4 := bytesOf(t, 4, 0, 0, 0, 64)
			(*packet.LRH)(to4).SetLNH(lnh)
			packet.SealVCRC(to4)
			b.change(sw, 2, func(p *smp.PortInfo) { p.FilterRawInbound = true })
			b.wantFrom("raw from the other port", 2, to4, fabric.OutcomeEntryRaw)
			b.change(sw, 2, func(p *smp.PortInfo) { p.FilterRawInbound = false })
			b.wantFrom("raw from the other port", 2, to4, fabric.OutcomeRefused)
		}
	})
	t.Run("QK-23 switches pass Q_Keys over", func(t *testing.T) {
		b, p := setUp(t)
		qpn := packetView(t, p(good, 3)).BTH.DestQP()
		for num := range ib.PortNum(2) {
			b.enforce(num+1, true, true)
		}
		for _, qkey := range []ib.QKey{0, 8, 0x8000_0007, 0xFFFF_FFFF} {
			b.want("QK-23", bytesOf(t, 3, qpn, good, qkey, 64), fabric.OutcomeRefused)
			if d := b.dropped[0]; d.Node != hostGUID(2) || d.Reason != endpoint.ReasonQKey || len(b.left) != 2 {
				t.Errorf("QK-23: Q_Key %v was refused by %v for %v; want by the host, for the Q_Key", qkey, d.Node, d.Reason)
			}
		}
		if b.violations(sw, 1) != 0 || b.Agent(sw).Port(1).QKeyViolations != 0 {
			t.Error("QK-23: the switch counts a Q_Key")
		}
	})
	t.Run("SI-29 PI-63 NeighborMTU", func(t *testing.T) {
		b, p := setUp(t)
		b.change(sw, 2, func(p *smp.PortInfo) { p.NeighborMTU = ib.MTU1024 })
		qpn := (packetView(t, p(good, 3))).BTH.DestQP()
		b.want("SI-29 1024", bytesOf(t, 3, qpn, good, 7, 1024), fabric.OutcomeTaken)
		b.want("SI-29 1028", bytesOf(t, 3, qpn, good, 7, 1028), fabric.OutcomeTooLong)
	})
	t.Run("SV-02 VL 15 is a drop", func(t *testing.T) {
		b, p := setUp(t)
		b.manage(sw, 0, func(c *client) {
			var table smp.SLToVLMappingTable
			table.VLs[0] = 3
			c.set(nil, 0x0102, &table)
		})
		b.want("SV-02", p(good, 3), fabric.OutcomeTaken)
		if got := packetView(t, b.left[1].Bytes).LRH.VL(); got != 3 || !packet.CheckVCRC(b.left[1].Bytes) {
			t.Errorf("SV-02: VL %d, VCRC right: %v", got, packet.CheckVCRC(b.left[1].Bytes))
		}
		b.manage(sw, 0, func(c *client) {
			var table smp.SLToVLMappingTable
			table.VLs[0] = ib.VLManagement
			c.set(nil, 0x0102, &table)
		})
		b.want("SV-02", p(good, 3), fabric.OutcomeExitLane)
	})
}

func packetView(t testing.TB, raw []byte) packet.View {
	t.Helper()
	v, err := packet.Parse(bytes.Clone(raw))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// PK-26: no unicast address makes copies; a multicast one does, for its group
// alone.
func TestNoBroadcast(t *testing.T) {
	b := newBench(t, star(t), fabric.DefaultConfig())
	b.manage(switchGUID(0), 0, func(c *client) {
		var table smp.MulticastForwardingTable
		table.Masks[5] = 1<<1 | 1<<3
		c.set(nil, 0, &table)
		info := *b.Agent(switchGUID(0)).SwitchInfo()
		info.MulticastFDBTop = 0xC005
		c.set(nil, 0, &info)
	})
	for lid := range 0x10000 {
		b.try(bytesOf(t, ib.LID(lid), ib.QPMulticast, 0xFFFF, 7, 0))
		copies := 0
		for _, s := range b.left {
			if s.Node == switchGUID(0) {
				copies++
			}
		}
		want := 0
		switch lid {
		case 2: // the sender's own: it would lead back
		case 3, 4, 0xC005:
			want = 1
		}
		if copies != want {
			t.Fatalf("LID %#x: %d copies left the switch, want %d", lid, copies, want)
		}
	}
}

// PK-25: a partition has members in several subnets, which a router joins.
func TestTwoSubnets(t *testing.T) {
	l := &topology.Netlist{}
	for i := range 3 {
		l.Nodes = append(l.Nodes, topology.NewNode(ib.NodeCA, []string{"a", "b", "c"}[i], hostGUID(i+1), 1))
	}
	r := topology.NewNode(ib.NodeRouter, "r", hostGUID(9), 3)
	l.Nodes = append(l.Nodes, r)
	for i := range 3 {
		if err := topology.Connect(l.Nodes[i], 1, r, ib.PortNum(i+1)); err != nil {
			t.Fatal(err)
		}
	}
	b := newBench(t, l, fabric.DefaultConfig())
	const prefix = 0xFEC0_0000_0000_0001
	for i := range ib.PortNum(3) {
		for _, end := range []struct {
			g   ib.NodeGUID
			num ib.PortNum
			lid ib.LID
		}{{hostGUID(int(i) + 1), 1, 5}, {r.GUID, i + 1, 9}} {
			b.change(end.g, end.num, func(p *smp.PortInfo) { p.GIDPrefix, p.LID = prefix+uint64(i), end.lid })
		}
	}
	b.keys(hostGUID(1), 1, 0x8005, 0x8006)
	b.keys(hostGUID(2), 1, 0x8005)
	b.keys(hostGUID(3), 1, 0x8005)
	ends := []*endpoint.QP{nil, b.qp(hostGUID(2), 0, 7, 8), b.qp(hostGUID(3), 0, 7, 8)}
	send := func(subnet int, index uint16, hops uint8) int {
		to := ends[subnet]
		from := b.qp(hostGUID(1), index, 7, 0)
		b.must(from.PostSend(endpoint.SendRequest{
			Data: []byte("hello"), RemoteQP: to.Number(), RemoteQKey: 7,
			To: endpoint.Address{DLID: 9, Global: true, HopLimit: hops, DGID: ib.MakeGID(prefix+uint64(subnet), b.l.Nodes[subnet].Ports[1].GUID)},
		}))
		b.idle()
		return b.arrived(to)
	}
	if n := send(1, 0, 4); n != 1 {
		t.Errorf("PK-25: the same key in both subnets: %d arrived, want 1; %s", n, b.outcomes())
	}
	if n := send(2, 0, 4); n != 1 {
		t.Errorf("PK-25: the same key in the third subnet: %d arrived, want 1; %s", n, b.outcomes())
	}
	if n := send(1, 1, 4); n != 0 || b.violations(hostGUID(2), 1) != 1 {
		t.Errorf("PK-25: different keys: %d arrived, %d violations, want 0 and 1", n, b.violations(hostGUID(2), 1))
	}
	if n := send(1, 0, 1); n != 0 {
		t.Error("a packet with hop limit 1 passed a router")
	}
}

// VB-06: what a manager writes reaches the consumer as an event of the port.
func TestEvents(t *testing.T) {
	c := fabric.DefaultConfig()
	c.Profile = func(_ *topology.Node, d *sma.Config) { d.TrapSends = 1 }
	b := newBench(t, star(t), c)
	d := b.device(hostGUID(1))
	want := func(id string, kinds ...endpoint.EventKind) {
		t.Helper()
		b.idle()
		for _, kind := range kinds {
			if e, ok := d.NextEvent(); !ok || e.Kind != kind || e.Port != 1 {
				t.Errorf("%s: event %+v, %v; want kind %d at port 1", id, e, ok, kind)
			}
		}
		if e, ok := d.NextEvent(); ok {
			t.Errorf("%s: event %+v too", id, e)
		}
	}
	b.keys(hostGUID(1), 1, 0xFFFF, 0x8005)
	want("VB-06", endpoint.EventPKeyChange)
	b.keys(hostGUID(1), 1, 0xFFFF, 0x8005)
	want("VB-06 the same again")
	b.change(hostGUID(1), 1, func(p *smp.PortInfo) { p.LID, p.MasterSMLID = 40, 2 })
	want("LID", endpoint.EventLIDChange, endpoint.EventSMChange)
	b.must(b.Flap(hostGUID(1), 1, 0))
	want("link down", endpoint.EventPortError)
	b.activate(hostGUID(1), 1)
	want("link up", endpoint.EventPortActive)
	b.manage(hostGUID(1), 1, func(c *client) {
		var block smp.GUIDInfo
		c.get(nil, 0, &block)
		block.GUIDs[1] = 0x0200_0000_0000_0077
		c.set(nil, 0, &block)
	})
	want("GID", endpoint.EventGIDChange)
}

// Trap 259 and trap 257 reach the manager.
func TestKeyTraps(t *testing.T) {
	c := fabric.DefaultConfig()
	c.Profile = func(n *topology.Node, d *sma.Config) {
		d.PKeyTraps, d.TrapSends = true, 1
		if d.Switch != nil {
			d.Switch.Port0.CapabilityMask |= smp.CapPKeySwitchExternalPortTrap
		}
	}
	b := newBench(t, star(t), c)
	qpn := b.qp(hostGUID(2), 0, 7, 1).Number()
	m := attach(t, b.Fabric, switchGUID(0), 0) // LID 1, which is everybody's MasterSMLID
	m.a.SetIsSM(true)
	trap := func() smp.TrapNumber {
		t.Helper()
		b.idle()
		var d fabric.Delivery
		var n smp.Notice
		for m.a.Receive(&d) { // those on the manager itself come first
			if err := n.UnmarshalBinary(d.MAD[64:128]); err != nil {
				t.Fatal(err)
			}
		}
		return n.TrapNumber
	}
	b.want("foreign", bytesOf(t, 3, qpn, 0x8005, 7, 0), fabric.OutcomeRefused)
	if n := trap(); n != smp.TrapBadPKey {
		t.Errorf("trap %d, want 257", n)
	}
	m.a.Detach()
	b.enforce(1, true, false)
	m = attach(t, b.Fabric, switchGUID(0), 0)
	m.a.SetIsSM(true)
	b.want("foreign", bytesOf(t, 3, qpn, 0x8005, 7, 0), fabric.OutcomeEntryPKey)
	if n := trap(); n != smp.TrapSwitchBadPKey {
		t.Errorf("trap %d, want 259", n)
	}
}
