package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/verdict"
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
		func(ctx context.Context, _ *none) (*Output[Single[verdict.Proof]], error) {
			proof, at, err := a.options.Judge.Proof(ctx)
			if err != nil {
				return nil, unjudged(err)
			}
			caller := callerOf(ctx)
			return readOne(a, "", func(s *resource.State) (verdict.Proof, uint64, error) {
				return verdict.ProofOf(s, caller, proof, at), s.Last(), nil
			})
		})
	type pairsInput struct {
		PageParams
		PKey    PKey   `query:"pkey" doc:"those with this partition"`
		Verdict string `query:"verdict" maxLength:"40" doc:"those with this verdict"`
	}
	register(a, operation(http.MethodGet, "/proof/pairs", "list-pairs", "The verdict on each pair of partitions, of those that the caller sees"),
		func(ctx context.Context, in *pairsInput) (*Output[List[verdict.Pair]], error) {
			proof, _, err := a.options.Judge.Proof(ctx)
			if err != nil {
				return nil, unjudged(err)
			}
			caller := callerOf(ctx)
			key := func(p verdict.Pair) string { return p.PKeyA + "/" + p.PKeyB }
			return readList(a, in.PageParams, func(s *resource.State) []verdict.Pair { return sortedBy(verdict.PairsOf(s, caller, proof), key) }, key,
				func(_ *resource.State, p verdict.Pair) bool {
					return (in.PKey == "" || p.PKeyA == string(in.PKey) || p.PKeyB == string(in.PKey)) && (in.Verdict == "" || p.Verdict == in.Verdict)
				}, func(_ *resource.State, p verdict.Pair) verdict.Pair { return p })
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
