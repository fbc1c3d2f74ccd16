package cables

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/names"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// Find is the port that a person means by "leaf-1:7" or "0x…:7", in the list or
// in a subnet. f may be nil.
func (l *List) Find(name string, f *observed.Fabric) (observed.Place, error) {
	i := strings.LastIndexByte(name, ':')
	if i < 0 {
		return observed.Place{}, fmt.Errorf("port %q: want a device and a port number, such as leaf-1:7", name)
	}
	num, err := strconv.ParseUint(name[i+1:], 10, 8)
	if err != nil || num == 0 || num == uint64(ib.PortNone) {
		return observed.Place{}, fmt.Errorf("port %q: want a port number of 1 to 254 after the colon", name)
	}
	guid, err := l.findDevice(name[:i], f)
	if err != nil {
		return observed.Place{}, fmt.Errorf("port %q: %w", name, err)
	}
	return observed.Place{Node: guid, Port: ib.PortNum(num)}, nil
}

// FindMove is Find for "leaf-1:7=red-1": a port, and what of the list is there now, a
// port or a device that has but one. ok is false for a name without "=".
func (l *List) FindMove(name string) (device, to observed.Place, ok bool, err error) {
	i := strings.LastIndexByte(name, '=')
	if i < 0 {
		return observed.Place{}, observed.Place{}, false, nil
	}
	if to, err = l.Find(name[:i], nil); err != nil {
		return observed.Place{}, observed.Place{}, true, err
	}
	guid, err := l.findDevice(name[i+1:], nil)
	if err != nil {
		device, err = l.Find(name[i+1:], nil)
		return device, to, true, err
	}
	if d, listed := l.Device(guid); !listed || d.Ports != 1 {
		return observed.Place{}, observed.Place{}, true, fmt.Errorf("%q: want a port of it, such as %s:1", name[i+1:], name[i+1:])
	}
	return observed.Place{Node: guid, Port: 1}, to, true, nil
}

// findDevice finds a device by its GUID, by its description in the list, whole or
// its first word, or else by the one it was found with.
func (l *List) findDevice(name string, f *observed.Fabric) (ib.NodeGUID, error) {
	if g, err := ib.ParseNodeGUID(name); err == nil {
		return g, nil
	}
	if name == "" {
		return 0, errors.New("no device without a name")
	}
	var guids []ib.NodeGUID
	var all []string
	for _, d := range l.Devices() {
		guids, all = append(guids, d.GUID), append(all, d.Description)
	}
	found := names.One(name, all)
	if len(found) == 0 && f != nil {
		for _, n := range f.Nodes {
			if _, listed := l.Device(n.GUID()); !listed {
				guids, all = append(guids, n.GUID()), append(all, n.Description)
			}
		}
		found = names.One(name, all)
	}
	switch len(found) {
	case 0:
		return 0, fmt.Errorf("no device %q%s", name, names.DidYouMean(name, all))
	case 1:
		return guids[found[0]], nil
	}
	return 0, fmt.Errorf("%d devices are described as %q: want a node GUID, such as %v", len(found), name, guids[found[0]])
}

// ErrNotAcceptable says that what was found at a port cannot be listed.
var ErrNotAcceptable = errors.New("not acceptable")

// Accept gives a list in which a port is as it was found in f, a subnet swept
// without a list: the cable, and the device behind it with its GUID and its
// description. A port that leads nowhere loses its cable. What was listed at either
// end before goes, and so does a device of which nothing is listed any more; done
// says all that in words. An error leaves nothing changed.
func (l *List) Accept(f *observed.Fabric, at observed.Place) (next *List, done []string, err error) {
	n := f.Node(at.Node)
	if n == nil || n.Port(at.Port) == nil || at.Port == 0 {
		return nil, nil, fmt.Errorf("%s: the port was not found", l.Name(at))
	}
	p := n.Port(at.Port)
	if err := acceptable(p); err != nil {
		return nil, nil, fmt.Errorf("%s: %w: %w", l.Name(at), ErrNotAcceptable, err)
	}
	e := editor{before: l, nodes: make(map[ib.NodeGUID]*topology.Node)}
	e.copy()
	e.device(p.Node)
	if p.Peer != nil {
		e.device(p.Peer.Node)
	}
	if before, listed := l.Peer(at); p.Peer != nil && listed && before == p.Peer.Place() {
		e.confirm(p)
	} else {
		e.part(p.Place())
	}
	if b := e.nodes[at.Node]; p.Peer != nil && b.Ports[at.Port].Peer == nil {
		e.part(p.Peer.Place())
		a, b := e.nodes[p.Node.GUID()], e.nodes[p.Peer.Node.GUID()]
		if err := join(a, p, b, p.Peer); err != nil {
			return nil, nil, err
		}
		e.say("%s is cabled to %s (%s %v)", l.Name(at), p.Peer, p.Peer.Node.Type(), p.Peer.Node.GUID())
	}
	own := ib.NodeGUID(0)
	if f.Self != nil {
		own = f.Self.Node.GUID()
	}
	e.drop(own)
	next, err = settle(&e.out)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w: %w", l.Name(at), ErrNotAcceptable, err)
	}
	return next, e.done, nil
}

