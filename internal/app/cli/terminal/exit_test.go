package terminal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"
)

func TestStatusIsFoundInside(t *testing.T) {
	cause := errors.New("cause")
	for _, x := range []struct {
		err    error
		status int
		text   string
	}{{WithBad(cause), 1, "cause"}, {WithMisuse(cause), 2, "cause"}, {WithBad(nil), 1, ""}} {
		var e *ExitError
		if err := fmt.Errorf("outer: %w", x.err); !errors.As(err, &e) || e.Status != x.status || e.Error() != x.text {
			t.Errorf("%+v: %+v", x, e)
		}
		if x.text != "" && !errors.Is(x.err, cause) {
			t.Errorf("%v hides its cause", x.err)
		}
	}
	if err := ExitInterrupted("2 of 7 ports"); !errors.Is(err, ErrInterrupted) || err.Error() != "interrupted: 2 of 7 ports" {
		t.Error(err)
	}
}

// A signal ends the context and says which one it was; nothing else does.
func TestInterruptible(t *testing.T) {
	for s, status := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		ctx, stop := Interruptible(context.Background())
		if _, was := EndedBy(ctx); was {
			t.Fatal("nobody has interrupted it")
		}
		if err := syscall.Kill(os.Getpid(), s); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
			t.Fatalf("%v does not end the context", s)
		}
		if by, was := EndedBy(ctx); !was || by.Signal != s || by.Status() != status {
			t.Errorf("%v: ended by %v, %v, status %d", s, by, was, by.Status())
		}
		stop()
	}
	ctx, stop := Interruptible(context.Background())
	stop()
	<-ctx.Done()
	if by, was := EndedBy(ctx); was {
		t.Errorf("stopped, and said to be ended by %v", by)
	}
	parent, cancel := context.WithCancel(context.Background())
	ctx, stop = Interruptible(parent)
	defer stop()
	cancel()
	<-ctx.Done()
	if _, was := EndedBy(ctx); was {
		t.Error("the parent ended, and a signal is said to")
	}
}
