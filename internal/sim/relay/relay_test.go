package relay_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/relay"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
)

// tableCap is the size of the P_Key tables of external ports: more than a block, and
// no multiple of one.
const tableCap = 45

// device makes an agent of a switch or router of three ports, active, with four
// data virtual lanes and an MTU of 1024.
func device(t *testing.T, kind ib.NodeType) *sma.Agent {
	t.Helper()
	c := sma.Config{NodeType: kind, NodeGUID: 0x500, PartitionCap: 8}
	for i := range ib.PortGUID(3) {
		p := sma.TypicalPort()
		if kind != ib.NodeSwitch {
			p.GUID = 0x501 + i
		}
		c.Ports = append(c.Ports, p)
	}
	if kind == ib.NodeSwitch {
		p := sma.TypicalPort()
		p.GUID = 0x500
		c.Switch = &sma.SwitchConfig{
			Port0: p, LinearFDBCap: 1024, MulticastFDBCap: 64, PartitionEnforcementCap: tableCap,
			InboundEnforcementCap: true, OutboundEnforcementCap: true, FilterRawInboundCap: true, FilterRawOutboundCap: true,
		}
	}
	a, err := sma.New(c)
	if err != nil {
		t.Fatal(err)
	}
	for n := ib.PortNum(1); n <= 3; n++ {
		a.LinkUp(0, n, sma.Link{Width: smp.LinkWidth4X, Speed: smp.LinkSpeedQDR})
		change(t, a, n, func(p *smp.PortInfo) {
			p.NeighborMTU, p.OperationalVLs, p.PortState = ib.MTU1024, 3, smp.PortArmed
			if kind != ib.NodeSwitch {
				p.LID, p.MasterSMLID = ib.LID(n)+20, 1
			}
		})
		change(t, a, n, func(p *smp.PortInfo) { p.PortState = smp.PortActive })
	}
	return a
}

// set writes an attribute as a manager would.
func set(t *testing.T, a *sma.Agent, in ib.PortNum, modifier uint32, v smp.Attribute) {
	t.Helper()
	p := mad.SMP{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnDirected, ClassVersion: mad.ClassVersion, Method: mad.MethodSet,
		AttributeID: v.ID(), AttributeModifier: modifier,
	}
	if err := v.Encode(&p.Data); err != nil {
		t.Fatal(err)
	}
	if r := a.Handle(0, sma.Ingress{Port: in}, &p); r.Verdict != sma.Answered || p.Status != mad.StatusOK {
		t.Fatalf("Set(%s) of %#x: verdict %v, status %v", smp.AttributeName(v.ID()), modifier, r.Verdict, p.Status)
	}
}

func change(t *testing.T, a *sma.Agent, n ib.PortNum, edit func(p *smp.PortInfo)) {
	t.Helper()
	info := *a.Port(n)
	info.PortState, info.PortPhysicalState = smp.PortStateNoChange, smp.PhysNoChange
	edit(&info)
	set(t, a, n, uint32(n), &info)
}

func keys(t *testing.T, a *sma.Agent, n ib.PortNum, list []ib.PKey) {
	t.Helper()
	for block := 0; block*smp.PKeysPerBlock < tableCap; block++ {
		var table smp.PKeyTable
		if first := block * smp.PKeysPerBlock; first < len(list) {
			copy(table.Keys[:], list[first:])
		}
		set(t, a, n, smp.PKeyModifier(n, uint16(block)), &table)
	}
}

// bytes is a sealed UD datagram.
func raw(t *testing.T, global bool, size int, edit func(v *packet.View)) []byte {
	t.Helper()
	b, v, err := packet.Append(nil, packet.MakeOpCode(packet.UD, packet.SendOnly), global, make([]byte, size))
	if err != nil {
		t.Fatal(err)
	}
	edit(&v)
	if err := packet.Seal(b); err != nil {
		t.Fatal(err)
	}
	return b
}

func read(t *testing.T, b []byte) *relay.Headers {
	t.Helper()
	h, v := relay.Read(b)
	if v != relay.Pass {
		t.Fatalf("a good packet is %v", v)
	}
	return &h
}

// withKey is a datagram with a key, raw for key 0.
func withKey(t *testing.T, key uint16) *relay.Headers {
	t.Helper()
	if key != 0 {
		return read(t, raw(t, false, 8, func(v *packet.View) { v.BTH.SetPKey(ib.PKey(key)) }))
	}
	b := make([]byte, packet.LRHSize+packet.RWHSize+8+packet.VCRCSize)
	h := (*packet.LRH)(b)
	h.SetPktLen(uint16((len(b) - packet.VCRCSize) / 4))
	h.SetLNH(packet.LNHRaw)
	return read(t, b)
}

