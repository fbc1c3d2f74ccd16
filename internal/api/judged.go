package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/judge/audit"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// Judge answers questions about isolation, each with the time at which the fabric was
// read that the answer is about.
type Judge interface {
	// Proof is the verdict on the fabric.
	Proof(ctx context.Context) (*isolation.Proof, time.Time, error)
	// Checked is since when every table that isolates was read back, and was as it was proved; nil
	// where that was not so yet.
	Checked(ctx context.Context) *time.Time
	// Allowed are the partitions of the policy as they were resolved for the proof.
	Allowed(ctx context.Context) ([]observed.Partition, error)
	// Multicast is the verdict on the multicast forwarding tables.
	Multicast(ctx context.Context) (*isolation.Multicast, time.Time, error)
	// Audit holds the fabric against the catalogue of weaknesses. With read, what only an
	// audit looks at is read first, where it was not.
	Audit(ctx context.Context, p audit.Profile, read bool) (*audit.Report, time.Time, error)
	// Past is how the verdict changed, the newest change first.
	Past(ctx context.Context) ([]views.Change, error)
}

func (a *api) judged() {
	a.audits()
	a.certificates()
	type none struct{}
	register(a, operation(http.MethodGet, "/proof", "get-proof", "Whether tenants are kept apart, from what was read of the fabric"),
		func(ctx context.Context, _ *none) (*Output[Single[views.Proof]], error) {
			proof, allowed, at, err := a.proof(ctx)
			if err != nil {
				return nil, err
			}
			caller, checked := callerOf(ctx), a.options.Judge.Checked(ctx)
			return readOne(ctx, a, "", func(s *resource.State) (views.Proof, uint64, error) {
				p := views.ProofOf(s, caller, proof, allowed, at)
				p.CheckedAt = checked
				return p, s.Last(), nil
			})
		})
	type pairsInput struct {
		PageParams
		PKey    PKey   `query:"pkey" doc:"those with this partition"`
		Verdict string `query:"verdict" maxLength:"40" doc:"those with this verdict"`
	}
	register(a, operation(http.MethodGet, "/proof/pairs", "list-pairs", "The verdict on each pair of partitions, of those that the caller sees"),
		func(ctx context.Context, in *pairsInput) (*Output[List[views.Pair]], error) {
			proof, allowed, _, err := a.proof(ctx)
			if err != nil {
				return nil, err
			}
			caller := callerOf(ctx)
			key := func(p views.Pair) string { return p.PKeyA + "/" + p.PKeyB }
			return readList(ctx, a, in.PageParams, func(s *resource.State) []views.Pair {
				return sortedBy(views.PairsOf(s, caller, proof, allowed), key)
			}, key,
				func(_ *resource.State, p views.Pair) bool {
					return (in.PKey == "" || p.PKeyA == string(in.PKey) || p.PKeyB == string(in.PKey)) && (in.Verdict == "" || p.Verdict == in.Verdict)
				}, func(_ *resource.State, p views.Pair) views.Pair { return p })
		})
	type pastInput struct{ PageParams }
	register(a, operation(http.MethodGet, "/proof/history", "list-verdicts", "How the verdict on the fabric changed since the service started, the newest first: the last 1,000; for the provider"),
		func(ctx context.Context, in *pastInput) (*Output[List[views.Change]], error) {
			if err := provider(ctx); err != nil {
				return nil, err
			}
			past, err := a.options.Judge.Past(ctx)
			if err != nil {
				return nil, unjudged(err)
			}
			return fabricList(ctx, a, in.PageParams, past, views.ChangeKey, func(c views.Change) views.Change { return c })
		})
	type groupsInput struct{ PageParams }
	register(a, operation(http.MethodGet, "/multicast-groups", "list-multicast-groups", "Multicast LIDs and how far the tables lead them; for the provider"),
		func(ctx context.Context, in *groupsInput) (*Output[List[views.MulticastGroup]], error) {
			return a.groups(ctx, in.PageParams)
		})
}

