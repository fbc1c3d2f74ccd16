package resource

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
)

// PolicyName is what a partition is called in a policy: NAME for one of the
// provider, else OWNER/NAME.
func (p *Partition) PolicyName() string {
	if p.Owner == Provider {
		return p.Name
	}
	return p.Owner + "/" + p.Name
}

// compiled is the policy of the state, in pieces that outlive a change of others.
type compiled struct {
	parts  map[ib.PKeyBase]policy.Partition
	policy *policy.Policy
	apart  []policy.GUIDRange
	stale  stale
}

// stale are the pieces that no longer say what the state does.
type stale struct {
	all, apart bool
	partitions map[ib.PKeyBase]bool
	members    map[ib.PKeyBase]map[ib.PortGUID]bool
}

func newCompiled() compiled {
	return compiled{parts: map[ib.PKeyBase]policy.Partition{}, stale: stale{all: true}}
}

func (x *stale) none() bool {
	return !x.all && !x.apart && len(x.partitions) == 0 && len(x.members) == 0
}

// expire notes what an edit of an object makes stale.
func (s *State) expire(o Object) {
	x := &s.compiled.stale
	if x.members == nil {
		x.partitions, x.members = map[ib.PKeyBase]bool{}, map[ib.PKeyBase]map[ib.PortGUID]bool{}
	}
	switch o := o.(type) {
	case *Partition:
		x.partitions[o.PKey] = true
	case *Member:
		enter(x.members, o.PKey, o.Port, true)
	case *Port:
		x.apart = true
		for _, g := range s.written.guids(o.GUID) {
			for k := range s.in[g] {
				enter(x.members, k, g, true)
			}
		}
		x.all = x.all || s.written.named[o.GUID] != ""
	case *Pool, *File, *Drain:
		x.all = true
	}
}

// Policy is the policy that the state asks for: that of the file, or the base where no
// file was applied, with the partitions of the API after it. Only members that both
// owners agreed to are in it; ports of tenants are apart. Nobody may change it: what
// a change leaves as it is, is shared by the policies before and after it.
//
// After Restore, and until SetLast or Commit, it changes the state.
func (s *State) Policy() *policy.Policy {
	s.compile()
	return s.compiled.policy
}

// compile brings the pieces up to date.
func (s *State) compile() {
	c := &s.compiled
	if c.stale.none() && c.policy != nil {
		return
	}
	if c.stale.all {
		clear(c.parts)
		for k, p := range s.partitions {
			c.parts[k] = s.policyPartition(p)
		}
	}
	for k := range c.stale.partitions {
		if p := s.partitions[k]; p == nil {
			delete(c.parts, k)
		} else if !c.stale.all {
			c.parts[k] = s.policyPartition(p)
		}
	}
	for k, guids := range c.stale.members {
		if part, is := c.parts[k]; is && !c.stale.all && !c.stale.partitions[k] {
			part.Members = s.patch(part.Members, k, guids)
			c.parts[k] = part
		}
	}
	if c.stale.all || c.stale.apart {
		c.apart = s.apart()
	}
	if c.policy != nil && !c.stale.all && len(c.stale.partitions) == 0 {
		c.policy = s.replace()
	} else {
		c.policy = s.assemble(c.parts, c.apart, c.policy)
	}
	c.stale = stale{}
}

// patchMax is the most members that are put into a list one by one.
const patchMax = 32

// patch is a list of members in which some were changed. The list itself stays.
func (s *State) patch(list []policy.Member, k ib.PKeyBase, guids map[ib.PortGUID]bool) []policy.Member {
	if len(guids) > patchMax {
		return s.policyPartition(s.partitions[k]).Members
	}
	out := slices.Clone(list)
	for g := range guids {
		at, found := slices.BinarySearchFunc(out, uint64(g), func(m policy.Member, g uint64) int { return cmp.Compare(m.GUID, g) })
		n, is := s.policyMember(s.members[k][g])
		switch {
		case found && is:
			out[at] = n
		case found:
			out = slices.Delete(out, at, at+1)
		case is:
			out = slices.Insert(out, at, n)
		}
	}
	if slices.Equal(list, out) {
		return list
	}
	return out
}

// assemble makes the policy of its pieces. The partitions of the file are those of
// the policy before where it has them.
func (s *State) assemble(parts map[ib.PKeyBase]policy.Partition, apart []policy.GUIDRange, before *policy.Policy) *policy.Policy {
	p := *s.written.policy
	p.Apart, p.Drained = apart, s.drained()
	n := len(p.Partitions)
	p.Partitions = make([]policy.Partition, n, n+len(parts))
	if before != nil && !s.compiled.stale.all {
		copy(p.Partitions, before.Partitions[:n])
	} else {
		for i := range p.Partitions {
			p.Partitions[i] = s.ownMembers(s.written.policy.Partitions[i])
		}
		p.Trusted = slices.DeleteFunc(slices.Clone(p.Trusted), func(t policy.TrustedPorts) bool { return s.foreign(t.Selector) })
	}
	if before != nil && !s.compiled.stale.all {
		p.Trusted = before.Trusted
	}
	for _, k := range slices.Sorted(maps.Keys(parts)) {
		p.Partitions = append(p.Partitions, parts[k])
	}
	return &p
}

// replace is the policy with the lists that are stale put in the places of others.
func (s *State) replace() *policy.Policy {
	c := &s.compiled
	p := *c.policy
	p.Apart, p.Partitions = c.apart, slices.Clone(p.Partitions)
	own := p.Partitions[len(s.written.policy.Partitions):]
	for k := range c.stale.members {
		if i, found := slices.BinarySearchFunc(own, k, func(x policy.Partition, k ib.PKeyBase) int { return cmp.Compare(x.PKey, k) }); found {
			own[i] = c.parts[k]
		}
	}
	return &p
}

