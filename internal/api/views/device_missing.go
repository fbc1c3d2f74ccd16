package views

import (
	"cmp"
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
)

// MissingDevice is a device that is on the list of cables and was not found; false for one that is
// not listed. It is for the provider.
func MissingDevice(v *DeviceView, g ib.NodeGUID) (out Device, listed bool) {
	if v.Facts.Cabling == nil || v.Facts.Cabling.List == nil {
		return out, false
	}
	for _, d := range v.Facts.Cabling.List.Devices {
		if d.GUID == g {
			name := cmp.Or(d.Name, g.String())
			out = Device{GUID: g.String(), Type: d.Type.String(), Description: name, Level: v.Level, Group: v.Group, State: "missing", Verdict: "unknown", Ports: []DevicePort{}, ReadAt: v.ReadAt}
			out.Words = []string{"It is on the list of cables, and was not found."}
			listed = true
		}
	}
	if !listed {
		return out, false
	}
	for _, c := range v.Facts.Cabling.List.Cables {
		if c.B.Node == g {
			c.A, c.B = c.B, c.A
		}
		if c.A.Node != g {
			continue
		}
		name := c.B.Node.String()
		if n := v.Facts.Snapshot.Fabric.Node(c.B.Node); n != nil {
			name = n.Name()
		}
		out.Words = append(out.Words, fmt.Sprintf("Its port %d should be cabled to port %d of %s.", c.A.Port, c.B.Port, name))
	}
	for _, x := range v.Differences {
		if x.Node == g.String() && x.Port == 0 {
			out.Words = append(out.Words, "By the list of cables: "+x.Text+".")
		}
	}
	return out, true
}
