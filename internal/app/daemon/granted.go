package daemon

import (
	"sync/atomic"
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/mastership"
)

// Granted is the right to write that a store has given, for the engine of a Runner. Any
// goroutine may set it; the engine sees it with its next packet.
type Granted struct {
	now  atomic.Pointer[granted]
	seen atomic.Int64 // when the engine asked last, in nanoseconds from the origin
}

// granted is a Grant in the time from an origin.
type granted struct {
	mastership.Grant
	origin time.Time
}

// Set replaces it. The times of g count from origin.
func (x *Granted) Set(g mastership.Grant, origin time.Time) { x.now.Store(&granted{g, origin}) }

// Seen is when the engine asked for it last, from the origin.
func (x *Granted) Seen() time.Duration { return time.Duration(x.seen.Load()) }

// At is what an engine is told that asks, in its time, which was now at the latest just before.
func (x *Granted) At(now time.Duration) mastership.Grant {
	g := x.now.Load()
	if g == nil {
		return mastership.Grant{}
	}
	out, since := g.Grant, time.Since(g.origin)
	x.seen.Store(int64(since))
	shift := now - since // of a clock that was read a little later: it ends rather earlier
	out.Until += shift
	if out.Since > 0 {
		out.Since = max(out.Since+shift, 1)
	}
	return out
}

// Lease has the engine, whose Config says Lease, write only as far as x says. It is called
// before Run.
func (r *Runner) Lease(x *Granted) { r.aside.granted = x }
