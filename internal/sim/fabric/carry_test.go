package fabric_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// A client that knows nothing but its own port finds the topology that the
// fabric was made of.
func TestDiscovery(t *testing.T) {
	specs := []string{"demo", "fattree,radix=4", "fattree,radix=4,levels=3", "torus,x=3,y=3"}
	for seed := range 10 {
		specs = append(specs, fmt.Sprintf("random,seed=%d,switches=7,hosts=12,ports=12,routers=2,ca-ports=2", seed))
	}
	for _, spec := range specs {
		t.Run(spec, func(t *testing.T) {
			l := topology.Demo()
			if spec != "demo" {
				var err error
				if l, err = topology.Generate(spec); err != nil {
					t.Fatal(err)
				}
			}
			f := newFabric(t, l, fabric.DefaultConfig())
			own, num, err := l.Attach("")
			if err != nil {
				t.Fatal(err)
			}
			links := discover(attach(t, f, own.GUID, num))
			if diff := gocmp.Diff(l.Links(), links); diff != "" {
				t.Errorf("cables (- of the topology, + found):\n%s", diff)
			}
			if f.InFlight() != 0 {
				t.Errorf("%d packets are left over", f.InFlight())
			}
		})
	}
}

// discover follows every cable by directed route.
func discover(c *client) []topology.Link {
	type end struct {
		guid ib.NodeGUID
		num  ib.PortNum
	}
	var links []topology.Link
	seen := map[end]bool{}
	var visit func(path mad.Path) end
	visit = func(path mad.Path) end {
		var node smp.NodeInfo
		c.get(path, 0, &node)
		at := end{node.NodeGUID, node.LocalPortNum}
		if node.NodeType != ib.NodeSwitch && len(path) > 0 {
			return at // packets do not pass
		}
		for num := ib.PortNum(1); num <= ib.PortNum(node.NumPorts); num++ {
			from := end{node.NodeGUID, num}
			if node.NodeType != ib.NodeSwitch && num != at.num || seen[from] {
				continue
			}
			seen[from] = true
			var port smp.PortInfo
			c.get(path, uint32(num), &port)
			if port.PortPhysicalState != smp.PhysLinkUp {
				continue
			}
			if port.PortState != smp.PortInit {
				c.t.Errorf("port %d of %v is %v, want Initialize", num, node.NodeGUID, port.PortState)
			}
			// Every node is entered again over each cable, but followed once.
			to := visit(append(slices.Clone(path), num))
			links = append(links, link(from.guid, from.num, to.guid, to.num))
		}
		return at
	}
	visit(nil)
	slices.SortFunc(links, func(x, y topology.Link) int {
		return cmp.Or(cmp.Compare(x.A, y.A), cmp.Compare(x.APort, y.APort))
	})
	return slices.Compact(links) // switches see a cable from both ends
}

func link(a ib.NodeGUID, aNum ib.PortNum, b ib.NodeGUID, bNum ib.PortNum) topology.Link {
	if b < a || a == b && bNum < aNum {
		a, aNum, b, bNum = b, bNum, a, aNum
	}
	return topology.Link{A: a, APort: aNum, B: b, BPort: bNum}
}

