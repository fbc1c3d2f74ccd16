package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
)

// GivesLess reports whether the second policy takes something that the first gives.
func GivesLess(a, b *Policy) bool {
	if a.Default != b.Default && (a.Default == Full || b.Default == None) {
		return true
	}
	after := map[string]map[Selector]Membership{}
	for i := range b.Partitions {
		x := &b.Partitions[i]
		after[x.Name] = map[Selector]Membership{}
		for _, m := range x.Members {
			after[x.Name][m.Selector] = m.Membership
		}
	}
	for i := range a.Partitions {
		x := &a.Partitions[i]
		if after[x.Name] == nil {
			return true
		}
		for _, m := range x.Members {
			if after[x.Name][m.Selector] < m.Membership {
				return true
			}
		}
	}
	return !slices.EqualFunc(a.Groups, b.Groups, func(x, y Group) bool {
		return x.Name == y.Name && slices.Equal(x.Selectors, y.Selectors)
	})
}

// EachNamed goes through the ports that a policy names by GUID.
func EachNamed(p *Policy, yield func(g ib.PortGUID, where string, at Pos)) {
	each := func(s Selector, at Pos, where string, name string) {
		if s.GUID != 0 && s.Exact() {
			yield(ib.PortGUID(s.GUID), strings.TrimSuffix(fmt.Sprintf("%s %q", where, name), ` ""`), at)
		}
	}
	for i := range p.Groups {
		for n, s := range p.Groups[i].Selectors {
			at := p.Groups[i].Pos
			if n < len(p.Groups[i].At) {
				at = p.Groups[i].At[n]
			}
			each(s, at, "group", p.Groups[i].Name)
		}
	}
	for _, t := range p.Trusted {
		each(t.Selector, t.Pos, "trusted", "")
	}
	for i := range p.Partitions {
		for _, m := range p.Partitions[i].Members {
			each(m.Selector, m.Pos, "partition", p.Partitions[i].Name)
		}
	}
}

// SamePartition reports whether two partitions say the same, wherever it stands.
func SamePartition(a *Partition, b Partition) bool {
	members := map[Selector]Member{}
	for _, m := range b.Members {
		m.Pos = Pos{}
		members[m.Selector] = m
	}
	for _, m := range a.Members {
		m.Pos = Pos{}
		if members[m.Selector] != m {
			return false
		}
	}
	return a.Name == b.Name && a.PKey == b.PKey && a.SL == b.SL && a.RateLimit == b.RateLimit && len(a.ServiceLevels)+len(b.ServiceLevels) == 0 && a.MayBeAbsent == b.MayBeAbsent && len(a.Members) == len(b.Members) &&
		slices.EqualFunc(a.Multicast, b.Multicast, func(x, y MulticastGroup) bool {
			x.Pos, y.Pos = Pos{}, Pos{}
			return x == y
		})
}
