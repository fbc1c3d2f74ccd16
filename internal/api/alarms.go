package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/judge/audit"
	"github.com/ibwarden/ibwarden/internal/resource"
)

func (a *api) alarms() {
	type input struct {
		PageParams
		Audit bool `query:"audit" doc:"with what an audit finds that is high or critical; for the provider: a tenant gets none of it"`
	}
	register(a, operation(http.MethodGet, "/alarms", "list-alarms", "What is wrong now and whom it concerns, the worst first: as far as the caller sees it"),
		func(ctx context.Context, in *input) (*Output[List[views.Alarm]], error) {
			facts, err := a.factsFor(ctx)
			if err != nil {
				return nil, err
			}
			proof, allowed, at, err := a.proof(ctx)
			if err != nil {
				return nil, err
			}
			caller := callerOf(ctx)
			var differences []views.Difference
			var found []audit.Finding
			if provider(ctx) == nil {
				differences, _ = a.maps.Differences(facts)
				if in.Audit {
					report, err := a.report(ctx, "basic", false)
					if err != nil {
						return nil, err
					}
					found = report.Findings
				}
			}
			type numbered struct {
				views.Alarm
				n int
			}
			return readList(ctx, a, in.PageParams, func(s *resource.State) (list []numbered) {
				p := views.ProofOf(s, caller, proof, allowed, at)
				for i, x := range views.AlarmsOf(s, caller, facts.Snapshot.Fabric, &p, differences, found) {
					list = append(list, numbered{x, i})
				}
				return list
			}, func(x numbered) string { return fmt.Sprintf("%09d", x.n) },
				func(*resource.State, numbered) bool { return true }, func(_ *resource.State, x numbered) views.Alarm { return x.Alarm })
		})
}
