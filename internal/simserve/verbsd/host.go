package verbsd

import (
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/verbs"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// host is a node with opened devices. It is used where the fabric may be.
type host struct {
	fabric   *fabric.Fabric
	node     *topology.Node
	device   *endpoint.Device
	sessions []*session
	joining  map[ib.PortNum]*general
}

func newHost(f *fabric.Fabric, n *topology.Node) (*host, error) {
	device, err := f.Device(n.GUID)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", verbs.ErrRemoved, err)
	}
	return &host{fabric: f, node: n, device: device, joining: map[ib.PortNum]*general{}}, nil
}

// find is the node with a name, the first CA for no name.
func find(l *topology.Netlist, name string) (*topology.Node, error) {
	if name != "" {
		n, err := l.Find(name)
		if err != nil {
			err = fmt.Errorf("%w: %w", verbs.ErrNode, err)
		}
		return n, err
	}
	for _, n := range l.Nodes {
		if n.Type == ib.NodeCA {
			return n, nil
		}
	}
	return nil, fmt.Errorf("the fabric has no CA: %w", verbs.ErrNode)
}

// follow hands out events, and notices that the host was off.
func (h *host) follow() {
	if device, err := h.fabric.Device(h.node.GUID); err != nil || device != h.device {
		for _, s := range h.sessions {
			if !s.removed {
				wake := s.wake
				s.leave()
				s.wake = wake
				s.raise(verbs.Event{Type: verbs.EventDeviceFatal})
			}
		}
		return
	}
	for e, ok := h.device.NextEvent(); ok; e, ok = h.device.NextEvent() {
		out := verbs.Event{Type: eventTypes[e.Kind], Port: e.Port}
		for _, s := range h.sessions {
			if e.QP == nil {
				s.raise(out)
			} else if i := slices.IndexFunc(s.inOrder, func(p *pair) bool { return p.qp == e.QP }); i >= 0 {
				out.QPN = e.QP.Number()
				s.raise(out)
			}
		}
	}
	for _, g := range h.joining {
		g.receive(h)
	}
	for _, s := range h.sessions {
		s.pump()
	}
}

// eventTypes are the events of a device as verbs name them.
var eventTypes = map[endpoint.EventKind]verbs.EventType{
	endpoint.EventPKeyChange:       verbs.EventPKeyChange,
	endpoint.EventPortActive:       verbs.EventPortActive,
	endpoint.EventPortError:        verbs.EventPortErr,
	endpoint.EventLIDChange:        verbs.EventLIDChange,
	endpoint.EventGIDChange:        verbs.EventGIDChange,
	endpoint.EventSMChange:         verbs.EventSMChange,
	endpoint.EventClientReregister: verbs.EventClientReregister,
	endpoint.EventQPRequestError:   verbs.EventQPReqErr,
	endpoint.EventQPAccessError:    verbs.EventQPAccessErr,
}
