package cables

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// Device is what a list says of a device.
type Device struct {
	GUID ib.NodeGUID
	Type ib.NodeType
	// Ports is their number, a switch's port 0 not counted.
	Ports int
	// Description is the text that the device had when the list was made; empty
	// when it had none.
	Description string
}

// Name is the description, or the GUID when there is none.
func (d Device) Name() string { return cmp.Or(d.Description, d.GUID.String()) }

// List is a list of cables. A nil List lists nothing.
type List struct {
	net   *topology.Netlist
	nodes map[ib.NodeGUID]*topology.Node
	// ends are the end ports that have a cable, by GUID, and port 0 of switches.
	ends map[ib.PortGUID]observed.Place
}

// Of makes a list of a topology, which is not to be changed from then on. The
// topology is valid.
func Of(n *topology.Netlist) *List {
	l := &List{net: n, nodes: make(map[ib.NodeGUID]*topology.Node, len(n.Nodes)), ends: make(map[ib.PortGUID]observed.Place, len(n.Nodes))}
	for _, x := range n.Nodes {
		l.nodes[x.GUID] = x
		for p := range x.Ports {
			if x.IsEndPort(p) && (p == 0 || x.Ports[p].Peer != nil) {
				l.ends[x.Ports[p].GUID] = observed.Place{Node: x.GUID, Port: ib.PortNum(p)}
			}
		}
	}
	return l
}

// Read reads a topology file of ibnetdiscover or ibsim; name stands for it in
// messages. The error lists all that is wrong.
func Read(data []byte, name string) (*List, error) {
	n, _, err := topology.Read(data, name, nil)
	if err != nil {
		return nil, err
	}
	return Of(n), nil
}

// Write writes the list as ibnetdiscover prints a fabric. Read gives the same
// list again.
func (l *List) Write(w io.Writer) error { return l.net.WriteIbnetdiscover(w) }

// settle makes the list that a file of n would be.
func settle(n *topology.Netlist) (*List, error) {
	var file bytes.Buffer
	if err := n.WriteIbnetdiscover(&file); err != nil {
		return nil, err
	}
	return Read(file.Bytes(), "cable list")
}

// Device is the device of this GUID.
func (l *List) Device(g ib.NodeGUID) (Device, bool) {
	if l == nil || l.nodes[g] == nil {
		return Device{}, false
	}
	n := l.nodes[g]
	d := Device{GUID: g, Type: n.Type, Ports: n.NumPorts(), Description: n.Description}
	if d.Description == topology.DiscoveredID(n.Type, g) {
		d.Description = "" // the id stands for what was not there
	}
	return d, true
}

// Devices are all devices, by GUID.
func (l *List) Devices() []Device {
	if l == nil {
		return nil
	}
	out := make([]Device, 0, len(l.nodes))
	for g := range l.nodes {
		d, _ := l.Device(g)
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b Device) int { return cmp.Compare(a.GUID, b.GUID) })
	return out
}

// Cables is the number of cables.
func (l *List) Cables() int {
	if l == nil {
		return 0
	}
	return len(l.net.Links())
}

// Peer is what a port is cabled to.
func (l *List) Peer(e observed.Place) (observed.Place, bool) {
	if l == nil || l.nodes[e.Node] == nil {
		return observed.Place{}, false
	}
	n := l.nodes[e.Node]
	if int(e.Port) >= len(n.Ports) || n.Ports[e.Port].Peer == nil {
		return observed.Place{}, false
	}
	return observed.Place{Node: n.Ports[e.Port].Peer.GUID, Port: n.Ports[e.Port].PeerPort}, true
}

// PortGUID is the GUID of an end port that has a cable, or of port 0 of a switch;
// 0 for any other port.
func (l *List) PortGUID(e observed.Place) ib.PortGUID {
	if l == nil || l.nodes[e.Node] == nil {
		return 0
	}
	n := l.nodes[e.Node]
	if int(e.Port) >= len(n.Ports) || e.Port != 0 && n.Ports[e.Port].Peer == nil {
		return 0
	}
	return n.Ports[e.Port].GUID
}

// Place is the port of this GUID and what it is cabled to: itself on port 0 of a
// switch. ok is false when no listed port has the GUID.
func (l *List) Place(g ib.PortGUID) (port, at observed.Place, ok bool) {
	if l == nil {
		return observed.Place{}, observed.Place{}, false
	}
	port, ok = l.ends[g]
	if !ok || port.Port == 0 {
		return port, port, ok
	}
	at, ok = l.Peer(port)
	return port, at, ok
}

