package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
)

// Problem is the error of an answer.
type Problem = listen.Problem

// What makes problems.
var (
	problem = listen.NewProblem
	fault   = listen.FieldProblem
)

// Reasons of problems besides those of package resource.
const (
	reasonMalformed    = listen.Malformed
	reasonUnauthorized = "unauthorized"
	reasonMethod       = "method"
	reasonTooLarge     = listen.TooLarge
	reasonTimeout      = listen.Timeout
	reasonRepeat       = "repeat"
	reasonTrimmed      = "trimmed"
	reasonStore        = "store"
	reasonManager      = "manager"
	reasonBusy         = "busy"
	reasonInternal     = listen.Internal
)

// refusals are the statuses of resource.Reason.
var refusals = map[resource.Reason]int{
	resource.Invalid:   http.StatusUnprocessableEntity,
	resource.Forbidden: http.StatusForbidden,
	resource.NotFound:  http.StatusNotFound,
	resource.Exists:    http.StatusConflict,
	resource.OverQuota: http.StatusForbidden,
	resource.TooFast:   http.StatusTooManyRequests,
	resource.Stale:     http.StatusPreconditionFailed,
	resource.Conflict:  http.StatusConflict,
}

const (
	// tooFastAfter is when a caller that was too fast may try again, in seconds: the
	// quota is about a minute that slides.
	tooFastAfter = 10
	// storeAfter is when to try again after the store was not reached, in seconds.
	storeAfter = 5
)

// told is an error as a caller is told it. The store's has its addresses, and revisions by the numbers
// of the provider: others get a text without them.
func told(ctx context.Context, err error, others string) string {
	if callerOf(ctx).IsProvider() {
		return err.Error()
	}
	return others
}

// failed makes a Problem of an error. Those that nobody foresaw are logged, and the
// caller is told no more than that there was one.
func (a *api) failed(ctx context.Context, err error) error {
	var refusal *resource.Refusal
	var p *Problem
	var same Unmodified
	switch {
	case err == nil:
		return nil
	case errors.As(err, &same):
		return same
	case errors.As(err, &p):
		return p
	case errors.As(err, &refusal):
		p = problem(refusals[refusal.Reason], string(refusal.Reason), refusal.Error())
		if refusal.Field != "" {
			p.Errors = []listen.Fault{{Field: refusal.Field, Reason: refusal.Detail}}
		}
		if refusal.Reason == resource.TooFast {
			p.RetryAfter(tooFastAfter)
		}
		return p
	case errors.Is(err, service.ErrRepeat):
		return fault(http.StatusConflict, reasonRepeat, "header.Idempotency-Key", err.Error())
	case errors.Is(err, store.ErrNotFound):
		return problem(http.StatusNotFound, string(resource.NotFound), "there is no such revision")
	case errors.Is(err, store.ErrCompacted):
		return problem(http.StatusGone, reasonTrimmed, told(ctx, err, "it is not kept any more"))
	case errors.Is(err, store.ErrTooLarge):
		return problem(http.StatusRequestEntityTooLarge, reasonTooLarge, err.Error())
	case errors.Is(err, service.ErrUnknown):
		return problem(http.StatusServiceUnavailable, reasonStore, told(ctx, err, service.ErrUnknown.Error())).RetryAfter(storeAfter)
	case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrFull), errors.Is(err, store.ErrStale), errors.Is(err, store.ErrRolledBack), errors.Is(err, store.ErrClosed), errors.Is(err, service.ErrNotMaster):
		return problem(http.StatusServiceUnavailable, reasonStore, "nothing is changed: "+told(ctx, err, "the store cannot be written now, or another manager writes it")).RetryAfter(storeAfter)
	case errors.Is(err, service.ErrNotRead):
		return problem(http.StatusServiceUnavailable, reasonManager, err.Error()).RetryAfter(storeAfter)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return problem(http.StatusServiceUnavailable, reasonTimeout, "the service did not get to it in time").RetryAfter(storeAfter)
	}
	a.log.ErrorContext(ctx, "a request failed", "request", requestOf(ctx).id, "error", err)
	return problem(http.StatusInternalServerError, reasonInternal, "the service failed; its log says more about request "+requestOf(ctx).id)
}
