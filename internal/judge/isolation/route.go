package isolation

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// MaxHops bounds the nodes of a route; a longer one is a loop.
const MaxHops = 64

// Hop is a node on a route.
type Hop struct {
	Node ib.NodeGUID `json:"node"`
	Name string      `json:"name"`
	// In and Out are the ports by which the packet enters and leaves; 0 where
	// it starts or ends.
	In  ib.PortNum `json:"in"`
	Out ib.PortNum `json:"out"`
}

// Route follows the forwarding tables from one end port to the base LID of
// another, both of them reached. Where there is no way, or it was not read, the
// error says so and the hops lead up to there.
func Route(f *observed.Fabric, from, to ib.PortGUID) ([]Hop, error) {
	a, b := endPort(f, from), endPort(f, to)
	for _, p := range []struct {
		port *observed.Port
		guid ib.PortGUID
	}{{a, from}, {b, to}} {
		if p.port == nil {
			return nil, fmt.Errorf("no end port with GUID %s was reached", p.guid)
		}
	}
	return route(a, b)
}

func endPort(f *observed.Fabric, g ib.PortGUID) *observed.Port {
	for _, n := range f.Nodes {
		for i := range n.Ports {
			if p := &n.Ports[i]; p.GUID == g && p.Reached && p.IsEnd() && (i > 0 || n.Switch != nil) {
				return p
			}
		}
	}
	return nil
}

func route(from, to *observed.Port) ([]Hop, error) {
	if !to.InfoRead {
		return nil, fmt.Errorf("no route: PortInfo of %s was not read", to)
	}
	lid := to.Info.LID
	if !lid.IsUnicast() {
		return nil, fmt.Errorf("no route: %s has no unicast LID but %s", to, lid)
	}
	var hops []Hop
	in := from
	if from.Node.Switch == nil {
		next, err := cross(from)
		hops = append(hops, Hop{from.Node.GUID(), from.Node.Name(), 0, from.Num})
		if err != nil {
			return hops, err
		}
		in = next
	}
	for len(hops) < MaxHops {
		out, err := exit(in, lid)
		hops = append(hops, Hop{in.Node.GUID(), in.Node.Name(), in.Num, out})
		switch {
		case err != nil:
			return hops, err
		case out == 0 && (in == to || to.Num == 0 && in.Node == to.Node):
			return hops, nil
		case out == 0:
			return hops, fmt.Errorf("no route: LID %s of %s leads to %s", lid, to, in.Node.Name())
		}
		if in, err = cross(&in.Node.Ports[out]); err != nil {
			return hops, err
		}
	}
	return hops, fmt.Errorf("no route: LID %s of %s leads over more than %d nodes", lid, to, MaxHops)
}

// cross is the port at the other end of p's cable.
func cross(p *observed.Port) (*observed.Port, error) {
	if p.InfoRead && !carriesData(p) {
		return nil, fmt.Errorf("no route: the link of %s is in state %s", p, p.Info.PortState)
	}
	if p.Peer == nil {
		return nil, fmt.Errorf("no route: nothing was found behind %s", p)
	}
	return p.Peer, nil
}

// exit is the port by which a packet for lid leaves the node that it entered
// by in; 0 when it ends there.
func exit(in *observed.Port, lid ib.LID) (ib.PortNum, error) {
	n := in.Node
	if n.Switch == nil {
		return 0, nil
	}
	out, known := n.Switch.Exit(lid, in.Num)
	switch {
	case !known:
		return 0, fmt.Errorf("no route known: the forwarding table of %s was not read for LID %s", n.Name(), lid)
	case int(out) >= len(n.Ports):
		return 0, fmt.Errorf("no route: %s has none for LID %s", n.Name(), lid)
	}
	return out, nil
}