// build is Policy from nothing.
func (s *State) build() *policy.Policy {
	parts := map[ib.PKeyBase]policy.Partition{}
	for k, p := range s.partitions {
		parts[k] = s.policyPartition(p)
	}
	return s.assemble(parts, s.apart(), nil)
}

// ownMembers is a partition of the file without ports of tenants that it names. PutFile
// takes no such file; a base may be one.
func (s *State) ownMembers(p policy.Partition) policy.Partition {
	if slices.ContainsFunc(p.Members, func(m policy.Member) bool { return s.foreign(m.Selector) }) {
		p.Members = slices.DeleteFunc(slices.Clone(p.Members), func(m policy.Member) bool { return s.foreign(m.Selector) })
	}
	return p
}

// foreign reports whether a selector of the file names a port that is not the
// provider's.
func (s *State) foreign(x policy.Selector) bool {
	return x.GUID != 0 && x.Exact() && s.Owner(ib.PortGUID(x.GUID)) != Provider
}

// apart are the ports that are not the provider's, and those that the file sets
// apart.
func (s *State) apart() []policy.GUIDRange {
	ranges := make([]policy.GUIDRange, 0, len(s.ports)+len(s.pools))
	var own []ib.PortGUID
	for _, p := range s.pools {
		ranges = append(ranges, policy.GUIDRange{First: p.First, Last: p.Last})
	}
	for g, p := range s.ports {
		if p.Owner == Provider {
			own = append(own, g)
		} else {
			ranges = append(ranges, policy.GUIDRange{First: g, Last: g})
		}
	}
	ranges = policy.Apart(ranges, own)
	if stated := s.written.policy.Apart; len(stated) > 0 {
		ranges = policy.Apart(append(ranges, stated...), nil)
	}
	return ranges
}

// policyPartition is one partition of the API. Whom it names may be absent: a host
// is made a member before it is there.
func (s *State) policyPartition(p *Partition) policy.Partition {
	out := policy.Partition{Name: p.PolicyName(), PKey: p.PKey, SL: p.SL, MayBeAbsent: true, Immutable: true}
	if p.IPoIB {
		out.Multicast = []policy.MulticastGroup{{
			MGID: policy.Broadcast(policy.ScopeLink), QKey: policy.QKeyIPoIB, SL: p.SL,
			MTU: cmp.Or(p.MTU, policy.DefaultMTU), Rate: cmp.Or(p.Rate, policy.DefaultRate),
		}}
	}
	for _, m := range s.members[p.PKey] {
		if n, is := s.policyMember(m); is {
			out.Members = append(out.Members, n)
		}
	}
	slices.SortFunc(out.Members, func(a, b policy.Member) int { return cmp.Compare(a.GUID, b.GUID) })
	return out
}

// policyMember is a member that gets its key: both owners agreed to it, and are the
// owners still. An alias brings no key to a port of another tenant.
func (s *State) policyMember(m *Member) (policy.Member, bool) {
	if m == nil || !m.Agreed() {
		return policy.Member{}, false
	}
	p, port := s.partitions[m.PKey], s.written.port(m.Port)
	owner := s.Owner(m.Port)
	if p == nil || m.Owner != p.Owner || m.PortOwner != owner || owner == "" {
		return policy.Member{}, false
	}
	if port != m.Port {
		if of := s.Owner(port); of != owner && of != Provider {
			return policy.Member{}, false
		}
	}
	return policy.Member{Selector: s.selector(m.Port), Membership: m.Membership, Index0: m.Index0}, true
}

// selector selects a port: by its GUID, and at the place that it is bound to.
func (s *State) selector(g ib.PortGUID) policy.Selector {
	sel := policy.Selector{Kind: policy.SelectPort, GUID: uint64(g)}
	if p := s.ports[g]; p != nil && p.Switch != 0 {
		sel.Kind, sel.At = policy.SelectPlace, policy.Place{Switch: p.Switch, Port: p.SwitchPort}
	}
	return sel
}

// Export is the state as a policy file in YAML. On a store without tenants it makes
// the same members on the same fabric; applied to this one, it changes nothing. It
// says nothing of who owns what.
func (s *State) Export() []byte {
	p := *s.Policy()
	p.Partitions, p.Services = slices.Clone(p.Partitions), slices.Clone(p.Services)
	for i := range p.Services {
		p.Services[i].To = slices.Clone(p.Services[i].To)
	}
	if s.written.file == nil {
		policy.FillNumbers(&p, s.Allocated)
	}
	return policyfile.WriteYAML(&p)
}

// PolicyWith is the policy as it would be with a diff that Plan made for this state.
// It changes the state, and takes that back.
func (s *State) PolicyWith(d Diff) *policy.Policy {
	s.compile()
	c := &s.compiled
	kept, parts := *c, map[ib.PKeyBase]policy.Partition{}
	for _, e := range d.Edits {
		s.set(e)
	}
	if c.stale.all {
		c.parts = maps.Clone(c.parts)
	} else {
		for _, k := range c.stale.keys() {
			if part, is := c.parts[k]; is {
				parts[k] = part
			}
		}
	}
	changed := c.stale
	s.compile()
	p := c.policy
	for _, e := range slices.Backward(d.Edits) {
		s.set(Edit{Key: e.Key, Before: e.After, After: e.Before})
	}
	*c = kept
	if !changed.all {
		for _, k := range changed.keys() {
			delete(c.parts, k)
		}
		maps.Copy(c.parts, parts)
	}
	c.stale = stale{}
	return p
}

// keys are the partitions that are stale.
func (x *stale) keys() []ib.PKeyBase {
	return slices.AppendSeq(slices.Collect(maps.Keys(x.partitions)), maps.Keys(x.members))
}