// Move returns a list in which a port of a listed device is cabled to another place, as
// the administrator declares: a device with an M_Key does not answer at a new location.
// The former cables of both ends are removed.
func (l *List) Move(device, to observed.Place) (next *List, done []string, err error) {
	e := editor{before: l, nodes: make(map[ib.NodeGUID]*topology.Node)}
	e.copy()
	for _, end := range []observed.Place{device, to} {
		if n := e.nodes[end.Node]; n == nil || end.Port == 0 || int(end.Port) >= len(n.Ports) {
			return nil, nil, fmt.Errorf("%s: no such port is listed", l.Name(end))
		}
	}
	if at, listed := l.Peer(device); listed && at == to {
		return l, nil, nil
	}
	e.part(device)
	e.part(to)
	if err := topology.Connect(e.nodes[device.Node], device.Port, e.nodes[to.Node], to.Port); err != nil {
		return nil, nil, err
	}
	e.say("%s is cabled to %s", l.Name(to), l.Name(device))
	e.drop(0)
	if next, err = settle(&e.out); err != nil {
		return nil, nil, err
	}
	return next, e.done, nil
}

func acceptable(p *observed.Port) error {
	switch {
	case p.Stranger != nil:
		return p.Stranger.Why
	case p.Peer == nil && p.FacesStranger():
		return errors.New("what is behind it does not answer")
	case p.Node.Contested || p.Peer != nil && p.Peer.Node.Contested:
		return errors.New("two devices say that they are the one that is there")
	case p.Peer != nil && p.Peer.IsEnd() && p.Peer.GUID == 0:
		return errors.New("what is behind it has no port GUID")
	}
	return nil
}

// editor makes another list of one.
type editor struct {
	before *List
	out    topology.Netlist
	nodes  map[ib.NodeGUID]*topology.Node
	done   []string
}

func (e *editor) say(format string, args ...any) {
	e.done = append(e.done, fmt.Sprintf(format, args...))
}

func (e *editor) add(n *topology.Node) {
	e.nodes[n.GUID] = n
	e.out.Nodes = append(e.out.Nodes, n)
}

func (e *editor) copy() {
	if e.before == nil {
		return
	}
	for _, n := range e.before.net.Nodes {
		m := *n
		m.Ports = slices.Clone(n.Ports)
		e.add(&m)
	}
	for _, n := range e.out.Nodes {
		for p := range n.Ports {
			if peer := n.Ports[p].Peer; peer != nil {
				n.Ports[p].Peer = e.nodes[peer.GUID]
			}
		}
	}
}

// device lists a device as it was found.
func (e *editor) device(n *observed.Node) {
	have := e.nodes[n.GUID()]
	if have == nil {
		e.add(deviceOf(n))
		return
	}
	found := deviceOf(n)
	if d, _ := e.before.Device(n.GUID()); d.Description != topology.PlainText(n.Description) {
		e.say("%s is described as %q", d.Name(), topology.PlainText(n.Description))
		have.Description = found.Description
	}
	if have.Type == found.Type && have.NumPorts() == found.NumPorts() {
		if found.Type == ib.NodeSwitch && have.Ports[0].GUID != found.Ports[0].GUID {
			e.say("%s has port GUID %v", n.Name(), found.Ports[0].GUID)
			have.Ports[0].GUID = found.Ports[0].GUID
		}
		return
	}
	e.say("%s is a %s of %d ports, it was a %s of %d", n.Name(), found.Type, found.NumPorts(), have.Type, have.NumPorts())
	for p := range have.Ports {
		e.part(observed.Place{Node: n.GUID(), Port: ib.PortNum(p)})
	}
	*have = *found
}

// confirm takes over the GUIDs at a cable that is listed already.
func (e *editor) confirm(p *observed.Port) {
	for _, end := range []*observed.Port{p, p.Peer} {
		n := e.nodes[end.Node.GUID()]
		if end.Node.Switch == nil && n.Ports[end.Num].GUID != end.GUID {
			e.say("%s has port GUID %v", e.before.Name(end.Place()), end.GUID)
			n.Ports[end.Num].GUID = end.GUID
		}
	}
}

// part takes a cable away.
func (e *editor) part(at observed.Place) {
	n := e.nodes[at.Node]
	if n == nil || int(at.Port) >= len(n.Ports) || n.Ports[at.Port].Peer == nil {
		return
	}
	port := &n.Ports[at.Port]
	other := &port.Peer.Ports[port.PeerPort]
	e.say("%s is not cabled to %s any more", e.before.Name(at), e.before.Name(observed.Place{Node: port.Peer.GUID, Port: port.PeerPort}))
	port.Peer, port.PeerPort, other.Peer, other.PeerPort = nil, 0, nil, 0
}

// drop leaves out devices that have lost their last cable, but for own.
func (e *editor) drop(own ib.NodeGUID) {
	e.out.Nodes = slices.DeleteFunc(e.out.Nodes, func(n *topology.Node) bool {
		bare := !slices.ContainsFunc(n.Ports, func(p topology.Port) bool { return p.Peer != nil })
		if bare = bare && n.GUID != own; bare {
			if d, listed := e.before.Device(n.GUID); listed {
				e.say("%s is not listed any more", d.Name())
			}
		}
		return bare
	})
}
