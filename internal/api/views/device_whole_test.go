package views

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/test/storetest"
)

// deviceWorld is a fabric of every kind of device, and its state: two leaves and a spine, hosts of red,
// blue and zinc, a device of two owners, and a router.
type deviceWorld struct {
	*subnettest.Builder
	leaf, other, spine, both, router *observed.Node
	red, blue, zinc                  *observed.Port
	facts                            *MapFacts
	found                            []Difference
	state                            *storetest.State
}

func newDeviceWorld(t *testing.T) *deviceWorld {
	b := subnettest.New()
	b.NodeInfo.VendorID, b.NodeInfo.DeviceID, b.NodeInfo.Revision = 0x2c9, 0x1017, 7
	b.PortInfo = smp.PortInfo{
		LinkWidthSupported: smp.LinkWidth1X | smp.LinkWidth4X, LinkWidthEnabled: smp.LinkWidthAll, LinkWidthActive: smp.LinkWidth4X,
		LinkSpeedSupported: smp.LinkSpeedSDR | smp.LinkSpeedQDR, LinkSpeedEnabled: smp.LinkSpeedAll, LinkSpeedActive: smp.LinkSpeedQDR,
		PartitionEnforcementInbound: true, PartitionEnforcementOutbound: true, NeighborMTU: 5, MKey: 0x99, MKeyProtectBits: 1,
	}
	w := &deviceWorld{Builder: b}
	w.leaf, w.other, w.spine = b.Switch(6, "leaf"), b.Switch(6, "other"), b.Switch(4, "spine")
	subnettest.Join(w.leaf, w.spine)
	subnettest.Join(w.other, w.spine)
	w.red, w.blue, w.zinc = b.Host(w.leaf, "red"), b.Host(w.leaf, "blue"), b.Host(w.other, "zinc")
	w.both, w.router = b.Node(ib.NodeCA, 2, "both"), b.Node(ib.NodeRouter, 1, "router")
	subnettest.Cable(&w.both.Ports[1], subnettest.Free(w.leaf))
	subnettest.Cable(&w.both.Ports[2], subnettest.Free(w.other))
	subnettest.Cable(&w.router.Ports[1], subnettest.Free(w.other))
	for _, p := range []*observed.Port{w.red, w.blue, w.zinc, &w.both.Ports[1]} {
		subnettest.SetPKeysThrough(p, 0xffff, 0x8100, 0x0200, 0x8300)
	}
	b.Route()
	w.state = storetest.NewState(t, w.red.GUID, w.blue.GUID, w.zinc.GUID)
	w.state.Do(resource.Provider, resource.AssignPorts{Tenant: "red", Ports: []resource.Port{{GUID: w.both.Ports[1].GUID}}})
	w.state.Do(resource.Provider, resource.AssignPorts{Tenant: "blue", Ports: []resource.Port{{GUID: w.both.Ports[2].GUID}}})
	w.facts = &MapFacts{Snapshot: &snapshot.Snapshot{Fabric: b.Fabric}, Cabling: &Cabling{}}
	return w
}

// shown is a device as a caller sees it, one line for each thing that is said of it.
func (w *deviceWorld) shown(tenant string, n *observed.Node) string {
	v := &DeviceView{Node: n, Facts: w.facts, Differences: w.found, Level: 2, Group: "pod"}
	if !v.By(w.state.State, storetest.By(tenant)) {
		return "  nothing\n"
	}
	var out strings.Builder
	d := v.Device()
	fmt.Fprintf(&out, "  %s %s %s system %q %s %s %s, %d in %q, of %q, %s, %s\n", d.GUID, d.Type, d.Description, d.SystemGUID, d.VendorID, d.DeviceID, d.Revision, d.Level, d.Group, d.Owner, d.State, d.Verdict)
	for _, words := range d.Words {
		fmt.Fprintf(&out, "  %s\n", words)
	}
	for _, p := range d.Ports {
		peer, keys, enforces := "nobody", "?", "?"
		if p.Peer != nil {
			peer = fmt.Sprintf("%s:%d", p.Peer.Name, p.Peer.Port)
		}
		if p.Keys != nil {
			keys = fmt.Sprint(*p.Keys)
		}
		if p.Enforces != nil {
			enforces = fmt.Sprint(*p.Enforces)
		}
		fmt.Fprintf(&out, "    %d %s lid %d %q %q %q %q %d to %s, %s keys, enforces %s, of %q: %q\n", p.Number, p.GUID, p.LID, p.State, p.PhysicalState, p.Width, p.Speed, p.MTU, peer, keys, enforces, p.Owner, p.Problem)
		whole := v.Details(v.Port(p.Number))
		fmt.Fprintf(&out, "      %s %+v, not read %q", strings.Join(whole.Words, " "), whole.PKeys, whole.Unread)
		for _, a := range whole.Attributes {
			fmt.Fprintf(&out, " %s%s(%d fields, old %v)", a.Name, a.Modifier, len(a.Fields), a.Old)
		}
		fmt.Fprintln(&out)
	}
	return out.String()
}

