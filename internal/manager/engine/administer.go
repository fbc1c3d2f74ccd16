package engine

import (
	"cmp"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/group"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/sa/visibility"
)

// Administered is what subnet administration has to know of the subnet: the
// fabric as it was read back, the policy as plain sets, and its multicast
// groups. ok is false while no policy stands, or while another manager is
// master. It is worth asking for after every Completed.
func (e *Engine) Administered() (s visibility.Snapshot, groups []group.Group, ok bool) {
	if e.desired == nil || !e.settled || !e.isMaster() {
		return visibility.Snapshot{}, nil, false
	}
	s = visibility.Snapshot{
		Fabric: e.fabric, GIDPrefix: e.config.GIDPrefix, Lifetime: subnetTimeOut, Manager: e.managers.Info(),
		Aliases: e.standingAliases(), Epoch: e.epoch, LIDs: e.lidsOfPorts(),
	}
	byName := make(map[string]*policy.Partition, len(e.policy.Partitions))
	for i := range e.policy.Partitions {
		byName[e.policy.Partitions[i].Name] = &e.policy.Partitions[i]
	}
	for _, x := range e.desired.allowed {
		p := visibility.Partition{Base: x.Base, Name: x.Name, Full: x.Full, Limited: x.Limited}
		if said := byName[x.Name]; said != nil {
			p.SL = said.SL
		}
		s.Partitions = append(s.Partitions, p)
	}
	for _, g := range e.desired.resolution.Trusted {
		if s.Trusted == nil {
			s.Trusted = make(map[ib.PortGUID]bool)
		}
		s.Trusted[g] = true
	}
	for _, p := range e.ends {
		if p.Peer != nil && e.isExpelled(placeOf(p.Peer)) {
			if s.Expelled == nil {
				s.Expelled = make(map[*observed.Port]bool)
			}
			s.Expelled[p] = true
		}
	}
	for p, info := range e.rivals {
		if info.GUID != 0 {
			s.Others = append(s.Others, visibility.OtherManager{Port: p, Info: info})
		}
	}
	slices.SortFunc(s.Others, func(a, b visibility.OtherManager) int { return cmp.Compare(a.Port.GUID, b.Port.GUID) })
	return s, facts.Groups(e.policy, e.desired.allowed, subnetTimeOut), true
}
