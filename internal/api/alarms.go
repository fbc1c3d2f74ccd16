package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/judge/audit"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
)

// AcknowledgeBody acknowledges an alarm.
type AcknowledgeBody struct {
	Alarm string    `json:"alarm" minLength:"1" maxLength:"64" doc:"its ID"`
	Note  string    `json:"note,omitempty" maxLength:"1000" doc:"what is known of it, or done about it"`
	Until time.Time `json:"until,omitzero" doc:"at most 90 days from now; absent: it is not acknowledged any more"`
}

func (a *api) alarms() {
	type input struct {
		PageParams
		Audit bool `query:"audit" doc:"with what an audit finds that is high or critical; for the provider: a tenant gets none of it"`
	}
	register(a, operation(http.MethodGet, "/alarms", "list-alarms", "What is wrong now and whom it concerns, the worst first: as far as the caller sees it"),
		func(ctx context.Context, in *input) (*Output[List[views.Alarm]], error) {
			of, err := a.alarmed(ctx, in.Audit)
			if err != nil {
				return nil, err
			}
			type numbered struct {
				views.Alarm
				n int
			}
			return readList(ctx, a, in.PageParams, func(s *resource.State) (list []numbered) {
				for i, x := range of(s) {
					list = append(list, numbered{x, i})
				}
				return list
			}, func(x numbered) string { return fmt.Sprintf("%09d", x.n) },
				func(*resource.State, numbered) bool { return true }, func(_ *resource.State, x numbered) views.Alarm { return x.Alarm })
		})
	type acknowledge struct {
		WriteParams
		Body AcknowledgeBody
	}
	register(a, operation(http.MethodPost, "/alarms/acknowledge", "acknowledge-alarm", "Note who knows of an alarm that the caller sees, until a time; for others of its tenant"),
		func(ctx context.Context, in *acknowledge) (*ChangedOutput, error) {
			of, err := a.alarmed(ctx, true)
			if err != nil {
				return nil, err
			}
			var list []views.Alarm
			a.service.Read(func(s *resource.State) { list = of(s) })
			i := slices.IndexFunc(list, func(x views.Alarm) bool { return x.ID == in.Body.Alarm })
			if i < 0 {
				return nil, fault(http.StatusNotFound, string(resource.NotFound), "body.alarm", "no alarm "+in.Body.Alarm+" now")
			}
			r, err := a.acknowledge(ctx, &in.WriteParams, list[i], in.Body.Note, in.Body.Until)
			if err != nil {
				return nil, err
			}
			return a.changed(ctx, r, &in.WriteParams), nil
		})
}

// acknowledge acknowledges an alarm until a time, or ends that where the time is zero.
func (a *api) acknowledge(ctx context.Context, w *WriteParams, x views.Alarm, note string, until time.Time) (*service.Result, error) {
	title := []rune(x.Where + ": " + x.Text)
	c := resource.AcknowledgeAlarm{Alarm: x.ID, Title: string(title[:min(len(title), titleMost)]), Note: note, Until: until}
	return a.do(ctx, w, c, a.matches(ctx, w, resource.AcknowledgementKey(callerOf(ctx).Tenant, c.Alarm)))
}

// titleMost is how much of an alarm the history has, in characters.
const titleMost = 200

// alarmed is a function that lists the alarms of a caller.
func (a *api) alarmed(ctx context.Context, audited bool) (func(*resource.State) []views.Alarm, error) {
	facts, err := a.factsFor(ctx)
	if err != nil {
		return nil, err
	}
	proof, allowed, at, err := a.proof(ctx)
	if err != nil {
		return nil, err
	}
	var differences []views.Difference
	var found []audit.Finding
	if provider(ctx) == nil {
		differences, _ = a.maps.Differences(facts)
		if audited {
			report, err := a.report(ctx, "basic", false)
			if err != nil {
				return nil, err
			}
			found = report.Findings
		}
	}
	caller := callerOf(ctx)
	return func(s *resource.State) []views.Alarm {
		p := views.ProofOf(s, caller, proof, allowed, at)
		return views.AlarmsOf(s, caller, time.Now(), facts.Snapshot.Fabric, &p, differences, found)
	}, nil
}