// Whatever the distance, the answer comes back, the hop pointer is 0 again,
// and the return path names the ports of entry.
func TestDirectedRouteBothWays(t *testing.T) {
	const switches = 62
	f := newFabric(t, chain(t, switches), fabric.DefaultConfig())
	c := attach(t, f, hostGUID(1), 1)
	for hops := range mad.MaxHops + 1 {
		answer, slid, ok := c.ask(directed(along(hops), mad.MethodGet, smp.AttrNodeInfo, 0), ib.LIDPermissive)
		if !ok {
			t.Fatalf("%d hops: no answer", hops)
		}
		var node smp.NodeInfo
		if err := node.UnmarshalBinary(answer.Data[:]); err != nil {
			t.Fatal(err)
		}
		want := switchGUID(hops)
		switch hops {
		case 0:
			want = hostGUID(1)
		case switches + 1:
			want = hostGUID(2)
		}
		if node.NodeGUID != want || node.LocalPortNum != 1 {
			t.Errorf("%d hops: answered by port %d of %v, want port 1 of %v", hops, node.LocalPortNum, node.NodeGUID, want)
		}
		if !answer.Direction || answer.HopPointer != 0 || int(answer.HopCount) != hops || slid != ib.LIDPermissive {
			t.Errorf("%d hops: direction %v, hop pointer %d of %d, from LID %v", hops, answer.Direction, answer.HopPointer, answer.HopCount, slid)
		}
		for i, n := range answer.ReturnPath {
			if want := i >= 1 && i <= hops; (n == 1) != want || (n == 0) == want {
				t.Errorf("%d hops: return path %v", hops, answer.ReturnPath)
				break
			}
		}
	}
	t.Run("64 hops", func(t *testing.T) {
		before := f.Counts()
		if _, _, ok := c.ask(directed(along(64), mad.MethodGet, smp.AttrNodeInfo, 0), ib.LIDPermissive); ok {
			t.Error("answered")
		}
		wantDiscard(t, f, before, fabric.DiscardRoute)
	})
}

// A packet for a port that is not there, or behind which nothing is, ends.
func TestDirectedRouteNowhere(t *testing.T) {
	f := newFabric(t, chain(t, 2), fabric.Config{})
	c := attach(t, f, hostGUID(1), 1)
	tests := []struct {
		name string
		path mad.Path
		why  fabric.Reason
	}{
		{"no cable", mad.Path{1, 3}, fabric.DiscardLink},
		{"no such port", mad.Path{1, 5}, fabric.DiscardRoute},
		{"port 255", mad.Path{1, 255}, fabric.DiscardRoute},
		{"port 0", mad.Path{1, 0, 2}, fabric.DiscardRoute},
		{"through a CA", mad.Path{1, 2, 2, 1, 1}, fabric.DiscardRoute},
		{"another port of the sender", mad.Path{2}, fabric.DiscardRoute},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := f.Counts()
			if _, _, ok := c.ask(directed(test.path, mad.MethodGet, smp.AttrNodeInfo, 0), ib.LIDPermissive); ok {
				t.Error("answered")
			}
			wantDiscard(t, f, before, test.why)
		})
	}
	// There and back over the same cable is a route like any other.
	var node smp.NodeInfo
	c.get(mad.Path{1, 1}, 0, &node)
	if node.NodeGUID != hostGUID(1) {
		t.Errorf("1,1 leads to %v", node.NodeGUID)
	}
}

// LIDs of the chain of two switches: hosts 1 and 2, switches 11 and 12.
const (
	lidFirst, lidLast = 1, 2
	lidS1, lidS2      = 11, 12
)

// routed is a chain of two switches with LIDs and routes.
func routed(t *testing.T) (*fabric.Fabric, *client) {
	f := newFabric(t, chain(t, 2), fabric.DefaultConfig())
	c := attach(t, f, hostGUID(1), 1)
	c.address(along(0), lidFirst, lidFirst, 0)
	c.address(along(1), lidS1, lidFirst, 0)
	c.address(along(2), lidS2, lidFirst, 0)
	c.address(along(3), lidLast, lidFirst, 0)
	c.route(along(1), map[ib.LID]ib.PortNum{lidFirst: 1, lidLast: 2, lidS1: 0, lidS2: 2})
	c.route(along(2), map[ib.LID]ib.PortNum{lidFirst: 1, lidLast: 2, lidS1: 1, lidS2: 0})
	return f, c
}

