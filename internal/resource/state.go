package resource

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// Edit is one object before and after a change; nil where there is none.
type Edit struct {
	Key           string
	Before, After Object
}

// Diff is what a change does.
type Diff struct {
	// Edits are in the order in which they are made, each key once.
	Edits []Edit
	// Words say in sentences what is done; About has the key of the object that
	// each sentence is about.
	Words, About []string
}

// Approval is what waits for a second person because of this diff, or nil.
func (d Diff) Approval() *Approval {
	for _, e := range d.Edits {
		if a, is := e.After.(*Approval); is {
			return a
		}
	}
	return nil
}

// State is all objects. It is not safe for use by several goroutines at once: only
// methods that do not say that they change it can be called by several, and not
// while another is called.
type State struct {
	objects   map[string]Object
	revisions map[string]uint64 // of the revision that last changed an object
	// touched is the last revision that changed a partition, its members included.
	touched map[ib.PKeyBase]uint64
	last    uint64
	recent  map[string][]time.Time // accepted changes by tenant

	index
	base     *policy.Policy // where no file was applied
	written  written        // what is known of the file, or of the base
	compiled compiled
	// Allocated are the numbers that partitions of the base got, which state none.
	// Those of a file are in File.Numbers.
	Allocated map[string]ib.PKeyBase
	Numbers   NumberBook
}

// New is the state of a new store: the provider and nothing else. base is the policy
// for as long as no file was applied.
func New(base *policy.Policy) *State {
	if base == nil {
		base = &policy.Policy{Default: policy.Limited}
	}
	s := &State{
		Numbers: NumberBook{}, base: base, objects: map[string]Object{}, revisions: map[string]uint64{}, touched: map[ib.PKeyBase]uint64{},
		recent: map[string][]time.Time{}, index: newIndex(), compiled: newCompiled(),
	}
	s.written = newWritten(base)
	s.set(Edit{Key: key(KindTenant, Provider), After: &Tenant{Name: Provider}})
	s.compile()
	return s
}

// Restore enters an object as it was stored, with the revision that last changed
// it. It is for a new State, in any order, and ends with SetLast.
func (s *State) Restore(o Object, revision uint64) error {
	if f, is := o.(*File); is {
		if _, err := f.parse(); err != nil {
			return err
		}
	}
	k := o.Key()
	s.set(Edit{Key: k, Before: s.objects[k], After: o})
	s.mark(k, o, revision)
	return nil
}

// Last is the number of the last revision.
func (s *State) Last() uint64 { return s.last }

