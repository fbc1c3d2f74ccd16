package facts

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
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
