package facts

import (
	"bytes"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/group"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// Partitions are the partitions of a resolved policy as plain sets.
func Partitions(r *policy.Resolution) []observed.Partition {
	out := make([]observed.Partition, 0, len(r.Partitions))
	for _, x := range r.Partitions {
		out = append(out, observed.Partition{Name: x.Name, Base: x.Base, Full: x.Full, Limited: x.Limited, SL: x.SL})
	}
	return out
}

// Groups are the multicast groups of a resolved policy, by MGID; lifetime is that
// of their packets.
func Groups(r *policy.Resolution, lifetime ib.TimeValue) (out []group.Group) {
	for _, x := range r.Partitions {
		for _, g := range x.Multicast {
			out = append(out, groupOf(g, x.Base, lifetime))
		}
	}
	slices.SortFunc(out, func(a, b group.Group) int { return bytes.Compare(a.MGID[:], b.MGID[:]) })
	return out
}

// hopLimitFar is the hop limit of groups that reach beyond the subnet.
const hopLimitFar = 255

// groupOf is a group of the policy as hosts get to know it.
func groupOf(g policy.MulticastGroup, base ib.PKeyBase, lifetime ib.TimeValue) group.Group {
	out := group.Group{
		MGID: g.AddressIn(base), Partition: base,
		Settings: group.Settings{
			QKey: g.QKey, MTU: g.MTU, Rate: g.Rate, Lifetime: lifetime,
			SL: g.SL, TClass: g.TClass, FlowLabel: g.FlowLabel,
		},
	}
	if group.ScopeOf(out.MGID) != sa.ScopeLinkLocal {
		out.HopLimit = hopLimitFar
	}
	return out
}

// Judged are groups as a proof wants to know them.
func Judged(groups []*group.Group) []isolation.Group {
	out := make([]isolation.Group, 0, len(groups))
	for _, g := range groups {
		x := isolation.Group{MLID: g.MLID, Base: g.Partition}
		for _, m := range g.Members {
			if m.Receives() {
				x.Receivers = append(x.Receivers, m.Port)
			}
		}
		out = append(out, x)
	}
	return out
}
