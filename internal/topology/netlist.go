package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/names"
)

// Limits of a topology.
const (
	MaxNodes       = 48 * 1024 // nodes; a subnet has one unicast LID less
	MaxPorts       = 254       // ports of one node; 255 means "no port" in forwarding tables
	MaxTotalPorts  = 1 << 20   // ports of all nodes together
	MaxID          = 64        // bytes of a node id
	MaxDescription = 64        // bytes of a node description, as on the wire
)

// Netlist is a topology.
type Netlist struct {
	// Nodes in file order. A client that names no node attaches to the first.
	Nodes []*Node
	// Commands are the ibsim console commands ("do" lines) of the file, in order.
	Commands []string
}

// Node is a device. NewNode makes one with ibsim's defaults.
type Node struct {
	ID          string // name in the file, unique, 1 to MaxID bytes
	Description string // NodeDescription, up to MaxDescription bytes; empty stands for ID
	Type        ib.NodeType
	GUID        ib.NodeGUID
	// SystemImageGUID is the node's GUID unless the file gives another.
	SystemImageGUID uint64
	VendorID        uint32 // 24 bits
	DeviceID        uint16
	EnhancedPort0   bool // switches only
	// Ports by port number. Ports[0] is a switch's management port and unused
	// on a CA or router.
	Ports []Port
}

// Port is one port of a node.
type Port struct {
	// GUID of an end port: every port of a CA or router, port 0 of a switch. It
	// is 0 on the other ports of a switch.
	GUID ib.PortGUID
	// Peer is the node at the other end of the cable, nil without a cable.
	Peer     *Node
	PeerPort ib.PortNum
	// LID and LMC preset an end port's address; LID 0 presets none.
	LID ib.LID
	LMC ib.LMC
	// Enabled holds the link rates that the port may train to.
	Enabled Rates
}

// NewNode returns a node without cables, as ibsim makes it when a file gives
// nothing but type, id, GUID and number of ports: described by its id, its
// ports at DefaultRates, CA and router port GUIDs counted up from the node's
// GUID, a switch's port GUID equal to it.
func NewNode(t ib.NodeType, id string, guid ib.NodeGUID, ports ib.PortNum) *Node {
	n := &Node{
		ID: id, Description: id, Type: t, GUID: guid,
		SystemImageGUID: uint64(guid),
		Ports:           make([]Port, int(ports)+1),
	}
	for p := range n.Ports {
		n.Ports[p].Enabled = DefaultRates
		if n.IsEndPort(p) {
			n.Ports[p].GUID = n.defaultPortGUID(p)
		}
	}
	return n
}

// NumPorts is the number of ports, a switch's port 0 not counted.
func (n *Node) NumPorts() int { return max(len(n.Ports)-1, 0) }

// IsEndPort reports whether port p of n has a GUID and LIDs of its own.
func (n *Node) IsEndPort(p int) bool { return (n.Type == ib.NodeSwitch) == (p == 0) }

// defaultPortGUID is the GUID that ibsim gives to end port p.
func (n *Node) defaultPortGUID(p int) ib.PortGUID { return ib.PortGUID(n.GUID) + ib.PortGUID(p) }

// endPort returns the end port that port p belongs to: itself, or a switch's
// port 0.
func (n *Node) endPort(p int) *Port {
	if n.Type == ib.NodeSwitch {
		p = 0
	}
	return &n.Ports[p]
}

// description is the text that stands for n where a description is wanted.
func (n *Node) description() string { return cmp.Or(n.Description, n.ID) }

// ActiveRate is the rate to which the link at port p trains. The second result
// is false if there is no cable, or no rate common to its ends.
func (n *Node) ActiveRate(p ib.PortNum) (Rates, bool) {
	if int(p) >= len(n.Ports) {
		return Rates{}, false
	}
	port := &n.Ports[p]
	if port.Peer == nil || int(port.PeerPort) >= len(port.Peer.Ports) {
		return Rates{}, false
	}
	return port.Enabled.Active(port.Peer.Ports[port.PeerPort].Enabled)
}

// Connect lays a cable between two ports. Both must exist, be free and be
// different, and neither may be port 0.
func Connect(a *Node, aPort ib.PortNum, b *Node, bPort ib.PortNum) error {
	if a == b && aPort == bPort {
		return fmt.Errorf("port %d of %q: cabled to itself", aPort, a.ID)
	}
	if err := a.checkFree(aPort); err != nil {
		return err
	}
	if err := b.checkFree(bPort); err != nil {
		return err
	}
	a.Ports[aPort].Peer, a.Ports[aPort].PeerPort = b, bPort
	b.Ports[bPort].Peer, b.Ports[bPort].PeerPort = a, aPort
	return nil
}

