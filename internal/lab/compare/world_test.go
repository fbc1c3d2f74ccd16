package compare_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// bases is how many partitions a world has keys of; 0 is no partition.
const bases = 5

// world makes fabrics as a sweep would leave them, all of them read, with
// random tables, bits, states, virtual lanes and routes.
type world struct {
	*subnettest.Builder
	r   *rand.Rand
	f   *observed.Fabric
	lid ib.LID
	// odds are how often something is out of order: one in so many.
	odds int
}

// newWorld cables a random tree of switches with some cables more, and hosts
// with one port or two.
func newWorld(seed uint64, switches, hosts, odds int) *world {
	w := &world{Builder: subnettest.New(), r: rand.New(rand.NewPCG(seed, 11)), lid: 1, odds: odds}
	w.f = w.Fabric
	for i := range switches {
		w.node(ib.NodeSwitch, fmt.Sprintf("s%d", i), min(2*hosts+2*switches+3, 254))
	}
	w.RandomTree(w.r.IntN)
	for i := range hosts {
		kind := ib.NodeCA
		if w.r.IntN(20) == 0 {
			kind = ib.NodeRouter
		}
		n := w.node(kind, fmt.Sprintf("h%d", i), 1+w.r.IntN(8)/7)
		for num := 1; num < len(n.Ports); num++ {
			if !w.chance(10) {
				subnettest.Cable(&n.Ports[num], subnettest.Free(w.f.Nodes[w.r.IntN(switches)]))
			}
		}
	}
	w.fill()
	return w
}

// chance is true once in so many times, seldom where little is out of order.
func (w *world) chance(oneIn int) bool { return w.odds > 0 && w.r.IntN(oneIn*w.odds) == 0 }

// node adds a node with a P_Key table of any size.
func (w *world) node(kind ib.NodeType, name string, ports int) *observed.Node {
	w.NodeInfo.PartitionCap = uint16(1 + w.r.IntN(40))
	return w.Node(kind, ports, name)
}

func (w *world) fill() {
	for _, n := range w.f.Nodes {
		if s := n.Switch; s != nil {
			s.InfoRead = true
			s.Info = smp.SwitchInfo{LinearFDBCap: 1000, PartitionEnforcementCap: uint16(w.r.IntN(50)),
				InboundEnforcementCap: w.r.IntN(6) > 0, OutboundEnforcementCap: w.r.IntN(6) > 0,
				FilterRawInboundCap: w.r.IntN(2) > 0, FilterRawOutboundCap: w.r.IntN(2) > 0}
			if w.r.IntN(4) == 0 {
				s.Info.LinearFDBCap, s.Info.RandomFDBCap = 0, 1024
				s.Info.DefaultPort = ib.PortNum(w.r.IntN(len(n.Ports) + 1))
			}
		}
		for i := range n.Ports {
			if i > 0 || n.Switch != nil {
				w.fillPort(&n.Ports[i])
			}
		}
	}
	for _, n := range w.f.Nodes {
		for i := 1; i < len(n.Ports); i++ {
			w.fillLanes(&n.Ports[i])
		}
	}
	for _, n := range w.f.Switches() {
		w.route(n)
	}
}

// fillPort gives a port a state and tables. Both ends of a cable are up, in any
// state.
func (w *world) fillPort(p *observed.Port) {
	i := &p.Info
	i.VLCap, i.MTUCap, i.NeighborMTU = uint8(1+w.r.IntN(4)), ib.MTU4096, ib.MTU256
	i.OperationalVLs = uint8(1 + w.r.IntN(int(i.VLCap)))
	i.PortState, i.PortPhysicalState = smp.PortDown, smp.PhysPolling
	stranger := p.Peer == nil && p.Num != 0 && p.Node.Switch != nil && w.chance(8)
	switch {
	case p.Num == 0:
		i.PortState, i.PortPhysicalState = smp.PortActive, smp.PhysLinkUp
	case p.Peer != nil || stranger:
		i.PortState, i.PortPhysicalState = smp.PortActive, smp.PhysLinkUp
		if w.chance(25) {
			i.PortState = []smp.PortState{smp.PortInit, smp.PortArmed}[w.r.IntN(2)]
		}
	}
	if p.IsEnd() {
		w.fillEnd(p)
		return
	}
	if p.Peer == nil || p.Peer.Node.Switch == nil || w.chance(20) {
		i.PartitionEnforcementInbound, i.PartitionEnforcementOutbound = w.r.IntN(3) > 0, w.r.IntN(3) > 0
	}
	w.keys(p)
	i.FilterRawInbound, i.FilterRawOutbound = w.r.IntN(4) == 0, w.r.IntN(4) == 0
}