// Name is a port as people write it: name of the device, colon, number. A CA of
// one port goes by its name.
func (l *List) Name(e observed.Place) string {
	name := e.Node.String()
	if d, ok := l.Device(e.Node); ok {
		name = d.Name()
		if d.Type != ib.NodeSwitch && d.Ports == 1 {
			return name
		}
	}
	return fmt.Sprintf("%s:%d", name, e.Port)
}

// Spelling is a port as it can be typed on a command line as it stands, for Find:
// by its name, unless a shell would make something of that or another device has
// the same, and else by the node GUID.
func (l *List) Spelling(e observed.Place) string {
	d, _ := l.Device(e.Node)
	odd := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-/", r))
	}
	if guid, err := l.findDevice(d.Description, nil); err == nil && guid == e.Node && !strings.ContainsFunc(d.Description, odd) && d.Description[0] != '-' {
		return fmt.Sprintf("%s:%d", d.Description, e.Port)
	}
	return e.String()
}

// Check compares what answered NodeInfo behind a port with what the list has
// there; an error says what is expected and what was found.
func (l *List) Check(at observed.Place, found *smp.NodeInfo) error {
	want, ok := l.Peer(at)
	if !ok {
		return fmt.Errorf("nothing is listed there, found %s", said(found))
	}
	n := l.nodes[want.Node]
	guid := n.Ports[want.Port].GUID
	if n.Type == ib.NodeSwitch {
		guid = n.Ports[0].GUID
	}
	if found.NodeGUID != want.Node || found.LocalPortNum != want.Port || found.NodeType != n.Type ||
		int(found.NumPorts) != n.NumPorts() || found.PortGUID != guid {
		return fmt.Errorf("expected %s (%s %v of %d ports, port GUID %v), found %s",
			l.Name(want), n.Type, n.GUID, n.NumPorts(), guid, said(found))
	}
	return nil
}

// CheckDevice compares a device with the list, wherever it stands.
func (l *List) CheckDevice(found *smp.NodeInfo) error {
	d, ok := l.Device(found.NodeGUID)
	if !ok || d.Type != found.NodeType || d.Ports != int(found.NumPorts) ||
		d.Type == ib.NodeSwitch && l.PortGUID(observed.Place{Node: d.GUID, Port: 0}) != found.PortGUID {
		return fmt.Errorf("no such device is listed: %s", said(found))
	}
	return nil
}

// said is what a device says of itself.
func said(i *smp.NodeInfo) string {
	return fmt.Sprintf("a device that says it is port %d of %s %v of %d ports, port GUID %v",
		i.LocalPortNum, i.NodeType, i.NodeGUID, i.NumPorts, i.PortGUID)
}

// CheckOwn compares what the manager's own node answered with the list: an error
// when the list has the GUID for a device of another kind.
func (l *List) CheckOwn(found *smp.NodeInfo) error {
	d, ok := l.Device(found.NodeGUID)
	if ok && (d.Type != found.NodeType || d.Ports != int(found.NumPorts)) {
		return fmt.Errorf("the list has it as a %s of %d ports, it is a %s of %d", d.Type, d.Ports, found.NodeType, found.NumPorts)
	}
	return nil
}

// Cable is a cable as it is shown: From is its end at a switch, or the lower of
// two.
type Cable struct{ From, To observed.Place }

// All lists every cable once, by its end From.
func (l *List) All() []Cable {
	if l == nil {
		return nil
	}
	var out []Cable
	for _, x := range l.net.Links() {
		a, b := observed.Place{Node: x.A, Port: x.APort}, observed.Place{Node: x.B, Port: x.BPort}
		if l.nodes[a.Node].Type != ib.NodeSwitch && l.nodes[b.Node].Type == ib.NodeSwitch {
			a, b = b, a
		}
		out = append(out, Cable{a, b})
	}
	slices.SortFunc(out, func(x, y Cable) int { return x.From.Compare(y.From) })
	return out
}

// Declares is Has as a proof asks it; nil where there is no list.
func (l *List) Declares() func(*observed.Port) bool {
	if l == nil {
		return nil
	}
	return l.Has
}

// Has reports whether the cable that was found at a port is on the list.
func (l *List) Has(p *observed.Port) bool {
	peer, ok := l.Peer(p.Place())
	return ok && p.Peer != nil && peer == p.Peer.Place()
}

// IsMisplaced reports whether the list has the GUID of an end port at another
// location, or not at all. It is false for a nil list.
func (l *List) IsMisplaced(p *observed.Port) bool {
	if l == nil {
		return false
	}
	port, at, ok := l.Place(p.GUID)
	return !ok || port != p.Place() || p.Num != 0 && (p.Peer == nil || at != p.Peer.Place())
}
