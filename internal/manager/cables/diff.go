package cables

import (
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// Kind is what sort of difference there is.
type Kind string

// The kinds of differences.
const (
	Missing        Kind = "missing"         // a cable is listed, nothing was found there
	Unlisted       Kind = "unlisted"        // something was found where nothing is listed
	Moved          Kind = "moved"           // something was found where something else is listed
	DeviceMissing  Kind = "device-missing"  // a device is listed and was not found
	DeviceUnlisted Kind = "device-unlisted" // a device was found that is not listed
	DeviceChanged  Kind = "device-changed"  // it has another type, number of ports or port GUID
	Renamed        Kind = "renamed"         // it calls itself something else
)

// Difference is a place at which a subnet is not as the list has it.
type Difference struct {
	At   observed.Place
	Kind Kind
	// Where is the port, or the device where all of it is meant, and What the
	// difference, for people.
	Where, What string
}

// Diff compares the list with a subnet that was swept without one. The
// differences are ordered by place; a cable is named at its end on a switch, or at
// the lower of two.
func (l *List) Diff(f *observed.Fabric) []Difference {
	d := differ{list: l, fabric: f}
	for _, n := range f.Nodes {
		d.device(n)
		for i := 1; i < len(n.Ports); i++ {
			d.cable(n.Ports[i].Place())
		}
	}
	for _, x := range l.Devices() {
		if f.Node(x.GUID) != nil {
			continue
		}
		d.add(DeviceMissing, observed.Place{Node: x.GUID, Port: 0}, x.Name(), "expected a %s %v, it was not found", x.Type, x.GUID)
		for i := 1; i <= x.Ports; i++ {
			d.cable(observed.Place{Node: x.GUID, Port: ib.PortNum(i)})
		}
	}
	slices.SortStableFunc(d.out, func(a, b Difference) int { return a.At.Compare(b.At) })
	return d.out
}

type differ struct {
	list   *List
	fabric *observed.Fabric
	out    []Difference
}

func (d *differ) add(kind Kind, at observed.Place, where, format string, args ...any) {
	d.out = append(d.out, Difference{at, kind, where, fmt.Sprintf(format, args...)})
}

// device compares what a device says of itself.
func (d *differ) device(n *observed.Node) {
	at := observed.Place{Node: n.GUID(), Port: 0}
	x, ok := d.list.Device(n.GUID())
	switch {
	case !ok:
		d.add(DeviceUnlisted, at, n.Name(), "a %s %v that is not listed", n.Type(), n.GUID())
	case x.Type != n.Type() || x.Ports != int(n.Info.NumPorts):
		d.add(DeviceChanged, at, x.Name(), "expected a %s of %d ports, found a %s of %d", x.Type, x.Ports, n.Type(), n.Info.NumPorts)
	case x.Description != topology.PlainText(n.Description):
		d.add(Renamed, at, x.Name(), "is described as %q now", topology.PlainText(n.Description))
	}
	for i := range n.Ports {
		p := &n.Ports[i]
		if want := d.list.PortGUID(p.Place()); ok && want != 0 && p.GUID != 0 && p.GUID != want {
			d.add(DeviceChanged, p.Place(), d.list.Name(p.Place()), "expected port GUID %v, found %v", want, p.GUID)
		}
	}
}

// nothing is what was found behind a port without a link.
const nothing = "nothing"

// cable compares what is at the other end of a port.
func (d *differ) cable(at observed.Place) {
	want, listed := d.list.Peer(at)
	found, laid := peer(d.port(at))
	unknown := nothing
	if p := d.port(at); p != nil && !laid && p.FacesStranger() {
		unknown = stranger(p)
	}
	others := make([]observed.Place, 0, 2)
	if listed {
		others = append(others, want)
	}
	if laid {
		others = append(others, found)
	}
	named := slices.ContainsFunc(others, func(o observed.Place) bool { return !d.names(o, at) })
	switch {
	case listed == laid && want == found && unknown == nothing,
		unknown == nothing && !named:
	case !listed && laid:
		d.add(Unlisted, at, d.name(at), "nothing is listed there, found %s", d.name(found))
	case !listed:
		d.add(Unlisted, at, d.name(at), "nothing is listed there, found %s", unknown)
	case laid:
		d.add(Moved, at, d.name(at), "expected %s, found %s", d.name(want), d.name(found))
	case unknown != nothing:
		d.add(Moved, at, d.name(at), "expected %s, found %s", d.name(want), unknown)
	default:
		d.add(Missing, at, d.name(at), "expected %s, found %s", d.name(want), nothing)
	}
}

// names reports whether a cable between a and b is named at a: at a switch, or
// at the lower end.
func (d *differ) names(a, b observed.Place) bool {
	if d.isSwitch(a) != d.isSwitch(b) {
		return d.isSwitch(a)
	}
	return a.Compare(b) < 0
}

func (d *differ) isSwitch(e observed.Place) bool {
	if n := d.fabric.Node(e.Node); n != nil {
		return n.Switch != nil
	}
	x, _ := d.list.Device(e.Node)
	return x.Type == ib.NodeSwitch
}

func (d *differ) port(e observed.Place) *observed.Port {
	if n := d.fabric.Node(e.Node); n != nil {
		return n.Port(e.Port)
	}
	return nil
}

// peer is what a port was found cabled to.
func peer(p *observed.Port) (observed.Place, bool) {
	if p == nil || p.Peer == nil {
		return observed.Place{}, false
	}
	return p.Peer.Place(), true
}

// name is a port by the list, else as it was found.
func (d *differ) name(e observed.Place) string {
	if _, ok := d.list.Device(e.Node); !ok && d.port(e) != nil {
		return d.port(e).String()
	}
	return d.list.Name(e)
}

// stranger is what is known of who is behind a port and was not let in.
func stranger(p *observed.Port) string {
	if p.Stranger == nil {
		return "something that does not answer"
	}
	return said(&p.Stranger.Info)
}
