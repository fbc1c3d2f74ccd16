package facts

import (
	"github.com/ibwarden/ibwarden/internal/names"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// SwitchAt is the switch that a policy means by a place without a port; nil when there is
// none, or when two have the name.
func SwitchAt(f *observed.Fabric, at policy.Place) (found *observed.Node) {
	for _, n := range f.Switches() {
		if at.Switch != 0 && n.GUID() != at.Switch || at.Switch == 0 && n.Description != at.Name && names.Short(n.Description) != at.Name {
			continue
		}
		if found != nil {
			return nil
		}
		found = n
	}
	return found
}

// PortAt is the external switch port that a policy means by a place; nil when
// there is none, or when two switches have the name.
func PortAt(f *observed.Fabric, at policy.Place) (found *observed.Port) {
	for _, n := range f.Switches() {
		if at.Switch != 0 && n.GUID() != at.Switch || at.Switch == 0 && n.Description != at.Name {
			continue
		}
		if at.Port == 0 || int(at.Port) >= len(n.Ports) {
			continue
		}
		if found != nil {
			return nil
		}
		found = &n.Ports[at.Port]
	}
	return found
}
