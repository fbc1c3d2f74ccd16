package snapshot_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// small is two switches with two hosts each, and a switch port that is free.
func small() *snapshot.Snapshot {
	b := subnettest.New()
	x, y := b.Switch(4, "s1"), b.Switch(4, "s2")
	subnettest.Join(x, y)
	for i := range 4 {
		p := b.Host([]*observed.Node{x, y}[i/2], fmt.Sprintf("h%d", i))
		subnettest.SetPKeysThrough(p, 0x7FFF, 0x8001)
		p.Info.MKey = 7
	}
	for _, n := range []*observed.Node{x, y} {
		n.Switch.LFT, n.Switch.LFTRead = make([]ib.PortNum, 64), []bool{true}
		n.Switch.MFT = map[uint32]smp.MulticastForwardingTable{0: {}}
	}
	b.Fabric.Self = b.Fabric.Nodes[2].Ports[1].Peer.Peer
	return &snapshot.Snapshot{Fabric: b.Fabric, Asked: []string{snapshot.AskedAudit, snapshot.AskedForwarding, snapshot.AskedMulticast}}
}

// Every change of what counts is a difference, where it is, and nothing else is.
func TestDiff(t *testing.T) {
	for _, x := range []struct {
		name   string
		change func(h *observed.Port, s *snapshot.Snapshot) // h is the port of h0
		want   []string
	}{
		{"nothing", func(*observed.Port, *snapshot.Snapshot) {}, nil},
		{"another M_Key in its place", func(h *observed.Port, _ *snapshot.Snapshot) { h.Info.MKey = 8 }, nil},
		{"a counter", func(h *observed.Port, _ *snapshot.Snapshot) { h.Info.PKeyViolations = 9 }, nil},
		{"the order of keys", func(h *observed.Port, _ *snapshot.Snapshot) { subnettest.SetPKeys(h, 0x7FFF, 0, 0x8001) }, nil},
		{"index 0", func(h *observed.Port, _ *snapshot.Snapshot) { subnettest.SetPKeys(h, 0x8001, 0x7FFF) }, []string{"h0 P_Key at index 0: 0x7fff, 0x8001"}},
		{"a key", func(h *observed.Port, _ *snapshot.Snapshot) { h.PKeys[1] = 0x8002 }, []string{"h0 P_Keys: 0x8001, 0x8002"}},
		{"a key of a switch", func(h *observed.Port, _ *snapshot.Snapshot) { h.Peer.PKeys[2] = 0x8002 }, []string{"s1:2 P_Keys: , 0x8002"}},
		{"an unread table", func(h *observed.Port, _ *snapshot.Snapshot) { h.PKeysRead[0] = false }, []string{"h0 P_Keys: 0x7fff 0x8001, (not all read)"}},
		{"no M_Key", func(h *observed.Port, _ *snapshot.Snapshot) { h.Info.MKey = 0 }, []string{"h0 guard: M_Key, M_KeyProtectBits 0, M_KeyLeasePeriod 0 s, none"}},
		{"enforcement", func(h *observed.Port, _ *snapshot.Snapshot) { h.Peer.Info.PartitionEnforcementInbound = false },
			[]string{"s1:2 enforcement: inbound on, outbound on, inbound off, outbound on"}},
		{"raw filter", func(h *observed.Port, _ *snapshot.Snapshot) { h.Peer.Info.FilterRawOutbound = true },
			[]string{"s1:2 raw filter: inbound off, outbound off, inbound off, outbound on"}},
		{"LID", func(h *observed.Port, _ *snapshot.Snapshot) { h.Info.LID = 40 }, []string{"h0 LID: 3, LMC 0, 40, LMC 0"}},
		{"not read", func(h *observed.Port, _ *snapshot.Snapshot) { h.Peer.InfoRead = false }, []string{"s1:2 link: Active, not read",
			"s1:2 enforcement: inbound on, outbound on, not read", "s1:2 raw filter: inbound off, outbound off, not read"}},
		{"a manager", func(h *observed.Port, _ *snapshot.Snapshot) { h.SMInfoRead, h.SMInfo.SMState = true, smp.SMMaster }, []string{"h0 manager behind: , master, priority 0"}},
		{"a route", func(h *observed.Port, _ *snapshot.Snapshot) { h.Peer.Node.Switch.LFT[5] = 2 }, []string{"s1 forwarding table: , 1 LIDs have another port"}},
		{"an unread route", func(h *observed.Port, _ *snapshot.Snapshot) { h.Peer.Node.Switch.LFTRead[0] = false }, []string{"s1 forwarding table: , not all read"}},
		{"multicast", func(h *observed.Port, _ *snapshot.Snapshot) {
			h.Peer.Node.Switch.MFT[1] = smp.MulticastForwardingTable{}
		}, []string{"s1 multicast forwarding table: , another"}},
		{"less was asked for", func(h *observed.Port, s *snapshot.Snapshot) {
			s.Asked, h.Peer.Node.Switch.LFT, h.Peer.Node.Switch.MFT = nil, nil, nil
		}, nil},
		{"a name", func(h *observed.Port, _ *snapshot.Snapshot) { h.Node.Description = "x" }, []string{"h0 name: h0, x"}},
		{"a second device", func(h *observed.Port, _ *snapshot.Snapshot) { h.Node.Contested = true }, []string{
			"h0 device: CA of 1 ports, VendorID 0x000000, DeviceID 0x0000, Revision 0x0, CA of 1 ports, VendorID 0x000000, DeviceID 0x0000, Revision 0x0, a second one has its GUID"}},
		{"a host elsewhere", func(h *observed.Port, s *snapshot.Snapshot) {
			free := subnettest.Free(h.Peer.Node)
			h.Peer.Peer, h.Peer, free.Peer = nil, free, h
		}, []string{"s1:2 unknown device behind: , does not answer", "h0 cable: s1 (0x0000000000001000 port 2), s1 (0x0000000000001000 port 4)"}},
		{"no cable between switches", func(h *observed.Port, _ *snapshot.Snapshot) {
			up := &h.Peer.Node.Ports[1]
			up.Peer.Peer, up.Peer = nil, nil
		}, []string{"s1:1 cable: s2 (0x0000000000001010 port 1), ", "s1:1 unknown device behind: , does not answer", "s2:1 unknown device behind: , does not answer"}},
	} {
		a, b := small(), small()
		x.change(&b.Fabric.Nodes[2].Ports[1], b)
		var got []string
		for _, d := range snapshot.Diff(a, b) {
			got = append(got, fmt.Sprintf("%s %s: %s, %s", d.Where, d.What, d.Was, d.Is))
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", x.name, strings.Join(got, "\n"), strings.Join(x.want, "\n"))
		}
		if back := snapshot.Diff(b, a); len(back) != len(got) {
			t.Errorf("%s: %d differences one way, %d the other", x.name, len(got), len(back))
		}
	}
}

// A device that only one snapshot has is a row, with its keys and its cable.
func TestDiffOfDevices(t *testing.T) {
	a, b := small(), small()
	h := &b.Fabric.AddNode(smp.NodeInfo{NodeType: ib.NodeCA, NumPorts: 1, NodeGUID: 0x9000, PartitionCap: 4}).Ports[1]
	h.Reached, h.InfoRead = true, true
	subnettest.SetPKeys(h, 0xFFFF)
	observed.Connect(h, subnettest.Free(b.Fabric.Nodes[0]))
	var got []string
	for _, d := range snapshot.Diff(a, b) {
		got = append(got, d.What)
	}
	if want := []string{"device", "cable", "P_Keys"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
