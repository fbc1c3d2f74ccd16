package views

import (
	"errors"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// wordsLink is a host at a leaf, as the provider sees them.
type wordsLink struct {
	leaf, host *observed.Port
	facts      *MapFacts
	found      []Difference
}

func newLink() *wordsLink {
	b := subnettest.New()
	b.PortInfo = smp.PortInfo{
		LinkWidthSupported: smp.LinkWidth1X | smp.LinkWidth4X, LinkWidthEnabled: smp.LinkWidthAll, LinkWidthActive: smp.LinkWidth4X,
		LinkSpeedExtSupported: smp.LinkSpeedEDR | smp.LinkSpeedHDR, LinkSpeedExtEnabled: smp.LinkSpeedExtAll, LinkSpeedExtActive: smp.LinkSpeedHDR,
		PartitionEnforcementInbound: true, PartitionEnforcementOutbound: true, NeighborMTU: 5,
	}
	leaf := b.Switch(4, "leaf-1")
	host := b.Host(leaf, "host-1")
	for _, p := range []*observed.Port{host, host.Peer, &leaf.Ports[0]} {
		subnettest.SetPKeys(p, 0x8010, 0x0020)
	}
	return &wordsLink{host.Peer, host, &MapFacts{Snapshot: &snapshot.Snapshot{Fabric: b.Fabric}, Cabling: &Cabling{}}, nil}
}

// view is how the provider sees the device of a port.
func (l *wordsLink) view(t *testing.T, p *observed.Port) *DeviceView {
	t.Helper()
	v := &DeviceView{Node: p.Node, Facts: l.facts, Differences: l.found}
	if !v.By(resource.New(&policy.Policy{}), resource.Caller{Tenant: resource.Provider}) {
		t.Fatal("the provider does not see a device")
	}
	return v
}

// TestProblems: what is wrong with a port stands in its row, in the words of the device and of
// the port.
func TestProblems(t *testing.T) {
	for name, x := range map[string]struct {
		change  func(l *wordsLink)
		problem string // of the switch port; "" for none
		word    string // of the switch port
	}{
		"nothing":    {func(*wordsLink) {}, "", "Its link is Active: packets pass."},
		"initialize": {func(l *wordsLink) { l.leaf.Info.PortState = smp.PortInit }, "up, and Initialize instead of Active", "only packets of subnet management pass"},
		"down": {func(l *wordsLink) {
			l.leaf.Peer = nil
			l.leaf.Info.PortState = smp.PortDown
			l.leaf.Info.PortPhysicalState = smp.PhysDisabled
		}, "", "Its link is down (Disabled): nothing passes."},
		"unread":      {func(l *wordsLink) { l.leaf.InfoRead = false }, "PortInfo was not read", "Its PortInfo was not read"},
		"keys unread": {func(l *wordsLink) { l.leaf.PKeysRead[0] = false }, "P_KeyTable was not read", "it may hold more keys than are shown"},
		"fence": {func(l *wordsLink) {
			l.facts.Cabling.Fences = []Fence{{At: l.leaf.Place(), Reason: "a test"}}
		}, "fenced", "It is fenced: a test. Nothing passes."},
		"stranger": {func(l *wordsLink) {
			l.leaf.Peer = nil
			l.leaf.Stranger = &observed.Stranger{Why: errors.New("255 ports")}
		}, "what is behind it was not let into the subnet", "was not let into the subnet: 255 ports."},
		"silent": {func(l *wordsLink) { l.leaf.Peer, l.leaf.Silent = nil, true }, "nobody answers behind it", "Something is behind it that does not answer."},
		"narrow": {func(l *wordsLink) { l.leaf.Info.LinkWidthActive = smp.LinkWidth1X }, "1X wide, and both ends may be 4X", "It could do better: it is 1X wide, and both ends may be 4X."},
		"narrow on purpose": {func(l *wordsLink) {
			l.leaf.Info.LinkWidthActive, l.leaf.Info.LinkWidthEnabled = smp.LinkWidth1X, smp.LinkWidth1X
		}, "", "The link is 1X wide"},
		"slow": {func(l *wordsLink) { l.leaf.Info.LinkSpeedExtActive = smp.LinkSpeedEDR }, "25.78125 Gbps a lane, and both ends may run at 53.125 Gbps", "It could do better"},
		"slow by peer": {func(l *wordsLink) {
			l.leaf.Info.LinkSpeedExtActive, l.host.Info.LinkSpeedExtSupported = smp.LinkSpeedEDR, smp.LinkSpeedEDR
		}, "", "at 25.78125 Gbps a lane"},
		"no checks":    {func(l *wordsLink) { l.leaf.Info.PartitionEnforcementOutbound = false }, "does not check P_Keys", "a host that changes its own table may get through"},
		"cannot check": {func(l *wordsLink) { l.leaf.Node.Switch.Info.PartitionEnforcementCap, l.leaf.PKeysRead = 0, nil }, "does not check P_Keys", "It cannot check P_Keys: the switch has no room for a table."},
		"refused":      {func(l *wordsLink) { l.leaf.Info.PKeyViolations = 7 }, "", "It has refused 7 packets with a P_Key that it does not hold."},
		"keys":         {func(*wordsLink) {}, "", "It holds 2 keys of 32: full member of 0x0010, limited member of 0x0020."},
		"checks":       {func(*wordsLink) {}, "", "It checks the P_Keys of packets in both directions."},
		"cables differ": {func(l *wordsLink) {
			l.found = []Difference{{Node: l.leaf.Node.GUID().String(), Port: int(l.leaf.Num), Text: "expected host-2"}}
		}, "expected host-2", "By the list of cables: expected host-2."},
	} {
		l := newLink()
		x.change(l)
		v := l.view(t, l.leaf)
		d := v.Device()
		if got := d.Ports[l.leaf.Num].Problem; got != x.problem {
			t.Errorf("%s: problem %q, want %q", name, got, x.problem)
		}
		if text := strings.Join(d.Words, " "); x.problem != "" && !strings.Contains(text, "port 1 ("+x.problem+")") {
			t.Errorf("%s: %s: want the problem", name, text)
		}
		if text := strings.Join(v.Details(l.leaf).Words, " "); !strings.Contains(text, x.word) {
			t.Errorf("%s: %s: want %q", name, text, x.word)
		}
	}
}

// TestUnreadIsSaid: of what was not read nothing is shown as if it were.
func TestUnreadIsSaid(t *testing.T) {
	l := newLink()
	l.leaf.InfoRead, l.leaf.PKeysRead[0] = false, false
	l.leaf.Node.Switch.InfoRead = false
	v := l.view(t, l.leaf)
	d := v.Device()
	row := d.Ports[l.leaf.Num]
	if row.State != "" || row.Keys != nil || row.Enforces != nil || row.Width != "" || d.State != "unread" {
		t.Errorf("%+v of a port that was not read, state %s", row, d.State)
	}
	if text := strings.Join(d.Words, " "); !strings.Contains(text, "Not read: SwitchInfo, PortInfo of port 1, P_KeyTable of port 1.") {
		t.Error(text)
	}
	whole := v.Details(l.leaf)
	if len(whole.PKeys) > 0 || strings.Join(whole.Unread, ", ") != "PortInfo, P_KeyTable" {
		t.Errorf("keys %v, unread %v", whole.PKeys, whole.Unread)
	}
	for _, a := range whole.Attributes {
		if a.Name == "PortInfo" && !a.Old {
			t.Error("a PortInfo that was not read the last time is not marked")
		}
	}
	// A host of which nothing was read is unknown, not healthy.
	l = newLink()
	l.host.InfoRead = false
	if d := l.view(t, l.host).Device(); d.State != "unread" || d.Ports[0].Problem != "PortInfo was not read" || d.Verdict != "unknown" {
		t.Errorf("%+v", d)
	}
}

// TestAPortOfAHost: its words say how it is addressed and guarded.
func TestAPortOfAHost(t *testing.T) {
	l := newLink()
	l.host.Info.DiagCode, l.host.Info.MKey, l.host.Info.MKeyProtectBits = smp.DiagCode(smp.DiagHardFailure), 0x99, 2
	l.host.Info.LMC, l.host.Info.CapabilityMask = 2, smp.CapIsSM
	l.host.Info.LID = 8
	v := l.view(t, l.host)
	text := strings.Join(v.Details(l.host).Words, " ")
	for _, want := range []string{
		"LIDs 8 to 11", "guarded by an M_Key, with protect bits 2", "It says of itself: hard failure", "a subnet manager runs behind it", "It is cabled to port 1 of leaf-1",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s: want %q", text, want)
		}
	}
	if d := v.Device(); d.Ports[0].Problem != "says of itself: hard failure" || d.Owner != "provider" || d.Words[1] != "It belongs to the provider." {
		t.Errorf("%+v", d)
	}
	if strings.Contains(text, "0x99") || strings.Contains(text, "153") {
		t.Errorf("%s tells the key", text)
	}
}