func (n *Node) checkFree(p ib.PortNum) error {
	if p == 0 || int(p) > n.NumPorts() {
		return fmt.Errorf("port %d of %q: want 1 to %d", p, n.ID, n.NumPorts())
	}
	if peer := n.Ports[p].Peer; peer != nil {
		return fmt.Errorf("port %d of %q: already cabled to port %d of %q", p, n.ID, n.Ports[p].PeerPort, peer.ID)
	}
	return nil
}

// Find finds the node that a person means: by its id, its description, or the
// first word of its description when that is one node's only.
func (l *Netlist) Find(name string) (*Node, error) {
	for _, n := range l.Nodes {
		if n.ID == name {
			return n, nil
		}
	}
	all := make([]string, len(l.Nodes))
	for i, n := range l.Nodes {
		all[i] = n.description()
	}
	found := names.One(name, all)
	switch {
	case len(found) == 0:
		for _, n := range l.Nodes {
			all = append(all, n.ID)
		}
		return nil, fmt.Errorf("the fabric has no node %q%s", name, names.DidYouMean(name, all))
	case len(found) > 1 && all[found[0]] != name:
		return nil, fmt.Errorf("%q may be %q or %q: want one", name, all[found[0]], all[found[1]])
	}
	return l.Nodes[found[0]], nil
}

// Attach finds the port at which a client enters the fabric: name is as Find takes
// it, and empty means the first node. A client enters a switch at port 0 and any
// other node at port 1.
func (l *Netlist) Attach(name string) (*Node, ib.PortNum, error) {
	if len(l.Nodes) == 0 {
		return nil, 0, fmt.Errorf("attach: the topology has no nodes")
	}
	n := l.Nodes[0]
	if name != "" {
		var err error
		if n, err = l.Find(name); err != nil {
			return nil, 0, fmt.Errorf("attach: %w", err)
		}
	}
	if n.Type == ib.NodeSwitch {
		return n, 0, nil
	}
	return n, 1, nil
}

// Count is the number of nodes of one type.
func (l *Netlist) Count(t ib.NodeType) int {
	count := 0
	for _, n := range l.Nodes {
		if n.Type == t {
			count++
		}
	}
	return count
}

// Link is a cable. A is the end with the lower GUID, or the lower port number
// if both ends are on one node.
type Link struct {
	A     ib.NodeGUID
	APort ib.PortNum
	B     ib.NodeGUID
	BPort ib.PortNum
}

// String prints both ends.
func (l Link) String() string { return fmt.Sprintf("%v[%d] - %v[%d]", l.A, l.APort, l.B, l.BPort) }

func (l Link) compare(m Link) int {
	return cmp.Or(cmp.Compare(l.A, m.A), cmp.Compare(l.APort, m.APort),
		cmp.Compare(l.B, m.B), cmp.Compare(l.BPort, m.BPort))
}

// Links lists every cable once, sorted by A, APort, B, BPort.
func (l *Netlist) Links() []Link {
	var links []Link
	for _, n := range l.Nodes {
		for p := range n.Ports {
			if port := &n.Ports[p]; port.Peer != nil && n.isFirstEnd(p) {
				links = append(links, Link{n.GUID, ib.PortNum(p), port.Peer.GUID, port.PeerPort})
			}
		}
	}
	slices.SortFunc(links, Link.compare)
	return links
}

// Canonical describes the fabric in text that is the same for two netlists
// exactly if they describe the same fabric: a line per node by GUID with its end
// ports, a line per cable with its active rate. Node ids, the order of nodes
// and enabled rates that do not show in an active rate are left out.
func (l *Netlist) Canonical() string {
	nodes := slices.SortedFunc(slices.Values(l.Nodes), func(a, b *Node) int { return cmp.Compare(a.GUID, b.GUID) })
	byGUID := make(map[ib.NodeGUID]*Node, len(nodes))
	var s strings.Builder
	for _, n := range nodes {
		byGUID[n.GUID] = n
		fmt.Fprintf(&s, "%v %v %q image 0x%x vendor 0x%x device 0x%x ports %d",
			n.GUID, n.Type, n.description(), n.SystemImageGUID, n.VendorID, n.DeviceID, n.NumPorts())
		if n.EnhancedPort0 {
			s.WriteString(" enhanced")
		}
		for p := range n.Ports {
			if port := &n.Ports[p]; n.IsEndPort(p) {
				fmt.Fprintf(&s, " [%d](%v) lid %d lmc %d", p, port.GUID, port.LID, port.LMC)
			}
		}
		s.WriteByte('\n')
	}
	for _, link := range l.Links() {
		rate, _ := byGUID[link.A].ActiveRate(link.APort)
		fmt.Fprintf(&s, "%v %v\n", link, rate)
	}
	return s.String()
}