func TestLIDRouting(t *testing.T) {
	f, c := routed(t)
	owners := map[ib.LID]ib.NodeGUID{
		lidFirst: hostGUID(1), lidS1: switchGUID(1), lidS2: switchGUID(2), lidLast: hostGUID(2),
	}
	for lid, guid := range owners {
		var node smp.NodeInfo
		c.must(byLID(mad.MethodGet, smp.AttrNodeInfo, 0), lid, &node)
		if node.NodeGUID != guid {
			t.Errorf("LID %v is answered by %v, want %v", lid, node.NodeGUID, guid)
		}
		if _, slid, _ := c.ask(byLID(mad.MethodGet, smp.AttrNodeInfo, 0), lid); slid != lid {
			t.Errorf("the answer of LID %v comes from LID %v", lid, slid)
		}
	}

	one := func(name string, lid ib.LID, why fabric.Reason, prepare, restore func()) {
		t.Run(name, func(t *testing.T) {
			prepare()
			defer restore()
			before := f.Counts()
			if _, _, ok := c.ask(byLID(mad.MethodGet, smp.AttrNodeInfo, 0), lid); ok {
				t.Error("answered")
			}
			wantDiscard(t, f, before, why)
		})
	}
	nothing := func() {}
	good := map[ib.LID]ib.PortNum{lidFirst: 1, lidLast: 2, lidS1: 0, lidS2: 2}
	table := func(lid ib.LID, exit ib.PortNum) func() {
		bad := map[ib.LID]ib.PortNum{}
		for l, p := range good {
			bad[l] = p
		}
		bad[lid] = exit
		return func() { c.route(along(1), bad) }
	}
	restore := func() { c.route(along(1), good) }
	one("no entry", 40, fabric.DiscardTable, nothing, nothing)
	one("LID 0", 0, fabric.DiscardTable, nothing, nothing)
	one("a multicast LID", 0xC000, fabric.DiscardTable, nothing, nothing)
	one("entry above the number of ports", 40, fabric.DiscardTable, table(40, 5), restore)
	one("above LinearFDBTop", 64, fabric.DiscardTable, func() { // though the table has an entry, which leads back
		c.set(along(1), 1, &smp.LinearForwardingTable{Ports: [smp.LIDsPerLinearBlock]ib.PortNum{1}})
	}, nothing)
	one("entry back to where it came from", 40, fabric.DiscardLoop, table(40, 1), restore)
	one("entry to a port without a cable", 40, fabric.DiscardLink, table(40, 3), restore)
	one("another's LID at port 0", 40, fabric.DiscardLID, table(40, 0), restore)
	one("another's LID at a host", 40, fabric.DiscardLID, func() {
		table(40, 2)()
		c.route(along(2), map[ib.LID]ib.PortNum{lidFirst: 1, 40: 2})
	}, func() {
		restore()
		c.route(along(2), map[ib.LID]ib.PortNum{lidFirst: 1, lidLast: 2, lidS1: 1, lidS2: 0})
	})
	one("a switch without an entry for itself", lidS1, fabric.DiscardTable, table(lidS1, ib.PortNone), restore)
}

// Tables that send packets round in a circle do not stop the fabric.
func TestForwardingCircle(t *testing.T) {
	l, err := topology.Generate("torus,x=3,y=1")
	if err != nil {
		t.Fatal(err)
	}
	for _, delay := range []time.Duration{0, time.Microsecond} {
		f := newFabric(t, l, fabric.Config{HopDelay: delay})
		own, num, err := l.Attach("")
		if err != nil {
			t.Fatal(err)
		}
		c := attach(t, f, own.GUID, num)
		// Every switch sends LID 9 on to the next one.
		path := mad.Path{1}
		for range 3 {
			var node smp.NodeInfo
			c.get(path, 0, &node)
			next := ib.PortNum(0)
			for p := ib.PortNum(1); p <= ib.PortNum(node.NumPorts); p++ {
				if peer, _, ok := f.Peer(node.NodeGUID, p); ok && p != node.LocalPortNum && f.Agent(peer).SwitchInfo() != nil {
					next = p
				}
			}
			c.route(path, map[ib.LID]ib.PortNum{9: next})
			path = append(path, next)
		}
		before := f.Counts()
		if _, _, ok := c.ask(byLID(mad.MethodGet, smp.AttrNodeInfo, 0), 9); ok {
			t.Error("answered")
		}
		wantDiscard(t, f, before, fabric.DiscardHops)
	}
}

