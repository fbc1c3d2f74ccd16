package group

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
)

// Limits bound a Set.
type Limits struct {
	// Groups is the most groups of all, PerPort the most that one port is member of,
	// Created the most of those that it made, or became responsible for when their maker
	// left.
	Groups, PerPort, Created int
	// LastMLID is the highest multicast LID that every switch can route.
	LastMLID ib.LID
}

// DefaultLimits suit a fabric whose switches route a thousand groups.
func DefaultLimits() Limits {
	return Limits{Groups: 1024, PerPort: 256, Created: 64, LastMLID: ib.LIDMulticastMin + 1023}
}

// Set is all groups of a subnet.
type Set struct {
	limits  Limits
	byMGID  map[ib.GID]*Group
	byMLID  map[ib.LID]*Group
	retired map[ib.LID]ib.PKeyBase
	joined  map[ib.PortGUID]int // groups that a port is member of
	created map[ib.PortGUID]int // groups that a port made and that still exist
	maker   map[ib.GID]ib.PortGUID
	sorted  []*Group // of byMGID, by MGID
	serial  uint64   // of MGIDs made here
	version uint64
	events  []Event

	partitions int                      // 0 when that was not told
	used       map[ib.PKeyBase]int      // multicast LIDs of groups and those kept
	kept       map[ib.PKeyBase][]ib.LID // of retired, by partition
	lowest     ib.LID                   // no lower one is free
}

// Event is a group that was created or ended.
type Event struct {
	MGID      ib.GID
	Partition ib.PKeyBase
	Deleted   bool
}

// New returns an empty set.
func New(l Limits) *Set {
	return &Set{
		limits: l, byMGID: make(map[ib.GID]*Group), byMLID: make(map[ib.LID]*Group),
		retired: make(map[ib.LID]ib.PKeyBase), joined: make(map[ib.PortGUID]int),
		created: make(map[ib.PortGUID]int), maker: make(map[ib.GID]ib.PortGUID),
		used: make(map[ib.PKeyBase]int), kept: make(map[ib.PKeyBase][]ib.LID), lowest: ib.LIDMulticastMin,
	}
}

// SetLastMLID tells the highest multicast LID that every switch can route.
// Groups above it stay.
func (s *Set) SetLastMLID(lid ib.LID) { s.limits.LastMLID = lid }

// Groups are all groups, by MGID. The caller does not change them.
func (s *Set) Groups() []*Group { return s.sorted }

// Group is the group with this MGID, or nil.
func (s *Set) Group(mgid ib.GID) *Group { return s.byMGID[mgid] }

// ByMLID is the group with this multicast LID, or nil.
func (s *Set) ByMLID(lid ib.LID) *Group { return s.byMLID[lid] }

// Version changes whenever anything in the set does.
func (s *Set) Version() uint64 { return s.version }

// TakeEvents returns what happened since the last call, in order.
func (s *Set) TakeEvents() []Event {
	out := s.events
	s.events = nil
	return out
}

// errFull says that there is no multicast LID left.
var errFull = errors.New("no multicast LID is left")

func (s *Set) add(g *Group) {
	s.byMGID[g.MGID], s.byMLID[g.MLID] = g, g
	s.unretire(g.MLID)
	s.use(g.Partition, 1)
	i, _ := s.place(g.MGID)
	s.sorted = slices.Insert(s.sorted, i, g)
	s.version++
	s.events = append(s.events, Event{MGID: g.MGID, Partition: g.Partition})
}

func (s *Set) remove(g *Group) {
	for _, m := range g.Members {
		s.count(m.Port, -1)
	}
	delete(s.byMGID, g.MGID)
	delete(s.byMLID, g.MLID)
	s.discharge(g)
	s.use(g.Partition, -1)
	s.retire(g.MLID, g.Partition)
	if i, found := s.place(g.MGID); found {
		s.sorted = slices.Delete(s.sorted, i, i+1)
	}
	s.version++
	s.events = append(s.events, Event{MGID: g.MGID, Partition: g.Partition, Deleted: true})
}

func (s *Set) count(port ib.PortGUID, n int) {
	if s.joined[port] += n; s.joined[port] == 0 {
		delete(s.joined, port)
	}
}

// Fix makes these the fixed groups, without members: those that exist keep
// their members and their multicast LID, and fixed ones that are not among them
// go. What is wrong with one does not keep the others out; errs tells.
func (s *Set) Fix(groups []Group) (errs []error) {
	wanted := make(map[ib.GID]bool, len(groups))
	for _, want := range groups {
		wanted[want.MGID] = true
		if old := s.byMGID[want.MGID]; old != nil && old.Partition == want.Partition {
			if !old.Fixed || old.Settings != want.Settings {
				old.Fixed, old.Settings = true, want.Settings
				s.handOver(old)
				s.version++
			}
			continue
		} else if old != nil {
			s.remove(old) // it belongs to another partition now
		}
		lid, err := s.nextMLID(want.Partition)
		if err != nil {
			errs = append(errs, fmt.Errorf("multicast group %s of partition %s: %w", want.MGID, want.Partition, err))
			continue
		}
		g := want
		g.MLID, g.Fixed, g.Members = lid, true, nil
		s.add(&g)
	}
	for _, g := range slices.Clone(s.Groups()) {
		if g.Fixed && !wanted[g.MGID] {
			g.Fixed = false
			s.version++
			if g.isEmpty() {
				s.remove(g)
			} else {
				s.handOver(g)
			}
		}
	}
	return errs
}

