// Link settings and virtual lanes: MTU, operational VLs, lifetimes, SL-to-VL mapping
// and VL arbitration.
//
// In: a snapshot and settings. Out: values entered in an observed.Desired, and a
// CapabilityFault for each port that announces an undefined capability. Only links that
// are trained at both ends count; all others are left alone.
//
// EnterLinks sets elements of PortInfo. Both ends of a link get the lesser capability:
// the smaller MTUCap as NeighborMTU, the smaller VLCap as OperationalVLs, at most what
// the settings allow. Switch ports get HOQLife and VLStallCount, switches LifeTimeValue:
// its factory value may be 0, which is 4.096 us, and then a switch drops packets that
// wait for another. LimitLink restricts a link to a width or speed, from its next
// training on.
//
// EnterLanes sets SLToVLMappingTables, VLArbitrationTables and VLHighLimit. Service
// level s gets the virtual lane of the settings, modulo the number of virtual lanes;
// both arbitration tables hold the entries of the settings for the virtual lanes that
// the link has. A port with only one data virtual lane has neither table.
//
// Where the settings give levels shares, each has a virtual lane of its own, and the
// low-priority table has entries that give it its share. Where routes need several virtual
// lanes for a level, its share is divided among them as pairs of hosts are whose packets take
// them at that port (QoSLevels.Count). Where levels are enforced, the mapping for the input port of an
// end port drops the levels that it may not send on. A switch has a mapping
// for each pair of ports, so EnterLanes costs far more than EnterLinks.
// It is needed only where more than one service level is in use, or on request.

package desired

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// CapabilityFault is a capability that a port announces and that means nothing. The
// least that every port can do is assumed instead.
type CapabilityFault struct {
	Port    *observed.Port
	Element string // of PortInfo
	Value   uint8
	Most    uint8 // the highest value with a meaning; the lowest is 1
}

// String describes the fault for people.
func (f CapabilityFault) String() string {
	return fmt.Sprintf("%s: PortInfo.%s is %d, want 1 to %d; the least is assumed", f.Port, f.Element, f.Value, f.Most)
}

// The highest codes of PortInfo.MTUCap and PortInfo.VLCap.
const (
	mostMTUCap = uint8(ib.MTU4096)
	mostVLCap  = 5
)

// mtuCap is the largest payload that p supports.
func mtuCap(p *observed.Port) ib.MTU {
	if !p.Info.MTUCap.IsValid() {
		return ib.MTU256
	}
	return p.Info.MTUCap
}

// vlCap is the code of the data virtual lanes that p supports.
func vlCap(p *observed.Port) uint8 {
	if smp.DataVLs(p.Info.VLCap) == 0 {
		return 1
	}
	return p.Info.VLCap
}

// trained calls visit for every port whose link is up at both ends.
func trained(f *observed.Fabric, visit func(*observed.Port)) {
	for _, n := range f.Nodes {
		for i := range n.Ports {
			if p := &n.Ports[i]; p.IsTrained() {
				visit(p)
			}
		}
	}
}
