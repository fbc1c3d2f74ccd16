package plan

import (
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/subnet"
)

// mkeyElements are the elements of PortInfo that say who may write to a port.
const mkeyElements = subnet.ElementMKey | subnet.ElementMKeyProtectBits | subnet.ElementMKeyLeasePeriod

// DiffMKeys lists the end ports that do not hold the M_Key that d wants of them,
// and obey it, or guard it otherwise. It looks at nothing else, and what it
// writes is nothing else: whatever comes after it is written under the new keys.
func DiffMKeys(f *subnet.Fabric, d *subnet.Desired) *Plan {
	p, ops := &Plan{fabric: f, desired: d}, &collected{}
	for _, n := range f.Nodes {
		for i := range n.Ports {
			port := &n.Ports[i]
			if want := d.Port(port); port.InfoRead && want.Elements&mkeyElements.Differ(&port.Info, &want.Info) != 0 {
				ops.add(MKeys, port, smp.AttrPortInfo, portInfoModifier(port))
			}
		}
	}
	p.arrange(ops)
	return p
}