// Prune drops every member for which keep is false, and the groups that then
// nobody keeps alive.
func (s *Set) Prune(keep func(port ib.PortGUID, base ib.PKeyBase) bool) {
	for _, g := range slices.Clone(s.Groups()) {
		before := len(g.Members)
		g.Members = slices.DeleteFunc(g.Members, func(m Member) bool {
			gone := !keep(m.Port, g.Partition)
			if gone {
				s.count(m.Port, -1)
			}
			return gone
		})
		if len(g.Members) != before {
			s.version++
		}
		if g.isEmpty() {
			s.remove(g)
		} else if len(g.Members) != before {
			s.handOver(g)
		}
	}
}

// Withhold reserves the multicast LIDs that forwarding tables lead somewhere, whatever
// manager wrote them: no group gets one until it is released. Those of groups and of
// partitions stay as they are. No State has them.
func (s *Set) Withhold(lids []ib.LID) {
	for _, lid := range lids {
		if _, kept := s.retired[lid]; !kept && s.byMLID[lid] == nil {
			s.retire(lid, 0)
			s.version++
		}
	}
}

// Release says that no forwarding table leads these multicast LIDs anywhere.
func (s *Set) Release(lids []ib.LID) {
	for _, lid := range lids {
		if _, kept := s.retired[lid]; kept {
			s.unretire(lid)
			s.version++
		}
	}
}

// Retired are the multicast LIDs that are kept for a partition, in order.
func (s *Set) Retired() (out []Retired) {
	for _, lid := range slices.Sorted(maps.Keys(s.retired)) {
		out = append(out, Retired{lid, s.retired[lid]})
	}
	return out
}

// Retired is a multicast LID that is kept for a partition.
type Retired struct {
	MLID      ib.LID
	Partition ib.PKeyBase
}

// State is a Set as a value.
type State struct {
	Groups  []Group   // by MGID
	Retired []Retired // by MLID
	// Serial counts the MGIDs that were made here, so that none comes twice.
	Serial uint64
}

// State is a copy of all that is to be kept.
func (s *Set) State() State {
	out := State{Serial: s.serial}
	for _, g := range s.Groups() {
		c := *g
		c.Members = slices.Clone(g.Members)
		out.Groups = append(out.Groups, c)
	}
	for _, r := range s.Retired() {
		if r.Partition.IsValid() { // what is withheld is found in the tables again
			out.Retired = append(out.Retired, r)
		}
	}
	return out
}

// Restore enters what State gave into an empty set. It refuses a state that
// contradicts itself, as a whole.
func (s *Set) Restore(state State) error {
	fresh := New(s.limits)
	for i := range state.Groups {
		g := state.Groups[i]
		switch {
		case !g.MGID.IsMulticast() || !g.MLID.IsMulticast() || !g.Partition.IsValid():
			return fmt.Errorf("multicast group %s: MLID %s, partition %s: want multicast addresses and a partition", g.MGID, g.MLID, g.Partition)
		case fresh.byMGID[g.MGID] != nil || fresh.byMLID[g.MLID] != nil:
			return fmt.Errorf("multicast group %s: its MGID or MLID %s is there twice", g.MGID, g.MLID)
		}
		g.Members = slices.Clone(g.Members)
		slices.SortFunc(g.Members, func(a, b Member) int { return cmp.Compare(a.Port, b.Port) })
		for j, m := range g.Members {
			if j > 0 && g.Members[j-1].Port == m.Port || m.State == 0 {
				return fmt.Errorf("multicast group %s: member %s: want every port once, with a join state", g.MGID, m.Port)
			}
			fresh.count(m.Port, 1)
		}
		fresh.add(&g)
		fresh.handOver(&g)
	}
	for _, r := range state.Retired {
		if fresh.byMLID[r.MLID] != nil {
			return fmt.Errorf("multicast LID %s: in use and retired", r.MLID)
		}
		if _, twice := fresh.retired[r.MLID]; twice {
			return fmt.Errorf("multicast LID %s: retired twice", r.MLID)
		}
		fresh.retire(r.MLID, r.Partition)
	}
	fresh.serial, fresh.events, fresh.version, fresh.partitions = state.Serial, nil, s.version+1, s.partitions
	*s = *fresh
	return nil
}
