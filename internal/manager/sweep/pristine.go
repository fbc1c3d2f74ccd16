package sweep

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Untouched reports whether ports and switches are as they are when they come up: no
// port has an address or an M_Key, checks P_Keys or carries data.
func Untouched(f *observed.Fabric) bool {
	for _, n := range f.Nodes {
		if n.Switch != nil && (!n.Switch.InfoRead || n.Switch.Info.LinearFDBTop != 0) {
			return false
		}
		for i := range n.Ports {
			p := &n.Ports[i]
			if !p.Reached || i == 0 && n.Switch == nil {
				continue
			}
			x := &p.Info
			if !p.InfoRead || p.IsEnd() && x.LID != ib.LIDReserved || p.IsEnd() && x.MasterSMLID != ib.LIDReserved || x.MKey != 0 || x.MKeyProtectBits != 0 ||
				x.PartitionEnforcementInbound || x.PartitionEnforcementOutbound ||
				i > 0 && (x.PortState == smp.PortArmed || x.PortState == smp.PortActive) {
				return false
			}
		}
	}
	return true
}

// PowerUpKeys reports whether every P_Key table was read and holds the default
// partition at the most.
func PowerUpKeys(f *observed.Fabric) bool {
	for _, n := range f.Nodes {
		for i := range n.Ports {
			p := &n.Ports[i]
			if !p.Reached || i == 0 && n.Switch == nil || !p.IsEnd() && !p.FacesEnd() {
				continue
			}
			if !p.PKeysKnown() || slices.ContainsFunc(p.PKeys, func(k ib.PKey) bool { return k.IsValid() && k.Base() != ib.PKeyBaseDefault }) {
				return false
			}
		}
	}
	return true
}
