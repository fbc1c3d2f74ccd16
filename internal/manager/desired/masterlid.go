package desired

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// A policy may set aside a LID for whichever manager is master (master_sm_lid). No port is
// assigned it. The port of the master has it as its base LID, in place of its own, and
// every port names it as MasterSMLID. Forwarding tables lead it where they lead the own LID
// of that port, which stays routed, and so do the own LIDs of all managers: with another
// master no table changes but in the entry of this LID.

// lids assigns LIDs and wants them, and forwarding tables that lead there.
func (r *Result) lids() error {
	in, m := &r.in, r.Settings.MasterSMLID
	if err := in.mayTake(m); err != nil {
		return err
	}
	assigned, moves, err := AssignLIDs(in.Fabric, in.ownLIDs(m), in.LMC, m)
	if err != nil {
		return err
	}
	for _, x := range moves {
		r.Warnings = append(r.Warnings, x.String())
	}
	EnterLIDs(assigned, r.Tables)
	if m != ib.LIDReserved {
		self := r.Tables.Port(in.Fabric.Self)
		self.Info.LID, self.Info.LMC = m, 0
	}
	if err := r.routes(assigned); err != nil {
		return err
	}
	r.remember(assigned)
	return nil
}

// ownLIDs are the LIDs that ports were assigned before. A port that has the managers' LID
// m shows no LID of its own: where none is remembered, it is the one that the switch before
// the port still leads there. That is what an earlier manager wrote, not what the port says.
func (in *Input) ownLIDs(m ib.LID) map[ib.PortGUID]ib.LID {
	known, cloned := in.Known.LIDs, false
	if m == ib.LIDReserved {
		return known
	}
	for _, p := range in.EndPorts {
		if _, is := known[p.GUID]; is || !p.InfoRead || p.Info.LID != m {
			continue
		}
		own := in.ledTo(p, m)
		if own == ib.LIDReserved {
			continue
		}
		if !cloned {
			known, cloned = maps.Clone(known), true
			if known == nil {
				known = make(map[ib.PortGUID]ib.LID)
			}
		}
		known[p.GUID] = own
	}
	return known
}

// ledTo is the lowest LID but m that the switch before an end port leads to it and no
// other port shows to have; ib.LIDReserved for none.
func (in *Input) ledTo(p *observed.Port, m ib.LID) ib.LID {
	at := p
	if p.Node.Switch == nil {
		at = p.Peer
	}
	if at == nil || at.Node.Switch == nil {
		return ib.LIDReserved
	}
	for l := ib.LIDUnicastMin; l <= ib.LIDUnicastMax && l <= at.Node.Switch.Info.LinearFDBTop; l++ {
		if exit, known := at.Node.Switch.Exit(l, observed.AnyPort); !known || exit != at.Num || l == m {
			continue
		}
		if !slices.ContainsFunc(in.EndPorts, func(q *observed.Port) bool { return q != p && q.Answers(l) }) {
			return l
		}
	}
	return ib.LIDReserved
}

// mayTake refuses a LID for managers that another port was assigned, or that a switch has
// no entry for. A LID that the manager's own port names as MasterSMLID is a manager's
// already, and what a port says of itself keeps no LID from the manager.
func (in *Input) mayTake(m ib.LID) error {
	if m == ib.LIDReserved {
		return nil
	}
	for _, n := range in.Fabric.Switches() {
		if s := n.Switch; s.InfoRead && s.Info.LinearFDBCap > 0 && uint16(m) >= s.Info.LinearFDBCap {
			return fmt.Errorf("master_sm_lid %d: the forwarding table of %s ends at LID %d", m, n.Name(), s.Info.LinearFDBCap-1)
		}
	}
	self := in.Fabric.Self
	if in.Stands || self == nil || self.InfoRead && self.Info.MasterSMLID == m {
		return nil
	}
	if owner := in.ownerOf(m); owner != "" {
		return fmt.Errorf("master_sm_lid %d is the LID of %s: choose one that no port has, for example %d", m, owner, in.freeLID())
	}
	return nil
}

// ownerOf names the port that was assigned a LID, the manager's own left out; "" for none.
// On a subnet that another manager has brought up that is the port which has it, where the
// switch before the port leads it there.
func (in *Input) ownerOf(m ib.LID) string {
	self := in.Fabric.Self
	for _, guid := range slices.Sorted(maps.Keys(in.Known.LIDs)) {
		base, lmc := in.Known.LIDs[guid], in.LMC
		if int(base)%lmc.Count() != 0 {
			lmc = 0 // of a switch
		}
		if guid == self.GUID || m < base || int(m) >= int(base)+lmc.Count() {
			continue
		}
		if i := slices.IndexFunc(in.EndPorts, func(p *observed.Port) bool { return p.GUID == guid }); i >= 0 {
			return in.EndPorts[i].String()
		}
		return fmt.Sprintf("port %v, which is absent", guid)
	}
	if !in.Newcomer {
		return ""
	}
	for _, p := range in.EndPorts {
		if _, known := in.Known.LIDs[p.GUID]; known || p == self || !p.Answers(m) || p.Peer == nil || p.Peer.Node.Switch == nil {
			continue
		}
		if exit, known := p.Peer.Node.Switch.Exit(m, observed.AnyPort); known && exit == p.Peer.Num {
			return p.String()
		}
	}
	return ""
}

// freeLID is the lowest LID that no port was assigned or shows to have.
func (in *Input) freeLID() ib.LID {
	taken := make(map[ib.LID]bool, len(in.Known.LIDs))
	take := func(base ib.LID, count int) {
		for i := range count {
			taken[base+ib.LID(i)] = true
		}
	}
	for _, base := range in.Known.LIDs {
		take(base, in.LMC.Count())
	}
	for _, p := range in.EndPorts {
		if p.InfoRead {
			take(p.Info.LID, p.Info.LMC.Count())
		}
	}
	free := ib.LIDUnicastMin
	for taken[free] {
		free++
	}
	return free
}
