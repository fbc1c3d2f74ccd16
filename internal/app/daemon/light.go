package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// ErrNoLight says that a device has no light that can be switched.
var ErrNoLight = errors.New("the device has no light that can be switched (PortInfo.CapabilityMask, IsLEDInfoSupported)")

// Light switches the locating light of an end port, which for a switch is its port
// 0, and tells what the light does then. Nothing else is written. It fails when
// the device has none (ErrNoLight), does not answer, or does not do as asked.
func Light(ctx context.Context, l link.Link, p *observed.Port, on bool) error {
	if p = p.Agent(); !p.Reached || !p.InfoRead {
		return fmt.Errorf("%s: not reached", p)
	}
	if !p.Info.CapabilityMask.Has(smp.CapLEDInfo) {
		return fmt.Errorf("%s: %w", p, ErrNoLight)
	}
	a := NewAsking(l)
	r := transact.Request{
		Path: p.Path, Respond: p.RespTime(), MKey: p.MKey(), Method: mad.MethodSet, Attribute: smp.AttrLEDInfo,
	}
	if err := (&smp.LEDInfo{LEDMask: on}).Encode(&r.Data); err != nil {
		return err
	}
	var err error
	a.Window.Do(r, func(reply transact.Reply) {
		var does smp.LEDInfo
		if err = reply.Err; err == nil {
			err = does.UnmarshalBinary(reply.SMP.Data[:smp.LEDInfoSize])
		}
		if err == nil && does.LEDMask != on {
			err = errors.New("it answers that its light does not do that")
		}
		if err != nil {
			err = fmt.Errorf("%s: LEDInfo: %w", p, err)
		}
	})
	if driven := l.Drive(ctx, a, a.Window.Idle); driven != nil {
		return driven
	}
	return err
}

// Asking is an engine that asks what is in its window, and no more.
type Asking struct{ Window *transact.Window }

// NewAsking asks over a link.
func NewAsking(l link.Link) *Asking {
	a := &Asking{transact.NewWindow(l.Limits())}
	a.Window.Seed(Secret())
	return a
}

// Next is link.Engine's.
func (a *Asking) Next(now time.Duration, p *mad.SMP) (ib.LID, bool) {
	if !a.Window.Next(now, p) {
		return 0, false
	}
	return a.Window.LIDOf(p), true
}

// LastWait is link.Patient's.
func (a *Asking) LastWait(p *mad.SMP) time.Duration { return a.Window.LastWait(p) }

// Receive is link.Engine's.
func (a *Asking) Receive(now time.Duration, p *mad.SMP, _ ib.LID) {
	if p.Method == mad.MethodGetResp {
		a.Window.Receive(now, p)
	}
}

// Lost is link.Engine's.
func (a *Asking) Lost(now time.Duration, p *mad.SMP) { a.Window.Lost(now, p) }

// Expire is link.Engine's.
func (a *Asking) Expire(now time.Duration) { a.Window.Expire(now) }

// Deadline is link.Engine's.
func (a *Asking) Deadline() (time.Duration, bool) { return a.Window.Deadline() }
