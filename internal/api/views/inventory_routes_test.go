package views

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/test/storetest"
)

// TestRoutes: the entries of tables that lead anywhere, of one switch or all, to one LID or all.
func TestRoutes(t *testing.T) {
	b := subnettest.New()
	one, two := b.Switch(4, "one"), b.Switch(4, "two")
	one.Switch.LFT, one.Switch.Info.LinearFDBTop = []ib.PortNum{9, 1, ib.PortNone, 0, 2, 3}, 4
	two.Switch.RFT = []smp.RandomEntry{{LID: 4, Port: 3, Valid: true}, {LID: 5, Port: 3}}
	all := []string{"one 1 by 1", "one 3 by 0", "one 4 by 2", "two 4 by 3"}
	for _, only := range []*observed.Node{nil, one, two} {
		for _, to := range []ib.LID{0, 1, 2, 4, 5} {
			var guid ib.NodeGUID
			if only != nil {
				guid = only.GUID()
			}
			var want []string
			for _, r := range all {
				if (only == nil || r[:3] == only.Description) && (to == 0 || r[4:5] == fmt.Sprint(to)) {
					want = append(want, r)
				}
			}
			var got []string
			for _, r := range Routes(b.Fabric, guid, to) {
				name := map[string]string{one.GUID().String(): "one", two.GUID().String(): "two"}[r.Switch]
				got = append(got, fmt.Sprintf("%s %d by %d", name, r.LID, r.Port))
			}
			if !slices.Equal(got, want) {
				t.Errorf("routes of %v to %v: %q, want %q", only, to, got, want)
			}
		}
	}
	if got := RouteKey(Route{"x", 7, 1}); got != "x/00007" {
		t.Error(got)
	}
}

// TestRoutesOver: packets that go through a switch, and neither end at it nor at a host of it.
func TestRoutesOver(t *testing.T) {
	b := subnettest.New()
	spine, left, right := b.Switch(8, "spine"), b.Switch(8, "left"), b.Switch(8, "right")
	subnettest.Join(left, spine)
	subnettest.Join(left, spine) // two cables
	subnettest.Join(right, spine)
	b.Host(left, "a")
	b.PortInfo.LMC = 1 // two LIDs
	here := b.Host(spine, "b")
	b.PortInfo.LMC = 0
	b.Host(right, "c")
	b.Host(right, "d")
	b.Route()
	count := func(n *observed.Node) int { return RoutesOver(b.Fabric, n.GUID()) }
	// left sends to right, c and d over the spine; right sends to left and a.
	if got := count(spine); got != 5 {
		t.Errorf("%d routes over the spine, want 5", got)
	}
	if got := count(left) + count(right) + RoutesOver(b.Fabric, 0x9999); got != 0 {
		t.Errorf("%d routes over leaves and a switch that is not there", got)
	}
	observedLID := here.Info.LID
	here.Info.LMC = 0 // its second LID is nobody's: both leaves send what is for it over the spine
	if got := count(spine); got != 7 {
		t.Errorf("%d routes over the spine, want 7, with those to %d", got, observedLID+1)
	}
}

// TestSwitch: a switch by its GUID or its name, or why it is none.
func TestSwitch(t *testing.T) {
	b := subnettest.New()
	leaf := b.Switch(4, "leaf-1")
	b.Switch(4, "same")
	b.Switch(4, "same")
	b.Host(leaf, "host")
	for name, want := range map[string]string{
		leaf.GUID().String(): "", "leaf-1": "", "same": "true several switches are called same: name one by its node GUID", "leaf-2": "false no switch leaf-2; did you mean 'leaf-1'?", "host": "false no switch host",
	} {
		n, several, err := FindSwitch(b.Fabric, name)
		if want == "" {
			if err != nil || several || n != leaf {
				t.Errorf("%s: %v, %v, %v", name, n, several, err)
			}
			continue
		}
		if n != nil || err == nil || fmt.Sprint(several, " ", err) != want {
			t.Errorf("%s: %v, %v %v, want %s", name, n, several, err, want)
		}
	}
}

// TestShown: a device, its cables and an end port, found or not, as the API shows them.
func TestShown(t *testing.T) {
	b := subnettest.New()
	b.NodeInfo.VendorID, b.NodeInfo.DeviceID = 0x2c9, 0x1017
	leaf := b.Switch(4, "leaf")
	red := b.Host(leaf, "red")
	red.Info.LinkWidthActive = smp.LinkWidth4X
	leaf.Ports[1].Info.LinkWidthActive = smp.LinkWidth4X
	s := storetest.NewState(t, red.GUID, 2, 3)
	s.Do(resource.Provider, resource.AssignPorts{Tenant: "red", Ports: []resource.Port{{GUID: red.GUID, Switch: leaf.GUID(), SwitchPort: 1}}})
	s.Do(resource.Provider, resource.ReleasePorts{Ports: []ib.PortGUID{2}})
	at := time.Unix(1e9, 0)
	n := NodeOf(s.State, storetest.By(resource.Provider), red.Node, at)
	if want := fmt.Sprintf("{%s CA red 1 0x0002c9 0x1017 [%s] %v}", red.Node.GUID(), red.GUID, at); fmt.Sprint(n) != want {
		t.Errorf("%v, want %s", n, want)
	}
	links := b.Fabric.Links()
	if len(links) != 1 {
		t.Fatal(links)
	}
	ends := map[string]bool{leaf.GUID().String() + " 1 leaf": true, red.Node.GUID().String() + " 1 red": true}
	l := LinkOf(links[0])
	for _, e := range []End{l.A, l.B} {
		delete(ends, fmt.Sprint(e.Node, " ", e.Port, " ", e.Name))
	}
	if len(ends) != 0 || l.Width != "4x" && l.Width != "4X" || l.State != links[0].A.Info.PortState.String() {
		t.Errorf("%+v lacks %v", l, ends)
	}
	if got := LinkKey(links[0]); got != links[0].A.Node.GUID().String()+"/001" {
		t.Error(got)
	}
	p := PortOf(s.State, resource.Caller{Tenant: resource.Provider}, red.GUID, red, nil)
	if p.Bound == nil || *p.Bound != (Place{leaf.GUID().String(), 1}) || !p.Found || p.Node != "red" || p.NodeGUID != red.Node.GUID().String() || p.Number != 1 || p.State != "Active" || p.SwitchPort != 1 || p.Released != 0 {
		t.Errorf("%+v", p)
	}
	red.Peer = nil
	if p := PortOf(s.State, resource.Caller{Tenant: resource.Provider}, red.GUID, red, nil); p.Switch != "" || p.SwitchPort != 0 {
		t.Errorf("without a cable: %+v", p)
	}
	if p := PortOf(s.State, resource.Caller{Tenant: resource.Provider}, 2, nil, nil); p.Found || p.Owner != "" || p.Released != s.Last() || p.Bound != nil || p.Node != "" || len(p.Partitions) != 0 || p.Partitions == nil {
		t.Errorf("one that was released and not found: %+v", p)
	}
	if p := PortOf(s.State, resource.Caller{Tenant: resource.Provider}, 99, nil, nil); p.Owner != resource.Provider || p.Released != 0 {
		t.Errorf("one that nobody spoke of: %+v", p)
	}
}
