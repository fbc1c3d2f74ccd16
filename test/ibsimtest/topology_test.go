package ibsimtest

import (
	"cmp"
	"fmt"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// topology is what a manager at one node of a netlist can reach.
type reachable struct {
	nodes []*topology.Node
	known map[*topology.Node]bool
	ends  []*endPort
	self  *endPort
	links int
	// external are the other ports of switches, with a cable or without.
	external []place
}

// place is a port and a directed route to its node.
type place struct {
	node *topology.Node
	port int
	path string // as smpquery takes it
}

// String names the port as ibwarden does.
func (p place) String() string { return fmt.Sprintf("%s:%d", p.node.Description, p.port) }

// endPort is a port with a GUID: of a CA or router, or port 0 of a switch.
type endPort struct {
	place
	guid   uint64
	facing *place // the switch port at the other end of the cable
}

// Sizes of ibsim's P_Key tables, in entries.
const (
	hostTable   = 64
	switchTable = 8 // of port 0
)

// isSwitch tells a switch's port 0 from ports of CAs and routers.
func (e *endPort) isSwitch() bool { return e.node.Type == ib.NodeSwitch }

func (e *endPort) tableCap() int {
	if e.isSwitch() {
		return switchTable
	}
	return hostTable
}

// explore walks from the node that a client attaches to.
func explore(t testing.TB, l *topology.Netlist, host string) *reachable {
	t.Helper()
	node, port, err := l.Attach(host)
	if err != nil {
		t.Fatal(err)
	}
	x := &reachable{known: map[*topology.Node]bool{}}
	first := place{node, int(port), "0"}
	x.arrive(first, nil)
	x.self = x.ends[0]
	for waiting := []place{first}; len(waiting) > 0; waiting = waiting[1:] {
		at := waiting[0]
		isSwitch := at.node.Type == ib.NodeSwitch
		for p := range at.node.Ports {
			peer := at.node.Ports[p].Peer
			if peer == nil || !isSwitch && p != at.port {
				continue // a CA lets packets of its own out, by the port attached to
			}
			var facing *place
			if isSwitch {
				facing = &place{at.node, p, at.path}
			}
			next := place{peer, int(at.node.Ports[p].PeerPort), fmt.Sprintf("%s,%d", at.path, p)}
			if x.arrive(next, facing) && peer.Type == ib.NodeSwitch {
				waiting = append(waiting, next)
			}
		}
	}
	for _, n := range x.nodes {
		for _, p := range n.Ports {
			if p.Peer != nil && x.known[p.Peer] {
				x.links++
			}
		}
	}
	x.links /= 2
	return x
}

// arrive notes the ports at the end of a route, and reports whether the node
// is new.
func (x *reachable) arrive(at place, facing *place) bool {
	isNew := !x.known[at.node]
	if isNew {
		x.known[at.node] = true
		x.nodes = append(x.nodes, at.node)
	}
	if at.node.Type != ib.NodeSwitch {
		for _, e := range x.ends {
			if e.node == at.node && e.port == at.port {
				e.facing = cmp.Or(e.facing, facing) // the first port, seen from outside
				return isNew
			}
		}
		x.ends = append(x.ends, &endPort{at, uint64(at.node.Ports[at.port].GUID), facing})
		return isNew
	}
	if !isNew {
		return false
	}
	x.ends = append(x.ends, &endPort{place{at.node, 0, at.path}, uint64(at.node.Ports[0].GUID), nil})
	for p := 1; p < len(at.node.Ports); p++ {
		x.external = append(x.external, place{at.node, p, at.path})
	}
	return true
}

// count counts the nodes of a type.
func (x *reachable) count(t ib.NodeType) int {
	count := 0
	for _, n := range x.nodes {
		if n.Type == t {
			count++
		}
	}
	return count
}