// A switch with a random forwarding table routes by it: a base LID with its
// mask, and its default port for the rest.
func TestRandomForwarding(t *testing.T) {
	f := newFabric(t, chain(t, 1), fabric.Config{Profile: func(_ *topology.Node, c *sma.Config) {
		if c.Switch != nil {
			c.Switch.LinearFDBCap, c.Switch.RandomFDBCap = 0, 64
		}
	}})
	c := attach(t, f, hostGUID(1), 1)
	c.address(along(0), 4, 4, 0)
	c.address(along(2), 8, 4, 2)
	var table smp.RandomForwardingTable
	table.Entries[0] = smp.RandomEntry{LID: 4, Valid: true, Port: 1}
	c.set(along(1), 0, &table)
	ask := func(lid ib.LID) bool {
		_, _, ok := c.ask(byLID(mad.MethodGet, smp.AttrNodeInfo, 0), lid)
		return ok
	}
	if ask(8) {
		t.Error("LID 8 is answered without an entry")
	}
	table.Entries[1] = smp.RandomEntry{LID: 8, Valid: true, LMC: 2, Port: 2}
	c.set(along(1), 0, &table)
	for lid := ib.LID(7); lid <= 12; lid++ {
		if got, want := ask(lid), lid >= 8 && lid <= 11; got != want {
			t.Errorf("LID %v answered: %v, want %v", lid, got, want)
		}
	}
	table.Entries[1] = smp.RandomEntry{}
	c.set(along(1), 0, &table)
	var info smp.SwitchInfo
	c.get(along(1), 0, &info)
	info.DefaultPort = 2
	c.set(along(1), 0, &info)
	if !ask(9) {
		t.Error("LID 9 is not answered through the default port")
	}
	// A directed route that goes on by LID starts again at the switch: it may
	// leave by the default port even if it came in there.
	info.DefaultPort = 1
	c.set(along(1), 0, &info)
	table.Entries[0] = smp.RandomEntry{}
	c.set(along(1), 0, &table)
	before := f.Received(mad.MethodGet, smp.AttrNodeInfo)
	p := directed(mad.Path{1}, mad.MethodGet, smp.AttrNodeInfo, 0)
	p.DrDLID = 4
	c.ask(p, ib.LIDPermissive)
	if f.Received(mad.MethodGet, smp.AttrNodeInfo) != before+1 {
		t.Errorf("a route back through the default port did not arrive; discarded: %s", discards(f))
	}
}

// A directed route may begin and end with a LID-routed part.
func TestMixedRoutes(t *testing.T) {
	f, c := routed(t)
	tests := []struct {
		name           string
		path           mad.Path
		drSLID, drDLID ib.LID
		dlid           ib.LID
		want           ib.NodeGUID
	}{
		{"LID-routed to the second switch, then one hop", mad.Path{2}, lidFirst, ib.LIDPermissive, lidS2, hostGUID(2)},
		{"LID-routed to the first switch, then two hops", mad.Path{2, 2}, lidFirst, ib.LIDPermissive, lidS1, hostGUID(2)},
		{"LID-routed all the way", nil, lidFirst, ib.LIDPermissive, lidLast, hostGUID(2)},
		{"LID-routed to a switch, no hops", nil, lidFirst, ib.LIDPermissive, lidS1, switchGUID(1)},
		{"one hop, then LID-routed", mad.Path{1}, ib.LIDPermissive, lidLast, ib.LIDPermissive, hostGUID(2)},
		{"one hop, then LID-routed to a switch", mad.Path{1}, ib.LIDPermissive, lidS2, ib.LIDPermissive, switchGUID(2)},
		{"one hop, then LID-routed to that switch", mad.Path{1}, ib.LIDPermissive, lidS1, ib.LIDPermissive, switchGUID(1)},
		{"LID-routed, one hop back, LID-routed", mad.Path{1}, lidFirst, lidLast, lidS2, hostGUID(2)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := directed(test.path, mad.MethodGet, smp.AttrNodeInfo, 0)
			p.DrSLID, p.DrDLID = test.drSLID, test.drDLID
			var node smp.NodeInfo
			c.must(p, test.dlid, &node)
			if node.NodeGUID != test.want {
				t.Errorf("answered by %v, want %v", node.NodeGUID, test.want)
			}
		})
	}
	if f.InFlight() != 0 {
		t.Errorf("%d packets are left over", f.InFlight())
	}
}

