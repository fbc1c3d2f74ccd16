package reach

import (
	"fmt"
	"math/rand/v2"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// world makes fabrics as a sweep leaves them. With trouble, anything may be
// wrong or unread; without, everything is in order and whole.
type world struct {
	*subnettest.Builder
	r       *rand.Rand
	trouble bool
	f       *observed.Fabric
	lid     ib.LID
}

// newWorld cables a random tree of switches with some cables more, and hosts.
func newWorld(seed uint64, switches, hosts int, trouble bool) *world {
	w := &world{Builder: subnettest.New(), r: rand.New(rand.NewPCG(seed, 5)), trouble: trouble, lid: 1}
	w.f = w.Fabric
	for i := range switches {
		w.node(ib.NodeSwitch, fmt.Sprintf("s%d", i), hosts+2*switches+3)
	}
	w.RandomTree(w.r.IntN)
	for i := range hosts {
		n := w.node(ib.NodeCA, fmt.Sprintf("h%d", i), 1)
		if !w.chance(30) {
			subnettest.Join(n, w.f.Nodes[w.r.IntN(switches)])
		}
	}
	w.fill()
	return w
}

func (w *world) chance(oneIn int) bool { return w.trouble && w.r.IntN(oneIn) == 0 }

// node adds a node with a P_Key table of any size.
func (w *world) node(kind ib.NodeType, name string, ports int) *observed.Node {
	w.NodeInfo.PartitionCap = uint16(1 + w.r.IntN(40))
	return w.Node(kind, ports, name)
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
	shortest := w.Exits(n)
	for _, p := range w.f.EndPorts() {
		for lid := int(p.Info.LID); lid < int(p.Info.LID)+1<<p.Info.LMC && lid < len(exits); lid++ {
			if exit, known := shortest[ib.LID(lid)]; known {
				exits[lid] = exit
			}
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

// bigFabric is 243 leaves of 48 hosts under one spine, and 729 tenants of 16.
// Everybody is a limited member of the default partition.
func bigFabric() *observed.Fabric {
	const leaves, hosts, tenants = 243, 48, 729
	b := subnettest.New()
	b.NodeInfo.PartitionCap = 128
	b.PortInfo.OperationalVLs, b.PortInfo.VLCap = 1, 1
	spine := b.Switch(leaves, "spine")
	for l := range leaves {
		leaf := b.Switch(hosts+1, fmt.Sprintf("leaf%d", l))
		for h := range hosts {
			host := l*hosts + h
			key := ib.PKeyBase(host%tenants + 1).Full()
			p := b.Host(leaf, fmt.Sprintf("h%d", host))
			subnettest.SetPKeys(p, 0x7fff, key)
			subnettest.SetPKeys(p.Peer, 0xffff, key)
		}
		subnettest.Join(leaf, spine)
	}
	for _, n := range b.Fabric.Switches() {
		subnettest.SetPKeys(&n.Ports[0], 0x7fff)
	}
	b.Route()
	return b.Fabric
}