// Commit enters a diff that Plan made for this very state. It changes the state.
func (s *State) Commit(d Diff, revision uint64, by Caller, at time.Time) {
	s.Numbers.Add(s.Touches(d), revision)
	for _, e := range d.Edits {
		s.set(e)
		o := e.After
		if o == nil {
			o = e.Before
		}
		if _, is := o.(*Removed); !is || e.After != nil { // to forget changes nothing
			s.mark(e.Key, o, revision)
		}
		if e.After == nil {
			delete(s.revisions, e.Key)
		}
	}
	s.last = revision
	s.recent[by.Tenant] = append(s.within(by.Tenant, at), at)
	s.compile()
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

// Object is the object with a key, and the revision that last changed it.
func (s *State) Object(key string) (Object, uint64) { return s.objects[key], s.revisions[key] }

// Objects are all objects by key, for a copy of the whole state.
func (s *State) Objects() []Object {
	list := make([]Object, 0, len(s.objects))
	for _, k := range slices.Sorted(maps.Keys(s.objects)) {
		list = append(list, s.objects[k])
	}
	return list
}

// NumberFor is the number by which a caller knows a revision; LastFor that of the last, and RevisionFor
// the other way.
func (s *State) NumberFor(c Caller, revision uint64) uint64 { return s.Numbers.For(c.Tenant, revision) }
func (s *State) LastFor(c Caller) uint64                    { return s.NumberFor(c, s.last) }
func (s *State) RevisionFor(c Caller, n uint64) (revision uint64, is bool) {
	return s.Numbers.Revision(c.Tenant, n, s.last)
}

// Touches are the tenants that see anything of what a diff of this state changes, once each: those
// that it concerns, and those with a port in a partition that is changed.
func (s *State) Touches(d Diff) []string {
	set := map[string]bool{}
	for _, e := range d.Edits {
		for _, o := range []Object{e.Before, e.After} {
			for _, t := range s.Concerns(o) {
				if t != Nobody {
					set[t] = true
				}
			}
			if p, is := o.(*Partition); is {
				for t := range s.shared[p.PKey] {
					set[t] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// Tenant is the tenant with a name, or nil.
func (s *State) Tenant(name string) *Tenant { return s.tenants[name] }

// Tenants are all tenants by name.
func (s *State) Tenants() []*Tenant {
	return slices.SortedFunc(maps.Values(s.tenants), func(a, b *Tenant) int { return cmp.Compare(a.Name, b.Name) })
}

// Token is the token with the SHA-256 of a secret, in hex, or nil. Whether it has
// expired, CallerOf tells.
func (s *State) Token(sum string) *Token { return s.tokens[sum] }

// Tokens are the tokens of a tenant by ID; of all for "".
func (s *State) Tokens(tenant string) []*Token {
	list := []*Token{}
	if tenant == "" {
		list = slices.AppendSeq(list, maps.Values(s.tokens))
	} else {
		list = slices.AppendSeq(list, maps.Values(s.tokensOf[tenant]))
	}
	slices.SortFunc(list, func(a, b *Token) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Owner is who owns a port: whom a Port object names, else whose pool it is in,
// else, of an alias that the policy gives to a port, who owns that port, else the
// provider. It is empty for one between two owners.
func (s *State) Owner(g ib.PortGUID) string {
	if p := s.ports[g]; p != nil {
		return p.Owner
	}
	if p := s.pool(g); p != nil {
		return p.Owner
	}
	if port, alias := s.written.aliases[g]; alias && port != g {
		if p := s.ports[port]; p != nil {
			return p.Owner
		}
		if p := s.pool(port); p != nil {
			return p.Owner
		}
	}
	return Provider
}

// Port is what the provider said of a port, or nil.
func (s *State) Port(g ib.PortGUID) *Port { return s.ports[g] }

// Ports are all ports that the provider spoke of, by GUID.
func (s *State) Ports() []*Port {
	return slices.SortedFunc(maps.Values(s.ports), func(a, b *Port) int { return cmp.Compare(a.GUID, b.GUID) })
}

// PortsOf are the ports of a tenant, by GUID; "" for those between two owners.
// Those of its pools that no Port object names are not among them.
func (s *State) PortsOf(tenant string) []*Port {
	list := []*Port{}
	for g := range s.portsOf[tenant] {
		list = append(list, s.ports[g])
	}
	slices.SortFunc(list, func(a, b *Port) int { return cmp.Compare(a.GUID, b.GUID) })
	return list
}

// Pools are the pools of a tenant by their first GUID; all, also those between two
// owners, for "".
func (s *State) Pools(tenant string) []*Pool {
	list := []*Pool{}
	for _, p := range s.pools {
		if tenant == "" || p.Owner == tenant {
			list = append(list, p)
		}
	}
	return list
}

// Partition is the partition with a number, or nil.
func (s *State) Partition(k ib.PKeyBase) *Partition { return s.partitions[k] }

// Touched is the last revision that changed a partition, its members or what is
// remembered of those that were removed. Seen tells as much of it as a caller sees.
func (s *State) Touched(k ib.PKeyBase) uint64 { return s.touched[k] }

// Partitions are the partitions of a tenant by number; of all for "".
func (s *State) Partitions(tenant string) []*Partition {
	list := []*Partition{}
	if tenant == "" {
		list = slices.AppendSeq(list, maps.Values(s.partitions))
	} else {
		for k := range s.owned[tenant] {
			list = append(list, s.partitions[k])
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

// Removed are the members that were removed from a partition, and are remembered,
// by GUID.
func (s *State) Removed(k ib.PKeyBase) []*Removed {
	return slices.SortedFunc(maps.Values(s.removed[k]), func(a, b *Removed) int { return cmp.Compare(a.Port, b.Port) })
}

// In are the partitions of which a port is a member, or is to be, by number.
func (s *State) In(g ib.PortGUID) []ib.PKeyBase { return slices.Sorted(maps.Keys(s.in[g])) }

// Approvals are the changes that wait for a second person, by ID.
func (s *State) Approvals() []*Approval {
	return slices.SortedFunc(maps.Values(s.approvals), func(a, b *Approval) int { return cmp.Compare(a.ID, b.ID) })
}

// Waiting are the members that wait for the consent of a tenant, by partition and
// port.
func (s *State) Waiting(tenant string) []*Member {
	return slices.SortedFunc(maps.Values(s.waiting[tenant]), func(a, b *Member) int {
		return cmp.Or(cmp.Compare(a.PKey, b.PKey), cmp.Compare(a.Port, b.Port))
	})
}

// File is the policy file that was applied, or nil.
func (s *State) File() *File { return s.written.file }

// Nobody stands in Concerns for a tenant that is not there. No tenant has the name.
const Nobody = "?"

// Concerns are the tenants who may see an edit of an object, besides the provider; empty names are none.
func (s *State) Concerns(o Object) []string {
	switch o := o.(type) {
	case *Tenant:
		return []string{o.Name}
	case *Token:
		return []string{o.Tenant}
	case *Port:
		return []string{o.Owner}
	case *Pool:
		return []string{o.Owner}
	case *Partition:
		return []string{o.Owner}
	case *Member:
		return []string{o.Owner, o.PortOwner}
	case *Removed:
		return []string{o.Owner}
	case *Approval:
		switch {
		case o.From == "":
			return []string{o.Tenant}
		case s.tenants[o.Tenant] == nil: // for the owner it is as if there were
			return []string{Nobody, o.From}
		}
		return []string{o.Tenant, o.From}
	case *Acknowledgement:
		return []string{o.Tenant}
	}
	return nil
}

// SetLast sets the number of the last revision, which may have changed no object that
// is still there. It ends what Restore began.
func (s *State) SetLast(revision uint64) {
	s.last = max(s.last, revision)
	s.compile()
}
