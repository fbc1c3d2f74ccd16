package endpoint

import (
	"fmt"
	"time"
)

// context is what queue pairs and EE contexts share: attributes, a state, and a
// turn at their port.
type context struct {
	d         *Device
	service   Service
	domain    Domain
	number    uint32
	qp        *QP // whose context it is; nil for an EE context
	state     State
	destroyed bool
	attr      Attr

	end      ConnectionEnd // of a connected service
	queued   bool          // in its port's ready queue
	timer    int           // place in the device's timers, from 1; 0 for none
	deadline time.Duration // when that is not 0
}

func (c *context) port() *port { return &c.d.ports[c.attr.Port] }

func (c *context) errorf(kind error, format string, args ...any) error {
	what := "QP"
	if c.service == eeContext {
		what = "EE context"
	}
	return fmt.Errorf("%s %d: %s: %w", what, c.number, fmt.Sprintf(format, args...), kind)
}

// modify checks everything before it changes anything.
func (c *context) modify(caller Caller, to State, mask AttrMask, a Attr) error {
	if c.destroyed {
		return c.errorf(ErrDestroyed, "modify")
	}
	wants, takes, ok := c.service.change(c.state, to)
	switch {
	case !ok:
		return c.errorf(ErrState, "modify from %v to %v", c.state, to)
	case mask&wants != wants:
		return c.errorf(ErrAttribute, "modify from %v to %v: attributes %#x, want %#x", c.state, to, mask, wants)
	case mask&^(wants|takes) != 0:
		return c.errorf(ErrAttribute, "modify from %v to %v: attributes %#x, takes %#x", c.state, to, mask, wants|takes)
	}
	next := c.attr
	next.set(mask, &a)
	if err := c.checkKeys(caller, mask, &next); err != nil {
		return err
	}
	if err := c.checkConnection(mask, &next); err != nil {
		return err
	}
	from := c.state
	c.attr = next
	switch to {
	case StateReset:
		c.reset()
	case StateErr:
		c.fail()
		c.end.DropAnswers()
	default:
		c.state = to
		c.enter(from)
	}
	return nil
}

// set takes the fields of mask from b.
func (a *Attr) set(mask AttrMask, b *Attr) {
	take(mask&AttrPort, &a.Port, b.Port)
	take(mask&AttrPKeyIndex, &a.PKeyIndex, b.PKeyIndex)
	take(mask&AttrQKey, &a.QKey, b.QKey)
	take(mask&AttrPath, &a.Path, b.Path)
	take(mask&AttrPathMTU, &a.PathMTU, b.PathMTU)
	take(mask&AttrRemote, &a.Remote, b.Remote)
	take(mask&AttrReceivePSN, &a.ReceivePSN, b.ReceivePSN)
	take(mask&AttrSendPSN, &a.SendPSN, b.SendPSN)
	take(mask&AttrMinRNRTimer, &a.MinRNRTimer, b.MinRNRTimer)
	take(mask&AttrTimeout, &a.Timeout, b.Timeout)
	take(mask&AttrRetryCount, &a.RetryCount, b.RetryCount)
	take(mask&AttrRNRRetryCount, &a.RNRRetryCount, b.RNRRetryCount)
}

func take[T any](wanted AttrMask, to *T, from T) {
	if wanted != 0 {
		*to = from
	}
}

// checkKeys checks the port, the P_Key index within its table, and the Q_Key.
func (c *context) checkKeys(caller Caller, mask AttrMask, a *Attr) error {
	if mask&(AttrPort|AttrPKeyIndex) != 0 {
		p, err := c.d.port(a.Port)
		if err != nil {
			return c.errorf(err, "modify")
		}
		hasIndex := !c.service.isRaw()
		switch size := p.PKeyTableLen(); {
		case hasIndex && int(a.PKeyIndex) >= size:
			return c.errorf(ErrPKeyIndex, "P_Key index %d of port %d: want 0 to %d", a.PKeyIndex, a.Port, size-1)
		case hasIndex && !p.key(a.PKeyIndex).IsValid():
			return c.errorf(ErrPKeyEmpty, "P_Key index %d of port %d", a.PKeyIndex, a.Port)
		}
	}
	if mask&AttrQKey != 0 && a.QKey >= qkeyReserved && caller != Kernel {
		return c.errorf(ErrPermission, "Q_Key %v", a.QKey)
	}
	return nil
}

func (c *context) checkConnection(mask AttrMask, a *Attr) error {
	if mask&AttrPath != 0 {
		if err := c.d.ports[a.Port].checkAddress(&a.Path); err != nil {
			return c.errorf(ErrAttribute, "path: %v", err)
		}
	}
	switch {
	case mask&AttrPath != 0 && !a.Path.DLID.IsUnicast():
		return c.errorf(ErrAttribute, "path to LID %v: want a unicast one", a.Path.DLID)
	case mask&AttrPathMTU != 0 && (!a.PathMTU.IsValid() || a.PathMTU.Bytes() > c.d.ports[a.Port].mtu()):
		return c.errorf(ErrAttribute, "path MTU %v: want at most %d, the port's", a.PathMTU, c.d.ports[a.Port].mtu())
	case max(a.Remote, a.ReceivePSN, a.SendPSN) > max24:
		return c.errorf(ErrAttribute, "remote %#x, PSNs %#x and %#x: want 24 bits", a.Remote, a.ReceivePSN, a.SendPSN)
	case max(uint8(a.Timeout), a.MinRNRTimer) > 31:
		return c.errorf(ErrAttribute, "timeout %d, RNR timer %d: want 0 to 31", a.Timeout, a.MinRNRTimer)
	case max(a.RetryCount, a.RNRRetryCount) > 7:
		return c.errorf(ErrAttribute, "retry counts %d and %d: want 0 to 7", a.RetryCount, a.RNRRetryCount)
	}
	return nil
}

// checkAddress checks the fields of an address but for the DLID.
func (p *port) checkAddress(a *Address) error {
	switch {
	case a.SL > 15:
		return fmt.Errorf("SL %d: want 0 to 15", a.SL)
	case a.FlowLabel >= 1<<20:
		return fmt.Errorf("flow label %#x: want 20 bits", a.FlowLabel)
	}
	if a.Global {
		if _, ok := p.GID(int(a.SGIDIndex)); !ok {
			return fmt.Errorf("GID index %d: the port has no such entry", a.SGIDIndex)
		}
	}
	return nil
}

// enter does what a state begins with.
func (c *context) enter(from State) {
	switch {
	case c.state == StateRTR && c.service.isRaw():
		p := c.port()
		p.raw = append(p.raw, c.qp)
	case c.state == StateRTS && from == StateRTR && c.service.isDatagram():
		c.qp.psn = c.attr.SendPSN
	case c.service.isDatagram() || c.service == RD:
	case c.state == StateRTR:
		c.end.Open(reach{c.d, c.domain}, c.settings())
	default:
		c.end.ConnectionSettings = c.settings()
		if from == StateRTR {
			c.end.Start()
		}
	}
	c.kick()
}

func (c *context) settings() ConnectionSettings {
	a := &c.attr
	return ConnectionSettings{
		Transport: c.service.transport(), MTU: a.PathMTU.Bytes(), ReceivePSN: a.ReceivePSN, SendPSN: a.SendPSN,
		MinRNRTimer: a.MinRNRTimer, Timeout: a.Timeout, RetryCount: a.RetryCount, RNRRetryCount: a.RNRRetryCount,
	}
}
