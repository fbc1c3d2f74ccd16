package qib

import (
	"time"

	"github.com/ibwarden/ibwarden/ib/smp"
)

// TrainTime is how long a link takes to train, once both ends poll.
const TrainTime = 20 * time.Millisecond

const (
	defaultWidth = smp.LinkWidth1X | smp.LinkWidth4X
	defaultSpeed = smp.LinkSpeedSDR
)

// End is what one end of a cable offers the other.
type End struct {
	Polls bool // it wants a link, or has one
	Width smp.LinkWidth
	Speed smp.LinkSpeed
}

type linkState uint8

// States of the link in IBCStatus.
const (
	linkDown linkState = iota
	linkInit
	linkArmed
	linkActive
)

type training uint8

// States of training in IBCStatus.
const (
	trainDisabled training = 0
	trainUp       training = 1
	trainPolling  training = 2
	trainSleeping training = 5
	trainConfig   training = 8
)

// port is the state of the adapter's end of the cable.
type port struct {
	training training
	link     linkState
	due      time.Duration // when a link is trained that is being trained
	peer     End           // zero without a cable
	ready    bool
}

// Deadline is the time at which Advance is to be called next; false when there is none.
func (a *Adapter) Deadline() (time.Duration, bool) { return a.due, a.training == trainConfig }

// State is the state of the port's link, as its IBTA value.
func (a *Adapter) State() smp.PortState { return smp.PortDown + smp.PortState(a.link) }

// SetPeer says what the other end offers from now on; the zero End is a pulled cable.
func (a *Adapter) SetPeer(e End) {
	a.peer = e
	switch {
	case a.training == trainPolling:
		a.train()
	case (a.training == trainUp || a.training == trainConfig) && !a.shares(e):
		if a.training == trainUp {
			a.count(LinkDowned, 1)
		}
		// It is down at the other end already. To say so there again would take down
		// the link that the other end may be training by then, and so on.
		a.training, a.link = trainPolling, linkDown
		a.changed()
		a.transmit()
	}
}

// SetReady says whether the other end has room for data packets. While it has none, they
// wait in their buffers.
func (a *Adapter) SetReady(ready bool) {
	a.transmit() // counts how long they waited
	a.port.ready = ready
	a.transmit()
}

// LinkError counts something that went wrong on the cable. What the driver makes of it is
// the driver's: when LinkRecovery moves, it takes the link down.
func (a *Adapter) LinkError(c Counter) {
	a.count(c, 1)
	if c == LinkRecovery {
		a.changed()
	}
}

// shares reports whether a link with the other end is possible.
func (a *Adapter) shares(e End) bool {
	mine := a.settings.End
	return a.loops() || e.Polls && mine.Width&e.Width != 0 && mine.Speed&e.Speed != 0
}

func (a *Adapter) loops() bool { return a.regs[regIBCCtrl/8]&ibcLoopback != 0 }

// command carries out the commands in a write of IBCCtrl.
func (a *Adapter) command(v uint64) {
	if a.regs[regControl/8]&controlLinkEn == 0 {
		return
	}
	switch v >> 16 & 3 {
	case 1:
		a.rest(trainDisabled)
	case 2:
		a.poll()
	case 3:
		a.rest(trainSleeping)
	}
	switch link, init := v>>18&3, v>>16&3; {
	case link == 1 && init != 0: // down is what init has done, and it says to which state
	case link == 1 && a.training != trainDisabled && v&ibcDefaultSlp != 0:
		a.rest(trainSleeping)
	case link == 1 && a.training != trainDisabled:
		a.poll()
	case link == 2 && (a.link == linkInit || a.link == linkActive):
		a.setLink(linkArmed)
	case link == 3 && a.link == linkArmed:
		a.setLink(linkActive)
	}
}

// rest takes the link down, and does not train it again.
func (a *Adapter) rest(t training) {
	polled := a.polls()
	was := a.training
	a.training, a.link = t, linkDown
	if polled {
		a.offer(false)
	}
	if was != t {
		a.changed()
	}
	a.transmit() // nothing waits for room at an end that is gone
}

// poll takes the link down if it is up, and lets it train.
func (a *Adapter) poll() {
	if a.training == trainPolling {
		return
	}
	a.rest(trainPolling)
	a.offer(true)
	a.train()
}

// train begins to train with an end that polls.
func (a *Adapter) train() {
	if a.shares(a.peer) {
		a.training, a.due = trainConfig, a.now+TrainTime
	}
}

// trained is the end of training.
func (a *Adapter) trained() {
	a.training = trainUp
	a.setLink(linkInit)
}

func (a *Adapter) polls() bool {
	return a.training == trainPolling || a.training == trainConfig || a.training == trainUp
}

// offer tells the other end whether this one polls.
func (a *Adapter) offer(polls bool) {
	e := a.settings.End
	e.Polls = polls
	if !polls {
		e = End{}
	}
	a.events = append(a.events, Event{Kind: Link, End: e})
}

func (a *Adapter) setLink(s linkState) {
	a.link = s
	a.changed()
	a.transmit()
}

// changed notifies the driver of a change of the link.
func (a *Adapter) changed() {
	a.count(StatusChange, 1)
	a.raise(errIBStatus)
}
