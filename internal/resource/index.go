package resource

import (
	"cmp"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// index finds objects by what changes ask for. Plan is called for every request:
// none of its look-ups goes through all objects.
type index struct {
	tenants    map[string]*Tenant
	ranges     []*Tenant // with keys, by their first
	partitions map[ib.PKeyBase]*Partition
	names      map[string]ib.PKeyBase // partitions by PolicyName
	owned      map[string]map[ib.PKeyBase]bool
	ports      map[ib.PortGUID]*Port
	portsOf    map[string]map[ib.PortGUID]bool
	places     map[policy.Place]ib.PortGUID
	pools      []*Pool // by their first GUID
	drains     map[ib.NodeGUID]*Drain
	members    map[ib.PKeyBase]map[ib.PortGUID]*Member
	in         map[ib.PortGUID]map[ib.PKeyBase]bool
	// counts are the members that tenants agreed to have in their partitions, asked
	// the requests of tenants that wait for others; total are all members.
	counts, asked map[string]int
	total         int
	// shared counts the members of a partition by the owner of the port.
	shared    map[ib.PKeyBase]map[string]int
	waiting   map[string]map[string]*Member // by tenant and key of the member
	removed   map[ib.PKeyBase]map[ib.PortGUID]*Removed
	removedOf map[string]map[slot]*Removed // by owner
	tokens    map[string]*Token            // by Sum
	tokensOf  map[string]map[string]*Token
	approvals map[string]*Approval
	// acknowledged are alarms, by tenant and ID.
	acknowledged map[string]map[string]*Acknowledgement
}

// slot is a port in a partition.
type slot struct {
	pkey ib.PKeyBase
	port ib.PortGUID
}

func newIndex() index {
	return index{
		tenants: map[string]*Tenant{}, drains: map[ib.NodeGUID]*Drain{}, partitions: map[ib.PKeyBase]*Partition{}, names: map[string]ib.PKeyBase{},
		owned: map[string]map[ib.PKeyBase]bool{}, ports: map[ib.PortGUID]*Port{}, portsOf: map[string]map[ib.PortGUID]bool{},
		places: map[policy.Place]ib.PortGUID{}, members: map[ib.PKeyBase]map[ib.PortGUID]*Member{}, in: map[ib.PortGUID]map[ib.PKeyBase]bool{},
		counts: map[string]int{}, asked: map[string]int{}, shared: map[ib.PKeyBase]map[string]int{}, waiting: map[string]map[string]*Member{},
		removed: map[ib.PKeyBase]map[ib.PortGUID]*Removed{}, tokens: map[string]*Token{}, tokensOf: map[string]map[string]*Token{},
		approvals: map[string]*Approval{}, acknowledged: map[string]map[string]*Acknowledgement{}, removedOf: map[string]map[slot]*Removed{},
	}
}

// set enters one edit into the objects and the indexes.
func (s *State) set(e Edit) {
	if e.Before != nil {
		s.unlist(e.Before)
		s.unlistMember(e.Before)
		s.expire(e.Before)
	}
	if e.After == nil {
		delete(s.objects, e.Key)
		return
	}
	s.objects[e.Key] = e.After
	s.list(e.After)
	s.listMember(e.After)
	s.expire(e.After)
}

func (s *State) unlist(o Object) {
	switch o := o.(type) {
	case *Tenant:
		delete(s.tenants, o.Name)
		s.ranges = slices.DeleteFunc(slices.Clone(s.ranges), func(t *Tenant) bool { return t.Name == o.Name })
	case *Token:
		delete(s.tokens, o.Sum)
		leave(s.tokensOf, o.Tenant, o.ID)
	case *Port:
		delete(s.ports, o.GUID)
		leave(s.portsOf, o.Owner, o.GUID)
		if at := o.place(); s.places[at] == o.GUID {
			delete(s.places, at)
		}
	case *Pool:
		s.pools = slices.DeleteFunc(slices.Clone(s.pools), func(p *Pool) bool { return p.First == o.First })
	case *Drain:
		delete(s.drains, o.Switch)
	case *Partition:
		delete(s.partitions, o.PKey)
		delete(s.names, o.PolicyName())
		leave(s.owned, o.Owner, o.PKey)
	case *Removed:
		leave(s.removed, o.PKey, o.Port)
		leave(s.removedOf, o.Owner, slot{o.PKey, o.Port})
	case *Approval:
		delete(s.approvals, o.ID)
	case *Acknowledgement:
		leave(s.acknowledged, o.Tenant, o.Alarm)
	case *File:
		s.written = newWritten(s.base)
	}
}

func (s *State) list(o Object) {
	switch o := o.(type) {
	case *Tenant:
		s.tenants[o.Name] = o
		if o.Keys.First != 0 {
			at, _ := slices.BinarySearchFunc(s.ranges, o, func(a, b *Tenant) int { return cmp.Compare(a.Keys.First, b.Keys.First) })
			s.ranges = slices.Insert(slices.Clone(s.ranges), at, o)
		}
	case *Token:
		s.tokens[o.Sum] = o
		enter(s.tokensOf, o.Tenant, o.ID, o)
	case *Port:
		s.ports[o.GUID] = o
		enter(s.portsOf, o.Owner, o.GUID, true)
		if o.Switch != 0 {
			s.places[o.place()] = o.GUID
		}
	case *Pool:
		at, _ := slices.BinarySearchFunc(s.pools, o, func(a, b *Pool) int { return cmp.Compare(a.First, b.First) })
		s.pools = slices.Insert(slices.Clone(s.pools), at, o)
	case *Drain:
		s.drains[o.Switch] = o
	case *Partition:
		s.partitions[o.PKey] = o
		s.names[o.PolicyName()] = o.PKey
		enter(s.owned, o.Owner, o.PKey, true)
	case *Removed:
		enter(s.removed, o.PKey, o.Port, o)
		enter(s.removedOf, o.Owner, slot{o.PKey, o.Port}, o)
	case *Approval:
		s.approvals[o.ID] = o
	case *Acknowledgement:
		enter(s.acknowledged, o.Tenant, o.Alarm, o)
	case *File:
		if p, err := o.parse(); err == nil { // it was parsed when it was planned
			s.written = newWritten(p)
			s.written.file = o
		}
	}
}

func (s *State) unlistMember(o Object) {
	m, is := o.(*Member)
	if !is {
		return
	}
	leave(s.members, m.PKey, m.Port)
	leave(s.in, m.Port, m.PKey)
	s.count(m, -1)
	if waits, _ := m.waitsFor(); waits != "" {
		leave(s.waiting, waits, m.Key())
	}
}

func (s *State) listMember(o Object) {
	m, is := o.(*Member)
	if !is {
		return
	}
	enter(s.members, m.PKey, m.Port, m)
	enter(s.in, m.Port, m.PKey, true)
	s.count(m, 1)
	if waits, _ := m.waitsFor(); waits != "" {
		enter(s.waiting, waits, m.Key(), m)
	}
}

// count enters a member into the numbers that quotas and limits are about.
func (s *State) count(m *Member, n int) {
	s.total += n
	if m.ByPartition {
		s.counts[m.Owner] += n
	}
	if _, asks := m.waitsFor(); asks != "" {
		s.asked[asks] += n
	}
	if s.shared[m.PKey] == nil {
		s.shared[m.PKey] = map[string]int{}
	}
	if s.shared[m.PKey][m.PortOwner] += n; s.shared[m.PKey][m.PortOwner] == 0 {
		leave(s.shared, m.PKey, m.PortOwner)
	}
}

// waitsFor tells whose consent a member waits for, and who asks. The former is empty
// where nobody owns the port.
func (m *Member) waitsFor() (waits, asks string) {
	switch byPartition := m.Asked.ByPartition; {
	case m.ByPartition && m.ByPort && m.Asked == Ask{}:
		return "", ""
	case m.ByPartition && m.ByPort && byPartition, m.ByPartition && !m.ByPort:
		return m.PortOwner, m.Owner
	}
	return m.Owner, m.PortOwner
}

func (p *Port) place() policy.Place { return policy.Place{Switch: p.Switch, Port: p.SwitchPort} }

// pool is the pool that a GUID is in, or nil.
func (s *State) pool(g ib.PortGUID) *Pool {
	i, found := slices.BinarySearchFunc(s.pools, g, func(p *Pool, g ib.PortGUID) int { return cmp.Compare(p.First, g) })
	if !found {
		i--
	}
	if i >= 0 && s.pools[i].Has(g) {
		return s.pools[i]
	}
	return nil
}

// rangeOf is the tenant whose keys have a number, or nil.
func (s *State) rangeOf(k ib.PKeyBase) *Tenant {
	i, found := slices.BinarySearchFunc(s.ranges, k, func(t *Tenant, k ib.PKeyBase) int { return cmp.Compare(t.Keys.First, k) })
	if !found {
		i--
	}
	if i >= 0 && s.ranges[i].Keys.Has(k) {
		return s.ranges[i]
	}
	return nil
}

func enter[A, B comparable, C any](m map[A]map[B]C, a A, b B, c C) {
	if m[a] == nil {
		m[a] = map[B]C{}
	}
	m[a][b] = c
}

func leave[A, B comparable, C any](m map[A]map[B]C, a A, b B) {
	if delete(m[a], b); len(m[a]) == 0 {
		delete(m, a)
	}
}