// A LID-routed packet to the permissive LID is taken by whoever is at the
// other end of the cable, and answered there, even if nobody has a LID yet.
func TestPermissiveLID(t *testing.T) {
	f := newFabric(t, chain(t, 1), fabric.Config{})
	var node smp.NodeInfo
	c := attach(t, f, hostGUID(1), 1)
	c.must(byLID(mad.MethodGet, smp.AttrNodeInfo, 0), ib.LIDPermissive, &node)
	if node.NodeGUID != switchGUID(1) {
		t.Errorf("answered by %v, want the switch", node.NodeGUID)
	}
	own := attach(t, f, switchGUID(1), 0)
	own.must(byLID(mad.MethodGet, smp.AttrNodeInfo, 0), ib.LIDPermissive, &node)
	if node.NodeGUID != switchGUID(1) {
		t.Errorf("from port 0 of the switch: answered by %v, want the switch itself", node.NodeGUID)
	}
	own.address(nil, 3, 3, 0)
	if _, slid, _ := c.ask(byLID(mad.MethodGet, smp.AttrNodeInfo, 0), ib.LIDPermissive); slid != 3 {
		t.Errorf("the answer comes from LID %v, want the switch's own, 3", slid)
	}
}

// A manager at port 0 of a switch reaches everything, by either routing.
func TestManagerOnSwitch(t *testing.T) {
	f, _ := routed(t)
	c := attach(t, f, switchGUID(1), 0)
	for guid, path := range map[ib.NodeGUID]mad.Path{
		switchGUID(1): nil, hostGUID(1): {1}, switchGUID(2): {2}, hostGUID(2): {2, 2},
	} {
		var node smp.NodeInfo
		c.get(path, 0, &node)
		if node.NodeGUID != guid {
			t.Errorf("route %v leads to %v, want %v", path, node.NodeGUID, guid)
		}
	}
	for lid, guid := range map[ib.LID]ib.NodeGUID{lidS1: switchGUID(1), lidLast: hostGUID(2)} {
		var node smp.NodeInfo
		c.must(byLID(mad.MethodGet, smp.AttrNodeInfo, 0), lid, &node)
		if node.NodeGUID != guid {
			t.Errorf("LID %v leads to %v, want %v", lid, node.NodeGUID, guid)
		}
	}
	c.route(nil, nil)
	var node smp.NodeInfo
	c.must(byLID(mad.MethodGet, smp.AttrNodeInfo, 0), lidS1, &node) // needs no table to reach itself
}

// Addresses that a topology file gives are there from the start.
func TestPresetLIDs(t *testing.T) {
	l := chain(t, 1)
	l.Nodes[0].Ports[1].LID, l.Nodes[0].Ports[1].LMC = 8, 2
	l.Nodes[1].Ports[0].LID = 3
	f := newFabric(t, l, fabric.Config{})
	if p := f.Agent(hostGUID(1)).Port(1); p.LID != 8 || p.LMC != 2 || p.PortState != smp.PortInit {
		t.Errorf("host port has LID %v, LMC %v, state %v", p.LID, p.LMC, p.PortState)
	}
	if p := f.Agent(switchGUID(1)).Port(0); p.LID != 3 {
		t.Errorf("switch has LID %v", p.LID)
	}
}
