package reach

import (
	"fmt"
	"math/rand/v2"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// world makes fabrics as a sweep leaves them. With trouble, anything may be
// wrong or unread; without, everything is in order and whole.
type world struct {
	r       *rand.Rand
	trouble bool
	f       *observed.Fabric
	guid    uint64
	lid     ib.LID
}

// newWorld cables a random tree of switches with some cables more, and hosts.
func newWorld(seed uint64, switches, hosts int, trouble bool) *world {
	w := &world{r: rand.New(rand.NewPCG(seed, 5)), trouble: trouble, f: observed.NewFabric(), guid: 0x100, lid: 1}
	for i := range switches {
		n := w.node(ib.NodeSwitch, fmt.Sprintf("s%d", i), uint8(hosts+2*switches+3))
		if i > 0 {
			w.cable(w.free(n), w.free(w.f.Nodes[w.r.IntN(i)]))
		}
	}
	for range w.r.IntN(switches + 1) {
		a, b := w.f.Nodes[w.r.IntN(switches)], w.f.Nodes[w.r.IntN(switches)]
		if a != b {
			w.cable(w.free(a), w.free(b))
		}
	}
	for i := range hosts {
		n := w.node(ib.NodeCA, fmt.Sprintf("h%d", i), 1)
		if !w.chance(30) {
			w.cable(&n.Ports[1], w.free(w.f.Nodes[w.r.IntN(switches)]))
		}
	}
	w.fill()
	return w
}

func (w *world) chance(oneIn int) bool { return w.trouble && w.r.IntN(oneIn) == 0 }

func (w *world) free(n *observed.Node) *observed.Port {
	for i := 1; ; i++ {
		if n.Ports[i].Peer == nil {
			return &n.Ports[i]
		}
	}
}

func (w *world) cable(a, b *observed.Port) { observed.Connect(a, b) }

func (w *world) node(kind ib.NodeType, name string, ports uint8) *observed.Node {
	w.guid += 0x10
	n := w.f.AddNode(smp.NodeInfo{NodeType: kind, NumPorts: ports, NodeGUID: ib.NodeGUID(w.guid),
		PortGUID: ib.PortGUID(w.guid + 1), PartitionCap: uint16(1 + w.r.IntN(40))})
	n.Description = name
	return n
}

func (w *world) state(good smp.PortState) smp.PortState {
	if w.chance(25) {
		return smp.PortState(1 + w.r.IntN(4))
	}
	return good
}

func (w *world) fill() {
	for _, n := range w.f.Nodes {
		if s := n.Switch; s != nil {
			s.InfoRead = !w.chance(30)
			s.Info = smp.SwitchInfo{LinearFDBCap: 1000, PartitionEnforcementCap: uint16(w.r.IntN(50)),
				InboundEnforcementCap: w.r.IntN(6) > 0, OutboundEnforcementCap: w.r.IntN(6) > 0,
				FilterRawInboundCap: w.r.IntN(2) > 0, FilterRawOutboundCap: w.r.IntN(2) > 0}
			if w.r.IntN(4) == 0 {
				s.Info.LinearFDBCap, s.Info.RandomFDBCap = 0, 128
				s.Info.DefaultPort = ib.PortNum(w.r.IntN(len(n.Ports) + 1))
			}
		}
		for i := range n.Ports {
			p := &n.Ports[i]
			if i == 0 && n.Switch == nil {
				continue
			}
			p.Reached, p.InfoRead = true, !w.chance(40)
			p.Info.PortState, p.Info.OperationalVLs, p.Info.VLCap = smp.PortDown, 1, 1
			if p.Peer != nil || i == 0 || w.chance(4) {
				p.Info.PortState = w.state(smp.PortActive)
			}
			if p.IsEnd() {
				w.fillEnd(p)
			} else {
				w.fillGuard(p)
			}
		}
	}
	for _, n := range w.f.Switches() {
		w.route(n)
	}
}

func (w *world) fillEnd(p *observed.Port) {
	if p.Node.Switch == nil {
		p.GUID = p.Node.Info.PortGUID
	}
	if p.Info.LMC = ib.LMC(w.r.IntN(2)); p.Info.LMC == 1 {
		w.lid += w.lid & 1
	}
	p.Info.LID = w.lid
	w.lid += 1 << p.Info.LMC
	if w.chance(30) {
		p.Info.LID = []ib.LID{0, 0xC001, 1}[w.r.IntN(3)]
	}
	w.keys(p, p.PKeyCap())
}

func (w *world) fillGuard(p *observed.Port) {
	if p.Peer == nil || p.Peer.Node.Switch == nil {
		p.Info.PartitionEnforcementInbound, p.Info.PartitionEnforcementOutbound = w.r.IntN(3) > 0, w.r.IntN(3) > 0
		w.keys(p, p.PKeyCap())
	}
	p.Info.FilterRawInbound, p.Info.FilterRawOutbound = w.r.IntN(4) == 0, w.r.IntN(4) == 0
}

func (w *world) keys(p *observed.Port, size int) {
	p.PKeys = make([]ib.PKey, size)
	p.PKeysRead = make([]bool, p.PKeyBlocks())
	for i := range p.PKeys {
		if w.r.IntN(3) == 0 || i == size-1 {
			p.PKeys[i] = ib.PKey(w.r.IntN(6)) | ib.PKey(w.r.IntN(2))<<15
		}
	}
	for i := range p.PKeysRead {
		p.PKeysRead[i] = !w.chance(12)
	}
}

// route fills the table of a switch with shortest ways, and now and then with
// something else.
func (w *world) route(n *observed.Node) {
	exits := make([]ib.PortNum, 1024)
	for lid := range exits {
		exits[lid] = ib.PortNone
	}
	for _, p := range w.f.EndPorts() {
		for lid := int(p.Info.LID); lid < int(p.Info.LID)+1<<p.Info.LMC && lid < len(exits); lid++ {
			exits[lid] = exitTowards(n, p)
			if w.chance(40) {
				exits[lid] = ib.PortNum(w.r.IntN(len(n.Ports)))
			}
			if w.chance(60) {
				exits[lid] = ib.PortNone
			}
		}
	}
	s := n.Switch
	if s.Info.LinearFDBCap == 0 {
		w.routeRandom(n, exits)
		return
	}
	s.Info.LinearFDBTop = w.lid
	if w.chance(10) {
		s.Info.LinearFDBTop = ib.LID(w.r.IntN(int(w.lid)))
	}
	blocks := int(w.lid)/smp.LIDsPerLinearBlock + 1
	s.LFT, s.LFTRead = exits[:blocks*smp.LIDsPerLinearBlock], make([]bool, blocks)
	for i := range s.LFTRead {
		s.LFTRead[i] = !w.chance(10)
	}
}

func (w *world) routeRandom(n *observed.Node, exits []ib.PortNum) {
	s := n.Switch
	s.RFT, s.RFTRead = make([]smp.RandomEntry, 128), make([]bool, 8)
	i := 0
	for lid, out := range exits {
		if out != ib.PortNone && i < len(s.RFT) && out != s.Info.DefaultPort {
			s.RFT[i] = smp.RandomEntry{LID: ib.LID(lid), Valid: true, Port: out}
			i++
		}
	}
	for b := range s.RFTRead {
		s.RFTRead[b] = !w.chance(20)
	}
}

// exitTowards is the port of n on a shortest way to p.
func exitTowards(n *observed.Node, p *observed.Port) ib.PortNum {
	if p.Node == n {
		return 0
	}
	seen := map[*observed.Node]bool{p.Node: true}
	level := []*observed.Port{}
	edge := func(m *observed.Node) {
		for i := 1; i < len(m.Ports); i++ {
			if q := m.Ports[i].Peer; q != nil && !seen[q.Node] && (m.Switch != nil || m == p.Node && i == int(p.Num)) {
				level = append(level, q)
			}
		}
	}
	edge(p.Node)
	for len(level) > 0 {
		now := level
		level = nil
		for _, q := range now {
			if q.Node == n {
				return q.Num
			}
			if !seen[q.Node] && q.Node.Switch != nil {
				seen[q.Node] = true
				edge(q.Node)
			}
		}
	}
	return ib.PortNone
}

// bigFabric is 243 leaves of 48 hosts under one spine, and 729 tenants of 16.
// Everybody is a limited member of the default partition.
func bigFabric() *observed.Fabric {
	const leaves, hosts, tenants = 243, 48, 729
	w := &world{r: rand.New(rand.NewPCG(1, 1)), f: observed.NewFabric(), guid: 0x1000, lid: 1}
	spine := w.node(ib.NodeSwitch, "spine", leaves)
	for l := range leaves {
		leaf := w.node(ib.NodeSwitch, fmt.Sprintf("leaf%d", l), hosts+1)
		w.cable(&leaf.Ports[hosts+1], &spine.Ports[l+1])
		for h := range hosts {
			w.cable(&w.node(ib.NodeCA, fmt.Sprintf("h%d", l*hosts+h), 1).Ports[1], &leaf.Ports[h+1])
		}
	}
	host := 0
	for _, n := range w.f.Nodes {
		n.Info.PartitionCap = 128
		keys := []ib.PKey{0x7fff}
		if n.Switch == nil {
			keys = append(keys, ib.PKeyBase(host%tenants+1).Full())
			host++
		} else {
			n.Switch.InfoRead = true
			n.Switch.Info = smp.SwitchInfo{LinearFDBCap: 0xBFFF, PartitionEnforcementCap: 32, InboundEnforcementCap: true, OutboundEnforcementCap: true}
		}
		for i := range n.Ports {
			p := &n.Ports[i]
			p.Reached, p.InfoRead = i > 0 || n.Switch != nil, true
			p.Info.PortState, p.Info.OperationalVLs, p.Info.VLCap = smp.PortActive, 1, 1
			if !p.IsEnd() || !p.Reached {
				continue
			}
			p.Info.LID = w.lid
			w.lid++
			if n.Switch == nil {
				p.GUID = n.Info.PortGUID
				p.Peer.Info.PartitionEnforcementInbound, p.Peer.Info.PartitionEnforcementOutbound = true, true
				w.hold(p.Peer, 0xffff, keys[1])
			}
			w.hold(p, keys...)
		}
	}
	for _, n := range w.f.Switches() {
		blocks := int(w.lid)/smp.LIDsPerLinearBlock + 1
		n.Switch.Info.LinearFDBTop = w.lid
		n.Switch.LFT, n.Switch.LFTRead = make([]ib.PortNum, blocks*smp.LIDsPerLinearBlock), make([]bool, blocks)
		for i := range n.Switch.LFTRead {
			n.Switch.LFTRead[i] = true
		}
	}
	for _, p := range w.f.EndPorts() {
		for _, n := range w.f.Switches() {
			out := ib.PortNum(hosts + 1)
			switch {
			case n == p.Node:
				out = 0
			case n == spine && p.Node.Switch != nil:
				out = p.Node.Ports[hosts+1].Peer.Num
			case n == spine:
				out = p.Peer.Node.Ports[hosts+1].Peer.Num
			case p.Node.Switch == nil && p.Peer.Node == n:
				out = p.Peer.Num
			}
			n.Switch.LFT[p.Info.LID] = out
		}
	}
	return w.f
}

func (w *world) hold(p *observed.Port, keys ...ib.PKey) {
	p.PKeys, p.PKeysRead = make([]ib.PKey, p.PKeyCap()), make([]bool, p.PKeyBlocks())
	copy(p.PKeys, keys)
	for i := range p.PKeysRead {
		p.PKeysRead[i] = true
	}
}
