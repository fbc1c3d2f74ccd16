package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/ibwarden/ibwarden/internal/judge/audit"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// Judge answers questions about isolation, each with the time at which the fabric was
// read that the answer is about.
type Judge interface {
	// Proof is the verdict on the fabric.
	Proof(ctx context.Context) (*isolation.Proof, time.Time, error)
	// Multicast is the verdict on the multicast forwarding tables.
	Multicast(ctx context.Context) (*isolation.Multicast, time.Time, error)
	// Audit holds the fabric against the catalogue of weaknesses.
	Audit(ctx context.Context, p audit.Profile) (*audit.Report, time.Time, error)
}

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

// Finding is something that the audit found.
type Finding struct {
	Check    string `json:"check"`
	Number   int    `json:"number"`
	Severity string `json:"severity" enum:"unknown,low,medium,high,critical"`
	Where    string `json:"where"`
	Read     string `json:"read"`
	Advice   string `json:"advice"`
}

// MulticastGroup is a multicast LID and where the tables lead it.
type MulticastGroup struct {
	MLID    string   `json:"mlid"`
	Verdict string   `json:"verdict"`
	Ports   int      `json:"ports" doc:"how many end ports the tables lead to"`
	Within  []string `json:"partitions" doc:"those that hold all of these ports"`
	Reason  string   `json:"reason,omitempty"`
}

func (a *api) judged() {
	type none struct{}
	register(a, operation(http.MethodGet, "/proof", "get-proof", "Whether tenants are kept apart, from what was read of the fabric"),
		func(ctx context.Context, _ *none) (*Output[Single[Proof]], error) {
			proof, at, err := a.options.Judge.Proof(ctx)
			if err != nil {
				return nil, unjudged(err)
			}
			caller := callerOf(ctx)
			return readOne(a, "", func(s *resource.State) (Proof, uint64, error) {
				return proofOf(s, caller, proof, at), s.Last(), nil
			})
		})
	type pairsInput struct {
		PageParams
		PKey    PKey   `query:"pkey" doc:"those with this partition"`
		Verdict string `query:"verdict" maxLength:"40" doc:"those with this verdict"`
	}
	register(a, operation(http.MethodGet, "/proof/pairs", "list-pairs", "The verdict on each pair of partitions, of those that the caller sees"),
		func(ctx context.Context, in *pairsInput) (*Output[List[Pair]], error) {
			proof, _, err := a.options.Judge.Proof(ctx)
			if err != nil {
				return nil, unjudged(err)
			}
			caller := callerOf(ctx)
			key := func(p Pair) string { return p.PKeyA + "/" + p.PKeyB }
			return readList(a, in.PageParams, func(s *resource.State) []Pair { return sortedBy(pairsOf(s, caller, proof), key) }, key,
				func(_ *resource.State, p Pair) bool {
					return (in.PKey == "" || p.PKeyA == string(in.PKey) || p.PKeyB == string(in.PKey)) && (in.Verdict == "" || p.Verdict == in.Verdict)
				}, func(_ *resource.State, p Pair) Pair { return p })
		})
	type findingsInput struct {
		PageParams
		Profile  string `query:"profile" enum:"basic,tenant,strict" default:"basic" doc:"how far the audit goes"`
		Severity string `query:"severity" enum:"unknown,low,medium,high,critical" doc:"those of this severity"`
	}
	register(a, operation(http.MethodGet, "/audit", "list-findings", "What an audit of the fabric finds; for the provider"),
		func(ctx context.Context, in *findingsInput) (*Output[List[Finding]], error) {
			return a.findings(ctx, in.PageParams, in.Profile, in.Severity)
		})
	type groupsInput struct{ PageParams }
	register(a, operation(http.MethodGet, "/multicast-groups", "list-multicast-groups", "Multicast LIDs and how far the tables lead them; for the provider"),
		func(ctx context.Context, in *groupsInput) (*Output[List[MulticastGroup]], error) {
			return a.groups(ctx, in.PageParams)
		})
}

// unjudged is the answer when there is nothing to judge yet.
func unjudged(err error) error {
	return problem(http.StatusServiceUnavailable, reasonManager, err.Error()).retryAfter(storeAfter)
}

func proofOf(s *resource.State, c resource.Caller, p *isolation.Proof, at time.Time) Proof {
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
	worst := isolation.Isolated
	for _, pair := range p.Pairs {
		own := s.Sees(c, pair.PKeyA) || s.Sees(c, pair.PKeyB)
		if c.IsProvider() || !own {
			continue
		}
		out.Counts.Pairs++
		worst = worse(worst, pair.Verdict)
	}
	for _, v := range p.Violations {
		from, to := s.Owner(v.From) == c.Tenant, s.Owner(v.To) == c.Tenant
		if !c.IsProvider() && !from && !to {
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
		if c.IsProvider() || from {
			x.From = v.From.String()
		}
		if c.IsProvider() || to {
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

// pairsOf are the pairs that a caller sees. Those of one partition of a tenant and the
// partitions that it does not see are one pair with the worst verdict of them.
func pairsOf(s *resource.State, c resource.Caller, p *isolation.Proof) []Pair {
	out := []Pair{}
	others := map[string]int{} // index in out
	verdicts := map[string]isolation.Verdict{}
	for _, x := range p.Pairs {
		seesA, seesB := s.Sees(c, x.PKeyA), s.Sees(c, x.PKeyB)
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

func (a *api) findings(ctx context.Context, p PageParams, profile, severity string) (*Output[List[Finding]], error) {
	if err := provider(ctx); err != nil {
		return nil, err
	}
	parsed, err := audit.ParseProfile(profile)
	if err != nil {
		return nil, fault(http.StatusUnprocessableEntity, "invalid", "query.profile", err.Error())
	}
	report, _, err := a.options.Judge.Audit(ctx, parsed)
	if err != nil {
		return nil, unjudged(err)
	}
	type numbered struct {
		n int
		audit.Finding
	}
	all := make([]numbered, 0, len(report.Findings))
	for i, f := range report.Findings {
		if severity == "" || f.Severity.String() == severity {
			all = append(all, numbered{i, f})
		}
	}
	return fabricList(a, p, all, func(f numbered) string { return fmt.Sprintf("%09d", f.n) }, func(f numbered) Finding {
		return Finding{f.Check, f.Number, f.Severity.String(), f.Where, f.Read, f.Advice}
	})
}

func (a *api) groups(ctx context.Context, p PageParams) (*Output[List[MulticastGroup]], error) {
	if err := provider(ctx); err != nil {
		return nil, err
	}
	m, _, err := a.options.Judge.Multicast(ctx)
	if err != nil {
		return nil, unjudged(err)
	}
	key := func(s isolation.Spread) string { return fmt.Sprintf("%04x", uint16(s.MLID)) }
	return fabricList(a, p, sortedBy(m.Spreads, key), key, func(s isolation.Spread) MulticastGroup {
		return MulticastGroup{"0x" + key(s), s.Verdict.String(), s.Ports, append([]string{}, s.Partitions...), s.Reason}
	})
}