// meets is the rule of keys, written down once more.
func meets(key uint16, table []ib.PKey) bool {
	for _, e := range table {
		if key&0x7FFF != 0 && (key^uint16(e))&0x7FFF == 0 && (key|uint16(e))&0x8000 != 0 {
			return true
		}
	}
	return false
}

// Random tables and bits, every key: what Enter and Leave say is what the rules say.
func TestEnforcementAgainstTheRules(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	counts := map[relay.Verdict]int{}
	for trial := range 60 {
		a := device(t, ib.NodeSwitch)
		var table [4][]ib.PKey
		var in, out, rawIn, rawOut [4]bool
		for n := ib.PortNum(1); n <= 3; n++ {
			for range 1 + r.IntN(tableCap) { // most of the keys are nobody's, so that each entry may decide
				key := ib.PKey(0x8100 + r.IntN(99))
				if r.IntN(12) == 0 {
					key = ib.PKey(r.IntN(2)<<15 | r.IntN(4))
				}
				table[n] = append(table[n], key)
			}
			keys(t, a, n, table[n])
			in[n], out[n], rawIn[n], rawOut[n] = r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0
			change(t, a, n, func(p *smp.PortInfo) {
				p.PartitionEnforcementInbound, p.PartitionEnforcementOutbound = in[n], out[n]
				p.FilterRawInbound, p.FilterRawOutbound = rawIn[n], rawOut[n]
			})
		}
		for _, key := range []uint16{0, 1, 2, 3, 4, 0x8000, 0x8001, 0x8002, 0x8003, 0x8004, 0xFFFF} {
			h := withKey(t, key)
			for n := ib.PortNum(1); n <= 3; n++ {
				enter, leave := relay.Pass, relay.Pass
				switch {
				case key == 0 && rawIn[n]:
					enter = relay.EntryRaw
				case key != 0 && in[n] && !meets(key, table[n]):
					enter = relay.EntryPKey
				}
				switch {
				case key == 0 && rawOut[n]:
					leave = relay.ExitRaw
				case key != 0 && out[n] && !meets(key, table[n]):
					leave = relay.ExitPKey
				}
				if got := relay.Enter(a, n, h); got != enter {
					t.Fatalf("seed 3, 4 trial %d: key %#x enters port %d: %v, want %v", trial, key, n, got, enter)
				}
				if _, got := relay.Leave(a, n%3+1, n, h); got != leave {
					t.Fatalf("seed 3, 4 trial %d: key %#x leaves port %d: %v, want %v", trial, key, n, got, leave)
				}
				counts[enter]++
				counts[leave]++
			}
		}
	}
	for _, v := range []relay.Verdict{relay.Pass, relay.EntryRaw, relay.EntryPKey, relay.ExitRaw, relay.ExitPKey} {
		if counts[v] < 20 {
			t.Errorf("%v came up %d times: the tables decide too little", v, counts[v])
		}
	}
}

func TestEnter(t *testing.T) {
	a := device(t, ib.NodeSwitch)
	h := withKey(t, 0xFFFF)
	for _, c := range []struct {
		state smp.PortState
		want  relay.Verdict
	}{{smp.PortDown, relay.EntryState}, {smp.PortInit, relay.EntryState}, {smp.PortArmed, relay.Pass}, {smp.PortActive, relay.Pass}} {
		if c.state == smp.PortDown {
			a.LinkDown(0, 1)
		} else if c.state == smp.PortInit {
			a.LinkUp(0, 1, sma.Link{Width: smp.LinkWidth4X, Speed: smp.LinkSpeedQDR})
		} else {
			change(t, a, 1, func(p *smp.PortInfo) { p.OperationalVLs, p.PortState = 3, c.state })
		}
		if got := relay.Enter(a, 1, h); got != c.want {
			t.Errorf("%v: %v, want %v", c.state, got, c.want)
		}
	}
	if got := relay.Enter(a, 9, h); got != relay.EntryState {
		t.Errorf("a port that there is not: %v", got)
	}
	for vl, want := range []relay.Verdict{relay.Pass, relay.Pass, relay.Pass, relay.Pass, relay.EntryLane} { // four virtual lanes
		lane := read(t, raw(t, false, 8, func(v *packet.View) { v.LRH.SetVL(ib.VL(vl)); v.BTH.SetPKey(0xFFFF) }))
		if got := relay.Enter(a, 2, lane); got != want {
			t.Errorf("VL %d: %v, want %v", vl, got, want)
		}
	}
}

