package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
)

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
