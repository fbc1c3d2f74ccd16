// This file holds the devices of a simulated fabric with their agents,
// their ports, and the cables between them.
//
//	Wiring            all of it; New builds it from a topology
//	Node, External, EndPort, Peer   lookups by GUID and port number
//
// Packages that move packets read it by index: nodes in the order of the topology,
// the ports of a node one after the other from its port 0. Packages that change a
// cable or the state of a link write it.

package fabric

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// NoPort is the index of no node and no port.
const NoPort int32 = -1

// WiredNode is a device.
type WiredNode struct {
	Agent    *sma.Agent // another each time that the node was off
	Source   *topology.Node
	First    int32      // index of port 0 among all ports
	Last     ib.PortNum // highest port number
	IsSwitch bool
	Off      bool
	plug     *Plug // whose device is here instead; nil for none
}

// EndPort is the end port that port num belongs to: itself, or port 0 of a switch.
func (n *WiredNode) EndPort(num ib.PortNum) ib.PortNum {
	if n.IsSwitch {
		return 0
	}
	return num
}

// WiredPort is one end of a cable, or of none.
type WiredPort struct {
	Node int32 // that the port belongs to
	Peer int32 // index of the port at the other end, None without a cable
	Num  ib.PortNum
	Up   bool // both ends are physically up
}

// Wiring is a fabric's devices and cables.
type Wiring struct {
	Nodes  []WiredNode
	Ports  []WiredPort // of all nodes
	byGUID map[ib.NodeGUID]int32
	byPort map[ib.PortGUID]int32 // end ports, built on first use
}

// NewWiring makes the wiring of a topology that is valid, all links down. Agent makes
// the agent of a node.
func NewWiring(l *topology.Netlist, agent func(*topology.Node) (*sma.Agent, error)) (*Wiring, error) {
	w := &Wiring{Nodes: make([]WiredNode, len(l.Nodes)), byGUID: make(map[ib.NodeGUID]int32, len(l.Nodes))}
	for i, source := range l.Nodes {
		a, err := agent(source)
		if err != nil {
			return nil, fmt.Errorf("node %q: %w", source.ID, err)
		}
		w.Nodes[i] = WiredNode{
			Agent: a, Source: source, First: int32(len(w.Ports)), Last: ib.PortNum(source.NumPorts()),
			IsSwitch: source.Type == ib.NodeSwitch,
		}
		w.byGUID[source.GUID] = int32(i)
		for num := range len(source.Ports) {
			w.Ports = append(w.Ports, WiredPort{Node: int32(i), Num: ib.PortNum(num), Peer: NoPort})
		}
	}
	for i := range w.Ports {
		source := &w.Nodes[w.Ports[i].Node].Source.Ports[w.Ports[i].Num]
		if source.Peer != nil {
			w.Ports[i].Peer = w.Nodes[w.byGUID[source.Peer.GUID]].First + int32(source.PeerPort)
		}
	}
	return w, nil
}

// Index finds a node by its GUID.
func (w *Wiring) Index(g ib.NodeGUID) (i int32, ok bool) {
	i, ok = w.byGUID[g]
	return i, ok
}

// Node finds a node by its GUID.
func (w *Wiring) Node(g ib.NodeGUID) (*WiredNode, error) {
	i, ok := w.byGUID[g]
	if !ok {
		return nil, fmt.Errorf("node %v: no such node in this fabric", g)
	}
	return &w.Nodes[i], nil
}

// External finds the index of a port that can have a cable.
func (w *Wiring) External(g ib.NodeGUID, num ib.PortNum) (int32, error) {
	n, err := w.Node(g)
	if err != nil {
		return NoPort, err
	}
	if num == 0 || num > n.Last {
		return NoPort, fmt.Errorf("port %d of node %v: want 1 to %d", num, g, n.Last)
	}
	return n.First + int32(num), nil
}

// EndPort finds the node and number of the end port with a GUID.
func (w *Wiring) EndPort(g ib.PortGUID) (n ib.NodeGUID, num ib.PortNum, ok bool) {
	if w.byPort == nil {
		w.byPort = make(map[ib.PortGUID]int32)
		for i := range w.Ports {
			source := w.Nodes[w.Ports[i].Node].Source
			if num := int(w.Ports[i].Num); source.IsEndPort(num) {
				w.byPort[source.Ports[num].GUID] = int32(i)
			}
		}
	}
	i, ok := w.byPort[g]
	if !ok {
		return 0, 0, false
	}
	return w.Nodes[w.Ports[i].Node].Source.GUID, w.Ports[i].Num, true
}

// Peer is the other end of the cable at a port, false without a cable.
func (w *Wiring) Peer(g ib.NodeGUID, num ib.PortNum) (n ib.NodeGUID, at ib.PortNum, ok bool) {
	i, err := w.External(g, num)
	if err != nil || w.Ports[i].Peer == NoPort {
		return 0, 0, false
	}
	peer := &w.Ports[w.Ports[i].Peer]
	return w.Nodes[peer.Node].Source.GUID, peer.Num, true
}
