package desired

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Subnet is what subnet administration has to know of the subnet when the result
// stands there: the fabric and the partitions of the policy. fences are those that
// stand now. Who manages the subnet is missing.
func (r *Result) Subnet(fences facts.FenceSet) observed.Subnet {
	s := observed.Subnet{
		Fabric: r.in.Fabric, GIDPrefix: r.GIDPrefix(), Lifetime: r.Settings.SubnetTimeOut,
		Aliases: r.standingAliases(), LIDs: r.LIDs(), Levels: r.levels.ServiceLevels(),
		Partitions: r.Resolution.Partitions,
	}
	for _, g := range r.Resolution.Trusted {
		if s.Trusted == nil {
			s.Trusted = make(map[ib.PortGUID]bool)
		}
		s.Trusted[g] = true
	}
	for _, p := range r.in.EndPorts {
		if p.Peer != nil && fences.Expels(p.Peer.Place()) {
			if s.Expelled == nil {
				s.Expelled = make(map[*observed.Port]bool)
			}
			s.Expelled[p] = true
		}
	}
	return s
}
