package discover

import (
	"errors"
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// MaxNodes bounds the nodes of a list: the unicast LIDs of a subnet are no more.
const MaxNodes = int(ib.LIDUnicastMax)

// Asker sends a request of subnet management and gives the answer to it. An error
// reports that there was none. The request's transaction identifier is the Asker's.
type Asker interface {
	Ask(request *mad.SMP) (answer *mad.SMP, err error)
}

// Fabric is what was found.
type Fabric struct {
	// Nodes are in the order in which they were found, the nearest first; the first is
	// the one that was asked from.
	Nodes []*Node
	// Faults are what did not answer, or answered what makes no sense, and where.
	Faults []error
}

// Node is a device.
type Node struct {
	Info        smp.NodeInfo
	Description string
	// Switch is SwitchInfo; nil for a CA or router.
	Switch *smp.SwitchInfo
	// Route leads to the node from where it was asked.
	Route mad.Path
	// Ports is indexed by the number of the port. Of a CA or router only the ports are
	// known that a route led to.
	Ports []Port
}

// Port is a port of a node.
type Port struct {
	Node *Node
	Num  ib.PortNum
	// Info is PortInfo, nil where it was not read.
	Info *smp.PortInfo
	// Peer is the port at the other end of the cable, nil for none that answered.
	Peer *Port
}

// Count is how many of the nodes are of a type.
func (f *Fabric) Count(t ib.NodeType) (n int) {
	for _, node := range f.Nodes {
		if node.Info.NodeType == t {
			n++
		}
	}
	return n
}

// Links are the cables, each once: the ends that were found first.
func (f *Fabric) Links() []*Port {
	var out []*Port
	seen := make(map[*Port]bool)
	for _, n := range f.Nodes {
		for i := range n.Ports {
			p := &n.Ports[i]
			if p.Peer != nil && !seen[p.Peer] {
				seen[p] = true
				out = append(out, p)
			}
		}
	}
	return out
}

// String names the node by its description, or by its GUID where there is none.
func (n *Node) String() string {
	if n.Description != "" {
		return n.Description
	}
	return n.Info.NodeGUID.String()
}

// String names the port by its node and number.
func (p *Port) String() string { return fmt.Sprintf("%s:%d", p.Node, p.Num) }

// lister is a list under way.
type lister struct {
	asker  Asker
	fabric *Fabric
	nodes  map[ib.NodeGUID]*Node
	queue  []step
}

// step is a cable to go over: out by port from, along route.
type step struct {
	from  *Port
	route mad.Path
}

// List lists the fabric, breadth first from the node that the Asker's port is of. An
// error means that this node itself did not answer; all else that went wrong is in
// Fabric.Faults.
func List(a Asker) (*Fabric, error) {
	l := &lister{asker: a, fabric: &Fabric{}, nodes: make(map[ib.NodeGUID]*Node)}
	if err := l.arrive(step{}); err != nil {
		return nil, err
	}
	for len(l.queue) > 0 {
		s := l.queue[0]
		l.queue = l.queue[1:]
		if len(l.fabric.Nodes) >= MaxNodes {
			l.fault(s.from, fmt.Errorf("the list ends here: it has %d nodes", MaxNodes))
			break
		}
		if s.from.Peer != nil {
			continue // found from the other end meanwhile
		}
		if err := l.arrive(s); err != nil {
			l.fault(s.from, err)
		}
	}
	return l.fabric, nil
}

// arrive examines the device at the end of a route.
func (l *lister) arrive(s step) error {
	var info smp.NodeInfo
	if err := l.get(s.route, 0, &info); err != nil {
		return err
	}
	switch {
	case info.NodeType < ib.NodeCA || info.NodeType > ib.NodeRouter:
		return fmt.Errorf("NodeInfo: %v", info.NodeType)
	case info.NumPorts == 0 || info.NumPorts == uint8(ib.PortNone) || info.LocalPortNum > ib.PortNum(info.NumPorts):
		return fmt.Errorf("NodeInfo: port %d of %d", info.LocalPortNum, info.NumPorts)
	}
	n := l.nodes[info.NodeGUID]
	if n == nil {
		n = l.enter(info, s.route)
	} else if n.Info.NodeType != info.NodeType || n.Info.NumPorts != info.NumPorts {
		return fmt.Errorf("node GUID %v is also that of %v, which is another device", info.NodeGUID, n)
	}
	p := &n.Ports[info.LocalPortNum]
	if s.from != nil {
		if p.Peer != nil {
			return fmt.Errorf("%v says that it is here, and is cabled to %v", p, p.Peer)
		}
		s.from.Peer, p.Peer = p, s.from
	}
	if n.Info.NodeType != ib.NodeSwitch && p.Info == nil {
		l.readPort(n, p, s.route, s.from == nil)
	}
	return nil
}

// enter reads what a node has as a whole, and the ports of a switch.
func (l *lister) enter(info smp.NodeInfo, route mad.Path) *Node {
	n := &Node{Info: info, Route: route, Ports: make([]Port, int(info.NumPorts)+1)}
	for i := range n.Ports {
		n.Ports[i].Node, n.Ports[i].Num = n, ib.PortNum(i)
	}
	l.nodes[info.NodeGUID] = n
	l.fabric.Nodes = append(l.fabric.Nodes, n)
	var text smp.NodeDescription
	if err := l.get(route, 0, &text); err != nil {
		l.fault(&n.Ports[0], err)
	}
	n.Description = text.String()
	if info.NodeType != ib.NodeSwitch {
		return n
	}
	n.Switch = new(smp.SwitchInfo)
	if err := l.get(route, 0, n.Switch); err != nil {
		l.fault(&n.Ports[0], err)
	}
	for i := range n.Ports {
		l.readPort(n, &n.Ports[i], route, i > 0)
	}
	return n
}

// readPort reads PortInfo, and queues a port whose link is up.
func (l *lister) readPort(n *Node, p *Port, route mad.Path, on bool) {
	num := ib.PortNum(0) // of the port itself on a CA or router
	if n.Switch != nil {
		num = p.Num
	}
	info, err := l.portInfo(n, num, route)
	if err != nil {
		l.fault(p, err)
		return
	}
	p.Info = info
	if on && info.PortPhysicalState == smp.PhysLinkUp && len(route) < mad.MaxHops {
		next := make(mad.Path, len(route)+1)
		next[copy(next, route)] = p.Num
		l.queue = append(l.queue, step{p, next})
	}
}

// portInfo reads PortInfo of a port. Of a device with extended speeds, on a switch that is what port 0
// says, it asks as somebody does who knows them: else the device may hide them.
func (l *lister) portInfo(n *Node, num ib.PortNum, route mad.Path) (*smp.PortInfo, error) {
	if n.Switch != nil && num > 0 && n.Ports[0].Info != nil && n.Ports[0].Info.CapabilityMask.Has(smp.CapExtendedSpeeds) {
		var info smp.PortInfo
		if l.get(route, smp.PortInfoModifier(num, true), &info) == nil {
			return &info, nil
		} // an older device may refuse it
	}
	var plain, extended smp.PortInfo
	if err := l.get(route, smp.PortInfoModifier(num, false), &plain); err != nil {
		return nil, err
	}
	if plain.CapabilityMask.Has(smp.CapExtendedSpeeds) && l.get(route, smp.PortInfoModifier(num, true), &extended) == nil {
		return &extended, nil
	}
	return &plain, nil
}

func (l *lister) fault(at *Port, err error) {
	l.fabric.Faults = append(l.fabric.Faults, fmt.Errorf("%v: %w", at, err))
}

// get asks for an attribute at the end of a route.
func (l *lister) get(route mad.Path, modifier uint32, to smp.Attribute) error {
	answer, err := l.asker.Ask(Get(route, to.ID(), modifier))
	switch {
	case err != nil:
	case answer.Status != mad.StatusOK:
		err = errors.New(answer.Status.String())
	default:
		err = to.UnmarshalBinary(answer.Data[:])
	}
	if err != nil {
		return fmt.Errorf("%s (modifier %d, route %v): %w", smp.AttributeName(to.ID()), modifier, route, err)
	}
	return nil
}

// Get is a SubnGet along a directed route.
func Get(route mad.Path, attribute mad.AttributeID, modifier uint32) *mad.SMP {
	p := &mad.SMP{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnDirected, ClassVersion: mad.ClassVersion, Method: mad.MethodGet,
		HopCount: uint8(len(route)), AttributeID: attribute, AttributeModifier: modifier,
		DrSLID: ib.LIDPermissive, DrDLID: ib.LIDPermissive,
	}
	for i, exit := range route {
		p.InitialPath[i+1] = byte(exit)
	}
	return p
}
