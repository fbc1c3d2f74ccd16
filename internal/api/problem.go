package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
)

// Problem is an error as RFC 9457 has it, with the reason in a word and the fields at
// fault.
type Problem struct {
	Type   string `json:"type" doc:"always about:blank: the status and the reason say what kind of problem it is"`
	Title  string `json:"title" doc:"the status in words"`
	Status int    `json:"status" minimum:"400" maximum:"599" doc:"the HTTP status"`
	Detail string `json:"detail" doc:"what was found and what was expected"`
	// Reason is one of resource.Reason, or one of those below.
	Reason string  `json:"reason" doc:"why, in one word for programs"`
	Errors []Fault `json:"errors,omitempty" doc:"the fields at fault"`

	header http.Header
}

// Fault is one field at fault.
type Fault struct {
	Field  string `json:"field" doc:"the field, such as body.name, query.limit or header.If-Match"`
	Reason string `json:"reason" doc:"what was expected"`
}

// Reasons of problems besides those of package resource.
const (
	reasonMalformed    = "malformed"
	reasonUnauthorized = "unauthorized"
	reasonMethod       = "method"
	reasonTooLarge     = "too-large"
	reasonTimeout      = "timeout"
	reasonPrecondition = "precondition-required"
	reasonRepeat       = "repeat"
	reasonTrimmed      = "trimmed"
	reasonStore        = "store"
	reasonManager      = "manager"
	reasonBusy         = "busy"
	reasonInternal     = "internal"
)

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders implements huma.HeadersError.
func (p *Problem) GetHeaders() http.Header { return p.header }

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

func problem(status int, reason, detail string) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Reason: reason, Detail: detail}
}

// fault is a problem with one field.
func fault(status int, reason, field, detail string) *Problem {
	p := problem(status, reason, detail)
	p.Errors = []Fault{{Field: field, Reason: detail}}
	return p
}

func (p *Problem) retryAfter(seconds int) *Problem {
	p.header = http.Header{"Retry-After": {strconv.Itoa(seconds)}}
	return p
}

// The framework makes its errors by these two functions, which it offers as variables.
// What was sent is not repeated in them: it may be long, or a secret.
func init() {
	huma.DefaultArrayNullable = false
	huma.NewError = func(status int, detail string, errs ...error) huma.StatusError {
		p := problem(status, reasonOf(status), detail)
		for _, err := range errs {
			var d huma.ErrorDetailer
			switch {
			case err == nil:
			case errors.As(err, &d):
				p.Errors = append(p.Errors, Fault{Field: d.ErrorDetail().Location, Reason: d.ErrorDetail().Message})
			default:
				p.Errors = append(p.Errors, Fault{Reason: err.Error()})
			}
		}
		return p
	}
	huma.NewErrorWithContext = func(_ huma.Context, status int, detail string, errs ...error) huma.StatusError {
		return huma.NewError(status, detail, errs...)
	}
}

func reasonOf(status int) string {
	switch status {
	case http.StatusUnprocessableEntity:
		return string(resource.Invalid)
	case http.StatusRequestEntityTooLarge:
		return reasonTooLarge
	case http.StatusRequestTimeout:
		return reasonTimeout
	}
	if status >= http.StatusInternalServerError {
		return reasonInternal
	}
	return reasonMalformed
}

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

// failed makes a Problem of an error. Those that nobody foresaw are logged, and the
// caller is told no more than that there was one.
func (a *api) failed(ctx context.Context, err error) error {
	var refusal *resource.Refusal
	var p *Problem
	var same unmodified
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
			p.Errors = []Fault{{Field: refusal.Field, Reason: refusal.Detail}}
		}
		if refusal.Reason == resource.TooFast {
			p.retryAfter(tooFastAfter)
		}
		return p
	case errors.Is(err, service.ErrRepeat):
		return fault(http.StatusConflict, reasonRepeat, "header.Idempotency-Key", err.Error())
	case errors.Is(err, store.ErrNotFound):
		return problem(http.StatusNotFound, string(resource.NotFound), "there is no such revision")
	case errors.Is(err, store.ErrCompacted):
		return problem(http.StatusGone, reasonTrimmed, err.Error())
	case errors.Is(err, store.ErrTooLarge):
		return problem(http.StatusRequestEntityTooLarge, reasonTooLarge, err.Error())
	case errors.Is(err, service.ErrUnknown):
		return problem(http.StatusServiceUnavailable, reasonStore, err.Error()).retryAfter(storeAfter)
	case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrFull), errors.Is(err, store.ErrStale), errors.Is(err, store.ErrClosed), errors.Is(err, service.ErrNotMaster):
		return problem(http.StatusServiceUnavailable, reasonStore, "nothing is changed: "+err.Error()).retryAfter(storeAfter)
	case errors.Is(err, service.ErrNotRead):
		return problem(http.StatusServiceUnavailable, reasonManager, err.Error()).retryAfter(storeAfter)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return problem(http.StatusServiceUnavailable, reasonTimeout, "the service did not get to it in time").retryAfter(storeAfter)
	}
	a.log.ErrorContext(ctx, "a request failed", "request", requestOf(ctx).id, "error", err)
	return problem(http.StatusInternalServerError, reasonInternal, "the service failed; its log says more about request "+requestOf(ctx).id)
}
