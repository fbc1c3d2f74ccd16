package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
)

func (a *api) managers() {
	type input struct{ PageParams }
	register(a, operation(http.MethodGet, "/managers", "list-managers", "Every subnet manager of the fabric: those that count and those that do not; for the provider"),
		func(ctx context.Context, in *input) (*Output[List[views.SubnetManager]], error) {
			if err := provider(ctx); err != nil {
				return nil, err
			}
			if a.options.Managers == nil {
				return nil, noManager()
			}
			snap, err := a.snapshot(ctx)
			if err != nil {
				return nil, err
			}
			list, err := views.SubnetManagers(ctx, a.options.Managers, a.service, a.options.StoreName, snap.Fabric)
			if err != nil {
				return nil, err
			}
			key := func(m views.SubnetManager) string { return m.Port + m.NodeGUID }
			return fabricList(ctx, a, in.PageParams, sortedBy(list, key), key, func(m views.SubnetManager) views.SubnetManager { return m })
		})
	type handOver struct {
		DryRun bool   `query:"dry_run" doc:"say who would be handed the subnet, and hand nothing over"`
		Why    string `header:"Why" maxLength:"500" doc:"the reason, for the audit log"`
		Body   views.HandOverBody
	}
	register(a, operation(http.MethodPost, "/managers/handover", "hand-over", "Hand the subnet over to a standby that is trusted; the provider may, of the master"),
		func(ctx context.Context, in *handOver) (*HandedOverOutput, error) {
			return a.handOver(ctx, &in.Body, in.Why, in.DryRun)
		})
}

// HandedOverOutput is the answer of a handover.
type HandedOverOutput struct{ Body views.HandedOver }

// handOverAction is what the audit log calls it.
const handOverAction = "hand over"

// handOver hands the subnet over. Every try is recorded, of whomever, before anything
// happens.
func (a *api) handOver(ctx context.Context, b *views.HandOverBody, why string, dryRun bool) (*HandedOverOutput, error) {
	caller := callerOf(ctx)
	r := service.Request{By: caller, Why: why, ID: requestOf(ctx).id}
	refused := provider(ctx)
	if refused == nil && caller.ReadOnly {
		refused = problem(http.StatusForbidden, string(resource.Forbidden), "the token may only read")
	}
	if refused != nil {
		if err := a.service.Note(ctx, r, handOverAction, "", refused); err != nil {
			a.log.WarnContext(ctx, "a refusal could not be recorded", "request", r.ID, "error", err)
		}
		return nil, refused
	}
	if a.options.Managers == nil {
		return nil, noManager()
	}
	guid, err := views.ManagerMeant(ctx, a.options.Managers, b.To)
	if errors.Is(err, views.ErrNobody) || errors.Is(err, views.ErrSeveral) {
		err = fault(http.StatusUnprocessableEntity, string(resource.Invalid), "body.to", err.Error())
	}
	var to *observed.SubnetManager
	if err == nil {
		to, err = a.options.Managers.Standby(ctx, guid)
	}
	if err != nil {
		return nil, a.notHandedOver(ctx, r, dryRun, err)
	}
	out := &HandedOverOutput{Body: views.HandedOver{To: views.SubnetManagerOf(to, time.Now()), DryRun: dryRun}}
	name := to.Name + " (port " + to.Port.String() + ")"
	if dryRun {
		out.Body.Text = name + " would be handed the subnet"
		return out, nil
	}
	if r.Why = "to " + to.Port.String(); why != "" {
		r.Why += ": " + why
	}
	if err := a.service.Note(ctx, r, handOverAction, to.Port.String(), nil); err != nil {
		return nil, err
	}
	if out.Body.Master, err = a.options.Managers.HandOver(ctx, to.Port); err != nil {
		return nil, a.notHandedOver(ctx, r, false, err)
	}
	out.Body.Text = name + " has taken the subnet; this manager stands by, and ranks lower until it is master again or restarted"
	if !out.Body.Master {
		out.Body.Text = name + " took the subnet, and has not said yet that it is master; this manager stands by"
	}
	return out, nil
}

// notHandedOver records why the subnet was not handed over, and makes a problem of it.
func (a *api) notHandedOver(ctx context.Context, r service.Request, dryRun bool, err error) error {
	var not *service.NotHandedOver
	var p *Problem
	if !errors.As(err, &not) && !errors.As(err, &p) {
		return err
	}
	if not != nil {
		p = problem(http.StatusConflict, string(resource.Conflict), not.Reason)
	}
	if dryRun {
		return p
	}
	if e := a.service.Note(context.WithoutCancel(ctx), r, handOverAction, "", p); e != nil {
		a.log.WarnContext(ctx, "a refusal could not be recorded", "request", r.ID, "error", e)
	}
	return p
}

func noManager() error {
	return problem(http.StatusServiceUnavailable, reasonManager, "no subnet manager runs here").RetryAfter(storeAfter)
}
