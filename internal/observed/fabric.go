package observed

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// Fabric is what was read from the devices of one subnet.
type Fabric struct {
	// Nodes stand in the order of their discovery, or in that of OrderFromManager.
	Nodes []*Node
	// Self is the port through which the manager reaches the subnet: a CA or
	// router port, or port 0 of a switch.
	Self *Port

	byNode map[ib.NodeGUID]*Node

	journal journal
}

// NewFabric returns an empty snapshot.
func NewFabric() *Fabric {
	return &Fabric{byNode: make(map[ib.NodeGUID]*Node)}
}

// Node is one device.
type Node struct {
	// Index is the node's place in Fabric.Nodes.
	Index int
	// Info is NodeInfo as answered through the port that found the node.
	Info smp.NodeInfo
	// Description is NodeDescription without its padding; empty when unread.
	Description string
	// Switch holds what only switches have; nil for a CA or router.
	Switch *Switch
	// Ports is indexed by port number. Element 0 is the management port of a
	// switch, and unused on a CA or router.
	Ports []Port
	// Contested reports whether another device claims the same GUID. Which of the
	// two is genuine cannot be told from the wire.
	Contested bool

	fabric *Fabric
}

// Port is one port of a device.
type Port struct {
	Node *Node
	Num  ib.PortNum
	// GUID names an end port; zero on the external ports of a switch and on
	// ports of a CA or router that were not reached themselves.
	GUID ib.PortGUID
	// Path is the directed route to the agent that holds this port's tables:
	// to the port itself on a CA or router, to the node on a switch.
	Path mad.Path
	// Reached reports whether Path is valid.
	Reached bool
	// Via is the port by whose cable discovery reached this end port; nil for the
	// manager's own. On a switch it is set at port 0.
	Via *Port
	// Leads reports whether requests over the cable of this port may carry the M_Key
	// of the agent at its other end, which belongs there.
	Leads bool
	// Key is the M_Key that requests to this end port carry, so that its agent
	// obeys them; 0 where none is needed, or none is known. On a switch that of
	// port 0 counts (MKey). It is in no file and no output.
	Key ib.MKey
	// Offered is a key that this end port may have instead of Key, since neither a Set of it nor
	// a question with it was answered; 0 where Key is known to be the one.
	Offered ib.MKey
	// Info is PortInfo as last answered; InfoRead says that it was.
	Info     smp.PortInfo
	InfoRead bool
	// Peer is the port at the other end of the cable, when it was found.
	Peer *Port
	// Silent reports whether whatever is behind the link was asked and did not
	// answer.
	Silent bool
	// Stranger is what answered behind the link and was not let into the
	// snapshot; nil where nothing was refused.
	Stranger *Stranger
	// PKeys is the P_Key table by index; nil when no block was read.
	// PKeysRead has one element for each block: whether it was read.
	PKeys     []ib.PKey
	PKeysRead []bool
	// VLArbitration holds the parts of the VLArbitrationTable that were read,
	// part n at element n-1; nil when none was.
	VLArbitration []smp.VLArbitrationTable
	// SLToVL holds the SLtoVLMappingTables that were read: on a CA or router
	// one, on a switch one for each input port, for this port as output.
	SLToVL map[ib.PortNum]smp.SLToVLMappingTable
	// SMInfo is what the subnet manager behind this end port answered;
	// SMInfoRead reports whether it did.
	SMInfo     smp.SMInfo
	SMInfoRead bool
	// GUIDInfo holds the blocks of the table of GUIDs that were read.
	GUIDInfo map[uint32]smp.GUIDInfo
	// VendorDiag holds the blocks of diagnostic data that were read, by index;
	// Diagnosis puts them in order.
	VendorDiag map[uint32]smp.VendorDiag
	// Forgets holds the PortInfo elements that the device answered to have
	// but did not keep when they were written.
	Forgets Element
	// RefusesExtendedSpeeds reports whether this end port, on a switch port 0, refused a PortInfo
	// whose modifier says that the manager knows extended speeds.
	RefusesExtendedSpeeds bool
}

// Stranger is a device that a sweep found behind a port and whose identity it did not
// accept.
type Stranger struct {
	// Info is what it answered.
	Info smp.NodeInfo
	// Why says what is wrong with that.
	Why error
	// Undeclared reports whether the list of cables has something else there, or
	// nothing.
	Undeclared bool
}

// Switch holds the attributes of a switch.
type Switch struct {
	// Info is SwitchInfo as last answered; InfoRead says that it was.
	Info     smp.SwitchInfo
	InfoRead bool
	// LFT is the linear forwarding table by LID, as far as it was read.
	LFT []ib.PortNum
	// LFTRead has one element for each block of LFT: whether it was read.
	LFTRead []bool
	// sharesLFT reports whether LFT is not the switch's alone: it is not written to.
	sharesLFT bool
	// RFT is the random forwarding table, as far as it was read.
	RFT []smp.RandomEntry
	// RFTRead has one element for each block of RFT.
	RFTRead []bool
	// MFT holds the blocks of the multicast forwarding table that were read,
	// by smp.MFTModifier.
	MFT map[uint32]smp.MulticastForwardingTable
}

