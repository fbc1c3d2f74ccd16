package views

import (
	"fmt"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// Node is a device as it was found.
type Node struct {
	GUID        string    `json:"guid"`
	Type        string    `json:"type"`
	Description string    `json:"description" doc:"what it says of itself"`
	Ports       int       `json:"ports"`
	Vendor      string    `json:"vendor_id"`
	Device      string    `json:"device_id"`
	EndPorts    []string  `json:"end_ports" doc:"GUIDs of those that the caller sees"`
	ReadAt      time.Time `json:"read_at"`
}

// NodeOf is a device, read at a time, for a caller.
func NodeOf(s *resource.State, c resource.Caller, n *observed.Node, at time.Time) Node {
	return Node{
		GUID: n.GUID().String(), Type: n.Type().String(), Description: n.Name(), Ports: int(n.Info.NumPorts),
		Vendor: fmt.Sprintf("0x%06x", n.Info.VendorID), Device: fmt.Sprintf("0x%04x", n.Info.DeviceID),
		EndPorts: EndPortsOf(s, c, n), ReadAt: at,
	}
}

// Port is an end port: as it was found, and whose it is.
type Port struct {
	GUID       string   `json:"guid"`
	Owner      string   `json:"owner" doc:"the tenant whose it is; empty for one between two owners"`
	Found      bool     `json:"found" doc:"the last sweep found it"`
	Node       string   `json:"node,omitempty" doc:"what its node says of itself"`
	NodeGUID   string   `json:"node_guid,omitempty"`
	Number     int      `json:"number,omitempty" doc:"of the port on its node"`
	LID        int      `json:"lid,omitempty"`
	State      string   `json:"state,omitempty" doc:"of its link"`
	Switch     string   `json:"switch,omitempty" doc:"node GUID of the switch that it is cabled to"`
	SwitchPort int      `json:"switch_port,omitempty"`
	Bound      *Place   `json:"bound,omitempty" doc:"the only place where it gets its keys"`
	Released   uint64   `json:"released,omitempty" doc:"the revision that took it from its last owner"`
	Partitions []string `json:"partitions" doc:"of which it is a member, or is to be; for the provider those of the policy file too"`
}

// Place is a port of a switch.
type Place struct {
	Switch string `json:"switch" doc:"node GUID" pattern:"^(0[xX])?[0-9a-fA-F]{16}$" example:"0x0002c90300000001"`
	Port   int    `json:"port" minimum:"1" maximum:"254"`
}

// InFile are the partitions of the policy file, as the manager has resolved them, by member. That every
// port is in the default partition is not among them.
func InFile(resolved []observed.Partition) map[ib.PortGUID][]ib.PKeyBase {
	out := map[ib.PortGUID][]ib.PKeyBase{}
	for i := range resolved {
		p := &resolved[i]
		for _, g := range slices.Concat(p.Full, p.Limited) {
			if p.Base != ib.PKeyBaseDefault && !slices.Contains(out[g], p.Base) {
				out[g] = append(out[g], p.Base)
			}
		}
	}
	return out
}

// PortOf is an end port as a caller sees it; f is nil for one that the last sweep did not find, and file
// what InFile says.
func PortOf(s *resource.State, c resource.Caller, g ib.PortGUID, f *observed.Port, file map[ib.PortGUID][]ib.PKeyBase) Port {
	out := Port{GUID: g.String(), Owner: s.Owner(g), Found: f != nil, Partitions: []string{}}
	in := s.In(g)
	for _, k := range file[g] {
		if s.SeesDeclared(c, k) && s.Partition(k) == nil {
			in = append(in, k)
		}
	}
	slices.Sort(in)
	for _, k := range in {
		out.Partitions = append(out.Partitions, k.String())
	}
	if p := s.Port(g); p != nil {
		out.Released = p.Released
		if p.Switch != 0 {
			out.Bound = &Place{p.Switch.String(), int(p.SwitchPort)}
		}
	}
	if f == nil {
		return out
	}
	out.Node, out.NodeGUID, out.Number = f.Node.Name(), f.Node.GUID().String(), int(f.Num)
	out.LID, out.State = int(f.Info.LID), f.Info.PortState.String()
	if f.Peer != nil {
		out.Switch, out.SwitchPort = f.Peer.Node.GUID().String(), int(f.Peer.Num)
	}
	return out
}

// Sees reports whether a caller sees all of a port: the provider of each, a tenant of its own.
func Sees(s *resource.State, c resource.Caller, g ib.PortGUID) bool {
	return s.SightOf(c, g) == resource.SightWhole
}

// EndPortsOf are the GUIDs of the end ports of a device that a caller sees.
func EndPortsOf(s *resource.State, c resource.Caller, n *observed.Node) []string {
	list := []string{}
	for i := range n.Ports {
		if p := &n.Ports[i]; p.IsEnd() && p.InfoRead && Sees(s, c, p.GUID) {
			list = append(list, p.GUID.String())
		}
	}
	return list
}
