package daemon

import (
	"context"
	"errors"
	"sync"

	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
)

// ErrEnded says that the manager does not run any more.
var ErrEnded = errors.New("the subnet manager has ended")

// asked are the questions that other goroutines have for the engine.
type asked struct {
	questions chan func(*engine.Engine)
	ended     chan struct{}
	once      *sync.Once
}

// questionsMax bounds the questions that wait; who asks more waits.
const questionsMax = 64

func newAsked() asked {
	return asked{make(chan func(*engine.Engine), questionsMax), make(chan struct{}), new(sync.Once)}
}

// answer runs the questions that wait.
func (a *asked) answer(e *engine.Engine) {
	for {
		select {
		case f := <-a.questions:
			f(e)
		default:
			return
		}
	}
}

func (a *asked) end() { a.once.Do(func() { close(a.ended) }) }

// Ask has f run between two turns of the engine, in the goroutine of Run, and waits
// for it. Any goroutine but that of Run may call it. The error is ErrEnded or that
// of ctx; f may still run after the latter.
func (r *Runner) Ask(ctx context.Context, f func(*engine.Engine)) error {
	done := make(chan struct{})
	question := func(e *engine.Engine) {
		defer close(done)
		f(e)
	}
	select {
	case r.asked.questions <- question:
	case <-r.asked.ended:
		return ErrEnded
	case <-ctx.Done():
		return ctx.Err()
	}
	r.Wake()
	select {
	case <-done:
		return nil
	case <-r.asked.ended:
		return ErrEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Wake has Run look for questions, if the link can be woken.
func (r *Runner) Wake() {
	if w, can := r.link.(link.Waker); can {
		w.Wake()
	}
}
