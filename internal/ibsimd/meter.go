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
	// passed are the links that packets crossed, by the port that they left by,
	// since settle was called: the fabric tells of them while it must not be
	// asked who is at the other end.
	passed []end
	lost   []loss
}

type metered struct{ node *netlist.Node }

type loss struct {
	at  end
	why fabricsim.Reason
}

// madWords is the length of a datagram's packet, LRH to ICRC, in words of 4
// octets.
const madWords = 72

func newMeter(l *netlist.Netlist) *meter {
	m := &meter{nodes: make(map[ib.NodeGUID]*metered, len(l.Nodes))}
	for _, n := range l.Nodes {
		m.nodes[n.GUID] = &metered{node: n}
	}
	return m
}

// agent is a node's, which must exist.
func (m *meter) agent(g ib.NodeGUID) *pma.Agent { return m.fabric.Counters(g) }

// crossed notes a packet that left by a port.
func (m *meter) crossed(at end) { m.passed = append(m.passed, at) }

// discarded notes a packet that was lost at a port.
func (m *meter) discarded(at end, why fabricsim.Reason) { m.lost = append(m.lost, loss{at, why}) }

// settle counts what was noted.
func (m *meter) settle() {
	for _, e := range m.passed {
		m.agent(e.node).Port(e.port).Sent(madWords)
		if peer, port, ok := m.fabric.Peer(e.node, e.port); ok {
			m.agent(peer).Port(port).Received(madWords)
		}
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
	m.passed, m.lost = m.passed[:0], m.lost[:0]
}
