package simtest

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// lies changes what devices answer to directed-route packets on their way out.
type lies struct {
	fabric *fabric.Fabric
	from   place // where routes begin
	by     map[ib.NodeGUID]func(*mad.SMP)
	// told are the answers that were changed already, but for their hop pointer: a
	// packet is seen on every link that it crosses.
	told map[[mad.Size]byte]bool
}

// lying prepares a world whose devices can lie; by says what each does to its
// answers. It is to be called before the world is made, and seat after.
func lying(s *setup, by map[ib.NodeGUID]func(*mad.SMP)) *lies {
	x := &lies{by: by, told: map[[mad.Size]byte]bool{}}
	s.fabric.Drop = x.see
	return x
}

func (x *lies) seat(w *world) { x.fabric, x.from = w.fabric, w.self }

// see finds out who sent an answer, by the route and not by what it says, and lets
// that device change it.
func (x *lies) see(_ time.Duration, m *[mad.Size]byte) bool {
	var p mad.SMP
	if x.fabric == nil || p.UnmarshalBinary(m[:]) != nil || p.Method != mad.MethodGetResp || p.Class != mad.ClassSubnDirected {
		return false
	}
	if x.told[onWay(*m)] {
		return false
	}
	at, ok := x.from, true
	for hop := 1; hop <= int(p.HopCount) && ok; hop++ {
		node, num, cabled := x.fabric.Peer(at.node, ib.PortNum(p.InitialPath[hop]))
		at, ok = place{node, num}, cabled
	}
	change := x.by[at.node]
	if !ok || change == nil {
		return false
	}
	was := *m
	if change(&p); p.Encode(m) != nil {
		*m = was
	}
	x.told[onWay(*m)] = true
	return false
}

// onWay is a directed-route packet wherever on its way it is.
func onWay(m [mad.Size]byte) [mad.Size]byte {
	m[6] = 0 // hop pointer
	return m
}

// nodeOf finds a node of a topology by its id.
func nodeOf(l *topology.Netlist, id string) *topology.Node {
	for _, n := range l.Nodes {
		if n.ID == id {
			return n
		}
	}
	return nil
}

// replace puts a device of another type in the place of a host: what is plugged in
// there really is one.
func replace(l *topology.Netlist, id string, by *topology.Node, num ib.PortNum) {
	old := nodeOf(l, id)
	at, port := old.Ports[1].Peer, old.Ports[1].PeerPort
	at.Ports[port].Peer, at.Ports[port].PeerPort = by, num
	by.Ports[num].Peer, by.Ports[num].PeerPort = at, port
	for i, n := range l.Nodes {
		if n == old {
			l.Nodes = append(l.Nodes[:i], l.Nodes[i+1:]...)
			break
		}
	}
	for _, n := range l.Nodes {
		if n == by {
			return
		}
	}
	l.Nodes = append(l.Nodes, by)
}