// TestDevices: devices and their ports as callers see them, in every state that they may be in.
// testdata/devices.txt has all of it: IBWARDEN_UPDATE=1 writes it, and the difference is to be read.
func TestDevices(t *testing.T) {
	var out strings.Builder
	for _, x := range []struct {
		name   string
		change func(w *deviceWorld)
		of     func(w *deviceWorld) *observed.Node
	}{
		{"leaf", func(*deviceWorld) {}, func(w *deviceWorld) *observed.Node { return w.leaf }},
		{"spine", func(w *deviceWorld) { w.spine.Switch.Info.EnhancedPort0 = true }, func(w *deviceWorld) *observed.Node { return w.spine }},
		{"host", func(w *deviceWorld) { w.red.Node.Info.SystemImageGUID = 0x77 }, func(w *deviceWorld) *observed.Node { return w.red.Node }},
		{"device of two", func(*deviceWorld) {}, func(w *deviceWorld) *observed.Node { return w.both }},
		{"router", func(w *deviceWorld) { w.router.Ports[1].Info.MKey = 0 }, func(w *deviceWorld) *observed.Node { return w.router }},
		{"contested", func(w *deviceWorld) { w.red.Node.Contested = true }, func(w *deviceWorld) *observed.Node { return w.red.Node }},
		{"drained, with routes over it", func(w *deviceWorld) {
			w.state.Do(resource.Provider, resource.DrainSwitch{Drain: resource.Drain{Switch: w.spine.GUID()}})
		}, func(w *deviceWorld) *observed.Node { return w.spine }},
		{"drained, with none", func(w *deviceWorld) {
			w.state.Do(resource.Provider, resource.DrainSwitch{Drain: resource.Drain{Switch: w.leaf.GUID()}})
		}, func(w *deviceWorld) *observed.Node { return w.leaf }},
		{"fenced", func(w *deviceWorld) {
			w.facts.Cabling.Fences = []Fence{{At: w.red.Peer.Place(), Reason: "why"}}
		}, func(w *deviceWorld) *observed.Node { return w.red.Node }},
		{"fenced at the leaf", func(w *deviceWorld) {
			w.facts.Cabling.Fences = []Fence{{At: w.red.Peer.Place(), Reason: "why"}}
		}, func(w *deviceWorld) *observed.Node { return w.leaf }},
		{"with routers, strangers and silence", func(w *deviceWorld) {
			w.leaf.Ports[5].Stranger = &observed.Stranger{Why: errors.New("255 ports")}
			w.leaf.Ports[6].Silent = true
			w.blue.Info.PortState, w.blue.Peer.Info.PortState = smp.PortInit, smp.PortInit
			w.leaf.Ports[1].Info.PartitionEnforcementInbound = false
			w.red.Peer.Info.PartitionEnforcementInbound = false
			w.red.Peer.Info.PKeyViolations = 1
		}, func(w *deviceWorld) *observed.Node { return w.leaf }},
		{"not read", func(w *deviceWorld) {
			w.leaf.Switch.LFTRead[0] = false
			w.leaf.Ports[4].InfoRead, w.leaf.Ports[5].Reached, w.leaf.Ports[6].Reached, w.leaf.Ports[6].InfoRead = false, false, false, false
			w.red.Peer.PKeysRead[0] = false
		}, func(w *deviceWorld) *observed.Node { return w.leaf }},
		{"a host of which the keys were not read", func(w *deviceWorld) { w.red.PKeysRead[0] = false; w.red.Info.LMC = 1 }, func(w *deviceWorld) *observed.Node { return w.red.Node }},
		{"no keys", func(w *deviceWorld) { subnettest.SetPKeys(w.red) }, func(w *deviceWorld) *observed.Node { return w.red.Node }},
		{"nine keys", func(w *deviceWorld) { subnettest.SetPKeys(w.red, 1, 2, 3, 4, 5, 6, 7, 8, 9) }, func(w *deviceWorld) *observed.Node { return w.red.Node }},
		{"eight keys", func(w *deviceWorld) { subnettest.SetPKeys(w.red, 1, 2, 3, 4, 5, 6, 7, 8) }, func(w *deviceWorld) *observed.Node { return w.red.Node }},
		{"slow", func(w *deviceWorld) { w.red.Info.LinkSpeedActive = smp.LinkSpeedSDR }, func(w *deviceWorld) *observed.Node { return w.red.Node }},
		{"slow at the other end, which was not read", func(w *deviceWorld) { w.red.Info.LinkSpeedActive = smp.LinkSpeedSDR; w.red.Peer.InfoRead = false }, func(w *deviceWorld) *observed.Node { return w.red.Node }},
		{"narrow, and allowed so", func(w *deviceWorld) {
			w.red.Info.LinkWidthActive, w.red.Peer.Info.LinkWidthEnabled = smp.LinkWidth1X, smp.LinkWidth1X
		}, func(w *deviceWorld) *observed.Node { return w.red.Node }},
		{"slow, and allowed so by the other end", func(w *deviceWorld) {
			w.red.Info.LinkSpeedActive, w.red.Peer.Info.LinkSpeedEnabled = smp.LinkSpeedSDR, smp.LinkSpeedSDR
		}, func(w *deviceWorld) *observed.Node { return w.red.Node }},
		{"down", func(w *deviceWorld) { subnettest.SetLink(w.red, smp.PortDown, smp.PhysPolling) }, func(w *deviceWorld) *observed.Node { return w.red.Node }},
		{"a manager that says that it is ill", func(w *deviceWorld) {
			w.red.Info.DiagCode, w.red.Info.CapabilityMask = smp.DiagCode(smp.DiagHardFailure), smp.CapIsSM
		}, func(w *deviceWorld) *observed.Node { return w.red.Node }},
		{"other than listed", func(w *deviceWorld) {
			guid := w.leaf.GUID().String()
			w.found = []Difference{{Node: guid, Port: 2, Text: "at port 2"}, {Node: guid, Port: 2, Text: "again"}, {Node: guid, Text: "of the device"}, {Node: w.spine.GUID().String(), Port: 2, Text: "elsewhere"}}
		}, func(w *deviceWorld) *observed.Node { return w.leaf }},
	} {
		w := newDeviceWorld(t)
		x.change(w)
		w.facts.GatherDrained(w.state.State)
		fmt.Fprintln(&out, x.name)
		for _, tenant := range []string{resource.Provider, "red"} {
			fmt.Fprintf(&out, " %s:\n%s", tenant, w.shown(tenant, x.of(w)))
		}
	}
	file := filepath.Join("testdata", "devices.txt")
	if os.Getenv("IBWARDEN_UPDATE") == "1" {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	have, due := strings.Split(out.String(), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(have), len(due)) {
		if have[i] != due[i] {
			t.Fatalf("%s:%d: %s\nwant\n%s", file, i+1, have[i], due[i])
		}
	}
	if len(have) != len(due) {
		t.Errorf("%s: %d lines, want %d", file, len(have), len(due))
	}
}

// TestMissing: a device that is listed and was not found, with its cables; none without a list, and
// none that is not listed.
func TestMissing(t *testing.T) {
	w := newDeviceWorld(t)
	const gone, nameless = ib.NodeGUID(0x9000), ib.NodeGUID(0x9001)
	v := &DeviceView{Facts: w.facts, Level: 1, Group: "pod"}
	none := func(name string, g ib.NodeGUID) {
		t.Helper()
		if d, listed := MissingDevice(v, g); listed || d.GUID != "" {
			t.Errorf("%s: %+v", name, d)
		}
	}
	none("no list", gone)
	v.Facts.Cabling.List = &MapList{
		Devices: []MapDevice{{GUID: 0x8000, Name: "another"}, {GUID: gone, Type: ib.NodeSwitch, Name: "gone"}, {GUID: nameless, Type: ib.NodeCA}},
		Cables: []Cable{
			{A: observed.Place{Node: gone, Port: 3}, B: observed.Place{Node: w.leaf.GUID(), Port: 6}}, {A: observed.Place{Node: nameless, Port: 1}, B: observed.Place{Node: gone, Port: 4}},
			{A: observed.Place{Node: w.leaf.GUID(), Port: 1}, B: observed.Place{Node: w.spine.GUID(), Port: 1}},
		},
	}
	v.Differences = []Difference{{Node: gone.String(), Text: "missing"}, {Node: gone.String(), Port: 3, Text: "at a port"}, {Node: nameless.String(), Text: "another's"}}
	d, listed := MissingDevice(v, gone)
	want := []string{"It is on the list of cables, and was not found.", "Its port 3 should be cabled to port 6 of leaf.", fmt.Sprintf("Its port 4 should be cabled to port 1 of %v.", nameless), "By the list of cables: missing."}
	if !listed || fmt.Sprint(d.Words) != fmt.Sprint(want) || d.GUID != gone.String() || d.Description != "gone" || d.Type != ib.NodeSwitch.String() || d.State != "missing" || d.Verdict != "unknown" || d.Level != 1 || d.Group != "pod" || d.Ports == nil {
		t.Errorf("%v %+v", listed, d)
	}
	if d, listed := MissingDevice(v, nameless); !listed || d.Description != nameless.String() {
		t.Errorf("one without a name: %v %+v", listed, d)
	}
	none("not listed", 0x7000)
	v.Facts.Cabling = nil
	none("no manager", gone)
}

// TestPortNumbers: a number that no port has is none.
func TestPortNumbers(t *testing.T) {
	w := newDeviceWorld(t)
	v := &DeviceView{Node: w.leaf, Facts: w.facts}
	v.By(w.state.State, storetest.By(resource.Provider))
	for number, want := range map[int]bool{-1: false, 0: true, 6: true, 7: false, 255: false, 256: false, 257: false, -256: false} {
		if p := v.Port(number); (p != nil) != want {
			t.Errorf("port %d: %v", number, p)
		}
	}
}
