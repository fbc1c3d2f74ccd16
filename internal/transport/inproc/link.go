// Package inproc is the way to a simulated fabric of the same process: the
// engine and the fabric meet as octets, and time is the fabric's own.
//
// While anything is under way, time moves as fast as it can. Between two
// events that lie further apart than a pause, a paced link waits in real time,
// so that a manager that watches an idle fabric does not use up a processor.
package inproc

import (
	"context"
	"errors"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/fabricsim"
	"github.com/ibwarden/ibwarden/internal/transact"
	"github.com/ibwarden/ibwarden/internal/transport"
)

// Link drives an engine at one attachment of a fabric.
type Link struct {
	fabric *fabricsim.Fabric
	place  *fabricsim.Attachment
	paced  bool
}

// New attaches to the end port num of a node. A paced link waits in real time
// while nothing happens.
func New(f *fabricsim.Fabric, node ib.NodeGUID, num ib.PortNum, paced bool) (*Link, error) {
	a, err := f.Attach(node, num)
	if err != nil {
		return nil, err
	}
	return &Link{fabric: f, place: a, paced: paced}, nil
}

var _ transport.Link = (*Link)(nil)

// Fabric is the fabric behind the link.
func (l *Link) Fabric() *fabricsim.Fabric { return l.fabric }

// firstTimeout is long against an answer of a simulated agent and short
// against what a person notices.
const firstTimeout = 200 * time.Microsecond

// Limits are those of a fabric whose time costs nothing: the wait follows what
// is measured, and patience is cheap.
func (l *Link) Limits() transact.Limits {
	limits := transact.DefaultLimits()
	limits.FirstTimeout, limits.MinTimeout = firstTimeout, time.Microsecond
	return limits
}

// SetIsSM tells the fabric whether a subnet manager lives here.
func (l *Link) SetIsSM(on bool) error {
	l.place.SetIsSM(on)
	return nil
}

// Close leaves the fabric.
func (l *Link) Close() error {
	l.place.Detach()
	return nil
}

// errStill says that neither the fabric nor the engine will ever do anything.
var errStill = errors.New("the fabric and the manager both wait for ever")

const (
	// pause is the longest stretch of simulated time that a paced link skips.
	pause = time.Millisecond
	// nap bounds one wait, so that the end of a context is noticed soon.
	nap = 100 * time.Millisecond
)

// Drive moves packets and time.
func (l *Link) Drive(ctx context.Context, e transport.Engine, done func() bool) error {
	d := driver{link: l, engine: e}
	for !done() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if moved, err := d.exchange(); err != nil {
			return err
		} else if moved {
			continue
		}
		if err := d.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

type driver struct {
	link   *Link
	engine transport.Engine
	smp    mad.SMP
	octets [mad.Size]byte
	in     fabricsim.Delivery
}

// exchange sends what the engine has and hands it what came in; it reports
// whether there was anything.
func (d *driver) exchange() (moved bool, err error) {
	f, a := d.link.fabric, d.link.place
	for {
		dlid, ok := d.engine.Next(f.Now(), &d.smp)
		if !ok {
			break
		}
		if err := d.smp.Encode(&d.octets); err != nil {
			return false, err
		}
		a.Send(&d.octets, dlid)
		moved = true
	}
	for a.Receive(&d.in) {
		moved = true
		if d.smp.UnmarshalBinary(d.in.MAD[:]) == nil {
			d.engine.Receive(f.Now(), &d.smp, d.in.SLID)
		}
	}
	return moved, nil
}

// wait lets time pass until the next thing happens.
func (d *driver) wait(ctx context.Context) error {
	f := d.link.fabric
	next, some := f.NextEvent()
	if due, ok := d.engine.Deadline(); ok && (!some || due < next) {
		next, some = due, true
	}
	if !some {
		return errStill
	}
	if gap := next - f.Now(); d.link.paced && gap > pause {
		next = f.Now() + min(gap, nap)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(next - f.Now()):
		}
	}
	f.AdvanceTo(max(next, f.Now()))
	d.engine.Expire(f.Now())
	return nil
}
