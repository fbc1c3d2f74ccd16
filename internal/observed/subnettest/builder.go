package subnettest

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Defaults of New.
const (
	guidStep  = 0x10 // from one node to the next
	tableSize = 32   // entries of a P_Key table: one block
)

// Builder makes a fabric, node by node and cable by cable.
type Builder struct {
	Fabric *observed.Fabric

	// NodeInfo, SwitchInfo and PortInfo are what nodes and ports answer that are
	// added from now on, but for what names them, ports' states and the top of the
	// forwarding table.
	NodeInfo   smp.NodeInfo
	SwitchInfo smp.SwitchInfo
	PortInfo   smp.PortInfo

	// GUID is the NodeGUID of the next node. Its end ports have GUID plus their
	// number, port 0 of a switch has GUID plus 1.
	GUID ib.NodeGUID
	// LID is the next to be given. A CA or router port gets as many as
	// PortInfo.LMC says, port 0 of a switch one.
	LID ib.LID
}

// New returns a Builder of an empty fabric. P_Key tables have 32 entries, switches
// can enforce partitions and route every unicast LID.
func New() *Builder {
	return &Builder{
		Fabric:   observed.NewFabric(),
		NodeInfo: smp.NodeInfo{BaseVersion: 1, ClassVersion: 1, PartitionCap: tableSize},
		SwitchInfo: smp.SwitchInfo{
			LinearFDBCap: uint16(ib.LIDUnicastMax), PartitionEnforcementCap: tableSize,
			InboundEnforcementCap: true, OutboundEnforcementCap: true,
		},
		GUID: 0x1000, LID: 1,
	}
}

// Switch adds a switch without cables.
func (b *Builder) Switch(ports int, name string) *observed.Node {
	return b.Node(ib.NodeSwitch, ports, name)
}

// Host adds a CA with one port and cables it to the next free port of a switch; to
// none where at is nil.
func (b *Builder) Host(at *observed.Node, name string) *observed.Port {
	p := &b.Node(ib.NodeCA, 1, name).Ports[1]
	if at != nil {
		Cable(p, Free(at))
	}
	return p
}

// Node adds a node without cables, of which everything was read.
func (b *Builder) Node(kind ib.NodeType, ports int, name string) *observed.Node {
	info := b.NodeInfo
	info.NodeType, info.NumPorts, info.NodeGUID, info.PortGUID = kind, uint8(ports), b.GUID, ib.PortGUID(b.GUID)+1
	b.GUID += guidStep
	n := b.Fabric.AddNode(info)
	n.Description = name
	if n.Switch != nil {
		n.Switch.Info, n.Switch.InfoRead = b.SwitchInfo, true
	}
	for i := range n.Ports {
		if p := &n.Ports[i]; i > 0 || n.Switch != nil {
			b.open(p)
		}
	}
	return n
}

// open is what was read of a port without a cable.
func (b *Builder) open(p *observed.Port) {
	p.Reached, p.InfoRead, p.Info = true, true, b.PortInfo
	p.Info.LocalPortNum = p.Num
	p.Info.PortState, p.Info.PortPhysicalState = smp.PortDown, smp.PhysPolling
	if p.Num == 0 {
		p.Info.LMC, p.Info.PortState, p.Info.PortPhysicalState = 0, smp.PortActive, smp.PhysLinkUp
	}
	if p.IsEnd() {
		p.GUID = ib.PortGUID(p.Node.GUID()) + ib.PortGUID(max(p.Num, 1))
		count := ib.LID(p.Info.LMC.Count())
		p.Info.LID = (b.LID + count - 1) / count * count
		b.LID = p.Info.LID + count
	}
	SetPKeys(p)
}

// Free is the first port of a node without a cable. It panics where there is none.
func Free(n *observed.Node) *observed.Port {
	for i := 1; ; i++ {
		if n.Ports[i].Peer == nil {
			return &n.Ports[i]
		}
	}
}

// Join cables the first free ports of two nodes, which may be one, and returns that
// of the first.
func Join(x, y *observed.Node) *observed.Port {
	p := Free(x)
	p.Peer = p // taken, where y is x
	Cable(p, Free(y))
	return p
}

// Cable joins two ports. Both become Active; one that faces a host enforces
// partitions in both directions, where its switch can.
func Cable(p, q *observed.Port) {
	observed.Connect(p, q)
	SetLink(p, smp.PortActive, smp.PhysLinkUp)
	for _, x := range []*observed.Port{p, q} {
		if x.FacesEnd() && x.Node.Switch.Info.PartitionEnforcementCap > 0 {
			Enforce(x, true, true)
		}
	}
}

// SetLink gives both ends of a cable these states.
func SetLink(p *observed.Port, s smp.PortState, phys smp.PhysState) {
	for _, q := range []*observed.Port{p, p.Peer} {
		q.Info.PortState, q.Info.PortPhysicalState = s, phys
	}
}

// Enforce says in which directions a switch port checks P_Keys.
func Enforce(p *observed.Port, inbound, outbound bool) {
	p.Info.PartitionEnforcementInbound, p.Info.PartitionEnforcementOutbound = inbound, outbound
}

// SetPKeys is a port's whole P_Key table, of which every block was read.
func SetPKeys(p *observed.Port, keys ...ib.PKey) {
	p.PKeys, p.PKeysRead = make([]ib.PKey, p.PKeyCap()), make([]bool, p.PKeyBlocks())
	copy(p.PKeys, keys)
	for i := range p.PKeysRead {
		p.PKeysRead[i] = true
	}
}

// SetPKeysThrough is SetPKeys for a host's port and for the switch port before it.
func SetPKeysThrough(p *observed.Port, keys ...ib.PKey) {
	SetPKeys(p, keys...)
	if p.Peer != nil && p.Peer.FacesEnd() {
		SetPKeys(p.Peer, keys...)
	}
}

// PKeys are the keys that partitions give a port, in the order of the partitions:
// the full one where it is a full member and a limited one too.
func PKeys(partitions []observed.Partition, g ib.PortGUID) (out []ib.PKey) {
	for _, x := range partitions {
		if slices.Contains(x.Full, g) {
			out = append(out, x.Base.Full())
		} else if slices.Contains(x.Limited, g) {
			out = append(out, x.Base.Limited())
		}
	}
	return out
}

// GUIDs are the GUIDs of ports.
func GUIDs(ports ...*observed.Port) (out []ib.PortGUID) {
	for _, p := range ports {
		out = append(out, p.GUID)
	}
	return out
}
