package ibsimd

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/fabricsim"
	"github.com/ibwarden/ibwarden/internal/netlist"
	"github.com/ibwarden/ibwarden/internal/pma"
)

// meter moves the performance counters of all nodes as management packets pass.
// They are the fabric's own, which its data packets move.
type meter struct {
	fabric *fabricsim.Fabric
	nodes  map[ib.NodeGUID]*metered
	// at and ports are the ports of all nodes and their counters, nil until
	// something passes, as fabricsim.Sighting counts them.
	at    []end
	ports []*pma.Port
	first map[ib.NodeGUID]int32 // of a node's
	// crossings are the links that packets crossed since settle was called: the
	// fabric tells of them while it must not be asked for anything.
	crossings []crossing
	lost      []loss
}

// crossing is a packet that left by a port and came in by another.
type crossing struct{ exit, entry int32 }

type metered struct{ node *netlist.Node }

type loss struct {
	at  end
	why fabricsim.Reason
}

// madWords is the length of a datagram's packet, LRH to ICRC, in words of 4
// octets.
const madWords = 72

func newMeter(l *netlist.Netlist) *meter {
	m := &meter{nodes: make(map[ib.NodeGUID]*metered, len(l.Nodes)), first: make(map[ib.NodeGUID]int32, len(l.Nodes))}
	for _, n := range l.Nodes {
		m.nodes[n.GUID], m.first[n.GUID] = &metered{node: n}, int32(len(m.at))
		for p := range n.Ports {
			m.at = append(m.at, end{n.GUID, ib.PortNum(p)})
		}
	}
	m.ports = make([]*pma.Port, len(m.at))
	return m
}

// agent is a node's, which must exist.
func (m *meter) agent(g ib.NodeGUID) *pma.Agent { return m.fabric.Counters(g) }

// port is the counters of a port that can have a cable.
func (m *meter) port(i int32) *pma.Port {
	if m.ports[i] == nil {
		m.ports[i] = m.agent(m.at[i].node).Port(m.at[i].port)
	}
	return m.ports[i]
}

// crossed notes a packet that crossed a link.
func (m *meter) crossed(exit, entry int32) {
	m.crossings = append(m.crossings, crossing{exit, entry})
}

// passed notes a packet that left by a port whose link is up. It asks the
// fabric, and is not for its hooks.
func (m *meter) passed(at end) {
	if peer, port, ok := m.fabric.Peer(at.node, at.port); ok {
		m.crossed(m.first[at.node]+int32(at.port), m.first[peer]+int32(port))
	}
}

// discarded notes a packet that was lost at a port.
func (m *meter) discarded(at end, why fabricsim.Reason) { m.lost = append(m.lost, loss{at, why}) }

// settle counts what was noted.
func (m *meter) settle() {
	for _, c := range m.crossings {
		m.port(c.exit).Sent(madWords)
		m.port(c.entry).Received(madWords)
	}
	for _, l := range m.lost {
		p := m.agent(l.at.node).Port(l.at.port)
		if p == nil {
			continue
		}
		// What a switch itself sends has come in by no port: a trap that has no way
		// yet is no error of receiving.
		relayed := m.nodes[l.at.node].node.Type == ib.NodeSwitch && l.at.port != 0
		switch l.why {
		case fabricsim.DiscardLink:
			p.PortXmitDiscards++
			p.InactiveDiscards++
		case fabricsim.DiscardTable, fabricsim.DiscardLID:
			if relayed {
				p.PortRcvSwitchRelayErrors++
				p.DLIDMappingErrors++
			}
		case fabricsim.DiscardLoop:
			if relayed {
				p.PortRcvSwitchRelayErrors++
				p.LoopingErrors++
			}
		case fabricsim.DiscardDrop:
			p.PortRcvErrors++
			p.LocalPhysicalErrors++
		case fabricsim.DiscardBuffer:
			p.VL15Dropped++
		}
	}
	m.crossings, m.lost = m.crossings[:0], m.lost[:0]
}
