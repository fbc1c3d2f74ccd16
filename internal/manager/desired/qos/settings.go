package qos

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Settings are the values that do not follow from the fabric.
type Settings struct {
	// LifeTimeValue is how long a packet may be in a switch before that drops it.
	// Values above smp.TimeValueFiniteMax are "for ever".
	LifeTimeValue ib.TimeValue
	// HOQLife is how long a packet may stand at the head of a lane's queue
	// before a switch drops it, on ports to switches, and LeafHOQLife on those
	// to CAs and routers. Values above smp.TimeValueFiniteMax are "for ever".
	HOQLife     ib.TimeValue
	LeafHOQLife ib.TimeValue
	// VLStallCount is how many such drops in a row stall a lane, 0 to 7.
	VLStallCount uint8
	// Weight is the share of each lane in one turn, in units of 64 octets, 1
	// to 255.
	Weight uint8
}

// DefaultSettings let a packet wait about a second in a switch and for another
// one, as OpenSM does, and a quarter of it for a CA, which is the end that must
// not block the rest.
func DefaultSettings() Settings {
	return Settings{LifeTimeValue: 18, HOQLife: 18, LeafHOQLife: 16, VLStallCount: 7, Weight: 64}
}

// check reports the first setting that no device could hold.
func (s Settings) check() error {
	for _, c := range []struct {
		name             string
		value, low, high uint8
	}{
		{"LifeTimeValue", uint8(s.LifeTimeValue), 0, 31},
		{"HOQLife", uint8(s.HOQLife), 0, 31},
		{"LeafHOQLife", uint8(s.LeafHOQLife), 0, 31},
		{"VLStallCount", s.VLStallCount, 0, 7},
		{"Weight", s.Weight, 1, 255},
	} {
		if c.value < c.low || c.value > c.high {
			return fmt.Errorf("QoS setting %s %d, want %d to %d", c.name, c.value, c.low, c.high)
		}
	}
	return nil
}

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

// vlCap is the code of the data lanes that p supports.
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
