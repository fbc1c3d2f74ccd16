package link

import (
	"context"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// pacedBurst is how many packets may follow at once where the link came late.
const pacedBurst = 8

// Paced is a link by which engines send at most so many subnet management packets a second,
// evenly; general datagrams are not for it.
func Paced(l Link, perSecond int) Link {
	return pacedLink{l, time.Second / time.Duration(perSecond)}
}

type pacedLink struct {
	Link
	gap time.Duration
}

func (l pacedLink) Drive(ctx context.Context, e Engine, done func() bool) error {
	return l.Link.Drive(ctx, &pacedEngine{Engine: e, gap: l.gap}, done)
}

type pacedEngine struct {
	Engine
	gap time.Duration
	// free is when the next packet may leave; waits says that the link was told to wait for it.
	free  time.Duration
	waits bool
}

func (e *pacedEngine) Next(now time.Duration, p *mad.SMP) (ib.LID, bool) {
	if e.waits = now < e.free; e.waits {
		return 0, false
	}
	lid, ok := e.Engine.Next(now, p)
	if ok {
		e.free = max(e.free, now-pacedBurst*e.gap) + e.gap
	}
	return lid, ok
}

func (e *pacedEngine) Deadline() (time.Duration, bool) {
	at, some := e.Engine.Deadline()
	if e.waits && (!some || e.free < at) {
		return e.free, true
	}
	return at, some
}

// LastWait is as Patient says.
func (e *pacedEngine) LastWait(p *mad.SMP) time.Duration {
	if patient, is := e.Engine.(Patient); is {
		return patient.LastWait(p)
	}
	return 0
}
