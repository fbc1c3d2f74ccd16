package daemon

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
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
	a := asking{window: transact.NewWindow(l.Limits())}
	a.window.Seed(Secret())
	r := transact.Request{
		Path: p.Path, Respond: p.RespTime(), MKey: p.MKey(), Method: mad.MethodSet, Attribute: smp.AttrLEDInfo,
	}
	if err := (&smp.LEDInfo{LEDMask: on}).Encode(&r.Data); err != nil {
		return err
	}
	var err error
	a.window.Do(r, func(reply transact.Reply) {
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
	if driven := l.Drive(ctx, &a, a.window.Idle); driven != nil {
		return driven
	}
	return err
}

// asking is an engine that asks what is in its window, and no more.
type asking struct{ window *transact.Window }

func (a *asking) Next(now time.Duration, p *mad.SMP) (ib.LID, bool) {
	if !a.window.Next(now, p) {
		return 0, false
	}
	return a.window.LIDOf(p), true
}

func (a *asking) LastWait(p *mad.SMP) time.Duration { return a.window.LastWait(p) }

func (a *asking) Receive(now time.Duration, p *mad.SMP, _ ib.LID) {
	if p.Method == mad.MethodGetResp {
		a.window.Receive(now, p)
	}
}

func (a *asking) Lost(now time.Duration, p *mad.SMP) { a.window.Lost(now, p) }

func (a *asking) Expire(now time.Duration) { a.window.Expire(now) }

func (a *asking) Deadline() (time.Duration, bool) { return a.window.Deadline() }

// ParsePlace reads SWITCH:PORT, where port 0 is the switch itself.
func ParsePlace(text string) (at policy.Place, err error) {
	colon := strings.LastIndexByte(text, ':')
	if colon < 1 {
		return at, fmt.Errorf("place %q: want SWITCH:PORT", text)
	}
	num, err := strconv.ParseUint(text[colon+1:], 10, 8)
	if err != nil || ib.PortNum(num) > maxSwitchPort {
		return at, fmt.Errorf("place %q: want the number of a port, 0 to %d, behind the colon", text, maxSwitchPort)
	}
	at = policy.Place{Name: text[:colon], Port: ib.PortNum(num)}
	if digits, isGUID := strings.CutPrefix(at.Name, "0x"); isGUID {
		guid, err := strconv.ParseUint(digits, 16, 64)
		if err != nil || guid == 0 {
			return at, fmt.Errorf("place %q: want a node GUID before the colon", text)
		}
		at.Switch, at.Name = ib.NodeGUID(guid), ""
	}
	return at, nil
}

// maxSwitchPort is the highest number of a port.
const maxSwitchPort ib.PortNum = 254
