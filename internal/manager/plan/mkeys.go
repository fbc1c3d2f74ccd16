package plan

import (
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// mkeyElements are the elements of PortInfo that say who may write to a port.
const mkeyElements = observed.ElementMKey | observed.ElementMKeyProtectBits | observed.ElementMKeyLeasePeriod

// DiffMKeys lists the end ports that do not hold the M_Key that d wants of them,
// and obey it, or guard it otherwise. It looks at nothing else, and what it
// writes is nothing else: whatever comes after it is written under the new keys.
func DiffMKeys(f *observed.Fabric, d *observed.Desired) *Plan {
	p, ops := &Plan{fabric: f, desired: d}, &collected{}
	for _, n := range f.Nodes {
		for i := range n.Ports {
			port := &n.Ports[i]
			if want := d.Port(port); port.InfoRead && want.Elements&mkeyElements.Differ(&port.Info, &want.Info) != 0 {
				ops.add(MKeys, port, smp.AttrPortInfo, port.PortInfoBlock())
			}
		}
	}
	p.arrange(ops)
	return p
}
