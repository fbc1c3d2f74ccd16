// device*.go: shows callers of the API a device and its ports in words, with what the
// device answered beside them: the provider all of it, a tenant its own end ports.

package views

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/reach"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// Device is a device with its ports, as far as a caller sees them.
type Device struct {
	GUID        string       `json:"guid"`
	Type        string       `json:"type" enum:"switch,CA,router"`
	Description string       `json:"description" doc:"what it says of itself"`
	SystemGUID  string       `json:"system_guid,omitempty" doc:"of the assembly that it is part of"`
	VendorID    string       `json:"vendor_id"`
	DeviceID    string       `json:"device_id"`
	Revision    string       `json:"device_revision" doc:"of the device, as its vendor counts"`
	Level       int          `json:"level,omitempty" doc:"as in the map, with the rack; for the provider"`
	Group       string       `json:"group,omitempty" doc:"as in the map; for the provider"`
	Owner       string       `json:"owner,omitempty" doc:"who owns its end ports, joined by commas; of a switch nobody"`
	State       string       `json:"state" doc:"as in the map"`
	Verdict     string       `json:"verdict" doc:"as in the map"`
	Words       []string     `json:"words" doc:"how it is, in sentences"`
	Ports       []DevicePort `json:"ports" doc:"for a tenant its own end ports"`
	ReadAt      time.Time    `json:"read_at"`
}

// DevicePort is a port of a device in a row of a table.
type DevicePort struct {
	Number        int      `json:"number"`
	GUID          string   `json:"guid,omitempty" doc:"of an end port"`
	LID           int      `json:"lid,omitempty"`
	State         string   `json:"state,omitempty" doc:"of its link; absent where it was not read"`
	PhysicalState string   `json:"physical_state,omitempty"`
	Width         string   `json:"width,omitempty" doc:"of the link"`
	Speed         string   `json:"speed,omitempty" doc:"of a lane of the link"`
	MTU           int      `json:"mtu,omitempty" doc:"of the link, in bytes"`
	Peer          *PeerEnd `json:"peer,omitempty" doc:"the port at the other end of its cable"`
	Keys          *int     `json:"keys,omitempty" doc:"how many P_Keys its table holds; absent where the table was not read"`
	Enforces      *bool    `json:"enforces,omitempty" doc:"a switch port checks P_Keys in both directions"`
	Owner         string   `json:"owner,omitempty" doc:"whose end port it is"`
	Problem       string   `json:"problem,omitempty" doc:"what is wrong with it, in a few words"`
}

// PeerEnd is a port at the other end of a cable.
type PeerEnd struct {
	Node string `json:"node" doc:"node GUID"`
	Name string `json:"name" doc:"what the node says of itself; for a tenant the GUID of a device that is not its own"`
	Port int    `json:"port"`
}

// DeviceView is how a caller looks at a device.
type DeviceView struct {
	Node   *observed.Node
	ReadAt time.Time
	// Facts are about the whole fabric; Differences are where it is not as the list of
	// cables says.
	Facts       *MapFacts
	Differences []Difference
	// Level and Group are where the device stands on the map; of no tenant's concern.
	Level int
	Group string

	whole bool // the caller is the provider
	state *resource.State
	by    resource.Caller
	names reach.Names // of partitions that the caller sees
}

// By has the view be that of a caller. It is false for a device of which the caller sees
// nothing.
func (v *DeviceView) By(s *resource.State, c resource.Caller) bool {
	v.state, v.by, v.whole = s, c, c.IsProvider() && c.Keys.First == 0
	v.names = WhyView(s, c, v.Facts.Snapshot, v.Facts.Proof, 0).Names
	if v.whole {
		for k, p := range s.Declared() {
			v.names[k] = cmp.Or(v.names[k], p.Name)
		}
	}
	return v.whole || slices.ContainsFunc(v.ports(), v.sees)
}

// sees reports whether the caller sees a port: the provider each, a tenant the end ports of
// its own that are no switch's.
func (v *DeviceView) sees(p *observed.Port) bool {
	return v.whole || p.Node.Switch == nil && p.IsEnd() && p.Reached && p.InfoRead && Sees(v.state, v.by, p.GUID)
}

