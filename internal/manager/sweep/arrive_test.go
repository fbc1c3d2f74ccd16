package sweep

import (
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// device answers for a device whose ports are all trained. NodeInfo is what it
// says of itself at the end of a route.
func device(nodeInfo map[string]smp.NodeInfo) answers {
	return func(route string, p *mad.SMP) (smp.Attribute, mad.Status, bool) {
		info, ok := nodeInfo[route]
		if !ok {
			return nil, 0, false
		}
		switch p.AttributeID {
		case smp.AttrNodeInfo:
			return &info, 0, true
		case smp.AttrPortInfo:
			return &smp.PortInfo{PortState: smp.PortInit, PortPhysicalState: smp.PhysLinkUp}, 0, true
		}
		return nil, 0, true
	}
}

func switchInfo(guid ib.NodeGUID, ports uint8, local ib.PortNum) smp.NodeInfo {
	return smp.NodeInfo{NodeType: ib.NodeSwitch, NumPorts: ports, NodeGUID: guid, PortGUID: ib.PortGUID(guid), LocalPortNum: local, PartitionCap: 1}
}

func hostInfo(guid ib.NodeGUID) smp.NodeInfo {
	return smp.NodeInfo{NodeType: ib.NodeCA, NumPorts: 1, NodeGUID: guid, PortGUID: ib.PortGUID(guid) + 1, LocalPortNum: 1, PartitionCap: 1}
}

// What was asked and did not answer is told from what answered nonsense.
func TestSilentLinks(t *testing.T) {
	bad := hostInfo(9)
	bad.NodeType = 0
	d, _ := sweepOver(t, Options{}, host(0, nil, device(map[string]smp.NodeInfo{
		"1": switchInfo(5, 4, 1), "1,2": hostInfo(8), "1,3": bad,
	})))
	for num, want := range map[ib.PortNum]struct{ silent, stranger bool }{
		1: {}, 2: {}, 3: {false, true}, 4: {true, true},
	} {
		p := d.Fabric().Node(5).Port(num)
		if p.Silent != want.silent || p.FacesStranger() != want.stranger {
			t.Errorf("port %d: silent %v, faces a stranger %v; want %+v", num, p.Silent, p.FacesStranger(), want)
		}
	}
}

// Two devices with one GUID: the second is left out, and neither is to be
// trusted. The manager's own device is.
func TestContestedGUID(t *testing.T) {
	for _, x := range []struct {
		name      string
		second    smp.NodeInfo
		contested ib.NodeGUID
	}{
		{"another host's", hostInfo(8), 8},
		{"another host's, other type", switchInfo(8, 4, 1), 8},
		{"the manager's", smp.NodeInfo{NodeType: ib.NodeCA, NumPorts: 1, NodeGUID: 1, PortGUID: 2, LocalPortNum: 1, PartitionCap: 32}, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			d, _ := sweepOver(t, Options{}, host(0, nil, device(map[string]smp.NodeInfo{
				"1": switchInfo(5, 3, 1), "1,2": hostInfo(8), "1,3": x.second,
			})))
			for _, n := range d.Fabric().Nodes {
				if n.Contested != (n.GUID() == x.contested) {
					t.Errorf("node %v: contested %v", n.GUID(), n.Contested)
				}
			}
			if p := d.Fabric().Node(5).Port(3); p.Peer != nil || p.Silent {
				t.Errorf("port 3: peer %v, silent %v", p.Peer, p.Silent)
			}
			if !strings.Contains(faultsOf(d), "device") {
				t.Errorf("faults %q", faultsOf(d))
			}
		})
	}
}

// Of a cable that leads elsewhere each time it is followed, the snapshot keeps
// one version: both its ends agree.
func TestRecabledLinkStaysSymmetric(t *testing.T) {
	base := device(map[string]smp.NodeInfo{
		"1": switchInfo(5, 3, 1), "1,3": switchInfo(6, 2, 1), "1,3,2": switchInfo(5, 3, 2), "1,2": hostInfo(8),
	})
	refused := 0
	d, _ := sweepOver(t, Options{}, host(0, nil, func(route string, p *mad.SMP) (smp.Attribute, mad.Status, bool) {
		if route == "1,2" && refused < 3 { // answers when the other end was followed
			refused++
			return nil, 0, false
		}
		return base(route, p)
	}))
	for _, n := range d.Fabric().Nodes {
		for i := range n.Ports {
			if p := &n.Ports[i]; p.Peer != nil && p.Peer.Peer != p {
				t.Errorf("%v is cabled to %v, which is cabled to %v", p, p.Peer, p.Peer.Peer)
			}
		}
	}
	if !strings.Contains(faultsOf(d), "recabled") {
		t.Errorf("faults %q", faultsOf(d))
	}
}
