package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
)

// WriteParams are what every write takes.
type WriteParams struct {
	DryRun  bool   `query:"dry_run" doc:"plan the change and make none"`
	Wait    string `query:"wait" enum:"stored,proved" default:"stored" doc:"proved: answer when the change is proved on the fabric, or could not be, and after 60 s in any case"`
	IfMatch string `header:"If-Match" maxLength:"1000" doc:"ETag of the object that the caller has seen"`
	IfNone  string `header:"If-None-Match" maxLength:"1000" doc:"*: the object must not be there"`
	Repeat  string `header:"Idempotency-Key" maxLength:"64" pattern:"^[!-~]+$" doc:"a repeated write with the same key changes nothing and gets the first answer again, with what became of it since; kept for 24 h, the last 10,000 of a tenant"`
	Why     string `header:"Why" maxLength:"500" doc:"the reason, for the history"`
	// amend makes the change of a PATCH, of the object as it is then.
	amend func(*resource.State) (resource.Change, error)
}

func (w *WriteParams) condition() (listen.Condition, error) {
	return listen.ReadCondition(w.IfMatch, w.IfNone)
}

// look reads the state for a write, under the lock of the change: it returns what the
// caller is taken to have seen, or why the write is refused.
type look func(s *resource.State) (seen uint64, err error)

// do makes a change.
func (a *api) do(ctx context.Context, w *WriteParams, c resource.Change, before look) (*service.Result, error) {
	if _, err := w.condition(); err != nil {
		return nil, err
	}
	return a.once(ctx, w, c, resource.Unseen, before)
}

// once makes a change of what the caller has seen at a revision, or of what look finds.
func (a *api) once(ctx context.Context, w *WriteParams, c resource.Change, seen uint64, before look) (*service.Result, error) {
	req := requestOf(ctx)
	if w.Wait == "proved" && !w.DryRun {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, limitsOf(ctx).wait)
		defer stop()
	}
	result, err := a.service.Do(ctx, service.Request{
		Change: c, By: req.who.Caller, Why: w.Why, Seen: seen, Look: unlessSame(before), Amend: w.amend, Touched: touched(req.who.Caller, c), Repeat: w.Repeat, Digest: req.digest, DryRun: w.DryRun, Wait: w.Wait == "proved", ID: req.id,
	})
	if result != nil && errors.Is(err, context.DeadlineExceeded) {
		return result, nil // it is stored; its outcome is pending
	}
	var refusal *resource.Refusal
	if err != nil && w.DryRun && !errors.As(err, &refusal) && result != nil {
		return nil, problem(http.StatusConflict, reasonManager, "the fabric cannot take it: "+told(ctx, err, "the provider can see why"))
	}
	return result, err
}

// unlessSame is a look that lets a write without its precondition pass which says what is there
// already, as declarative clients send it again and again.
func unlessSame(l look) look {
	if l == nil {
		return nil
	}
	return func(s *resource.State) (uint64, error) {
		seen, err := l(s)
		if p, is := err.(*Problem); is && p.Reason == listen.Precondition {
			return s.Last(), service.IfChanged{Err: err}
		}
		return seen, err
	}
}

// touched tells the revision that last changed what a change is about, as far as a caller sees it:
// the ETag where nothing is changed. nil where no object is replaced.
func touched(caller resource.Caller, c resource.Change) func(*resource.State) uint64 {
	var k ib.PKeyBase
	switch c := c.(type) {
	case resource.PutPartition:
		k = c.PKey
	case resource.SetMembers:
		k = c.PKey
	case resource.RemoveMembers:
		k = c.PKey
	case resource.Refuse:
		k = c.PKey
	case resource.PutTenant:
		return objectTouched(c.Key())
	case resource.PutFile:
		return objectTouched(policyKey)
	default:
		return nil
	}
	return func(s *resource.State) uint64 { return s.TouchedFor(caller, k) }
}

func objectTouched(key string) func(*resource.State) uint64 {
	return func(s *resource.State) uint64 {
		_, revision := s.Object(key)
		return revision
	}
}

// changed is the answer for a result.
func (a *api) changed(ctx context.Context, r *service.Result, w *WriteParams) *ChangedOutput {
	caller := callerOf(ctx)
	out := &ChangedOutput{Status: http.StatusOK, Body: Changed{
		Words: r.Words, Repeated: r.Repeated, Outcome: views.OutcomeOf(r.Outcome, caller),
	}}
	a.service.Read(func(s *resource.State) {
		out.Body.Revision = s.NumberFor(caller, r.Revision)
		if r.Touched > 0 && !w.DryRun {
			out.ETag = listen.ETag(s.NumberFor(caller, r.Touched))
		}
	})
	if r.Plan != nil {
		out.Body.Plan = PlanOf(r.Plan, caller)
	}
	if out.Body.Words == nil {
		out.Body.Words = []string{}
	}
	if w.DryRun || len(r.Words) == 0 {
		out.Body.Outcome = nil
		return out
	}
	out.Body.Follow = Prefix + "/revisions/" + strconv.FormatUint(out.Body.Revision, 10)
	for _, e := range r.Edits {
		if waits, is := e.After.(*resource.Approval); is {
			out.Body.Approval, out.Body.Outcome = waits.ID, nil
			out.Status = http.StatusAccepted
		}
	}
	if o := out.Body.Outcome; o != nil && o.State == string(service.Pending) {
		out.Status = http.StatusAccepted
	}
	return out
}
