package topology

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
)

// Validate reports every reason why l is not a fabric: a node without a valid id, type or
// number of ports; an id or node GUID that two have, or a port GUID, except for ports
// without a cable whose GUID counts up from their node's; a cable that differs at its two
// ends; rates that no link can train to; a value out of range of its field.
func (l *Netlist) Validate() error {
	var errs []error
	l.check(func(i int, err error) {
		errs = append(errs, fmt.Errorf("node %q: %w", l.Nodes[i].ID, err))
	})
	if len(l.Nodes) > MaxNodes {
		errs = append(errs, fmt.Errorf("%d nodes: want at most %d", len(l.Nodes), MaxNodes))
	}
	for _, command := range l.Commands {
		if strings.ContainsFunc(command, isControl) {
			errs = append(errs, fmt.Errorf("command %q: want no control characters", command))
		}
	}
	return errors.Join(errs...)
}

// check passes every fault of l to report, with the index of the node.
func (l *Netlist) check(report func(node int, err error)) {
	ids := make(map[string]bool, len(l.Nodes))
	guids := make(map[ib.NodeGUID]*Node, len(l.Nodes))
	portGUIDs := make(map[ib.PortGUID]*Node, len(l.Nodes))
	for i, n := range l.Nodes {
		if ids[n.ID] {
			report(i, errors.New("another node has the same id"))
		}
		ids[n.ID] = true
		if o := guids[n.GUID]; o != nil {
			report(i, fmt.Errorf("node GUID %v is also that of %q", n.GUID, o.ID))
		}
		guids[n.GUID] = n
		n.check(func(err error) { report(i, err) })
		for p := range n.Ports {
			if !n.IsEndPort(p) {
				continue
			}
			guid := n.Ports[p].GUID
			if guid == 0 {
				report(i, fmt.Errorf("port %d: port GUID 0: want another", p))
			}
			if n.isAssumed(p) {
				continue
			}
			if o := portGUIDs[guid]; o != nil && guid != 0 {
				report(i, fmt.Errorf("port %d: port GUID %v is also that of a port of %q", p, guid, o.ID))
			}
			portGUIDs[guid] = n
		}
	}
}

// isAssumed reports whether the GUID of end port p is one that nobody gave and that
// shows nowhere: the port has no cable. It may well be that of another port, or a
// device that was discovered could keep a topology from being read.
func (n *Node) isAssumed(p int) bool {
	return p != 0 && n.Ports[p].Peer == nil && n.Ports[p].GUID == n.defaultPortGUID(p)
}

// check passes every fault of n by itself and of its cables to report.
func (n *Node) check(report func(error)) {
	if err := checkID(n.ID); err != nil {
		report(err)
	}
	if n.Type != ib.NodeCA && n.Type != ib.NodeSwitch && n.Type != ib.NodeRouter {
		report(fmt.Errorf("%v: want CA, switch or router", n.Type))
	}
	if n.NumPorts() < 1 || n.NumPorts() > MaxPorts {
		report(fmt.Errorf("%d ports: want 1 to %d", n.NumPorts(), MaxPorts))
	}
	if n.VendorID > maxVendorID {
		report(fmt.Errorf("vendor id 0x%x: want at most 0x%x", n.VendorID, maxVendorID))
	}
	for p := range n.Ports {
		if err := n.checkPort(p); err != nil {
			report(fmt.Errorf("port %d: %w", p, err))
		}
	}
}

func (n *Node) checkPort(p int) error {
	port := &n.Ports[p]
	if port.LID != 0 && !port.LID.IsUnicast() {
		return fmt.Errorf("LID %v: want %v to %v, or 0 for none", port.LID, ib.LIDUnicastMin, ib.LIDUnicastMax)
	}
	if port.LMC > ib.LMCMax {
		return fmt.Errorf("LMC %d: want 0 to %d", port.LMC, ib.LMCMax)
	}
	peer := port.Peer
	if peer == nil {
		return nil
	}
	if peer == n && int(port.PeerPort) == p {
		return errors.New("cabled to itself")
	}
	if p == 0 || port.PeerPort == 0 {
		return fmt.Errorf("cabled to port %d of %q: port 0 has no cable", port.PeerPort, peer.ID)
	}
	if int(port.PeerPort) > peer.NumPorts() {
		return fmt.Errorf("cabled to port %d of %q: want 1 to %d", port.PeerPort, peer.ID, peer.NumPorts())
	}
	if back := &peer.Ports[port.PeerPort]; back.Peer != n || int(back.PeerPort) != p {
		return fmt.Errorf("cabled to port %d of %q, which is not cabled back", port.PeerPort, peer.ID)
	}
	if _, ok := n.ActiveRate(ib.PortNum(p)); !ok && n.isFirstEnd(p) {
		other := peer.Ports[port.PeerPort].Enabled
		return fmt.Errorf("enables width mask %d and speed mask %d, port %d of %q enables %d and %d: want a common width and a common speed",
			port.Enabled.Width, port.Enabled.Speed, port.PeerPort, peer.ID, other.Width, other.Speed)
	}
	return nil
}

// isFirstEnd picks one of the two ends of the cable at port p.
func (n *Node) isFirstEnd(p int) bool {
	peer, peerPort := n.Ports[p].Peer, int(n.Ports[p].PeerPort)
	return n.GUID < peer.GUID || n == peer && p < peerPort
}

// checkID reports whether a node id can stand in a file.
func checkID(id string) error {
	if id == "" || len(id) > MaxID {
		return fmt.Errorf("node id of %d bytes: want 1 to %d", len(id), MaxID)
	}
	if i := strings.IndexFunc(id, isForbidden); i >= 0 {
		return fmt.Errorf("node id %q: want no %q in it", id, id[i])
	}
	return nil
}

// isForbidden tells which characters no quoted text of a file can hold, or, in
// the case of @, would be taken for an alias.
func isForbidden(c rune) bool { return c == '@' || c == '"' || isControl(c) }

func isControl(c rune) bool { return c < ' ' || c == 0x7F }