func TestExitAndLeave(t *testing.T) {
	a := device(t, ib.NodeSwitch)
	var table smp.LinearForwardingTable
	for i := range table.Ports {
		table.Ports[i] = ib.PortNone
	}
	table.Ports[5], table.Ports[6], table.Ports[7] = 2, 0, 77
	set(t, a, 0, 0, &table)
	info := *a.SwitchInfo()
	info.LinearFDBTop = 7
	set(t, a, 0, 0, &info)
	to := func(lid ib.LID) *relay.Headers {
		return read(t, raw(t, false, 8, func(v *packet.View) { v.LRH.SetDLID(lid); v.BTH.SetPKey(0xFFFF) }))
	}
	for _, c := range []struct {
		in   ib.PortNum
		lid  ib.LID
		exit ib.PortNum
		want relay.Verdict
	}{
		{1, 5, 2, relay.Pass}, {2, 5, 0, relay.Loop}, {0, 5, 2, relay.Pass}, {1, 6, 0, relay.Pass}, {0, 6, 0, relay.Pass},
		{1, 7, 0, relay.NoRoute}, {1, 4, 0, relay.NoRoute}, {1, 8, 0, relay.NoRoute}, {1, 0xC001, 0, relay.NoRoute},
	} {
		if exit, v := relay.Exit(a, c.in, to(c.lid)); exit != c.exit || v != c.want {
			t.Errorf("LID %v from port %d: port %d, %v; want %d, %v", c.lid, c.in, exit, v, c.exit, c.want)
		}
	}
	// The MTU bounds the payload, whatever lies before it.
	for _, c := range []struct {
		size int
		want relay.Verdict
	}{{1024, relay.Pass}, {1028, relay.TooLong}, {2048, relay.TooLong}} {
		for _, global := range []bool{false, true} {
			h := read(t, raw(t, global, c.size, func(v *packet.View) { v.BTH.SetPKey(0xFFFF) }))
			if _, v := relay.Leave(a, 1, 2, h); v != c.want {
				t.Errorf("payload of %d, GRH %v: %v, want %v", c.size, global, v, c.want)
			}
		}
	}
	var lanes smp.SLToVLMappingTable
	lanes.VLs[3], lanes.VLs[4], lanes.VLs[5] = 2, ib.VLManagement, 4
	set(t, a, 0, 1<<8|2, &lanes)
	for sl, want := range map[ib.SL]relay.Verdict{3: relay.Pass, 4: relay.ExitLane, 5: relay.ExitLane} {
		h := read(t, raw(t, false, 8, func(v *packet.View) { v.LRH.SetSL(sl); v.BTH.SetPKey(0xFFFF) }))
		if vl, v := relay.Leave(a, 1, 2, h); v != want || v == relay.Pass && vl != 2 {
			t.Errorf("SL %d: VL %d, %v; want %v", sl, vl, v, want)
		}
		if vl, v := relay.Leave(a, 3, 2, h); v != relay.Pass || vl != 0 {
			t.Errorf("SL %d from another port: VL %d, %v; want 0", sl, vl, v)
		}
	}
	change(t, a, 3, func(p *smp.PortInfo) { p.PortState = smp.PortDown })
	if _, v := relay.Leave(a, 1, 3, to(5)); v != relay.ExitState {
		t.Errorf("a port that is down: %v", v)
	}
	if _, v := relay.Leave(a, 1, 9, to(5)); v != relay.ExitState {
		t.Errorf("a port that there is not: %v", v)
	}
}

func TestExits(t *testing.T) {
	a := device(t, ib.NodeSwitch)
	var table smp.MulticastForwardingTable
	table.Masks[2] = 0b1011
	set(t, a, 0, 0, &table)
	h := func(lid ib.LID) *relay.Headers {
		return read(t, raw(t, true, 8, func(v *packet.View) { v.LRH.SetDLID(lid); v.BTH.SetPKey(0xFFFF) }))
	}
	exits, v := relay.Exits(a, 1, h(0xC002))
	var got []ib.PortNum
	for n := range exits.All() {
		got = append(got, n)
	}
	if v != relay.Pass || len(got) != 2 || got[0] != 0 || got[1] != 3 {
		t.Errorf("copies to %v, %v; want 0 and 3, and never the port of arrival", got, v)
	}
	if _, v := relay.Exits(a, 1, h(0xC003)); v != relay.NoRoute {
		t.Errorf("a group without ports: %v", v)
	}
}

