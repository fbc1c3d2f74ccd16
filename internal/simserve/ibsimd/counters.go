// This file counts management packets in the performance counters of a
// simulated fabric. The counters are the fabric's own, which its data packets
// move too.
//
// A packet is recorded when the fabric reports it, since the fabric must not be called
// back at that time, and counted by Settle.

package ibsimd

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/pma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// Counters moves the counters of the nodes of one fabric.
type Counters struct {
	fabric *fabric.Fabric
	nodes  map[ib.NodeGUID]*topology.Node
	// at and ports are the ports of all nodes and their counters, nil until
	// something passes, as fabric.Sighting counts them.
	at    []countersEnd
	ports []*pma.Port
	first map[ib.NodeGUID]int32 // of a node's
	// crossings are the links that packets crossed since Settle was called: the
	// fabric tells of them while it must not be asked for anything.
	crossings []crossing
	lost      []loss
}

// crossing is a packet that left by a port and came in by another.
type crossing struct{ exit, entry int32 }

// countersEnd is a port of a node.
type countersEnd struct {
	node ib.NodeGUID
	port ib.PortNum
}

type loss struct {
	at  countersEnd
	why fabric.Reason
}

// madWords is the length of a datagram's packet, LRH to ICRC, in words of 4
// bytes.
const madWords = 72

// New makes counters for the nodes of a topology; the fabric made of it has to be set
// before anything is counted.
func New(l *topology.Netlist) *Counters {
	m := &Counters{nodes: make(map[ib.NodeGUID]*topology.Node, len(l.Nodes)), first: make(map[ib.NodeGUID]int32, len(l.Nodes))}
	for _, n := range l.Nodes {
		m.nodes[n.GUID], m.first[n.GUID] = n, int32(len(m.at))
		for p := range n.Ports {
			m.at = append(m.at, countersEnd{n.GUID, ib.PortNum(p)})
		}
	}
	m.ports = make([]*pma.Port, len(m.at))
	return m
}

// SetFabric says whose counters are moved.
func (m *Counters) SetFabric(f *fabric.Fabric) { m.fabric = f }

// Node is the node with a GUID, nil when there is none.
func (m *Counters) Node(g ib.NodeGUID) *topology.Node { return m.nodes[g] }

// Agent is a node's, which must exist.
func (m *Counters) Agent(g ib.NodeGUID) *pma.Agent { return m.fabric.Counters(g) }

// port is the counters of a port that can have a cable.
func (m *Counters) port(i int32) *pma.Port {
	if m.ports[i] == nil {
		m.ports[i] = m.Agent(m.at[i].node).Port(m.at[i].port)
	}
	return m.ports[i]
}

// Crossed notes a packet that crossed a link between two ports, as
// fabric.Sighting counts them.
func (m *Counters) Crossed(exit, entry int32) {
	m.crossings = append(m.crossings, crossing{exit, entry})
}

// Discarded notes a packet that was lost at a port.
func (m *Counters) Discarded(node ib.NodeGUID, num ib.PortNum, why fabric.Reason) {
	m.lost = append(m.lost, loss{countersEnd{node, num}, why})
}

// Settle counts what was noted.
func (m *Counters) Settle() {
	for _, c := range m.crossings {
		m.port(c.exit).Sent(madWords)
		m.port(c.entry).Received(madWords)
	}
	for _, l := range m.lost {
		p := m.Agent(l.at.node).Port(l.at.port)
		if p == nil {
			continue
		}
		// What a switch itself sends has come in by no port: a trap that has no way
		// yet is no error of receiving.
		relayed := m.nodes[l.at.node].Type == ib.NodeSwitch && l.at.port != 0
		switch l.why {
		case fabric.DiscardLink:
			p.PortXmitDiscards++
			p.InactiveDiscards++
		case fabric.DiscardTable, fabric.DiscardLID:
			if relayed {
				p.PortRcvSwitchRelayErrors++
				p.DLIDMappingErrors++
			}
		case fabric.DiscardLoop:
			if relayed {
				p.PortRcvSwitchRelayErrors++
				p.LoopingErrors++
			}
		case fabric.DiscardDrop:
			p.PortRcvErrors++
			p.LocalPhysicalErrors++
		case fabric.DiscardBuffer:
			p.VL15Dropped++
		}
	}
	m.crossings, m.lost = m.crossings[:0], m.lost[:0]
}
