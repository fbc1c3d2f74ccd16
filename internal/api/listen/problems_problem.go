// This file makes the errors that callers of the API are told: those of RFC 9457, with
// the reason in a word and the fields at fault.

package listen

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/ibwarden/ibwarden/internal/resource"
)

// Problem is an error as RFC 9457 has it, with the reason in a word and the fields at
// fault.
type Problem struct {
	Type   string `json:"type" doc:"always about:blank: the status and the reason say what kind of problem it is"`
	Title  string `json:"title" doc:"the status in words"`
	Status int    `json:"status" minimum:"400" maximum:"599" doc:"the HTTP status"`
	Detail string `json:"detail" doc:"what was found and what was expected"`
	// Reason is one of resource.Reason, or another word.
	Reason string  `json:"reason" doc:"why, in one word for programs"`
	Errors []Fault `json:"errors,omitempty" doc:"the fields at fault"`

	// Header goes with the answer.
	Header http.Header `json:"-"`
}

// Fault is one field at fault.
type Fault struct {
	Field  string `json:"field" doc:"the field, such as body.name, query.limit or header.If-Match"`
	Reason string `json:"reason" doc:"what was expected"`
}

// Reasons of problems that the framework finds.
const (
	Malformed = "malformed"
	TooLarge  = "too-large"
	Timeout   = "timeout"
	Internal  = "internal"
	// Precondition is of a write that has to say what its caller has seen.
	Precondition = "precondition-required"
)

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders implements huma.HeadersError.
func (p *Problem) GetHeaders() http.Header { return p.Header }

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// NewProblem is a problem with a reason.
func NewProblem(status int, reason, detail string) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Reason: reason, Detail: detail}
}

// FieldProblem is a problem with one field.
func FieldProblem(status int, reason, field, detail string) *Problem {
	p := NewProblem(status, reason, detail)
	p.Errors = []Fault{{Field: field, Reason: detail}}
	return p
}

// RetryAfter says in how many seconds to try again.
func (p *Problem) RetryAfter(seconds int) *Problem {
	p.Header = http.Header{"Retry-After": {strconv.Itoa(seconds)}}
	return p
}

// The framework makes its errors by these two functions, which it offers as variables.
// What was sent is not repeated in them: it may be long, or a secret.
func init() {
	huma.DefaultArrayNullable = false
	huma.NewError = func(status int, detail string, errs ...error) huma.StatusError {
		p := NewProblem(status, reasonOf(status), detail)
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
		return TooLarge
	case http.StatusRequestTimeout:
		return Timeout
	}
	if status >= http.StatusInternalServerError {
		return Internal
	}
	return Malformed
}
