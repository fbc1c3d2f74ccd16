// Package verdict shows each caller of the API as much of a proof as concerns him.
package verdict

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// Proof is the verdict as a caller sees it.
type Proof struct {
	Verdict    string      `json:"verdict" doc:"of the fabric; for a tenant, the worst of the pairs that one of its partitions is in"`
	Holds      bool        `json:"holds" doc:"tenants are kept apart"`
	ReadAt     time.Time   `json:"read_at" doc:"when the fabric was read"`
	Reasons    []string    `json:"reasons" doc:"why it does not hold; for the provider"`
	Caveats    []string    `json:"caveats" doc:"what the verdict leaves to hosts; for the provider"`
	Violations []Violation `json:"violations" doc:"ports that can talk and may not, at most 100; a tenant sees those of his own ports"`
	Counts     ProofCounts `json:"counts"`
}

// ProofCounts is the size of what was judged and found.
type ProofCounts struct {
	EndPorts   int `json:"end_ports"`
	Partitions int `json:"partitions"`
	Pairs      int `json:"pairs"`
	Violations int `json:"violations"`
	Exposed    int `json:"exposed"`
	Unknown    int `json:"unknown"`
}

// Violation is two ports that can talk and may not.
type Violation struct {
	From string `json:"from,omitempty" doc:"a tenant is told of his own port alone"`
	To   string `json:"to,omitempty" doc:"a tenant is told of his own port alone"`
	PKey string `json:"pkey"`
	Note string `json:"note,omitempty" doc:"what stops the packets today"`
}

// Pair is the verdict on two partitions.
type Pair struct {
	A       string `json:"a"`
	B       string `json:"b" doc:"for a tenant, others: that is every partition that it does not see"`
	PKeyA   string `json:"pkey_a"`
	PKeyB   string `json:"pkey_b,omitempty"`
	Verdict string `json:"verdict"`
	Joined  bool   `json:"joined" doc:"the policy itself joins the two"`
	Reason  string `json:"reason,omitempty"`
}

// violationsMost bounds the violations that are listed.
const violationsMost = 100

// ProofOf is a proof, made at a time, as a caller sees it: the provider all of it, a tenant
// his part.
func ProofOf(s *resource.State, c resource.Caller, p *isolation.Proof, at time.Time) Proof {
	out := Proof{ReadAt: at, Reasons: []string{}, Caveats: []string{}, Violations: []Violation{}}
	if c.IsProvider() {
		out.Verdict, out.Holds = p.Verdict.String(), p.Verdict.Holds()
		out.Reasons, out.Caveats = append(out.Reasons, p.Reasons...), append(out.Caveats, p.Caveats...)
		pairs := p.Counts.Pairs
		out.Counts = ProofCounts{
			p.Counts.EndPorts, p.Counts.Partitions, pairs.Isolated + pairs.ByEndPorts + pairs.Unknown + pairs.Violated,
			p.Counts.Violations, p.Counts.Exposed, p.Counts.Unknown,
		}
	}
	worst, part := isolation.Isolated, partIn(s, c)
	for _, pair := range p.Pairs {
		own := part(pair.PKeyA) || part(pair.PKeyB)
		if c.IsProvider() || !own {
			continue
		}
		out.Counts.Pairs++
		worst = worse(worst, pair.Verdict)
	}
	for _, v := range p.Violations {
		from, to := s.SightOf(c, v.From) == resource.SightWhole, s.SightOf(c, v.To) == resource.SightWhole
		if !from && !to {
			continue
		}
		if !c.IsProvider() {
			worst = worse(worst, isolation.Violated)
			out.Counts.Violations++
		}
		if len(out.Violations) == violationsMost {
			continue
		}
		x := Violation{PKey: v.PKey.String(), Note: v.Note}
		if from {
			x.From = v.From.String()
		}
		if to {
			x.To = v.To.String()
		}
		out.Violations = append(out.Violations, x)
	}
	if !c.IsProvider() {
		// What the fabric lacks, the proof of a tenant lacks too; a violation between
		// others is theirs.
		if p.Verdict != isolation.Violated {
			worst = worse(worst, p.Verdict)
		}
		out.Verdict, out.Holds = worst.String(), worst.Holds()
		out.Counts.Partitions = len(s.Partitions(c.Tenant))
	}
	return out
}

// partIn reports of partitions whether a caller takes part in them.
func partIn(s *resource.State, c resource.Caller) func(ib.PKeyBase) bool {
	known := map[ib.PKeyBase]bool{} // a partition has many members, and is in many pairs
	return func(k ib.PKeyBase) bool {
		is, looked := known[k]
		if !looked {
			is = s.TakesPart(c, k)
			known[k] = is
		}
		return is
	}
}

// worse is the worse of two verdicts; 0 is unknown.
func worse(a, b isolation.Verdict) isolation.Verdict {
	known := func(v isolation.Verdict) isolation.Verdict {
		if v == 0 {
			return isolation.Unknown
		}
		return v
	}
	return max(known(a), known(b))
}

// PairsOf are the pairs that a caller sees. Those of one partition of a tenant and the
// partitions that it does not see are one pair with the worst verdict of them.
func PairsOf(s *resource.State, c resource.Caller, p *isolation.Proof) []Pair {
	out := []Pair{}
	others := map[string]int{} // index in out
	verdicts, part := map[string]isolation.Verdict{}, partIn(s, c)
	for _, x := range p.Pairs {
		seesA, seesB := part(x.PKeyA), part(x.PKeyB)
		switch {
		case c.IsProvider() || seesA && seesB:
			out = append(out, Pair{x.A, x.B, x.PKeyA.String(), x.PKeyB.String(), x.Verdict.String(), x.Joined, x.Reason})
		case seesA || seesB:
			name, key := x.A, x.PKeyA.String()
			if seesB {
				name, key = x.B, x.PKeyB.String()
			}
			i, known := others[key]
			if !known {
				i = len(out)
				others[key] = i
				verdicts[key] = x.Verdict
				out = append(out, Pair{A: name, B: "others", PKeyA: key, Verdict: x.Verdict.String()})
			}
			verdicts[key] = worse(verdicts[key], x.Verdict)
			out[i].Verdict = verdicts[key].String()
		}
	}
	return out
}
