package mastership

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// polled is the polling of another manager.
type polled struct {
	on     bool
	remote Remote // Info as last answered
	next   time.Duration
	asked  bool // a poll was sent
	alive  bool // and answered by a manager at work
	frozen bool // the last answer had the ActCount of the one before
	failed int  // polls in a row
	// interval is the time between polls, and polls how many in a row may fail.
	interval time.Duration
	polls    int
	since    time.Duration // when the first poll of those was sent that failed in a row
}

// offer is the attempt to hand mastership over.
type offer struct {
	open bool
	to   Remote
	// planned reports whether an administrator wants it, whatever the ranks are.
	planned bool
	tries   int
	next    time.Duration
}

// observe begins to poll a manager, one interval from now.
func (e *Election) observe(now time.Duration, r Remote) {
	e.watch = e.watching(r)
	e.watch.next = now + e.watch.interval
}

// watching is the polling of a manager: one that shares a secret with this one answers
// whatever it is about, any other may be busy for longer.
func (e *Election) watching(r Remote) polled {
	w := polled{on: true, remote: r, interval: e.config.PollInterval, polls: e.config.Polls}
	if e.config.Named && e.config.MasterTimeout != 0 && e.isOurs(&r) {
		// The last poll that was answered may have been answered just before the end:
		// the next begins an interval later, and each fails an interval after that.
		w.interval, w.polls = e.config.MasterTimeout/(partnerPolls+1), partnerPolls
	}
	return w
}

// Watched is the manager that is polled; false for none.
func (e *Election) Watched() (r Remote, some bool) { return e.watch.remote, e.watch.on }

// Due is when Tick is wanted next; ok is false when it is not.
func (e *Election) Due() (at time.Duration, ok bool) {
	switch {
	case e.watch.on && e.offer.open:
		return min(e.watch.next, e.offer.next), true
	case e.watch.on:
		return e.watch.next, true
	case e.offer.open:
		return e.offer.next, true
	}
	return 0, false
}

// Tick lets time pass. It polls, counts polls that failed, takes over from a
// master that failed too often, and repeats an offer of mastership or gives it
// up, in which case the manager stays master.
func (e *Election) Tick(now time.Duration) Effects {
	effects := e.still()
	if e.offer.open && now >= e.offer.next {
		if effects.Send = e.renewOffer(now); effects.Send == nil {
			effects.Why = e.offer.to.Info.GUID.String() + " does not take mastership"
			e.withdraw(effects.Why)
		}
	}
	w := &e.watch
	if !w.on || now < w.next {
		return effects
	}
	if w.asked && !w.alive {
		w.failed++
	} else {
		w.failed = 0
	}
	if w.failed >= w.polls {
		lost := e.lost(now)
		lost.Send = effects.Send
		return lost
	}
	if e.owesHandover() {
		e.offer = offer{open: true, to: w.remote}
		effects.Send = append(effects.Send, e.renewOffer(now)...)
	}
	if w.failed == 0 {
		w.since = now
	}
	w.asked, w.alive = true, false
	w.next = now + w.interval
	e.actCount++
	poll := Message{To: w.remote.Address, GUID: w.remote.Info.GUID, Method: mad.MethodGet}
	if e.config.Named {
		poll.Info = e.InfoFor(poll.GUID)
	}
	effects.Send = append(effects.Send, poll)
	return effects
}

// owesHandover reports whether this manager is master beside another one that outranks it,
// and offers it nothing any more: the offer was refused, or its end was not seen. It
// offers mastership again, or both would wait for each other.
func (e *Election) owesHandover() bool {
	other := &e.watch.remote.Info
	return e.state == smp.SMMaster && !e.offer.open && other.SMState == smp.SMMaster && !e.outranks(other)
}

// WaitsFor is the master that has to hand over to this manager, which stands by; waits
// is false when there is none.
func (e *Election) WaitsFor() (guid ib.PortGUID, waits bool) {
	return e.watch.remote.Info.GUID, e.state == smp.SMStandby && e.standbyVerdict() == WaitHandover
}

// Offers reports whether mastership is offered to another manager.
func (e *Election) Offers() bool { return e.offer.open }

// renewOffer sends HANDOVER, unless it was sent often enough.
func (e *Election) renewOffer(now time.Duration) []Message {
	if e.offer.tries >= e.config.Polls {
		return nil
	}
	e.offer.tries++
	e.offer.next = now + e.config.PollInterval
	e.offered = e.offer
	return []Message{e.control(smp.SMControlHandover, e.offer.to)}
}

// lost gives the polled manager up.
func (e *Election) lost(now time.Duration) Effects {
	to, why, since := e.state, "%s does not answer", e.watch.since
	if e.watch.frozen {
		e.frozen, why, since = e.watch.remote.Info, "%s answers but does nothing", now
	}
	if e.state == smp.SMStandby {
		to = smp.SMDiscovering
	}
	guid := e.watch.remote.Info.GUID
	e.watch = polled{}
	effects := e.move(to, why, guid)
	effects.Sweep, effects.Lost, effects.Since, effects.Former = true, true, since, guid
	return effects
}

// Answered takes the answer to a message. A poll is answered well by the
// manager that it went to, when that is master or on its way there and its
// ActCount has moved. A refused HANDOVER is not repeated; one that is answered well
// has been obeyed, whether or not ACKNOWLEDGE follows: OpenSM sends none, and writes
// nothing while it sees a second master. If nobody is master then, polls fail.
func (e *Election) Answered(m Message, status mad.Status, info smp.SMInfo) Effects {
	effects := e.still()
	w := &e.watch
	switch {
	case m.Control == smp.SMControlHandover && status != mad.StatusOK && e.offer.open && e.offer.to.Info.GUID == m.GUID:
		effects.Why = m.GUID.String() + " refuses mastership"
		e.withdraw(effects.Why)
		e.offered = offer{}
	case m.Control == smp.SMControlHandover && status == mad.StatusOK && e.hasOffered(m.GUID) &&
		info.GUID == m.GUID && e.counts(&Remote{Info: info, Address: m.To}):
		sent := e.offered.next - e.config.PollInterval
		e.watch = e.watching(e.offered.to)
		e.watch.next = sent + e.watch.interval
		return e.handedOver(m.GUID)
	case m.Method != mad.MethodGet || status != mad.StatusOK || !w.on || info.GUID != w.remote.Info.GUID:
	case e.config.Named && !e.counts(&Remote{Info: info, Address: m.To}):
	case e.state == smp.SMMaster && info.SMState != smp.SMMaster:
		// The second master has stepped back: decide again.
		e.watch = polled{}
		effects.Sweep = true
		effects.Why = info.GUID.String() + " is no longer master"
	case e.state == smp.SMStandby && w.remote.Info.SMState == smp.SMMaster && info.SMState < smp.SMMaster && info.SMState != smp.SMDiscovering:
		// It has handed over, or tried to.
		e.watch = polled{}
		effects = e.move(smp.SMDiscovering, "%s is no longer master", info.GUID)
		effects.Sweep, effects.Former = true, info.GUID
	default:
		w.frozen = info.ActCount == w.remote.Info.ActCount
		w.alive = !w.frozen && (info.SMState == smp.SMMaster || info.SMState == smp.SMDiscovering)
		w.remote.Info = info
	}
	return effects
}
