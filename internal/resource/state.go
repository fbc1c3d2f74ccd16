package resource

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// Caller is who asks, as the server authenticated him.
type Caller struct {
	// Name tells one caller from another: the ID of a token, "uid 0", or the subject
	// of a certificate.
	Name string
	// Tenant is whom he acts for.
	Tenant string
	// ReadOnly callers change nothing.
	ReadOnly bool
}

// IsProvider reports whether the caller acts for the provider.
func (c Caller) IsProvider() bool { return c.Tenant == Provider }

// Edit is one object before and after a change; nil where there is none.
type Edit struct {
	Key           string
	Before, After Object
}

// Diff is what a change does.
type Diff struct {
	// Edits are in the order in which they are made, each key once.
	Edits []Edit
	// Words says each edit in a sentence.
	Words []string
}

// State is all objects. It is not safe for use by several goroutines at once.
type State struct {
	objects   map[string]Object
	revisions map[string]uint64 // of the revision that last changed an object
	// touched is the last revision that changed a partition, its members included.
	touched map[ib.PKeyBase]uint64
	last    uint64

	tenants    map[string]*Tenant
	partitions map[ib.PKeyBase]*Partition
	owned      map[string]map[ib.PKeyBase]bool // partitions by tenant
	ports      map[ib.PortGUID]*Port
	members    map[ib.PKeyBase]map[ib.PortGUID]*Member
	in         map[ib.PortGUID]map[ib.PKeyBase]bool
	counts     map[string]int         // members of all partitions of a tenant
	tokens     map[string]*Token      // by Sum
	recent     map[string][]time.Time // accepted changes by tenant

	file   *File
	policy *policy.Policy // of file
	base   *policy.Policy // where no file was applied
	// Allocated are the numbers that partitions of the file got, which state none.
	Allocated map[string]ib.PKeyBase
}

// New is the state of a new store: the provider and nothing else. base is the policy
// for as long as no file was applied.
func New(base *policy.Policy) *State {
	s := &State{
		base:    base,
		objects: map[string]Object{}, revisions: map[string]uint64{}, touched: map[ib.PKeyBase]uint64{},
		tenants: map[string]*Tenant{}, partitions: map[ib.PKeyBase]*Partition{}, owned: map[string]map[ib.PKeyBase]bool{},
		ports: map[ib.PortGUID]*Port{}, members: map[ib.PKeyBase]map[ib.PortGUID]*Member{}, in: map[ib.PortGUID]map[ib.PKeyBase]bool{},
		counts: map[string]int{}, tokens: map[string]*Token{}, recent: map[string][]time.Time{},
	}
	s.set(Edit{Key: key(KindTenant, Provider), After: &Tenant{Name: Provider}})
	return s
}

// Restore enters an object as it was stored, with the revision that last changed
// it. It is for a new State, in any order.
func (s *State) Restore(o Object, revision uint64) error {
	if f, is := o.(*File); is {
		p, err := f.parse()
		if err != nil {
			return err
		}
		s.policy = p
	}
	k := o.Key()
	s.set(Edit{Key: k, Before: s.objects[k], After: o})
	s.mark(k, o, revision)
	return nil
}

// Last is the number of the last revision.
func (s *State) Last() uint64 { return s.last }

// Commit enters a diff that Plan made for this very state.
func (s *State) Commit(d Diff, revision uint64, by Caller, at time.Time) {
	for _, e := range d.Edits {
		s.set(e)
		o := e.After
		if o == nil {
			o = e.Before
		}
		s.mark(e.Key, o, revision)
		if e.After == nil {
			delete(s.revisions, e.Key)
		}
	}
	s.last = revision
	s.recent[by.Tenant] = append(s.within(by.Tenant, at), at)
}

func (s *State) mark(key string, o Object, revision uint64) {
	s.revisions[key] = revision
	switch o := o.(type) {
	case *Partition:
		s.touched[o.PKey] = max(s.touched[o.PKey], revision)
	case *Member:
		s.touched[o.PKey] = max(s.touched[o.PKey], revision)
	case *Removed:
		s.touched[o.PKey] = max(s.touched[o.PKey], revision)
	}
	s.last = max(s.last, revision)
}

// minute is the time that Quota.ChangesPerMinute is about.
const minute = time.Minute

// within are the changes of a tenant in the last minute.
func (s *State) within(tenant string, at time.Time) []time.Time {
	list := s.recent[tenant]
	for len(list) > 0 && at.Sub(list[0]) >= minute {
		list = list[1:]
	}
	return list
}

// set enters one edit into the objects and the indexes.
func (s *State) set(e Edit) {
	if e.Before != nil {
		s.unlist(e.Before)
	}
	if e.After == nil {
		delete(s.objects, e.Key)
		return
	}
	s.objects[e.Key] = e.After
	s.list(e.After)
}

func (s *State) unlist(o Object) {
	switch o := o.(type) {
	case *Tenant:
		delete(s.tenants, o.Name)
	case *Token:
		delete(s.tokens, o.Sum)
	case *Port:
		delete(s.ports, o.GUID)
	case *Partition:
		delete(s.partitions, o.PKey)
		delete(s.owned[o.Owner], o.PKey)
		s.counts[o.Owner] -= len(s.members[o.PKey])
	case *Member:
		delete(s.members[o.PKey], o.Port)
		delete(s.in[o.Port], o.PKey)
		if p := s.partitions[o.PKey]; p != nil {
			s.counts[p.Owner]--
		}
	case *File:
		s.file, s.policy = nil, nil
	}
}