// AddNode enters a device that answered NodeInfo; the answer of a node that is
// known already returns that node.
func (f *Fabric) AddNode(info smp.NodeInfo) *Node {
	if n := f.byNode[info.NodeGUID]; n != nil {
		return n
	}
	n := &Node{Index: len(f.Nodes), Info: info, Ports: make([]Port, int(info.NumPorts)+1), fabric: f}
	for i := range n.Ports {
		n.Ports[i].Node, n.Ports[i].Num = n, ib.PortNum(i)
	}
	if info.NodeType == ib.NodeSwitch {
		n.Switch = &Switch{}
		n.Ports[0].GUID = info.PortGUID
	}
	f.Nodes = append(f.Nodes, n)
	f.byNode[info.NodeGUID] = n
	return n
}

// Adopt enters a node of another snapshot as it is known there, at the end of
// Nodes. The cables of its ports stay those of the other snapshot until they are
// set; what is read of it from then on changes nothing there, but for forwarding
// tables and virtual lanes, which the two share.
func (f *Fabric) Adopt(old *Node) *Node {
	n := new(Node)
	*n = *old
	n.Index, n.fabric, n.Ports = len(f.Nodes), f, slices.Clone(old.Ports)
	if old.Switch != nil {
		s := *old.Switch
		n.Switch = &s
	}
	for i := range n.Ports {
		p := &n.Ports[i]
		p.Node, p.PKeys, p.PKeysRead = n, slices.Clone(p.PKeys), slices.Clone(p.PKeysRead)
	}
	f.Nodes = append(f.Nodes, n)
	f.byNode[n.GUID()] = n
	return n
}

// Node returns the device with this GUID, or nil.
func (f *Fabric) Node(g ib.NodeGUID) *Node { return f.byNode[g] }

// Port returns the port of this number, or nil when the node has none.
func (n *Node) Port(num ib.PortNum) *Port {
	if int(num) >= len(n.Ports) || (num == 0 && n.Switch == nil) {
		return nil
	}
	return &n.Ports[num]
}

// GUID is NodeInfo.NodeGUID.
func (n *Node) GUID() ib.NodeGUID { return n.Info.NodeGUID }

// Type is NodeInfo.NodeType.
func (n *Node) Type() ib.NodeType { return n.Info.NodeType }

// Name is the description, or the GUID when there is none.
func (n *Node) Name() string {
	if n.Description != "" {
		return n.Description
	}
	return n.Info.NodeGUID.String()
}

// IsEnd reports whether p is an end port: one that can own a LID and take
// part in partitions.
func (p *Port) IsEnd() bool { return p.Node.Switch == nil || p.Num == 0 }

// FacesEnd reports whether p is an external switch port cabled to a CA or
// router port.
func (p *Port) FacesEnd() bool { return !p.IsEnd() && p.Peer != nil && p.Peer.Node.Switch == nil }

// FacesStranger reports whether the link of p, through which the subnet goes
// on, is up and leads to nobody who was found.
func (p *Port) FacesStranger() bool { return p.Peer == nil && p.Num != 0 && p.Reached && p.IsUp() }

// Silent are the ports behind which nobody answered, in order.
func (f *Fabric) Silent() (out []*Port) {
	for _, n := range f.Nodes {
		for i := range n.Ports {
			if p := &n.Ports[i]; p.Silent {
				out = append(out, p)
			}
		}
	}
	return out
}

// IsUp reports whether the link behind p is trained: any state but Down.
func (p *Port) IsUp() bool {
	return p.InfoRead && p.Info.PortState != smp.PortDown && p.Info.PortPhysicalState == smp.PhysLinkUp
}

// Enforces reports whether p, an external switch port, answered that it checks
// P_Keys in both directions.
func (p *Port) Enforces() bool {
	if p.Node.Switch == nil || !p.InfoRead {
		return false
	}
	info := &p.Node.Switch.Info
	return info.PartitionEnforcementCap > 0 &&
		info.InboundEnforcementCap && p.Info.PartitionEnforcementInbound &&
		info.OutboundEnforcementCap && p.Info.PartitionEnforcementOutbound
}

// Agent is the end port whose M_Key guards what belongs to p: p itself, or port 0
// of its switch.
func (p *Port) Agent() *Port {
	if p.Node.Switch != nil {
		return &p.Node.Ports[0]
	}
	return p
}

// MKey is the M_Key that requests about p carry.
func (p *Port) MKey() ib.MKey { return p.Agent().Key }

// MKeyOver is the M_Key that requests over the cable of p carry, to the agent that
// was found at its other end.
func (p *Port) MKeyOver() ib.MKey {
	if p.Peer == nil || !p.Leads {
		return 0
	}
	return p.Peer.MKey()
}

