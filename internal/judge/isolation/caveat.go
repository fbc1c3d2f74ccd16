package isolation

import (
	"fmt"
)

// caveatKindsMax bounds how many kinds of limited members of one partition are
// compared with each other; of more it is taken that two of them may not talk.
const caveatKindsMax = 1024

// limitedMembers names the partitions that have limited members which may not
// talk to each other: only their own tables keep them apart. Members of one
// tenant, which may, are not meant.
func (p *prover) limitedMembers() []string {
	var caveat tally
	for i, part := range p.policy.parts {
		if c := p.policy.counts[i]; c.hosts > 0 && c.limited > 1 && p.policy.keepsApart(part) {
			caveat.add("only their own tables keep limited members of one partition apart, since a switch cannot tell a forged membership",
				fmt.Sprintf("%s (%s)", part.name, part.base))
		}
	}
	return caveat.lines("")
}

// kind is how many end ports are given the same, and how many of them are hosts.
type kind struct{ ports, hosts int }

// keepsApart reports whether two limited members of a partition, not both ports
// of switches, may not talk to each other over any partition.
func (p *policy) keepsApart(of part) bool {
	var limited []int32
	for _, g := range p.members[of.base].all {
		if p.live[g].ports > 0 && !p.sets.sets[g].covers(of.base.Full()) {
			limited = append(limited, g)
		}
	}
	if len(limited) > caveatKindsMax {
		return true
	}
	for i, g := range limited {
		a := p.live[g]
		p.ask(g)
		if a.ports > 1 && a.hosts > 0 && !p.may(g) {
			return true
		}
		for _, h := range limited[i+1:] {
			if a.hosts+p.live[h].hosts > 0 && !p.may(h) {
				return true
			}
		}
	}
	return false
}
