package facts

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// Named gives an end port and its switch the descriptions that a list of cables
// has for them: what a device says of itself later names nobody. Without a list
// they stay.
func Named(x policy.EndPort, list *cables.List) policy.EndPort {
	if list == nil {
		return x
	}
	d, _ := list.Device(x.NodeGUID)
	x.Description = d.Description
	d, _ = list.Device(x.Switch)
	x.SwitchName = d.Description
	return x
}

// Site is all that a policy can mean: what was found, whatever it is, and what the list
// of cables declares, whether or not it is switched on.
func Site(f *observed.Fabric, ends []*observed.Port, list *cables.List) *policy.Site {
	s := &policy.Site{}
	for _, p := range ends {
		s.Ports = append(s.Ports, Named(Identity(p, false), list))
	}
	for _, n := range f.Switches() {
		s.Switches = append(s.Switches, policy.SiteSwitch{GUID: n.GUID(), Name: switchName(n, list), Ports: ib.PortNum(len(n.Ports) - 1)})
	}
	if list == nil {
		return s
	}
	for _, d := range list.Devices() {
		if f.Node(d.GUID) != nil {
			continue
		}
		if d.Type == ib.NodeSwitch {
			s.Switches = append(s.Switches, policy.SiteSwitch{GUID: d.GUID, Name: d.Description, Ports: ib.PortNum(d.Ports)})
			continue
		}
		for n := 1; n <= d.Ports; n++ {
			end := observed.Place{Node: d.GUID, Port: ib.PortNum(n)}
			port := policy.EndPort{PortGUID: list.PortGUID(end), NodeGUID: d.GUID, PortNum: end.Port, Description: d.Description, NodeType: d.Type}
			if at, cabled := list.Peer(end); cabled {
				port.Switch, port.SwitchPort = at.Node, at.Port
			}
			s.Ports = append(s.Ports, port)
		}
	}
	return s
}

func switchName(n *observed.Node, list *cables.List) string {
	if list == nil {
		return n.Description
	}
	d, _ := list.Device(n.GUID())
	return d.Description
}

// Renamed are the devices that describe themselves otherwise than a list of cables
// has it, each with what it says.
func Renamed(f *observed.Fabric, list *cables.List) map[ib.NodeGUID]string {
	out := make(map[ib.NodeGUID]string)
	for _, n := range f.Nodes {
		d, listed := list.Device(n.GUID())
		if now := topology.PlainText(n.Description); listed && now != "" && now != d.Description {
			out[n.GUID()] = now
		}
	}
	return out
}

// SmallTables are the hosts behind switch ports that say that they have less room
// for keys than most hosts.
func SmallTables(ends []*observed.Port) map[ib.PortGUID]bool {
	var caps []int
	for _, p := range ends {
		if p.Node.Switch == nil {
			caps = append(caps, p.PKeyCap())
		}
	}
	slices.Sort(caps)
	odd := make(map[ib.PortGUID]bool)
	for _, p := range ends {
		if p.Peer != nil && p.Peer.FacesEnd() && p.PKeyCap() < caps[len(caps)/2] {
			odd[p.GUID] = true
		}
	}
	return odd
}

// Forgotten is a set of PortInfo elements that some ports do not keep.
type Forgotten struct {
	Elements observed.Element
	// Ports is how many do, Example the first of them by node GUID and number.
	Ports   int
	Example *observed.Port
}

// Tally puts together the ports that forget the same, ordered by what that is.
func Tally(forgets map[*observed.Port]observed.Element) []Forgotten {
	by := make(map[observed.Element]*Forgotten)
	for p, elements := range forgets {
		t := by[elements]
		if t == nil {
			t = &Forgotten{Elements: elements, Example: p}
			by[elements] = t
		}
		t.Ports++
		if p.Node.GUID() < t.Example.Node.GUID() || p.Node == t.Example.Node && p.Num < t.Example.Num {
			t.Example = p
		}
	}
	var out []Forgotten
	for _, elements := range slices.Sorted(maps.Keys(by)) {
		out = append(out, *by[elements])
	}
	return out
}

// Affected are those among ends, which are sorted by GUID, that have one of these
// GUIDs, or about whose tables, their own or those before them, something else was
// read; of what shares a GUID all or nothing.
func Affected(ends []*observed.Port, changed []ib.PortGUID, stale map[*observed.Port]bool) []*observed.Port {
	guids := slices.Clone(changed)
	for port := range stale {
		switch {
		case port.IsEnd():
			guids = append(guids, port.GUID)
		case port.FacesEnd():
			guids = append(guids, port.Peer.GUID)
		}
	}
	slices.Sort(guids)
	var out []*observed.Port
	for _, g := range slices.Compact(guids) {
		i, _ := slices.BinarySearchFunc(ends, g, func(p *observed.Port, g ib.PortGUID) int { return cmp.Compare(p.GUID, g) })
		for ; i < len(ends) && ends[i].GUID == g; i++ {
			out = append(out, ends[i])
		}
	}
	return out
}

// Lasting is what of the elements that a port does not keep another run need not write.
// What guards is written again each time. Filters of raw packets guard nothing where the
// switch cannot enforce partitions: a sender of raw packets there can forge a key as
// well.
func Lasting(p *observed.Port) observed.Element {
	last := p.Forgets &^ observed.ElementGuard
	if n := p.Node; n.Switch != nil && n.Switch.InfoRead && (n.Switch.Info.PartitionEnforcementCap == 0 ||
		!n.Switch.Info.InboundEnforcementCap || !n.Switch.Info.OutboundEnforcementCap) {
		last |= p.Forgets & observed.ElementRawFilters
	}
	return last
}

// TablesOnly reports whether an attribute affects neither addresses, routes, virtual
// lanes or links, nor the identity of a port.
func TablesOnly(a mad.AttributeID) bool {
	switch a {
	case smp.AttrPKeyTable, smp.AttrLinearForwardingTable, smp.AttrRandomForwardingTable,
		smp.AttrMulticastForwardingTable, smp.AttrSLToVLMappingTable, smp.AttrVLArbitrationTable, smp.AttrGUIDInfo:
		return true
	}
	return false
}

// SharesGUID reports whether another of these end ports, which are sorted by GUID,
// claims the GUID of p.
func SharesGUID(ends []*observed.Port, p *observed.Port) bool {
	i, _ := slices.BinarySearchFunc(ends, p.GUID, func(q *observed.Port, g ib.PortGUID) int { return cmp.Compare(q.GUID, g) })
	return i+1 < len(ends) && ends[i].GUID == p.GUID && ends[i+1].GUID == p.GUID
}

// Where names a port and the switch port before it.
func Where(p *observed.Port) string {
	if p.Peer == nil {
		return fmt.Sprintf("%s (port %s)", p, p.GUID)
	}
	return fmt.Sprintf("%s (port %s, behind %s)", p, p.GUID, p.Peer)
}