func (s *State) list(o Object) {
	switch o := o.(type) {
	case *Tenant:
		s.tenants[o.Name] = o
	case *Token:
		s.tokens[o.Sum] = o
	case *Port:
		s.ports[o.GUID] = o
	case *Partition:
		s.partitions[o.PKey] = o
		enter(s.owned, o.Owner, o.PKey, true)
		s.counts[o.Owner] += len(s.members[o.PKey])
	case *Member:
		enter(s.members, o.PKey, o.Port, o)
		enter(s.in, o.Port, o.PKey, true)
		if p := s.partitions[o.PKey]; p != nil {
			s.counts[p.Owner]++
		}
	case *File:
		s.file = o
		s.policy, _ = o.parse() // it was parsed when it was planned
	}
}

func enter[A, B comparable, C any](m map[A]map[B]C, a A, b B, c C) {
	if m[a] == nil {
		m[a] = map[B]C{}
	}
	m[a][b] = c
}

// Object is the object with a key, and the revision that last changed it.
func (s *State) Object(key string) (Object, uint64) { return s.objects[key], s.revisions[key] }

// Tenant is the tenant with a name, or nil.
func (s *State) Tenant(name string) *Tenant { return s.tenants[name] }

// Tenants are all tenants by name.
func (s *State) Tenants() []*Tenant {
	return slices.SortedFunc(maps.Values(s.tenants), func(a, b *Tenant) int { return cmp.Compare(a.Name, b.Name) })
}

// Token is the token with the SHA-256 of a secret, in hex, or nil.
func (s *State) Token(sum string) *Token { return s.tokens[sum] }

// Tokens are the tokens of a tenant by ID; of all for "".
func (s *State) Tokens(tenant string) []*Token {
	list := []*Token{}
	for _, t := range s.tokens {
		if tenant == "" || t.Tenant == tenant {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b *Token) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Owner is who owns a port. It is empty for one between two owners.
func (s *State) Owner(g ib.PortGUID) string {
	if p := s.ports[g]; p != nil {
		return p.Owner
	}
	return Provider
}

// Port is what the provider said of a port, or nil.
func (s *State) Port(g ib.PortGUID) *Port { return s.ports[g] }

// Ports are all ports that the provider spoke of, by GUID.
func (s *State) Ports() []*Port {
	return slices.SortedFunc(maps.Values(s.ports), func(a, b *Port) int { return cmp.Compare(a.GUID, b.GUID) })
}

// Partition is the partition with a number, or nil; Touched the last revision that
// changed it or its members.
func (s *State) Partition(k ib.PKeyBase) *Partition { return s.partitions[k] }

// Touched is the last revision that changed a partition, its members or what is
// remembered of those that were removed.
func (s *State) Touched(k ib.PKeyBase) uint64 { return s.touched[k] }

// Partitions are the partitions of a tenant by number; of all for "".
func (s *State) Partitions(tenant string) []*Partition {
	list := []*Partition{}
	for _, p := range s.partitions {
		if tenant == "" || p.Owner == tenant {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b *Partition) int { return cmp.Compare(a.PKey, b.PKey) })
	return list
}

// Members are the members of a partition by GUID.
func (s *State) Members(k ib.PKeyBase) []*Member {
	return slices.SortedFunc(maps.Values(s.members[k]), func(a, b *Member) int { return cmp.Compare(a.Port, b.Port) })
}

// Member is one member, or nil.
func (s *State) Member(k ib.PKeyBase, g ib.PortGUID) *Member { return s.members[k][g] }

// In are the partitions of which a port is a member, or is to be, by number.
func (s *State) In(g ib.PortGUID) []ib.PKeyBase { return slices.Sorted(maps.Keys(s.in[g])) }

// Approvals are the removals that wait, by ID.
func (s *State) Approvals() []*Approval {
	list := []*Approval{}
	for _, o := range s.objects {
		if a, is := o.(*Approval); is {
			list = append(list, a)
		}
	}
	slices.SortFunc(list, func(a, b *Approval) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// File is the policy file that was applied, or nil.
func (s *State) File() *File { return s.file }

// Sees reports whether a caller may see a partition: its owner may, who owns a
// port in it, and the provider.
func (s *State) Sees(c Caller, k ib.PKeyBase) bool {
	p := s.partitions[k]
	if p == nil {
		return false
	}
	if c.IsProvider() || p.Owner == c.Tenant {
		return true
	}
	for g := range s.members[k] {
		if s.Owner(g) == c.Tenant {
			return true
		}
	}
	return false
}

// SeesMember reports whether a caller may see a member: the owner of the partition
// may, that of the port, and the provider.
func (s *State) SeesMember(c Caller, m *Member) bool {
	p := s.partitions[m.PKey]
	return c.IsProvider() || p != nil && p.Owner == c.Tenant || s.Owner(m.Port) == c.Tenant
}

// Concerns are the tenants who may see an edit of an object, besides the provider.
func (s *State) Concerns(o Object) []string {
	switch o := o.(type) {
	case *Tenant:
		return []string{o.Name}
	case *Token:
		return []string{o.Tenant}
	case *Port:
		return []string{o.Owner}
	case *Partition:
		return []string{o.Owner}
	case *Member:
		if p := s.partitions[o.PKey]; p != nil {
			return []string{p.Owner, s.Owner(o.Port)}
		}
		return []string{s.Owner(o.Port)}
	case *Removed:
		if p := s.partitions[o.PKey]; p != nil {
			return []string{p.Owner}
		}
	case *Approval:
		return []string{o.Tenant}
	}
	return nil
}

// SetLast sets the number of the last revision, which may have changed no object that
// is still there.
func (s *State) SetLast(revision uint64) { s.last = max(s.last, revision) }
