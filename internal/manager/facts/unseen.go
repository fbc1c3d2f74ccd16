// Unseen: the end ports that an earlier sweep found and the last one did not,
// while their links may still carry data.
//
// Such a port is behind a switch port whose link is up and behind which no device
// answered. It may still use every key that it had. A policy has to
// remove those keys at the switch port before it where that is possible, and otherwise
// may not give them to others.

package facts

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/desired/partition"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// UnseenPort is an end port that is out of sight.
type UnseenPort struct {
	Identity policy.EndPort
	// Cap is the size of its P_Key table, Keys what it held, as last read.
	Cap  int
	Keys []ib.PKey
	// Guard is what the switch port before it held, which may be out of sight
	// as well: the host could use that with a table that it forged.
	Guard   []ib.PKey
	Aliases []observed.Alias
	// At is the switch port that it is cabled to, if any, Behind the one beyond
	// which nobody was found: the same, or one closer to the manager.
	At, Behind observed.Place
}

// Facts is what there is to know of it and of the switch port before it, if that
// can be reached.
func (u *UnseenPort) Facts(f *observed.Fabric) partition.PortFacts {
	x := partition.PortFacts{
		PortGUID: u.Identity.PortGUID, NodeGUID: u.Identity.NodeGUID, PortNum: u.Identity.PortNum,
		Cap: u.Cap, Current: u.Keys,
	}
	if q := f.At(u.At); q != nil && q.FacesStranger() && !q.IsEnd() {
		x.Facing = OfGuard(q)
	}
	return x
}

// RecallUnseen enters in ports that are found again what they held before they were out
// of sight, and in the switch ports before them, as far as it could not be read this
// time: a port that answers everything but what its P_Key table holds may still have it.
func RecallUnseen(now *observed.Fabric, ends []*observed.Port, before []UnseenPort) {
	for _, u := range before {
		for _, p := range ends {
			if p.GUID == u.Identity.PortGUID {
				p.Recall(&observed.Port{PKeys: u.Keys})
			}
		}
		if p := now.At(u.At); p != nil {
			p.Recall(&observed.Port{PKeys: u.Guard})
		}
	}
}

// unseenSearch is one call of UnseenAfter.
type unseenSearch struct {
	old, now *observed.Fabric
	fences   FenceSet
	cables   *cables.List
	found    map[ib.PortGUID]bool
	passed   map[*observed.Node]bool
	out      []UnseenPort
}

// UnseenAfter are the end ports that are out of sight after a sweep: now is what it
// found and ends its end ports, old what the sweep before it found, before who was
// out of sight then. Behind a fence that lets nothing pass nobody counts. list, if
// there is one, names devices.
func UnseenAfter(old, now *observed.Fabric, ends []*observed.Port, before []UnseenPort, fences FenceSet, list *cables.List) []UnseenPort {
	s := unseenSearch{
		old: old, now: now, fences: fences, cables: list,
		found: make(map[ib.PortGUID]bool, len(ends)), passed: make(map[*observed.Node]bool),
	}
	for _, p := range ends {
		s.found[p.GUID] = true
	}
	for _, u := range before {
		if s.facesStranger(u.At) {
			u.Behind = u.At
		}
		if s.facesStranger(u.Behind) {
			s.keep(u)
		}
	}
	for _, n := range old.Nodes {
		for i := range n.Ports {
			if p := &n.Ports[i]; p.Peer != nil && s.facesStranger(p.Place()) {
				s.loseBehind(p, p.Place())
			}
		}
	}
	return s.out
}

// facesStranger reports whether the last sweep found nobody behind a port whose
// link is up.
func (s *unseenSearch) facesStranger(at observed.Place) bool {
	p := s.now.At(at)
	return p != nil && p.FacesStranger()
}

func (s *unseenSearch) keep(u UnseenPort) {
	if guid := u.Identity.PortGUID; !s.found[guid] && !s.fences.IsShut(s.now.At(u.Behind)) {
		s.found[guid] = true
		s.out = append(s.out, u)
	}
}

// loseBehind keeps the end ports beyond p, of the older sweep, that the last sweep
// did not find.
func (s *unseenSearch) loseBehind(p *observed.Port, behind observed.Place) {
	n := p.Peer.Node
	if n.Switch == nil {
		s.keep(s.lost(p.Peer, behind))
		return
	}
	if s.passed[n] || s.now.Node(n.GUID()) != nil {
		return
	}
	s.passed[n] = true
	s.keep(s.lost(&n.Ports[0], behind))
	for i := 1; i < len(n.Ports); i++ {
		if q := &n.Ports[i]; q.Peer != nil && q.Peer != p {
			s.loseBehind(q, behind)
		}
	}
}

func (s *unseenSearch) lost(p *observed.Port, behind observed.Place) UnseenPort {
	u := UnseenPort{
		Identity: Named(Identity(p, false), s.cables),
		Cap:      p.PKeyCap(), Keys: p.PKeys, Aliases: p.Aliases(), Behind: behind,
	}
	if p.Peer != nil {
		u.At, u.Guard = p.Peer.Place(), p.Peer.PKeys
	}
	return u
}
