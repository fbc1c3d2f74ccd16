package views

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/test/storetest"
)

// A tenant is shown the devices with an end port of its own, and of these its own ports: not a
// member of its partition, not a switch, not the other port of a device of two owners. At the other end
// of a cable it is told its own device, and of a switch the GUID; of another's device nothing.
func TestADeviceAsATenantSeesIt(t *testing.T) {
	b := subnettest.New()
	leaf := b.Switch(8, "leaf")
	red, blue, zinc := b.Host(leaf, "red-host"), b.Host(leaf, "blue-host"), b.Host(leaf, "zinc-host")
	both := b.Node(ib.NodeCA, 2, "both")
	across := b.Host(nil, "blue-across")
	subnettest.Cable(&both.Ports[2], across) // red's port leads to blue's device
	pair, own := b.Host(nil, "red-pair"), b.Host(nil, "red-own")
	subnettest.Cable(pair, own)
	s := storetest.NewState(t, red.GUID, blue.GUID, zinc.GUID)
	for tenant, ports := range map[string][]*observed.Port{"red": {&both.Ports[2], pair, own}, "blue": {&both.Ports[1], across}} {
		for _, p := range ports {
			s.Do(resource.Provider, resource.AssignPorts{Tenant: tenant, Ports: []resource.Port{{GUID: p.GUID}}})
		}
	}
	s.Do(resource.Provider, resource.AssignPorts{Tenant: "red", Ports: []resource.Port{{GUID: leaf.Ports[0].GUID}}}) // a switch is nobody's device
	s.Ask("red", 0x100, blue.GUID)
	s.Ask("blue", 0x100, blue.GUID)
	s.Ask("blue", 0x200, red.GUID) // red is asked, and has not agreed
	subnettest.SetPKeys(red, 0x7fff, 0x8100, 0x8200, 0x8300)
	facts := &MapFacts{Snapshot: &snapshot.Snapshot{Fabric: b.Fabric}, Cabling: &Cabling{Fences: []Fence{{At: red.Peer.Place(), Reason: "blue-host is elsewhere"}}}}
	view := func(tenant string, n *observed.Node) (*DeviceView, bool) {
		v := &DeviceView{Node: n, Facts: facts, Level: 1, Group: "pod"}
		return v, v.By(s.State, storetest.By(tenant))
	}
	nodes := map[string]*observed.Node{"leaf": leaf, "red": red.Node, "blue": blue.Node, "zinc": zinc.Node, "both": both, "across": across.Node, "pair": pair.Node}
	for tenant, sees := range map[string]string{"red": "red both pair", "blue": "blue both across", "zinc": "zinc", "none": "", resource.Provider: "leaf red blue zinc both across pair"} {
		for name, n := range nodes {
			v, ok := view(tenant, n)
			if want := strings.Contains(" "+sees+" ", " "+name+" "); ok != want {
				t.Errorf("%s sees %s: %v", tenant, name, ok)
			}
			if !ok {
				continue
			}
			d := v.Device()
			for i := range n.Ports {
				p := v.Port(i)
				if mine := i < len(n.Ports) && s.Owner(n.Ports[i].GUID) == tenant && n.Ports[i].IsEnd() && n.Switch == nil && i > 0; (p != nil) != (mine || tenant == resource.Provider && n.Port(ib.PortNum(i)) != nil) {
					t.Errorf("%s is shown port %d of %s: %v", tenant, i, name, p != nil)
				}
			}
			if tenant != resource.Provider && (d.Level != 0 || d.Group != "" || d.Owner != tenant) {
				t.Errorf("%s is told of %s: %+v", tenant, name, d)
			}
		}
	}
	v, _ := view("red", both)
	if d := v.Device(); len(d.Ports) != 1 || d.Ports[0].Number != 2 || d.Ports[0].Peer != nil || !strings.Contains(fmt.Sprint(v.portWords(&both.Ports[2])), "a device that is not yours") {
		t.Errorf("red is told of a device of two: %+v, %v", d, v.portWords(&both.Ports[2]))
	}
	v, _ = view("red", pair.Node)
	if p := v.Device().Ports[0].Peer; p == nil || p.Name != "red-own" {
		t.Errorf("red is told that its two devices are cabled as %+v", p)
	}
	v, _ = view("red", red.Node)
	data, _ := json.Marshal([]any{v.Device(), v.Details(red)})
	for _, secret := range []string{"leaf", "zinc", "blue-host", "elsewhere"} {
		if strings.Contains(string(data), secret) {
			t.Errorf("red is told of %q: %s", secret, data)
		}
	}
	for _, want := range []string{`"partition":"red-net"`, `"partition":"blue-net"`, `"partition":"default"`, leaf.GUID().String(), "kept out by the switch port"} {
		if !strings.Contains(string(data), want) {
			t.Errorf("red is not told of %q: %s", want, data)
		}
	}
}