// ports are the ports of the device, by number.
func (v *DeviceView) ports() (out []*observed.Port) {
	for i := range v.Node.Ports {
		if p := &v.Node.Ports[i]; i > 0 || v.Node.Switch != nil {
			out = append(out, p)
		}
	}
	return out
}

// Port is a port of the device that the caller sees; nil for none.
func (v *DeviceView) Port(number int) *observed.Port {
	if number < 0 || number > int(ib.PortNone) {
		return nil
	}
	if p := v.Node.Port(ib.PortNum(number)); p != nil && v.sees(p) {
		return p
	}
	return nil
}

// Device is the device.
func (v *DeviceView) Device() Device {
	n, i := v.Node, &v.Node.Info
	out := Device{
		GUID: n.GUID().String(), Type: n.Type().String(), Description: n.Name(), VendorID: fmt.Sprintf("0x%06x", i.VendorID),
		DeviceID: fmt.Sprintf("0x%04x", i.DeviceID), Revision: fmt.Sprintf("0x%08x", i.Revision), ReadAt: v.ReadAt, Ports: []DevicePort{},
	}
	if i.SystemImageGUID != 0 {
		out.SystemGUID = fmt.Sprintf("0x%016x", i.SystemImageGUID)
	}
	if v.whole {
		out.Level, out.Group = v.Level, v.Group
	}
	var owners []string
	for _, p := range v.ports() {
		if !v.sees(p) {
			continue
		}
		port := v.portOf(p)
		if out.Ports = append(out.Ports, port); port.Owner != "" && !slices.Contains(owners, port.Owner) {
			owners = append(owners, port.Owner)
		}
	}
	out.Owner = strings.Join(owners, ", ")
	out.State, out.Verdict = v.Facts.Of(n, v.sees)
	out.Words = v.deviceWords(&out)
	return out
}

// portOf is a port in a row.
func (v *DeviceView) portOf(p *observed.Port) DevicePort {
	out := DevicePort{Number: int(p.Num), Peer: v.peerOf(p), Problem: v.problem(p)}
	if p.IsEnd() && p.Reached {
		out.GUID = p.GUID.String()
		if p.Node.Switch == nil {
			out.Owner = v.state.Owner(p.GUID)
		}
	}
	if p.PKeysKnown() && p.Reached {
		keys := 0
		for _, k := range p.ReadPKeys() {
			if k.IsValid() {
				keys++
			}
		}
		out.Keys = &keys
	}
	if !p.InfoRead {
		return out
	}
	if p.IsEnd() {
		out.LID = int(p.Info.LID)
	}
	if p.Node.Switch != nil && p.Num != 0 {
		enforces := p.Enforces()
		out.Enforces = &enforces
	}
	if p.Num == 0 && !p.Node.Switch.Info.EnhancedPort0 {
		return out // it has no link
	}
	out.State, out.PhysicalState = p.Info.PortState.String(), p.Info.PortPhysicalState.String()
	if p.IsUp() {
		out.Width, out.Speed, out.MTU = p.Info.LinkWidthActive.String(), p.Info.Speed().Gbps(), p.Info.NeighborMTU.Bytes()
	}
	return out
}

// peerOf is the port at the other end; nil for none, and for one that is not for the caller.
// A tenant knows to which switch its port is cabled.
func (v *DeviceView) peerOf(p *observed.Port) *PeerEnd {
	if p.Peer == nil {
		return nil
	}
	n := p.Peer.Node
	out := &PeerEnd{n.GUID().String(), n.Name(), int(p.Peer.Num)}
	switch {
	case v.whole, n.Switch == nil && Sees(v.state, v.by, p.Peer.GUID):
	case n.Switch != nil:
		out.Name = out.Node
	default:
		return nil
	}
	return out
}

// routesOver counts the routes of others over the device.
func (v *DeviceView) routesOver() int {
	return RoutesOver(v.Facts.Snapshot.Fabric, v.Node.GUID())
}