// A router goes by the prefix of DGID, and passes nothing on that has no hop left.
func TestCross(t *testing.T) {
	a := device(t, ib.NodeRouter)
	for n := ib.PortNum(1); n <= 3; n++ {
		change(t, a, n, func(p *smp.PortInfo) { p.GIDPrefix = 0xFE00 + uint64(n) })
	}
	for _, c := range []struct {
		in     ib.PortNum
		prefix uint64
		hops   uint8
		exit   ib.PortNum
		want   relay.Verdict
	}{
		{1, 0xFE02, 9, 2, relay.Pass}, {1, 0xFE03, 2, 3, relay.Pass}, {1, 0xFE03, 1, 0, relay.HopLimit}, {1, 0xFE03, 0, 0, relay.HopLimit},
		{2, 0xFE02, 9, 0, relay.Loop}, {1, 0xFE09, 9, 0, relay.NoRoute}, {1, 0xFF02 << 48, 9, 0, relay.NoRoute},
	} {
		h := read(t, raw(t, true, 8, func(v *packet.View) {
			v.GRH.SetDGID(ib.MakeGID(c.prefix, 7))
			v.GRH.SetHopLmt(c.hops)
		}))
		if exit, v := relay.Cross(a, c.in, h); exit != c.exit || v != c.want {
			t.Errorf("prefix %#x, %d hops, from port %d: port %d, %v; want %d, %v", c.prefix, c.hops, c.in, exit, v, c.exit, c.want)
		}
	}
	if _, v := relay.Cross(a, 1, withKey(t, 0xFFFF)); v != relay.NoRoute {
		t.Errorf("without a GRH: %v", v)
	}
}

// What relays change leaves the ICRC right, and the VCRC right or wrong on purpose.
func TestBytes(t *testing.T) {
	b := raw(t, true, 40, func(v *packet.View) { v.GRH.SetHopLmt(5); v.BTH.SetPKey(0xFFFF) })
	right := func(what string, vcrc bool) {
		t.Helper()
		if icrc, err := packet.CheckICRC(b); err != nil || !icrc || packet.CheckVCRC(b) != vcrc {
			t.Errorf("%s: ICRC right %v, VCRC right %v; want true and %v", what, icrc, packet.CheckVCRC(b), vcrc)
		}
	}
	relay.Shift(b, 3)
	right("another VL", true)
	if vl := (*packet.LRH)(b).VL(); vl != 3 {
		t.Errorf("VL %d, want 3", vl)
	}
	read(t, b).Readdress(11, 12)
	right("another subnet", true)
	if h := read(t, b); h.LRH.SLID() != 11 || h.LRH.DLID() != 12 || h.GRH.HopLmt() != 4 {
		t.Errorf("from %v to %v, hop limit %d; want 11, 12 and 4", h.LRH.SLID(), h.LRH.DLID(), h.GRH.HopLmt())
	}
	before := bytes.Clone(b)
	relay.Spoil(b)
	right("spoiled", false)
	if !bytes.Equal(b[:len(b)-packet.VCRCSize], before[:len(b)-packet.VCRCSize]) {
		t.Error("spoiling changed more than the VCRC")
	}
	relay.Spoil(nil) // too short to have a VCRC: nothing to do
}

func TestRead(t *testing.T) {
	good := raw(t, true, 8, func(*packet.View) {})
	for _, c := range []struct {
		name string
		edit func(b []byte) []byte
	}{
		{"nothing", func([]byte) []byte { return nil }},
		{"shorter than an LRH", func(b []byte) []byte { return b[:9] }},
		{"LVer 1", func(b []byte) []byte { (*packet.LRH)(b).SetLVer(1); return b }},
		{"PktLen", func(b []byte) []byte { (*packet.LRH)(b).SetPktLen(9); return b }},
		{"IPVer 4", func(b []byte) []byte { (*packet.GRH)(b[8:]).SetIPVer(4); return b }},
		{"NxtHdr", func(b []byte) []byte { (*packet.GRH)(b[8:]).SetNxtHdr(6); return b }},
		{"no room for a GRH", func(b []byte) []byte { (*packet.LRH)(b).SetPktLen(10); return b[:42] }},
		{"no room for a BTH", func(b []byte) []byte { (*packet.LRH)(b).SetPktLen(14); return b[:58] }},
	} {
		if _, v := relay.Read(c.edit(bytes.Clone(good))); v != relay.Malformed {
			t.Errorf("%s: %v", c.name, v)
		}
	}
	h := read(t, raw(t, true, 8, func(v *packet.View) {
		v.LRH.SetSLID(3)
		v.LRH.SetDLID(4)
		v.LRH.SetSL(5)
		v.GRH.SetSGID(ib.GID{1})
		v.GRH.SetDGID(ib.GID{2})
		v.BTH.SetPKey(0x8006)
		v.BTH.SetDestQP(7)
		v.DETH.SetSrcQP(8)
	}))
	if got, want := h.Offence(), (smp.BadKeyDetails{
		LID1: 3, LID2: 4, SL: 5, GID1: ib.GID{1}, GID2: ib.GID{2}, Key: 0x8006, QP1: 8, QP2: 7,
	}); got != want {
		t.Errorf("a trap would tell %+v, want %+v", got, want)
	}
	if got := withKey(t, 0).Offence(); got != (smp.BadKeyDetails{}) {
		t.Errorf("a raw packet has no key: %+v", got)
	}
}
