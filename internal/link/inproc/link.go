// Package inproc connects an engine to a simulated fabric in the same process. They
// exchange bytes, and time is the fabric's own.
//
// While packets are under way, time moves as fast as it can. If the next event is
// further away than a pause, a paced link waits in real time,
// so that a manager that watches an idle fabric does not keep a processor busy.
//
// An engine that handles general datagrams owns queue pair 1 of the port until the
// link is closed.
package inproc

import (
	"context"
	"errors"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
)

// Link drives an engine at one attachment of a fabric.
type Link struct {
	fabric *fabric.Fabric
	place  *fabric.Attachment
	node   ib.NodeGUID
	port   ib.PortNum
	gsi    *general // once a link.General was driven
	paced  bool
	// mark is the upper half of the transaction identifiers of requests, as a
	// host's kernel has one for each of its clients: an answer to who was here
	// before must not pass for an answer to who is here now.
	mark uint64
	wake chan struct{}
	pump *driver // of Pump's last engine
}

// Wake ends a wait of Drive's, as link.Waker says.
func (l *Link) Wake() {
	select {
	case l.wake <- struct{}{}:
	default: // it is about to be noticed
	}
}

// Own is the port that the link is attached to.
func (l *Link) Own() (ib.NodeGUID, ib.PortGUID) {
	g, _ := l.fabric.Agent(l.node).GUID(l.port, 0)
	return l.node, ib.PortGUID(g)
}

// New attaches to the end port num of a node. A paced link waits in real time
// while nothing happens.
func New(f *fabric.Fabric, node ib.NodeGUID, num ib.PortNum, paced bool) (*Link, error) {
	a, err := f.Attach(node, num)
	if err != nil {
		return nil, err
	}
	return &Link{fabric: f, place: a, node: node, port: num, paced: paced, mark: f.Counts().Sent << markShift & markMask, wake: make(chan struct{}, 1)}, nil
}

const (
	markShift = 32
	markMask  = uint64(0xFFFFFFFF) << markShift
)

var (
	_ link.Link  = (*Link)(nil)
	_ link.Waker = (*Link)(nil)
)

// Fabric is the fabric behind the link.
func (l *Link) Fabric() *fabric.Fabric { return l.fabric }

// usualHops is as far as two ports of a usual fabric are apart: a three-level
// fat tree needs 6.
const usualHops = 8

// Limits are those of a fabric with known delays: without an answer within a round trip
// there will be none, unless a fault delays it, and then the wait follows what is
// measured.
func (l *Link) Limits() transact.Limits {
	limits := transact.DefaultLimits()
	if l.fabric.Queues() {
		return limits
	}
	limits.FirstTimeout = max(l.fabric.RoundTrip(mad.MaxHops), time.Microsecond)
	limits.MinTimeout = max(l.fabric.RoundTrip(usualHops), time.Microsecond)
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
	if l.gsi != nil {
		l.gsi.close()
	}
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
func (l *Link) Drive(ctx context.Context, e link.Engine, done func() bool) error {
	d := driver{link: l, engine: e}
	if err := d.takeGeneral(); err != nil {
		return err
	}
	for !done() {
		if err := ctx.Err(); err != nil {
			return err
		}
		sent, err := d.send()
		if err != nil {
			return err
		}
		if d.receive() || sent {
			continue
		}
		if err := d.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Pump moves packets between the engine and the fabric without advancing time, for
// callers that drive several engines on one fabric. It reports whether anything was
// moved.
func (l *Link) Pump(e link.Engine) (some bool, err error) {
	d := l.pump
	if d == nil || d.engine != e {
		d = &driver{link: l, engine: e}
		if err := d.takeGeneral(); err != nil {
			return false, err
		}
		l.pump = d
	}
	some, err = d.send()
	return d.receive() || some, err
}

type driver struct {
	link   *Link
	engine link.Engine
	// general is the engine, if it is one.
	general link.General
	smp     mad.SMP
	bytes   [mad.Size]byte
	in      fabric.Delivery
}

// takeGeneral takes the queue pair for general datagrams, if the engine has any.
func (d *driver) takeGeneral() (err error) {
	l := d.link
	d.general, _ = d.engine.(link.General)
	if d.general != nil && l.gsi == nil {
		l.gsi, err = openGeneral(l.fabric, l.node, l.port)
	}
	return err
}

// send sends what the engine has, and reports whether that was anything.
func (d *driver) send() (some bool, err error) {
	for {
		dlid, ok := d.engine.Next(d.link.fabric.Now(), &d.smp)
		if !ok {
			break
		}
		if d.smp.Method == mad.MethodGet || d.smp.Method == mad.MethodSet {
			d.smp.TransactionID |= d.link.mark
		}
		if err := d.smp.Encode(&d.bytes); err != nil {
			return some, err
		}
		d.link.place.Send(&d.bytes, dlid)
		some = true
	}
	if d.general != nil && d.link.gsi.send(d.general) {
		some = true
	}
	return some, nil
}

// receive hands the engine what came in, and reports whether that was anything.
func (d *driver) receive() (some bool) {
	for d.link.place.Receive(&d.in) {
		some = true
		if d.smp.UnmarshalBinary(d.in.MAD[:]) == nil {
			if d.smp.Method == mad.MethodGetResp {
				if d.smp.TransactionID&markMask != d.link.mark {
					continue // for another client
				}
				d.smp.TransactionID &^= markMask
			}
			d.engine.Receive(d.link.fabric.Now(), &d.smp, d.in.SLID)
		}
	}
	if d.general != nil && d.link.gsi.receive(d.link.fabric.Now(), d.general) {
		some = true
	}
	return some
}

// wait lets time pass until the next thing happens.
func (d *driver) wait(ctx context.Context) error {
	f := d.link.fabric
	next, some := f.NextEvent()
	due, ok := d.engine.Deadline()
	if ok && (!some || due < next) {
		next, some = due, true
	}
	if !some {
		return errStill
	}
	gap := next - f.Now()
	if d.link.paced && gap > pause {
		next = f.Now() + min(gap, nap)
		began := time.Now()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.link.wake:
			next = f.Now() + min(time.Since(began), next-f.Now())
		case <-time.After(next - f.Now()):
		}
	}
	if d.link.paced && gap <= pause {
		// Nobody looks at each event of a fabric that is to be as fast as it can.
		until := f.Now() + pause
		if ok {
			until = min(until, due)
		}
		d.link.place.AdvanceTo(max(until, f.Now()))
	} else {
		f.AdvanceTo(max(next, f.Now()))
	}
	d.receive() // an answer that comes in at the last moment is in time
	d.engine.Expire(f.Now())
	return nil
}
