package desired

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed/group"
)

// Lead wants multicast forwarding tables that lead to the members of groups, as
// far as the policy allows them; nil leaves the tables as they are. Nothing else of
// the result changes.
func (r *Result) Lead(groups []*group.Group) error {
	r.in.Groups = groups
	tables, err := r.trees(r.Routes)
	if err == nil && tables != nil {
		r.enterTrees(tables)
	}
	return err
}

// trees are the multicast forwarding tables beside unicast routes; nil when they are left as
// they are.
func (r *Result) trees(x *Routes) (*MulticastTables, error) {
	if r.in.Groups == nil {
		return nil, nil
	}
	allowed := make(PartitionMembers, len(r.Resolution.Partitions))
	for _, p := range r.Resolution.Partitions {
		allowed.Add(p.Base, p.Full, p.Limited)
	}
	return ComputeMulticast(MulticastInput{Fabric: r.in.Fabric, Groups: r.in.Groups, Allowed: allowed.Allow, Idle: x.idle(), Order: x.GroupOrder()})
}

// concerns reports whether a port is a member of a group.
func concerns(groups []*group.Group, port ib.PortGUID) bool {
	return slices.ContainsFunc(groups, func(x *group.Group) bool {
		return slices.ContainsFunc(x.Members, func(m group.Member) bool { return m.Port == port })
	})
}