// proof is the last proof, the partitions that it was made with, and when the fabric was read.
func (a *api) proof(ctx context.Context) (*isolation.Proof, []observed.Partition, time.Time, error) {
	proof, at, err := a.options.Judge.Proof(ctx)
	if err != nil {
		return nil, nil, at, unjudged(err)
	}
	allowed, err := a.options.Judge.Allowed(ctx)
	if err != nil {
		return nil, nil, at, unjudged(err)
	}
	return proof, allowed, at, nil
}

// audits is what an audit of the fabric finds, as findings and as checks.
func (a *api) audits() {
	type findingsInput struct {
		PageParams
		Profile  string `query:"profile" enum:"basic,tenant,strict" default:"basic" doc:"how far the audit goes"`
		Read     bool   `query:"read" doc:"read first what only an audit looks at, where the manager has not; else that is unknown"`
		Severity string `query:"severity" enum:"unknown,low,medium,high,critical" doc:"those of this severity"`
	}
	register(a, operation(http.MethodGet, "/audit", "list-findings", "What an audit of the fabric finds; for the provider"),
		func(ctx context.Context, in *findingsInput) (*Output[List[views.Finding]], error) {
			return a.findings(ctx, in.PageParams, in.Profile, in.Severity, in.Read)
		})
	type checksInput struct {
		PageParams
		Profile string `query:"profile" enum:"basic,tenant,strict" default:"basic" doc:"how far the audit goes"`
		Read    bool   `query:"read" doc:"read first what only an audit looks at, where the manager has not; else that is unknown"`
	}
	register(a, operation(http.MethodGet, "/audit/checks", "list-checks", "Every check of the audit, and what came of it; for the provider"),
		func(ctx context.Context, in *checksInput) (*Output[List[views.AuditCheck]], error) {
			report, err := a.report(ctx, in.Profile, in.Read)
			if err != nil {
				return nil, err
			}
			return fabricList(ctx, a, in.PageParams, views.AuditChecks(report), views.CheckKey, func(c views.AuditCheck) views.AuditCheck { return c })
		})
}

// unjudged is the answer when there is nothing to judge yet.
func unjudged(err error) error {
	return problem(http.StatusServiceUnavailable, reasonManager, err.Error()).RetryAfter(storeAfter)
}

// report is what an audit of the fabric finds, for the provider.
func (a *api) report(ctx context.Context, profile string, read bool) (*audit.Report, error) {
	if err := provider(ctx); err != nil {
		return nil, err
	}
	parsed, err := audit.ParseProfile(profile)
	if err != nil {
		return nil, fault(http.StatusUnprocessableEntity, "invalid", "query.profile", err.Error())
	}
	report, _, err := a.options.Judge.Audit(ctx, parsed, read)
	if err != nil {
		return nil, unjudged(err)
	}
	return report, nil
}

func (a *api) findings(ctx context.Context, p PageParams, profile, severity string, read bool) (*Output[List[views.Finding]], error) {
	report, err := a.report(ctx, profile, read)
	if err != nil {
		return nil, err
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
	return fabricList(ctx, a, p, all, func(f numbered) string { return fmt.Sprintf("%09d", f.n) }, func(f numbered) views.Finding { return views.FindingOf(f.Finding) })
}

func (a *api) groups(ctx context.Context, p PageParams) (*Output[List[views.MulticastGroup]], error) {
	if err := provider(ctx); err != nil {
		return nil, err
	}
	m, _, err := a.options.Judge.Multicast(ctx)
	if err != nil {
		return nil, unjudged(err)
	}
	if m == nil {
		return nil, unjudged(errors.New("multicast forwarding tables are left alone here, and were not read"))
	}
	key := func(s isolation.Spread) string { return fmt.Sprintf("%04x", uint16(s.MLID)) }
	return fabricList(ctx, a, p, sortedBy(m.Spreads, key), key, views.MulticastGroupOf)
}
