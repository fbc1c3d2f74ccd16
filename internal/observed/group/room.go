package group

import (
	"bytes"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
)

// SetPartitions tells how many partitions there are. Half of the multicast LIDs
// is divided among them, and what a partition has less than its share of is
// there for it whatever the others do; the other half is for who comes first.
func (s *Set) SetPartitions(n int) { s.partitions = n }

// capacity is how many multicast LIDs there are.
func (s *Set) capacity() int {
	return min(s.limits.Groups, int(min(s.limits.LastMLID, ib.LIDMulticastMax))-int(ib.LIDMulticastMin)+1)
}

// mayTake reports whether a partition may have another multicast LID for a group
// that a host makes. Those that are kept for it count as its own.
func (s *Set) mayTake(base ib.PKeyBase) bool {
	if s.partitions == 0 || len(s.kept[base]) > 0 {
		return true
	}
	share := s.capacity() / 2 / s.partitions
	if s.used[base] < share {
		return true
	}
	over := 0
	for _, n := range s.used {
		over += max(0, n-share)
	}
	return over < s.capacity()-share*s.partitions
}

// retire keeps a multicast LID for a partition.
func (s *Set) retire(lid ib.LID, base ib.PKeyBase) {
	s.retired[lid] = base
	s.use(base, 1)
	list := s.kept[base]
	i, _ := slices.BinarySearch(list, lid)
	s.kept[base] = slices.Insert(list, i, lid)
}

// unretire is the end of that, if there was any.
func (s *Set) unretire(lid ib.LID) {
	base, kept := s.retired[lid]
	if !kept {
		return
	}
	delete(s.retired, lid)
	s.use(base, -1)
	list := s.kept[base]
	if i, found := slices.BinarySearch(list, lid); found {
		list = slices.Delete(list, i, i+1)
	}
	if s.kept[base] = list; len(list) == 0 {
		delete(s.kept, base)
	}
	s.lowest = min(s.lowest, lid)
}

// use enters how many multicast LIDs a partition has, those that are withheld
// counted as those of partition 0.
func (s *Set) use(base ib.PKeyBase, n int) {
	if s.used[base] += n; s.used[base] == 0 {
		delete(s.used, base)
	}
}

// nextMLID is the lowest multicast LID that a partition may take.
func (s *Set) nextMLID(base ib.PKeyBase) (ib.LID, error) {
	last := min(s.limits.LastMLID, ib.LIDMulticastMax)
	for ; s.lowest <= last; s.lowest++ {
		if _, kept := s.retired[s.lowest]; !kept && s.byMLID[s.lowest] == nil {
			break
		}
	}
	free := s.lowest
	if list := s.kept[base]; base.IsValid() && len(list) > 0 {
		free = min(free, list[0])
	}
	if free > last {
		return 0, errFull
	}
	return free, nil
}

// place is where a group is, or belongs, among the sorted ones.
func (s *Set) place(mgid ib.GID) (int, bool) {
	return slices.BinarySearchFunc(s.sorted, mgid, func(g *Group, mgid ib.GID) int { return bytes.Compare(g.MGID[:], mgid[:]) })
}

// charge has a port answer for a group that hosts made, against Limits.Created.
func (s *Set) charge(g *Group, port ib.PortGUID) {
	s.maker[g.MGID] = port
	s.created[port]++
}

// discharge ends that.
func (s *Set) discharge(g *Group) {
	port, ok := s.maker[g.MGID]
	if !ok {
		return
	}
	delete(s.maker, g.MGID)
	if s.created[port]--; s.created[port] == 0 {
		delete(s.created, port)
	}
}

// handOver has another member answer for a group whose maker does not keep it
// alive any more: who left cannot be kept from making others by those who stay.
func (s *Set) handOver(g *Group) {
	if g.Fixed {
		s.discharge(g)
		return
	}
	port, charged := s.maker[g.MGID]
	if m := g.Member(port); charged && m != nil && m.keeps() {
		return
	}
	s.discharge(g)
	for i := range g.Members {
		if m := &g.Members[i]; m.keeps() {
			s.charge(g, m.Port)
			return
		}
	}
}
