package fabric_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// small is a host of two ports, a switch of three and a router of two: host 1 to
// switch 3, switch 1 to router 2.
func small(t *testing.T) *topology.Netlist {
	t.Helper()
	h := topology.NewNode(ib.NodeCA, "h", 0x100, 2)
	s := topology.NewNode(ib.NodeSwitch, "s", 0x200, 3)
	r := topology.NewNode(ib.NodeRouter, "r", 0x300, 2)
	for _, c := range []struct {
		a    *topology.Node
		n    ib.PortNum
		b    *topology.Node
		peer ib.PortNum
	}{{h, 1, s, 3}, {s, 1, r, 2}} {
		if err := topology.Connect(c.a, c.n, c.b, c.peer); err != nil {
			t.Fatal(err)
		}
	}
	return &topology.Netlist{Nodes: []*topology.Node{h, s, r}}
}

func agent(n *topology.Node) (*sma.Agent, error) { return sma.New(fabric.DeviceProfile(n)) }

func TestWiring(t *testing.T) {
	l := small(t)
	w, err := fabric.NewWiring(l, agent)
	if err != nil {
		t.Fatal(err)
	}
	if len(w.Nodes) != 3 || len(w.Ports) != 3+4+3 {
		t.Fatalf("%d nodes and %d ports, want 3 and 10, ports 0 included", len(w.Nodes), len(w.Ports))
	}
	for i := range w.Nodes {
		n := &w.Nodes[i]
		if n.Source != l.Nodes[i] || n.Agent == nil || n.Off || n.IsSwitch != (i == 1) {
			t.Errorf("node %d: %+v", i, n)
		}
		if j, ok := w.Index(n.Source.GUID); !ok || int(j) != i {
			t.Errorf("node %v has index %d, %v; want %d", n.Source.GUID, j, ok, i)
		}
		if own, err := w.Node(n.Source.GUID); err != nil || own != n {
			t.Errorf("node %v is found as %p, %v", n.Source.GUID, own, err)
		}
		for num := ib.PortNum(0); num <= n.Last; num++ {
			p := w.Ports[n.First+int32(num)]
			if int(p.Node) != i || p.Num != num || p.Up {
				t.Errorf("port %d of node %d: %+v", num, i, p)
			}
			if p.Peer != fabric.NoPort && w.Ports[p.Peer].Peer != n.First+int32(num) {
				t.Errorf("the peer of port %d of node %d has another", num, i)
			}
			if end := n.EndPort(num); n.IsSwitch && end != 0 || !n.IsSwitch && end != num {
				t.Errorf("port %d of node %d belongs to end port %d", num, i, end)
			}
		}
	}
	cables := 0
	for _, p := range w.Ports {
		if p.Peer != fabric.NoPort {
			cables++
		}
	}
	if g, num, ok := w.Peer(0x100, 1); cables != 4 || !ok || g != 0x200 || num != 3 {
		t.Errorf("%d ends of cables; the peer of host 1 is port %d of %v, %v", cables, num, g, ok)
	}
	for _, none := range []ib.PortNum{0, 2, 3} {
		if g, num, ok := w.Peer(0x100, none); ok {
			t.Errorf("port %d of the host has peer %d of %v", none, num, g)
		}
	}
}

// End ports have GUIDs: those of hosts and routers, and port 0 of a switch.
func TestEndPort(t *testing.T) {
	l := small(t)
	w, err := fabric.NewWiring(l, agent)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range l.Nodes {
		for num := range n.Ports {
			g, at, ok := w.EndPort(n.Ports[num].GUID)
			if n.IsEndPort(num) && (!ok || g != n.GUID || int(at) != num) {
				t.Errorf("port GUID %v is port %d of %v, %v; want %d of %v", n.Ports[num].GUID, at, g, ok, num, n.GUID)
			}
		}
	}
	if _, _, ok := w.EndPort(0x999); ok {
		t.Error("a GUID that nobody has was found")
	}
}

func TestErrors(t *testing.T) {
	w, err := fabric.NewWiring(small(t), agent)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := w.Index(0x999); ok {
		t.Error("a node that there is not has an index")
	}
	for _, c := range []struct {
		g    ib.NodeGUID
		num  ib.PortNum
		want string
	}{{0x999, 1, "no such node"}, {0x100, 0, "want 1 to 2"}, {0x100, 3, "want 1 to 2"}, {0x200, 4, "want 1 to 3"}} {
		i, err := w.External(c.g, c.num)
		if err == nil || !strings.Contains(err.Error(), c.want) || i != fabric.NoPort {
			t.Errorf("port %d of %v: index %d, %v; want %q", c.num, c.g, i, err, c.want)
		}
	}
	bad := errors.New("no agent for this")
	_, err = fabric.NewWiring(small(t), func(n *topology.Node) (*sma.Agent, error) {
		if n.Type == ib.NodeRouter {
			return nil, bad
		}
		return agent(n)
	})
	if !errors.Is(err, bad) || !strings.Contains(err.Error(), `"r"`) {
		t.Errorf("%v: want the agent's error and the node's name", err)
	}
}
