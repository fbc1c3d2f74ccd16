package apply

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// heldOff reports whether a host that keeps a partition in its table, or says so,
// cannot use it all the same: the switch port before it lets the partition pass no
// more, or its link carries nothing, and will not while its table is not as it
// should be. What a host says of its own table takes nothing from others then.
func heldOff(p *observed.Port, b ib.PKeyBase) bool {
	guard := p.Peer
	if !p.IsEnd() || guard == nil || !guard.FacesEnd() || !guard.InfoRead {
		return false
	}
	if guard.Info.PortState < smp.PortArmed {
		return true
	}
	return guard.Enforces() && guard.PKeysKnown() &&
		!slices.ContainsFunc(guard.PKeys, func(k ib.PKey) bool { return k.IsValid() && k.Base() == b })
}
