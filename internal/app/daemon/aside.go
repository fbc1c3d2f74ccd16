package daemon

import (
	"context"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/master"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// asideWindow is how many requests of a reading on demand are under way at once: a quarter
// of what the manager may have, which goes first.
const asideWindow = 32

// aside is a manager and, now and then, a reading on demand: its packets leave when the
// manager has none to send.
type aside struct {
	*master.Engine
	reader *reader // nil while nothing is read
	read   func()  // called when all is read
	// granted is the manager's right to write; nil where managers share no store.
	granted *Granted
}

// lease tells the manager of its right to write.
func (a *aside) lease(now time.Duration) {
	if a.granted != nil {
		a.Engine.Manager().SetLease(a.granted.At(now))
	}
}

var _ link.Long = (*aside)(nil)

// owns reports whether a packet belongs to the reading.
func (a *aside) owns(p *mad.SMP) bool { return a.reader != nil && a.reader.window.Owns(p) }

// ended ends a reading of which all is read.
func (a *aside) ended() {
	if a.reader != nil && a.reader.done {
		a.reader = nil
		a.read()
	}
}

func (a *aside) Next(now time.Duration, p *mad.SMP) (ib.LID, bool) {
	a.lease(now)
	to, some := a.Engine.Next(now, p)
	if !some && a.reader != nil {
		to, some = a.reader.Next(now, p)
	}
	return to, some
}

func (a *aside) LastWait(p *mad.SMP) time.Duration {
	if a.owns(p) {
		return a.reader.LastWait(p)
	}
	return a.Engine.LastWait(p)
}

func (a *aside) Receive(now time.Duration, p *mad.SMP, slid ib.LID) {
	if p.Method == mad.MethodGetResp && a.owns(p) {
		a.reader.Receive(now, p, slid)
		a.ended()
		return
	}
	a.Engine.Receive(now, p, slid)
}

func (a *aside) Lost(now time.Duration, p *mad.SMP) {
	if a.owns(p) {
		a.reader.Lost(now, p)
		a.ended()
		return
	}
	a.Engine.Lost(now, p)
}

func (a *aside) Expire(now time.Duration) {
	a.lease(now)
	a.Engine.Expire(now)
	if a.reader != nil {
		a.reader.Expire(now)
		a.ended()
	}
}

func (a *aside) Deadline() (time.Duration, bool) {
	due, ok := a.Engine.Deadline()
	if a.reader != nil {
		if at, some := a.reader.Deadline(); some && (!ok || at < due) {
			due, ok = at, true
		}
	}
	return due, ok
}

// Complete reads what options ask for (sweep.Complete) of the ports of a copy of the
// engine's snapshot, and enters it there: beside the manager, which goes first, and with
// SubnGet alone. It returns what could not be read. One reading is made at a time; only
// the last caller's context ends the wait, and then the reading goes on.
func (r *Runner) Complete(ctx context.Context, o sweep.Options, f *observed.Fabric) ([]sweep.Fault, error) {
	var of *reader
	done := make(chan struct{})
	err := r.Ask(ctx, func(*engine.Engine) {
		limits := r.link.Limits()
		limits.Window = min(limits.Window, asideWindow)
		if r.window > 0 {
			limits.Window = min(limits.Window, r.window)
		}
		of = &reader{window: transact.NewWindow(limits)}
		of.window.Seed(Secret())
		of.window.OnSend, of.window.OnEnd = r.counter.count, r.endings.count
		of.discovery = sweep.Complete(of.window, o, f)
		r.aside.reader, r.aside.read = of, func() { close(done) }
		of.step()
		r.aside.ended()
	})
	if err != nil {
		return nil, err
	}
	select {
	case <-done:
		return of.discovery.Faults(), nil
	case <-r.asked.ended:
		return nil, ErrEnded
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
