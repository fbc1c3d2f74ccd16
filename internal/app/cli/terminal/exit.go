// ThisProgram file defines the exit statuses of commands.

package terminal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// The exit statuses. A command that was interrupted before it was done ends with
// Signalled and the number of the signal: 130 after SIGINT, 143 after SIGTERM. What
// runs until it is interrupted ends with one of the others: sim, and run once it
// rests.
const (
	ExitGood  = 0 // up and proved, or whatever the command promises
	Bad       = 1 // not reached, or not proved
	Misuse    = 2 // bad input; nothing was sent that writes
	Signalled = 128
)

// ExitError carries the exit status of a command that failed.
type ExitError struct {
	Status int
	Err    error // nil when everything was said already
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// WithBad is a result that is not good; said already when err is nil.
func WithBad(err error) error { return &ExitError{Bad, err} }

// WithMisuse is input that cannot be used.
func WithMisuse(err error) error { return &ExitError{Misuse, err} }

// ErrNotProved is the end of a command that wrote, or read, and could not show isolation.
var ErrNotProved = errors.New("isolation is not proved")

// ErrInterrupted is the end of a command that was interrupted before it was done.
var ErrInterrupted = errors.New("interrupted")

// ExitInterrupted says what a command was doing when it was interrupted, and what is
// left half done.
func ExitInterrupted(left string) error { return fmt.Errorf("%w: %s", ErrInterrupted, left) }

// Signal is the cause of the end of an Interruptible context.
type Signal struct{ syscall.Signal }

func (s Signal) Error() string { return "interrupted by " + s.Signal.String() }

// Status is that of a command that the signal interrupted.
func (s Signal) Status() int { return Signalled + int(s.Signal) }

// Interruptible is a context that ends with SIGINT or SIGTERM. The second one ends
// the process.
func Interruptible(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			number, _ := s.(syscall.Signal)
			cancel(Signal{number})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// EndedBy is the signal that ended a context, if one did.
func EndedBy(ctx context.Context) (s Signal, was bool) {
	was = errors.As(context.Cause(ctx), &s)
	return s, was
}

// OrBad is WithBad of an error, and nil for none.
func OrBad(err error) error {
	if err == nil {
		return nil
	}
	return WithBad(err)
}

// OrMisuse is WithMisuse of an error, and nil for none.
func OrMisuse(err error) error {
	if err == nil {
		return nil
	}
	return WithMisuse(err)
}
