package resource

import "fmt"

// Reason is why a change was refused.
type Reason string

// The reasons of refusals.
const (
	// Invalid: the change is not one that could ever be made.
	Invalid Reason = "invalid"
	// Forbidden: the caller may not do it.
	Forbidden Reason = "forbidden"
	// NotFound: there is no such object, or none that the caller may see.
	NotFound Reason = "not-found"
	// Exists: there is such an object already, or its name or number is taken.
	Exists Reason = "exists"
	// OverQuota: a quota of the tenant is used up.
	OverQuota Reason = "over-quota"
	// TooFast: the tenant has made as many changes as it may in a minute.
	TooFast Reason = "too-fast"
	// Stale: the object has changed since the caller saw it.
	Stale Reason = "stale"
	// Conflict: the state does not allow it now.
	Conflict Reason = "conflict"
)

// Refusal is why a change was not made.
type Refusal struct {
	Reason Reason
	// Field is the field of the change that is at fault; it may be empty.
	Field string
	// Detail says what was found and what was expected.
	Detail string
}

// Error implements error.
func (r *Refusal) Error() string {
	if r.Field == "" {
		return r.Detail
	}
	return r.Field + ": " + r.Detail
}

func refuse(reason Reason, field, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Field: field, Detail: fmt.Sprintf(format, args...)}
}