// Guarded reports whether the agent of p showed, when it was last asked, that it
// takes Sets only with the key that is known here.
func (p *Port) Guarded() bool {
	a := p.Agent()
	return a.InfoRead && a.Key != 0 && a.Info.MKey == a.Key
}

// RespTimeAssumed is what an agent is taken to need for an answer that did not
// say (PortInfo.RespTimeValue): a quarter of a second, as devices usually say.
const RespTimeAssumed ib.TimeValue = 16

// RespTime is the longest time that the agent behind p says it takes to answer,
// RespTimeAssumed when that was not read.
func (p *Port) RespTime() time.Duration {
	if p.Node.Switch != nil {
		p = &p.Node.Ports[0]
	}
	if !p.InfoRead {
		return RespTimeAssumed.Duration()
	}
	return p.Info.RespTimeValue.Duration()
}

// EndPKeysMax is how many entries of an end port's P_Key table are read and written
// at the most: 16 times what adapters have. A host that says it has 65,535 would
// keep a manager busy with them; what it holds beyond these its switch port stops.
const EndPKeysMax = 2048

// PKeyCap is the number of entries of p's P_Key table: NodeInfo.PartitionCap
// for an end port, SwitchInfo.PartitionEnforcementCap for an external port.
func (p *Port) PKeyCap() int {
	if p.IsEnd() {
		return min(int(p.Node.Info.PartitionCap), EndPKeysMax)
	}
	return int(p.Node.Switch.Info.PartitionEnforcementCap)
}

// PKeyBlocks is the number of blocks of p's P_Key table.
func (p *Port) PKeyBlocks() int { return (p.PKeyCap() + smp.PKeysPerBlock - 1) / smp.PKeysPerBlock }

// PKeysKnown reports whether every block of the table was read. A table of no
// entries is known.
func (p *Port) PKeysKnown() bool {
	return len(p.PKeysRead) == p.PKeyBlocks() && !slices.Contains(p.PKeysRead, false)
}

// PKeyBlockRead reports whether a block of the table was read.
func (p *Port) PKeyBlockRead(block int) bool { return block < len(p.PKeysRead) && p.PKeysRead[block] }

// ReadPKeys are the entries of the table that were read, valid or not, by index.
func (p *Port) ReadPKeys() iter.Seq2[int, ib.PKey] {
	return func(yield func(int, ib.PKey) bool) {
		for i, k := range p.PKeys {
			if p.PKeyBlockRead(i/smp.PKeysPerBlock) && !yield(i, k) {
				return
			}
		}
	}
}

// String names the port for people: the node's name and the port number.
func (p *Port) String() string {
	if p.Node.Switch == nil && len(p.Node.Ports) == 2 {
		return p.Node.Name()
	}
	return p.Node.Name() + ":" + strconv.Itoa(int(p.Num))
}

// EndPorts returns the end ports that were reached, ordered by GUID.
func (f *Fabric) EndPorts() []*Port {
	var out []*Port
	for _, n := range f.Nodes {
		for i := range n.Ports {
			if p := &n.Ports[i]; p.Reached && p.IsEnd() && (i > 0 || n.Switch != nil) {
				out = append(out, p)
			}
		}
	}
	slices.SortFunc(out, func(a, b *Port) int { return cmp.Compare(a.GUID, b.GUID) })
	return out
}

// Switches returns the switches in the order of Nodes.
func (f *Fabric) Switches() []*Node {
	var out []*Node
	for _, n := range f.Nodes {
		if n.Switch != nil {
			out = append(out, n)
		}
	}
	return out
}

// Connect records that a cable joins a and b.
func Connect(a, b *Port) {
	a.Peer, b.Peer = b, a
	a.Silent, b.Silent = false, false
}

// Link is a cable, its ends ordered by node GUID and port number.
type Link struct{ A, B *Port }

// Links returns every cable once, ordered by its ends.
func (f *Fabric) Links() []Link {
	var out []Link
	for _, n := range f.Nodes {
		for i := range n.Ports {
			if p := &n.Ports[i]; p.Peer != nil && comparePorts(p, p.Peer) < 0 {
				out = append(out, Link{p, p.Peer})
			}
		}
	}
	slices.SortFunc(out, func(x, y Link) int { return comparePorts(x.A, y.A) })
	return out
}

func comparePorts(a, b *Port) int {
	return cmp.Or(cmp.Compare(a.Node.GUID(), b.Node.GUID()), cmp.Compare(a.Num, b.Num))
}

// Counts is the size of a fabric.
type Counts struct {
	Nodes, Switches, CAs, Routers, Links int
}

// Count returns the size of the fabric.
func (f *Fabric) Count() Counts {
	c := Counts{Nodes: len(f.Nodes), Links: len(f.Links())}
	for _, n := range f.Nodes {
		switch n.Type() {
		case ib.NodeSwitch:
			c.Switches++
		case ib.NodeRouter:
			c.Routers++
		default:
			c.CAs++
		}
	}
	return c
}
