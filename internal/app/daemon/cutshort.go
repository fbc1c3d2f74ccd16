package daemon

import (
	"context"
	"errors"
	"fmt"
)

// CutShort is the end of a step that did not go on, because the command was
// interrupted or the way to the fabric was lost.
type CutShort struct {
	Step string
	// Ports is at how many ports of Of everything was written and read back.
	Ports, Of int
	Cause     error
}

func (e *CutShort) Error() string {
	text := fmt.Sprintf("%v in step %q: %d of %d ports written", ErrStopped, e.Step, e.Ports, e.Of)
	if errors.Is(e.Cause, context.Canceled) {
		return text // the user interrupted it and knows
	}
	return text + ": " + e.Cause.Error()
}

// Unwrap has ErrStopped and the cause.
func (e *CutShort) Unwrap() []error { return []error{ErrStopped, e.Cause} }

// cutShort says how far a step had come: what was sent and not read back cannot be
// told.
func (a *applier) cutShort(s Step, err error) error {
	work, _ := a.engine.UnderWay()
	a.out.Writes += a.engine.Abandon()
	return &CutShort{Step: s.Name, Ports: work.Ports, Of: work.Of, Cause: err}
}
