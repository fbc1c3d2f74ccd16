package cables

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// Left is a port of which nothing was learned, though something is behind it.
type Left struct {
	At     observed.Place
	Reason string
}

// Learn makes a list of a subnet that was swept without one. It takes in what is not
// contradicted and returns what it left out, by node and port.
//
// A device that claims a GUID which another claims too is left out, and so is the other,
// unless it is certain which one is genuine. Of two switches joined by cables that are
// all contradicted neither side is more genuine: what can be reached from the manager
// counts. A part of the subnet that hangs on one cable and has no host in it carries no
// traffic: it is left out, since a host that poses as a switch looks like that.
//
// contradiction says why a cable cannot be trusted; empty where nothing contradicts it.
func Learn(f *observed.Fabric, contradiction func(*observed.Port) string) (*List, []Left, error) {
	x := learning{fabric: f, contradiction: contradiction, refused: make(map[*observed.Port]string), in: make(map[*observed.Node]bool)}
	if f.Self == nil {
		return nil, nil, errors.New("no list of cables: the manager's own port did not answer")
	}
	x.refuse()
	if reason := x.refused[f.Self]; reason != "" {
		return nil, nil, fmt.Errorf("no list of cables: the manager's own cable is contradicted: %s", reason)
	}
	x.reach()
	x.prune()
	n, err := x.topology()
	if err != nil {
		return nil, nil, err
	}
	l, err := settle(n)
	if err != nil {
		return nil, nil, fmt.Errorf("the cables that were found make no list: %w", err)
	}
	return l, x.left(), nil
}

type learning struct {
	fabric        *observed.Fabric
	contradiction func(*observed.Port) string
	refused       map[*observed.Port]string
	in            map[*observed.Node]bool
}

// refuse removes cables that are contradicted, at both their ends.
func (x *learning) refuse() {
	claims, strangers := x.claims()
	for _, n := range x.fabric.Nodes {
		whole := ""
		switch {
		case x.isGenuine(n):
		case n.Contested, strangers[n.GUID()]:
			whole = "another device says that it has the same node GUID"
		case n.GUID() == 0 || uint64(n.GUID())+uint64(n.Info.NumPorts) < uint64(n.GUID()):
			whole = fmt.Sprintf("node GUID %v names no device", n.GUID())
		case n.Switch != nil && !n.Switch.InfoRead:
			whole = "it says that it is a switch, and has no SwitchInfo"
		case n.Switch != nil && claims[n.Ports[0].GUID] > 1:
			whole = fmt.Sprintf("port GUID %v is also that of another port", n.Ports[0].GUID)
		}
		for i := 1; i < len(n.Ports); i++ {
			p := &n.Ports[i]
			if p.Peer == nil {
				continue
			}
			reason := whole
			switch {
			case reason != "":
			case x.isGenuine(n) && n.Switch == nil:
				reason = x.contradiction(p)
			case n.Switch == nil && p.GUID == 0:
				reason = "it has no port GUID"
			case n.Switch == nil && claims[p.GUID] > 1:
				reason = fmt.Sprintf("port GUID %v is also that of another port", p.GUID)
			case !p.InfoRead:
				reason = "its PortInfo could not be read"
			case p.Stranger != nil:
				reason = p.Stranger.Why.Error()
			default:
				reason = x.contradiction(p)
			}
			if reason != "" {
				x.refuseCable(p, reason)
			}
		}
	}
}

// claims counts the ports that say that they have a GUID, those of strangers too, and
// tells which node GUIDs strangers claim.
func (x *learning) claims() (claims map[ib.PortGUID]int, strangers map[ib.NodeGUID]bool) {
	claims, strangers = make(map[ib.PortGUID]int), make(map[ib.NodeGUID]bool)
	for _, p := range x.fabric.EndPorts() {
		claims[p.GUID]++
	}
	for _, n := range x.fabric.Nodes {
		for i := range n.Ports {
			if s := n.Ports[i].Stranger; s != nil {
				claims[s.Info.PortGUID]++
				strangers[s.Info.NodeGUID] = true
			}
		}
	}
	return claims, strangers
}

// isGenuine reports whether the identity of a device is certain, whatever another device
// claims: the manager's own node, the one at the other end of its cable, and a switch
// that forwarded packets to two others and back.
func (x *learning) isGenuine(n *observed.Node) bool {
	self := x.fabric.Self
	if n == self.Node || self.Peer != nil && n == self.Peer.Node {
		return true
	}
	through := 0
	for i := 1; i < len(n.Ports); i++ {
		p := &n.Ports[i]
		if p.Peer != nil && p.Peer.Node != n && n.Switch != nil && n.Switch.InfoRead && p.Peer.Node.Switch != nil && x.contradiction(p) == "" && x.contradiction(p.Peer) == "" {
			through++
		}
	}
	return through >= 2
}

func (x *learning) refuseCable(p *observed.Port, reason string) {
	for _, end := range []*observed.Port{p, p.Peer} {
		if x.refused[end] == "" {
			x.refused[end] = reason
		}
	}
}

func (x *learning) own() *observed.Node { return x.fabric.Self.Node }

// cable is what p is cabled to, if nothing contradicts that; nil for nothing.
func (x *learning) cable(p *observed.Port) *observed.Port {
	if x.refused[p] != "" {
		return nil
	}
	return p.Peer
}

