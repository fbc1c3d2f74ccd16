package resource

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
)

// parse reads the text of the file.
func (f *File) parse() (*policy.Policy, error) {
	return policyfile.Read([]byte(f.Text), f.Name, policyfile.Options{AllowBoth: f.AllowBoth})
}

// PolicyName is what a partition is called in a policy: NAME for one of the
// provider, else OWNER/NAME.
func (p *Partition) PolicyName() string {
	if p.Owner == Provider {
		return p.Name
	}
	return p.Owner + "/" + p.Name
}

// written is the policy of the file, or the base.
func (s *State) written() *policy.Policy {
	if s.policy != nil {
		return s.policy
	}
	return s.base
}

// Policy is the policy that the state asks for: that of the file, or the base where no
// file was applied, with the partitions of the API after it. Only members that both
// owners agreed to are in it.
func (s *State) Policy() *policy.Policy {
	base := s.written()
	p := *base
	p.Partitions = make([]policy.Partition, len(base.Partitions), len(base.Partitions)+len(s.partitions))
	copy(p.Partitions, base.Partitions)
	for _, k := range slices.Sorted(maps.Keys(s.partitions)) {
		p.Partitions = append(p.Partitions, s.policyPartition(s.partitions[k]))
	}
	return &p
}

// policyPartition is one partition of the API. Whom it names may be absent: a host
// is made a member before it is there.
func (s *State) policyPartition(p *Partition) policy.Partition {
	out := policy.Partition{Name: p.PolicyName(), PKey: p.PKey, SL: p.SL, MayBeAbsent: true}
	if p.IPoIB {
		out.Multicast = []policy.MulticastGroup{{
			MGID: policy.Broadcast(policy.ScopeLink), QKey: policy.QKeyIPoIB, SL: p.SL,
			MTU: cmp.Or(p.MTU, policy.DefaultMTU), Rate: cmp.Or(p.Rate, policy.DefaultRate),
		}}
	}
	for _, m := range s.members[p.PKey] {
		if m.Agreed() {
			out.Members = append(out.Members, policy.Member{Selector: s.selector(m.Port), Membership: m.Membership, Index0: m.Index0})
		}
	}
	slices.SortFunc(out.Members, func(a, b policy.Member) int { return cmp.Compare(a.GUID, b.GUID) })
	return out
}

// selector selects a port: by its GUID, and at the place that it is bound to.
func (s *State) selector(g ib.PortGUID) policy.Selector {
	sel := policy.Selector{Kind: policy.SelectPort, GUID: uint64(g)}
	if p := s.ports[g]; p != nil && p.Switch != 0 {
		sel.Kind, sel.At = policy.SelectPlace, policy.Place{Switch: p.Switch, Port: p.SwitchPort}
	}
	return sel
}

// Claimed is the name of the partition of the file that has a number.
func (s *State) Claimed(k ib.PKeyBase) (string, bool) {
	for _, p := range s.written().Partitions {
		if p.PKey == k || p.PKey == 0 && s.Allocated[p.Name] == k {
			return p.Name, true
		}
	}
	return "", false
}

// PolicyWith is the policy as it would be with a diff that Plan made for this state.
func (s *State) PolicyWith(d Diff) *policy.Policy {
	for _, e := range d.Edits {
		s.set(e)
	}
	p := s.Policy()
	for _, e := range slices.Backward(d.Edits) {
		s.set(Edit{Key: e.Key, Before: e.After, After: e.Before})
	}
	return p
}
