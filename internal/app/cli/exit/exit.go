// Package exit says with what status a command ends.
package exit

// The exit statuses.
const (
	Good   = 0 // up and proved, or whatever the command promises
	Bad    = 1 // not reached, or not proved
	Misuse = 2 // bad input; nothing was sent that writes
)

// Error carries the exit status of a command that failed.
type Error struct {
	Status int
	Err    error // nil when everything was said already
}

func (e *Error) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// WithBad is a result that is not good; said already when err is nil.
func WithBad(err error) error { return &Error{Bad, err} }

// WithMisuse is input that cannot be used.
func WithMisuse(err error) error { return &Error{Misuse, err} }