// reach finds what hangs together with the manager. Nothing leads through a CA.
func (x *learning) reach() {
	todo := []*observed.Node{x.own()}
	x.in[x.own()] = true
	for len(todo) > 0 {
		n := todo[0]
		todo = todo[1:]
		if n.Switch == nil && n != x.own() {
			continue
		}
		for i := range n.Ports {
			if q := x.cable(&n.Ports[i]); q != nil && !x.in[q.Node] {
				x.in[q.Node] = true
				todo = append(todo, q.Node)
			}
		}
	}
}

// prune leaves out every part that a single cable joins to the rest and in which
// there is no CA or router.
func (x *learning) prune() {
	b := bridges{x: x, seen: make(map[*observed.Node]int), low: make(map[*observed.Node]int)}
	b.walk(x.own(), nil)
	for _, p := range b.idle {
		x.refuseCable(p, "behind this one cable is something that says it is a switch, and no host")
	}
	if len(b.idle) > 0 {
		clear(x.in)
		x.reach()
	}
}

// bridges finds cables without which the subnet falls in two, by depth first
// search. It keeps its own stack: a device may say that it is a chain of many.
type bridges struct {
	x         *learning
	seen, low map[*observed.Node]int
	idle      []*observed.Port // ends, on the manager's side, of those with no host behind
}

type visit struct {
	node *observed.Node
	from *observed.Port // the port of the node before it, through which it was found
	next int            // port to look at
	ends int            // CAs and routers behind it so far
}

func (b *bridges) walk(n *observed.Node, from *observed.Port) {
	stack := []*visit{b.enter(n, from)}
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		if v.next < len(v.node.Ports) {
			if w := b.look(v, &v.node.Ports[v.next]); w != nil {
				stack = append(stack, w)
			}
			v.next++
			continue
		}
		stack = stack[:len(stack)-1]
		if len(stack) == 0 {
			return
		}
		up := stack[len(stack)-1]
		up.ends += v.ends
		b.low[up.node] = min(b.low[up.node], b.low[v.node])
		own := up.node == b.x.own() && up.node.Switch == nil // is a host behind it
		if b.low[v.node] > b.seen[up.node] && v.ends == 0 && !own {
			b.idle = append(b.idle, v.from)
		}
	}
}

func (b *bridges) enter(n *observed.Node, from *observed.Port) *visit {
	b.seen[n] = len(b.seen) + 1
	b.low[n] = b.seen[n]
	return &visit{node: n, from: from}
}

// look goes over one cable of a node.
func (b *bridges) look(v *visit, p *observed.Port) *visit {
	q := b.x.cable(p)
	switch {
	case q == nil || v.from != nil && q == v.from:
	case q.Node.Switch == nil:
		v.ends++
	case b.seen[q.Node] > 0:
		b.low[v.node] = min(b.low[v.node], b.seen[q.Node])
	default:
		return b.enter(q.Node, p)
	}
	return nil
}

// topology is what was found reachable, as a topology.
func (x *learning) topology() (*topology.Netlist, error) {
	out := new(topology.Netlist)
	made := make(map[*observed.Node]*topology.Node, len(x.in))
	for _, n := range x.fabric.Nodes {
		if x.in[n] {
			made[n] = deviceOf(n)
			out.Nodes = append(out.Nodes, made[n])
		}
	}
	for _, link := range x.fabric.Links() {
		a, b := made[link.A.Node], made[link.B.Node]
		if a == nil || b == nil || x.cable(link.A) == nil {
			continue
		}
		if err := join(a, link.A, b, link.B); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func deviceOf(n *observed.Node) *topology.Node {
	m := topology.NewNode(n.Type(), topology.DiscoveredID(n.Type(), n.GUID()), n.GUID(), ib.PortNum(n.Info.NumPorts))
	m.VendorID, m.DeviceID = n.Info.VendorID, n.Info.DeviceID
	if n.Description != "" {
		m.Description = n.Description
	}
	if n.Switch != nil {
		m.Ports[0].GUID, m.EnhancedPort0 = n.Ports[0].GUID, n.Switch.Info.EnhancedPort0
	}
	return m
}

// join lays the cable between two ports that were found cabled.
func join(a *topology.Node, p *observed.Port, b *topology.Node, q *observed.Port) error {
	for _, end := range []struct {
		node *topology.Node
		port *observed.Port
	}{{a, p}, {b, q}} {
		if end.node.Type != ib.NodeSwitch {
			end.node.Ports[end.port.Num].GUID = end.port.GUID
		}
	}
	return topology.Connect(a, p.Num, b, q.Num)
}

// left are the ports of what was taken in behind which something was not.
func (x *learning) left() []Left {
	var out []Left
	for _, n := range x.fabric.Nodes {
		for i := range n.Ports {
			p := &n.Ports[i]
			switch {
			case !x.in[n]:
			case x.refused[p] != "":
				out = append(out, Left{p.Place(), x.refused[p]})
			case p.Peer == nil && p.Stranger != nil:
				out = append(out, Left{p.Place(), p.Stranger.Why.Error()})
			}
		}
	}
	slices.SortFunc(out, func(a, b Left) int { return a.At.Compare(b.At) })
	return out
}
