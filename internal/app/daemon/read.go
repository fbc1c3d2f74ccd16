package daemon

import (
	"context"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// Reading is what Read found.
type Reading struct {
	Fabric *observed.Fabric
	Faults []sweep.Fault
	SMPs   SMPs
	// Contradiction says what contradicts the cable at a port, with
	// sweep.Options.Verify.
	Contradiction func(*observed.Port) string
	// Disputed are the ports to follow last in another reading.
	Disputed map[observed.Place]bool
}

// Read sweeps the fabric once and writes nothing: only SubnGet leaves.
func Read(ctx context.Context, link link.Link, o sweep.Options) (Reading, error) {
	return ReadShowing(ctx, link, o, nil)
}

// ReadShowing is Read that about once a second says how many packets it has sent.
func ReadShowing(ctx context.Context, link link.Link, o sweep.Options, progress func(sent int)) (Reading, error) {
	o.ClearChange = false
	r := reader{window: transact.NewWindow(link.Limits())}
	r.window.Seed(Secret())
	var counter counter
	r.window.OnSend = counter.count
	r.discovery = sweep.Discover(r.window, o)
	turns, shown := 0, time.Now()
	err := link.Drive(ctx, &r, func() bool {
		if turns++; progress != nil && turns%lookEvery == 0 && time.Since(shown) >= progressEvery {
			shown = time.Now()
			s := counter.smps()
			progress(s.Get + s.Set)
		}
		return r.done
	})
	if err != nil {
		return Reading{}, err
	}
	fabric := r.discovery.Fabric()
	fabric.OrderFromManager() // what is printed is the same whichever answer came first
	return Reading{fabric, r.discovery.Faults(), counter.smps(), r.discovery.Contradiction, r.discovery.Disputed()}, nil
}

// reader is the engine behind Read.
type reader struct {
	window    *transact.Window
	discovery *sweep.Discovery
	done      bool
}

func (r *reader) step() {
	for !r.done && r.window.Idle() {
		r.done = r.discovery.Advance()
	}
}

func (r *reader) Next(now time.Duration, p *mad.SMP) (ib.LID, bool) {
	if !r.window.Next(now, p) {
		return 0, false
	}
	return r.window.LIDOf(p), true
}

func (r *reader) LastWait(p *mad.SMP) time.Duration { return r.window.LastWait(p) }

func (r *reader) Receive(now time.Duration, p *mad.SMP, _ ib.LID) {
	if p.Method == mad.MethodGetResp {
		r.window.Receive(now, p)
	}
	r.step()
}

func (r *reader) Lost(now time.Duration, p *mad.SMP) {
	r.window.Lost(now, p)
	r.step()
}

func (r *reader) Expire(now time.Duration) {
	r.window.Expire(now)
	r.step()
}

func (r *reader) Deadline() (time.Duration, bool) { return r.window.Deadline() }
