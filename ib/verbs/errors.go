package verbs

import (
	"errors"
	"fmt"
)

// What a verb refuses. Errors wrap these and say more.
var (
	ErrPort       = errors.New("no such port")
	ErrPKeyIndex  = errors.New("P_Key index outside the table")
	ErrPKeyEmpty  = errors.New("P_Key index of an empty entry")
	ErrPermission = errors.New("privileged callers only")
	ErrService    = errors.New("not with this service")
	ErrState      = errors.New("not in this state")
	ErrAttribute  = errors.New("attribute missing, not wanted or out of range")
	ErrFull       = errors.New("no room")
	ErrRequest    = errors.New("request out of range")
	ErrDestroyed  = errors.New("no such object, or it was destroyed")
	ErrBusy       = errors.New("in use")
	ErrNode       = errors.New("no such host")
	ErrRemoved    = errors.New("the device was removed")
	ErrProtocol   = errors.New("the simulator and this program do not understand each other")
	ErrClosed     = errors.New("the device was closed")
	ErrTimeout    = errors.New("no answer from the fabric")
)

// codes are the errors as a protocol answer names them.
var codes = map[string]error{
	"port": ErrPort, "pkey-index": ErrPKeyIndex, "pkey-empty": ErrPKeyEmpty, "permission": ErrPermission,
	"service": ErrService, "state": ErrState, "attribute": ErrAttribute, "full": ErrFull, "request": ErrRequest,
	"destroyed": ErrDestroyed, "busy": ErrBusy, "node": ErrNode, "removed": ErrRemoved, "protocol": ErrProtocol,
	"timeout": ErrTimeout,
}

// failure is an error from an answer.
type failure struct {
	text string
	kind error
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.kind }

// Err is the error of an answer, nil for none.
func (a *Answer) Err() error {
	switch kind := codes[a.Code]; {
	case a.Code == "":
		return nil
	case kind == nil:
		return &failure{fmt.Sprintf("%s (unknown error %q)", a.Text, a.Code), ErrProtocol}
	default:
		return &failure{a.Text, kind}
	}
}

// SetErr lets an answer tell an error. One that wraps none of this package's tells
// ErrRequest.
func (a *Answer) SetErr(err error) {
	a.Code, a.Text = "request", err.Error()
	for code, kind := range codes {
		if errors.Is(err, kind) {
			a.Code = code
		}
	}
}
