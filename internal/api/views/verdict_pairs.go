package views

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// Pair is the verdict on two partitions.
type Pair struct {
	A       string `json:"a"`
	B       string `json:"b" doc:"for a tenant, others: that is every partition that it does not see"`
	PKeyA   string `json:"pkey_a"`
	PKeyB   string `json:"pkey_b,omitempty"`
	Verdict string `json:"verdict"`
	Joined  bool   `json:"joined" doc:"the policy itself joins the two; for a tenant, a port of its own is in both"`
	Reason  string `json:"reason,omitempty" doc:"for the provider"`
}

// others is what a tenant is told of all partitions that it does not see.
const others = "others"

// PairsOf are the pairs that a caller sees, of the partitions that the policy allows. For a
// tenant these are the pairs of partitions that it sees, and each of these with all that it does
// not see: how many others have makes no difference.
func PairsOf(s *resource.State, c resource.Caller, p *isolation.Proof, allowed []observed.Partition) []Pair {
	out := []Pair{}
	if c.IsProvider() {
		for _, x := range p.Pairs {
			out = append(out, Pair{x.A, x.B, x.PKeyA.String(), x.PKeyB.String(), x.Verdict.String(), x.Joined, x.Reason})
		}
		return out
	}
	t := tenantOf(s, c, p)
	seen, concerns := t.judged(allowed), t.concerns()
	found := t.pairVerdicts(seen)
	for i, a := range seen {
		for j := i + 1; j <= len(seen); j++ { // the last are all others
			x := Pair{A: a.Name, B: others, PKeyA: a.PKey.String()}
			k := ib.PKeyBase(0)
			if j < len(seen) {
				k = seen[j].PKey
				x.B, x.PKeyB, x.Joined = seen[j].Name, k.String(), t.inBoth(a.PKey, k)
			}
			v := t.onPair(found, concerns, a.PKey, k)
			if len(seen) > isolation.MaxPartitionsListed && v == isolation.Isolated {
				continue // verdictAs in the proof
			}
			x.Verdict = v.String()
			out = append(out, x)
		}
	}
	return out
}

// judged are the partitions that the tenant takes part in, as far as the proof was made with them.
func (t *tenant) judged(allowed []observed.Partition) []*resource.Partition {
	of := make(map[ib.PKeyBase]bool, len(allowed))
	for _, a := range allowed {
		of[a.Base] = true
	}
	return slices.DeleteFunc(t.s.Visible(t.c), func(x *resource.Partition) bool { return !of[x.PKey] || !t.s.TakesPart(t.c, x.PKey) })
}

// pairVerdicts are the verdicts that the proof lists on pairs of partitions that the tenant
// sees, and the worst on each of these with any that it does not see, which is 0.
func (t *tenant) pairVerdicts(seen []*resource.Partition) map[[2]ib.PKeyBase]isolation.Verdict {
	of := make(map[ib.PKeyBase]bool, len(seen))
	for _, x := range seen {
		of[x.PKey] = true
	}
	out := map[[2]ib.PKeyBase]isolation.Verdict{}
	for _, x := range t.p.Pairs {
		pair := [2]ib.PKeyBase{x.PKeyA, x.PKeyB}
		for i, k := range pair {
			if !of[k] {
				pair[i] = 0
			}
		}
		if pair[0] == 0 {
			pair[0], pair[1] = pair[1], pair[0]
		}
		out[pair] = max(out[pair], cmp.Or(x.Verdict, isolation.Unknown))
	}
	return out
}

// concerns says of partitions how bad it is what concerns the tenant there: on its own ports
// among their members, and over the keys of its own.
func (t *tenant) concerns() map[ib.PKeyBase]isolation.Verdict {
	out := maps.Clone(t.partitions)
	for g, v := range t.ports {
		for _, k := range t.s.In(g) {
			out[k] = max(out[k], v)
		}
	}
	return out
}

// onPair is the verdict on a pair of partitions, or with b 0 on one and all that the tenant does
// not see. What others can do to each other is left out.
func (t *tenant) onPair(found map[[2]ib.PKeyBase]isolation.Verdict, concerns map[ib.PKeyBase]isolation.Verdict, a, b ib.PKeyBase) isolation.Verdict {
	v, listed := found[[2]ib.PKeyBase{a, b}]
	if !listed && t.cut() {
		return isolation.Unknown
	}
	worst := max(t.p.Common(), concerns[a], concerns[b])
	if v = min(v, worst); v <= isolation.Unguarded { // pairs are never unguarded
		return isolation.Isolated
	}
	return v
}

// cut reports whether a pair which the proof does not list may be worse than isolated: there were
// too many to list, or the proof is too old.
func (t *tenant) cut() bool {
	return len(t.p.Pairs) >= isolation.MaxPairs || t.p.Counts.Pairs.Isolated == 0 && len(t.p.Pairs) > 0
}

// inBoth reports whether a port of the tenant's is a member of both partitions.
func (t *tenant) inBoth(a, b ib.PKeyBase) bool {
	return slices.ContainsFunc(t.s.Members(a), func(m *resource.Member) bool {
		other := t.s.Member(b, m.Port)
		return t.owns(m.Port) && m.Agreed() && other != nil && other.Agreed()
	})
}
