package qos

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Fault is a capability that a port announces and that means nothing. The
// least that every port can do is assumed instead.
type Fault struct {
	Port    *observed.Port
	Element string // of PortInfo
	Value   uint8
	Most    uint8 // the highest value with a meaning; the lowest is 1
}

// String describes the fault for people.
func (f Fault) String() string {
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
