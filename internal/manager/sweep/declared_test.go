package sweep

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/test/need"
)

// listed is a manager, a leaf with a host, and a spine: what the tests of this file
// declare.
const listed = `caguid=0x1
Ca 1 "manager"
[1](2) "leaf"[1]

caguid=0x8
Ca 1 "host"
[1](9) "leaf"[2]

switchguid=0x5(5)
Switch 6 "leaf"
[1] "manager"[1]
[2] "host"[1]
[3] "spine"[1]

switchguid=0x6(6)
Switch 2 "spine"
[1] "leaf"[3]
`

func list(t *testing.T) *cables.List {
	t.Helper()
	l, err := cables.Read([]byte(listed), "listed")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func genuine() map[string]smp.NodeInfo {
	return map[string]smp.NodeInfo{"1": switchInfo(5, 6, 1), "1,2": hostInfo(8), "1,3": switchInfo(6, 2, 1)}
}

// What is not on the list is not let in, and nothing is asked of it again; what is
// stays as it is, whoever claims to be the same.
func TestHeldToList(t *testing.T) {
	for _, x := range []struct {
		name    string
		at      ib.PortNum // of the leaf
		is      smp.NodeInfo
		without []ib.NodeGUID
		says    string
	}{
		{"nothing is listed there", 4, hostInfo(0x70), nil, "nothing is listed there, found a device that says it is port 1 of CA"},
		{"a switch where nothing is listed", 4, switchInfo(0x70, 36, 1), nil, "nothing is listed there"},
		{"the GUID of a listed host", 4, hostInfo(8), nil, "nothing is listed there"},
		{"the GUID of a listed switch", 4, switchInfo(6, 2, 1), nil, "nothing is listed there"},
		{"the other port of a listed switch", 4, switchInfo(6, 2, 2), nil, "nothing is listed there"},
		{"the GUID of the manager", 4, hostInfo(1), nil, "nothing is listed there"},
		{"a host that says it is a switch", 2, switchInfo(8, 2, 1), []ib.NodeGUID{8}, "expected host (CA 0x0000000000000008 of 1 ports, port GUID 0x0000000000000009)"},
		{"a host that says it is the spine", 2, switchInfo(6, 2, 1), []ib.NodeGUID{8}, "expected host"},
		{"another host", 2, hostInfo(0x70), []ib.NodeGUID{8}, "expected host"},
		{"a host with another port GUID", 2, smp.NodeInfo{NodeType: ib.NodeCA, NumPorts: 1, NodeGUID: 8, PortGUID: 2, LocalPortNum: 1, PartitionCap: 1}, []ib.NodeGUID{8}, "expected host"},
		{"a host of two ports", 2, smp.NodeInfo{NodeType: ib.NodeCA, NumPorts: 2, NodeGUID: 8, PortGUID: 9, LocalPortNum: 1, PartitionCap: 1}, []ib.NodeGUID{8}, "expected host"},
		{"a host of no known type", 2, smp.NodeInfo{NodeType: 77, NumPorts: 1, NodeGUID: 8, PortGUID: 9, LocalPortNum: 1}, []ib.NodeGUID{8}, "expected host"},
		{"a host without ports", 2, smp.NodeInfo{NodeType: ib.NodeCA, NodeGUID: 8, PortGUID: 9, LocalPortNum: 1}, []ib.NodeGUID{8}, "expected host"},
		{"a host at a port that it has not", 2, smp.NodeInfo{NodeType: ib.NodeCA, NumPorts: 1, NodeGUID: 8, PortGUID: 9, LocalPortNum: 9}, []ib.NodeGUID{8}, "expected host"},
		{"another switch", 3, switchInfo(0x70, 2, 1), []ib.NodeGUID{6}, "expected spine:1"},
		{"the spine with another port", 3, switchInfo(6, 2, 2), []ib.NodeGUID{6}, "expected spine:1"},
	} {
		t.Run(x.name, func(t *testing.T) {
			at := genuine()
			path := fmt.Sprintf("1,%d", x.at)
			at[path] = x.is
			asked := 0
			base := device(at)
			d, _ := sweepOver(t, Options{Cables: list(t), Forwarding: true, Multicast: true}, host(0, nil, func(route string, p *mad.SMP) (smp.Attribute, mad.Status, bool) {
				if strings.HasPrefix(route, path) {
					asked++
				}
				return base(route, p)
			}))
			f := d.Fabric()
			if want := 4 - len(x.without); len(f.Nodes) != want {
				t.Errorf("%d nodes, want %d", len(f.Nodes), want)
			}
			for _, g := range x.without {
				if f.Node(g) != nil {
					t.Errorf("%v was let in", g)
				}
			}
			for _, n := range f.Nodes {
				if n.Contested {
					t.Errorf("%v is contested", n.GUID())
				}
			}
			p := f.Node(5).Port(x.at)
			if !p.FacesStranger() || p.Stranger == nil || !p.Stranger.Undeclared || p.Stranger.Info.NodeGUID != x.is.NodeGUID || p.Silent {
				t.Errorf("the port before it: %+v", p.Stranger)
			}
			if got := faultsOf(d); !strings.Contains(got, x.says) || !strings.Contains(got, "not on the cable list") {
				t.Errorf("faults %q, want %q", got, x.says)
			}
			if asked != 1 {
				t.Errorf("it was asked %d times", asked)
			}
		})
	}
	t.Run("control", func(t *testing.T) {
		d, _ := sweepOver(t, Options{Cables: list(t)}, host(0, nil, device(genuine())))
		for num, stranger := range map[ib.PortNum]bool{1: false, 2: false, 3: false, 4: true} {
			p := d.Fabric().Node(5).Port(num)
			if p.FacesStranger() != stranger || (p.Stranger != nil) != stranger {
				t.Errorf("port %d: %+v", num, p.Stranger)
			}
			if stranger && (!p.Silent || !p.Stranger.Undeclared || !strings.Contains(p.Stranger.Why.Error(), "does not say who it is")) {
				t.Errorf("port %d, where nothing is listed and nobody answers: %+v", num, p.Stranger)
			}
		}
		if len(d.Fabric().Nodes) != 4 {
			t.Errorf("%d nodes", len(d.Fabric().Nodes))
		}
	})
}

// A manager that was moved to another port of the subnet finds it, and says so;
// what it is cabled to has to be listed all the same.
func TestOwnCableMoved(t *testing.T) {
	at := genuine()
	at["1"] = switchInfo(5, 6, 5)
	d, _ := sweepOver(t, Options{Cables: list(t)}, host(0, nil, device(at)))
	if len(d.Fabric().Nodes) != 4 || !strings.Contains(faultsOf(d), "the manager's own cable") {
		t.Errorf("%d nodes, faults %q", len(d.Fabric().Nodes), faultsOf(d))
	}
	at["1"] = switchInfo(0x70, 6, 1)
	d, _ = sweepOver(t, Options{Cables: list(t)}, host(0, nil, device(at)))
	if len(d.Fabric().Nodes) != 1 {
		t.Errorf("%d nodes behind a switch that nobody listed", len(d.Fabric().Nodes)-1)
	}
}

// A device that answers for a whole fabric of switches is not followed at all when
// there is a list, and not without end when there is none.
func TestEndlessSubtree(t *testing.T) {
	endless := func(asked *int, ports uint8) answers {
		seen := map[string]ib.NodeGUID{}
		return func(route string, p *mad.SMP) (smp.Attribute, mad.Status, bool) {
			*asked++
			switch p.AttributeID {
			case smp.AttrNodeInfo:
				if route == "1" {
					info := switchInfo(5, 6, 1)
					return &info, 0, true
				}
				if seen[route] == 0 {
					seen[route] = ib.NodeGUID(0x1000 + len(seen))
				}
				info := switchInfo(seen[route], ports, 1)
				return &info, 0, strings.HasPrefix(route, "1,4")
			case smp.AttrPortInfo:
				return &smp.PortInfo{PortState: smp.PortInit, PortPhysicalState: smp.PhysLinkUp}, 0, true
			}
			return nil, 0, true
		}
	}
	asked := 0
	d, _ := sweepOver(t, Options{Cables: list(t)}, host(0, nil, endless(&asked, 254)))
	if len(d.Fabric().Nodes) != 2 || asked > 100 {
		t.Errorf("with a list: %d nodes, %d requests", len(d.Fabric().Nodes), asked)
	}
	if !need.Soak() { // a million requests
		return
	}
	asked = 0
	d, _ = sweepOver(t, Options{}, host(0, nil, endless(&asked, 254)))
	ports := 0
	for _, n := range d.Fabric().Nodes {
		ports += len(n.Ports) - 1
	}
	if len(d.Fabric().Nodes) > MaxNodes || ports > MaxPorts || !strings.Contains(faultsOf(d), "more than") {
		t.Errorf("without: %d nodes, %d ports, %d requests", len(d.Fabric().Nodes), ports, asked)
	}
	if err := d.CheckLIDs(0); err != nil {
		t.Errorf("few nodes: %v", err)
	}
	// With fewer ports each there are as many as a subnet has LIDs, and more.
	d, _ = sweepOver(t, Options{}, host(0, nil, endless(&asked, 12)))
	if err := d.CheckLIDs(0); len(d.Fabric().Nodes) != MaxNodes || err == nil || !strings.Contains(err.Error(), "more than 49151 nodes") {
		t.Errorf("of small switches: %d nodes, %v", len(d.Fabric().Nodes), err)
	}
}

// Cables between switches are followed from their other ends too, which finds who says it is a switch
// and leads nowhere, and a switch that answers otherwise over another cable. Nobody is asked
// twice over the same one.
func TestVerify(t *testing.T) {
	at := genuine()
	at["1,2"] = switchInfo(0x70, 3, 1) // a host that poses as a spine, by itself
	at["1,4"] = hostInfo(0x80)
	for _, x := range []struct {
		leaf     smp.NodeInfo // as it is seen over the spine
		doubtful []bool       // its ports
		says     string
	}{
		{switchInfo(5, 6, 3), []bool{1: false, 2: true, 3: false, 4: false}, "does not lead to"},
		{switchInfo(5, 7, 3), []bool{1: true, 2: true, 3: true, 4: true}, "it first said that it is switch"},
	} {
		asked := map[string]int{}
		base := device(at)
		d, _ := sweepOver(t, Options{Verify: true}, host(0, nil, func(route string, p *mad.SMP) (smp.Attribute, mad.Status, bool) {
			if p.AttributeID == smp.AttrNodeInfo {
				if asked[route]++; route == "1,3,1" {
					return &x.leaf, 0, true
				}
			}
			return base(route, p)
		}))
		leaf := d.Fabric().Node(5)
		for num := 1; num < len(x.doubtful); num++ {
			p := leaf.Port(ib.PortNum(num))
			if got := d.Contradiction(p) != "" || p.Peer != nil && d.Contradiction(p.Peer) != ""; got != x.doubtful[num] {
				t.Errorf("port %d: in doubt %v: %q", num, got, d.Contradiction(p))
			}
		}
		if got := faultsOf(d); !strings.Contains(got, x.says) {
			t.Errorf("faults %q, want %q", got, x.says)
		}
		for _, route := range []string{"1", "1,2", "1,3", "1,4", "1,3,1"} {
			if asked[route] != 1 {
				t.Errorf("%q was asked %d times who it is", route, asked[route])
			}
		}
	}
}
