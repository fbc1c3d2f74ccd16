package reach

import (
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// twoHosts are two hosts at two switches, all in order: both hold 0x8001 at
// index 0, every guard the same, and every pair of ports maps SL n to VL n/4.
func twoHosts() (f *observed.Fabric, a, b *observed.Port) {
	x := subnettest.New()
	x.NodeInfo.PartitionCap = 8
	x.SwitchInfo.PartitionEnforcementCap, x.SwitchInfo.FilterRawInboundCap, x.SwitchInfo.FilterRawOutboundCap = 8, true, true
	x.PortInfo.VLCap, x.PortInfo.OperationalVLs = 3, 3 // four virtual lanes
	first, second := x.Switch(8, "s0"), x.Switch(8, "s1")
	subnettest.Join(first, second)
	a, b = x.Host(first, "a"), x.Host(second, "b")
	x.Route()
	for _, n := range x.Fabric.Nodes {
		for i := range n.Ports {
			p := &n.Ports[i]
			subnettest.SetPKeys(p, 0x8001)
			p.SLToVL = make(map[ib.PortNum]smp.SLToVLMappingTable)
			for in := range n.Ports {
				var t smp.SLToVLMappingTable
				for sl := range t.VLs {
					t.VLs[sl] = ib.VL(sl / 4)
				}
				p.SLToVL[ib.PortNum(in)] = t
			}
		}
	}
	return x.Fabric, a, b
}

func setVL(p *observed.Port, in ib.PortNum, sl ib.SL, vl ib.VL) {
	t := p.SLToVL[in]
	t.VLs[sl] = vl
	p.SLToVL[in] = t
}

// Each rule in turn is what ends a packet, and the last check of the trace says
// which, at which port, by which entry.
func TestEachRule(t *testing.T) {
	key := ib.PKey(0x8001)
	q := func(k ib.QKey) *ib.QKey { return &k }
	for name, x := range map[string]struct {
		change func(f *observed.Fabric, a, b *observed.Port)
		packet Packet
		want   Disposition
		last   string // rule, result, entry of the last check
	}{
		"in order":            {nil, Packet{PKey: key, SL: 9}, Delivered, "P_Key of the receiver pass index 0 is 0x8001"},
		"raw":                 {nil, Packet{Service: Raw}, Delivered, "LID pass"},
		"QP1":                 {nil, Packet{PKey: key, QKey: q(ib.QKeyGSI)}, Delivered, "Q_Key pass"},
		"another QP":          {nil, Packet{PKey: key, QKey: q(7)}, Unknown, "Q_Key unknown"},
		"no Q_Key in RC":      {nil, Packet{PKey: key, QKey: q(7), Service: RC}, Delivered, "P_Key of the receiver pass"},
		"key not held":        {nil, Packet{PKey: 0x8002}, SourceKey, "P_Key of the sender stop no entry is 0x8002"},
		"membership not held": {nil, Packet{PKey: 0x0001}, SourceKey, "stop no entry is 0x0001, index 0 is 0x8001 is of the same partition"},
		"no key":              {nil, Packet{PKey: 0x8000}, SourceKey, "P_Key of the sender stop"},
		"SL that is none":     {nil, Packet{PKey: key, SL: 16}, NoLane, "VL stop SL 16"},
		"source table unread": {func(_ *observed.Fabric, a, _ *observed.Port) { a.PKeysRead[0] = false },
			Packet{PKey: key}, Unknown, "P_Key of the sender unknown"},
		"link not active": {func(_ *observed.Fabric, a, _ *observed.Port) { a.Info.PortState = smp.PortArmed },
			Packet{PKey: key}, LinkState, "state stop Armed"},
		"no cable": {func(_ *observed.Fabric, a, _ *observed.Port) { a.Peer = nil },
			Packet{PKey: key}, DeadEnd, "cable stop"},
		"armed is enough on arrival": {func(_ *observed.Fabric, a, _ *observed.Port) { a.Peer.Info.PortState = smp.PortArmed },
			Packet{PKey: key}, Delivered, "P_Key of the receiver pass"},
		"SL dropped by the sender": {func(_ *observed.Fabric, a, _ *observed.Port) { setVL(a, 0, 2, 15) },
			Packet{PKey: key, SL: 2}, NoLane, "VL stop SL 2 to VL 15"},
		"SL dropped by the last switch": {func(f *observed.Fabric, a, b *observed.Port) {
			for in := range b.Peer.Node.Ports {
				setVL(b.Peer, ib.PortNum(in), 2, 15)
			}
		}, Packet{PKey: key, SL: 2}, NoLane, "VL stop SL 2 to VL 15"},
		"VL not in operation": {func(_ *observed.Fabric, a, _ *observed.Port) { a.Info.OperationalVLs = 2 },
			Packet{PKey: key, SL: 9}, NoLane, "VL stop SL 9 to VL 2, 2 in operation"},
		"VL not in operation on arrival": {func(_ *observed.Fabric, a, _ *observed.Port) { a.Peer.Info.OperationalVLs = 2 },
			Packet{PKey: key, SL: 9}, NoLane, "VL stop VL 2, 2 in operation"},
		"VL table unread": {func(_ *observed.Fabric, a, _ *observed.Port) { a.SLToVL = nil },
			Packet{PKey: key}, Unknown, "VL unknown"},
		"one VL needs no table": {func(_ *observed.Fabric, a, _ *observed.Port) { a.SLToVL, a.Info.VLCap = nil, 1 },
			Packet{PKey: key, SL: 9}, Delivered, "P_Key of the receiver pass"},
		"raw filter inbound": {func(_ *observed.Fabric, a, _ *observed.Port) { a.Peer.Info.FilterRawInbound = true },
			Packet{Service: Raw}, InboundRaw, "raw filter inbound stop"},
		"raw filter outbound": {func(_ *observed.Fabric, _, b *observed.Port) { b.Peer.Info.FilterRawOutbound = true },
			Packet{Service: Raw}, OutboundRaw, "raw filter outbound stop"},
		"inbound": {func(_ *observed.Fabric, a, _ *observed.Port) { a.Peer.PKeys[0] = 0x8002 },
			Packet{PKey: key}, InboundKey, "P_Key inbound stop no entry matches 0x8001"},
		"inbound with a limited entry": {func(_ *observed.Fabric, a, _ *observed.Port) { a.Peer.PKeys[0], a.Peer.PKeys[7] = 0, 1 },
			Packet{PKey: key}, Delivered, "P_Key of the receiver pass"},
		"inbound unread": {func(_ *observed.Fabric, a, _ *observed.Port) { a.Peer.PKeysRead[0] = false },
			Packet{PKey: key}, Unknown, "P_Key inbound unknown"},
		"SwitchInfo unread": {func(_ *observed.Fabric, a, _ *observed.Port) { a.Peer.Node.Switch.InfoRead = false },
			Packet{PKey: key}, Unknown, "checks on arrival unknown"},
		"outbound": {func(_ *observed.Fabric, _, b *observed.Port) { b.Peer.PKeys[0] = 0x8002 },
			Packet{PKey: key}, OutboundKey, "P_Key outbound stop"},
		"destination": {func(_ *observed.Fabric, _, b *observed.Port) { b.PKeys[0] = 0x8002 },
			Packet{PKey: key}, DestinationKey, "P_Key of the receiver stop"},
		"two limited members": {func(_ *observed.Fabric, a, b *observed.Port) {
			a.PKeys[0], a.Peer.PKeys[0], b.PKeys[0], b.Peer.PKeys[0] = 1, key, 1, key
		},
			Packet{PKey: 1}, DestinationKey, "P_Key of the receiver stop no entry matches 0x0001: index 0 is 0x0001, and both are limited"},
		"destination unread": {func(_ *observed.Fabric, _, b *observed.Port) { b.PKeysRead[0] = false },
			Packet{PKey: key}, Unknown, "P_Key of the receiver unknown"},
		"no route": {func(_ *observed.Fabric, a, b *observed.Port) { a.Peer.Node.Switch.LFT[b.Info.LID] = 255 },
			Packet{PKey: key}, NoRoute, "forwarding stop"},
		"above the top": {func(_ *observed.Fabric, a, b *observed.Port) { a.Peer.Node.Switch.Info.LinearFDBTop = b.Info.LID - 1 },
			Packet{PKey: key}, NoRoute, "forwarding stop"},
		"route unread": {func(_ *observed.Fabric, a, _ *observed.Port) { a.Peer.Node.Switch.LFTRead[0] = false },
			Packet{PKey: key}, Unknown, "forwarding unknown LinearForwardingTable was not read"},
		"back": {func(_ *observed.Fabric, a, b *observed.Port) { a.Peer.Node.Switch.LFT[b.Info.LID] = a.Peer.Num },
			Packet{PKey: key}, Loop, "where it came from"},
		"to the switch": {func(_ *observed.Fabric, a, b *observed.Port) { a.Peer.Node.Switch.LFT[b.Info.LID] = 0 },
			Packet{PKey: key}, WrongDestination, "LID stop"},
		"LID unread": {func(_ *observed.Fabric, _, b *observed.Port) { b.InfoRead = false },
			Packet{PKey: key}, Unknown, "forwarding unknown"},
		"no LID": {func(_ *observed.Fabric, _, b *observed.Port) { b.Info.LID = 0 },
			Packet{PKey: key}, NoRoute, "forwarding stop"},
	} {
		f, a, b := twoHosts()
		if x.change != nil {
			x.change(f, a, b)
		}
		got := Follow(a, b, x.packet)
		if got.Disposition != x.want {
			t.Errorf("%s: %s (%s), want %s", name, got.Disposition, got.Reason, x.want)
			continue
		}
		checks := got.Hops[len(got.Hops)-1].Checks
		last := checks[len(checks)-1]
		if text := last.Rule + " " + last.Result + " " + last.Entry; !strings.Contains(text, x.last) {
			t.Errorf("%s: last check %q, want %q", name, text, x.last)
		}
		if got.Reason == "" || got.From != a.GUID || got.To != b.GUID || (got.PKey == nil) != (x.packet.Service == Raw) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A service level may change its virtual lane at every switch.
func TestLanes(t *testing.T) {
	_, a, b := twoHosts()
	for in := range b.Peer.Node.Ports {
		setVL(b.Peer, ib.PortNum(in), 9, 1)
	}
	got := Follow(a, b, Packet{PKey: 0x8001, SL: 9})
	if got.Disposition != Delivered || len(got.Hops) != 4 {
		t.Fatalf("%+v", got)
	}
	for i, want := range []ib.VL{2, 2, 1} {
		if vl := got.Hops[i].VL; vl == nil || *vl != want {
			t.Errorf("hop %d leaves on %v, want %d", i, vl, want)
		}
	}
	if got.Hops[3].VL != nil || got.Hops[3].In != 1 || got.Hops[3].Out != 0 || got.Hops[0].In != 0 {
		t.Errorf("ends %+v", got.Hops)
	}
}

func TestNames(t *testing.T) {
	for _, d := range Dispositions() {
		if text, err := d.MarshalText(); err != nil || len(text) == 0 || d != Unknown && string(text) == "unknown" {
			t.Errorf("disposition %d is %q, %v", d, text, err)
		}
	}
	if Disposition(99).String() != "unknown" {
		t.Error("what does not exist is not unknown")
	}
	for _, s := range []Service{UD, RC, UC, RD, Raw} {
		if back, err := ParseService(s.String()); err != nil || back != s {
			t.Errorf("%s comes back as %s, %v", s, back, err)
		}
	}
	if _, err := ParseService("ud"); err == nil {
		t.Error("ud is taken")
	}
}