func (w *world) fillEnd(p *observed.Port) {
	if p.Info.LMC = ib.LMC(w.r.IntN(2)); p.Num == 0 {
		p.Info.LMC = 0
	}
	if p.Info.LMC == 1 {
		w.lid += w.lid & 1
	}
	p.Info.LID = w.lid
	w.lid += 1 << p.Info.LMC
	if w.chance(30) {
		p.Info.LID, p.Info.LMC = ib.LID(w.r.IntN(2)), 0
	}
	w.keys(p)
}

// keys fills a table; keys of few partitions, so that many match.
func (w *world) keys(p *observed.Port) {
	subnettest.SetPKeys(p)
	size := p.PKeyCap()
	for i := range p.PKeys {
		if w.r.IntN(1+size/2) == 0 || i == size-1 && w.r.IntN(2) == 0 {
			p.PKeys[i] = ib.PKey(w.r.IntN(bases)) | ib.PKey(w.r.IntN(2))<<15
		}
	}
}

// fillLanes maps service levels to virtual lanes, most of them to ones in operation.
func (w *world) fillLanes(p *observed.Port) {
	if smp.DataVLs(p.Info.VLCap) < 2 || !p.IsUp() {
		return
	}
	p.SLToVL = make(map[ib.PortNum]smp.SLToVLMappingTable)
	for in := range p.Node.Ports {
		if p.Node.Switch == nil && in > 0 || in > 0 && (in == int(p.Num) || !p.Node.Ports[in].IsUp()) {
			continue
		}
		var t smp.SLToVLMappingTable
		for sl := range t.VLs {
			t.VLs[sl] = ib.VL(w.r.IntN(smp.DataVLs(p.Info.OperationalVLs)))
			if w.chance(30) {
				t.VLs[sl] = ib.VL(w.r.IntN(16))
			}
		}
		if p.Peer != nil { // a virtual lane that the other end has not is as good as none
			for sl := range t.VLs {
				if lanes := smp.DataVLs(p.Peer.Info.OperationalVLs); int(t.VLs[sl]) >= lanes && w.r.IntN(8) > 0 {
					t.VLs[sl] = ib.VL(w.r.IntN(max(lanes, 1)))
				}
			}
		}
		p.SLToVL[ib.PortNum(in)] = t
	}
}

// route fills the table of a switch with shortest ways, and now and then with
// something else.
func (w *world) route(n *observed.Node) {
	exits := make([]ib.PortNum, 1024)
	for lid := range exits {
		exits[lid] = ib.PortNone
	}
	shortest := w.Exits(n)
	for _, p := range w.f.EndPorts() {
		for lid := int(p.Info.LID); lid > 0 && lid < int(p.Info.LID)+1<<p.Info.LMC && lid < len(exits); lid++ {
			if exit, known := shortest[ib.LID(lid)]; known {
				exits[lid] = exit
			}
			if w.chance(15) {
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
		s.Info.LinearFDBTop = ib.LID(1 + w.r.IntN(int(w.lid)))
	}
	blocks := int(w.lid)/smp.LIDsPerLinearBlock + 1
	s.LFT, s.LFTRead = exits[:blocks*smp.LIDsPerLinearBlock], make([]bool, blocks)
	for i := range s.LFTRead {
		s.LFTRead[i] = true
	}
}

func (w *world) routeRandom(n *observed.Node, exits []ib.PortNum) {
	s := n.Switch
	s.RFT, s.RFTRead = make([]smp.RandomEntry, 1024), make([]bool, 1024/smp.RandomEntriesPerBlock)
	i := 0
	for lid, out := range exits {
		if out != ib.PortNone && out != s.Info.DefaultPort {
			s.RFT[i] = smp.RandomEntry{LID: ib.LID(lid), Valid: true, Port: out}
			i++
		}
	}
	for b := range s.RFTRead {
		s.RFTRead[b] = true
	}
}
