package engine

import (
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/election"
	"github.com/ibwarden/ibwarden/internal/manager/event"
)

// handing is the way of the subnet to a manager that was named and does not share the
// secret: it can write to no port that has an M_Key of this fabric, so that ports give
// theirs up before it is handed over to.
type handing struct {
	// offer is the HANDOVER that waits for that; open tells that there is one.
	offer election.Message
	open  bool
	// released tells that ports have given up their keys, for nothing so far.
	released bool
}

// delaysHandover reports whether a HANDOVER has to wait until ports have given up their
// keys, and keeps it for then.
func (e *Engine) delaysHandover(m election.Message) bool {
	if m.Method != mad.MethodSet || m.Control != smp.SMControlHandover || !e.givesKeys() || e.handing.released {
		return false
	}
	if slices.ContainsFunc(e.here, func(r election.Remote) bool { return r.Info.GUID == m.GUID && e.managers.Proves(r) }) {
		return false
	}
	e.handing.offer, e.handing.open = m, true
	return true
}

// handsOver reports whether ports have to give up their keys now.
func (e *Engine) handsOver() bool {
	return e.handing.open && e.state == stateWatching && e.isMaster() && e.managers.Offers()
}

// release has every port give up its M_Key.
func (e *Engine) release() {
	e.hush()
	e.state, e.stage = stateReleasing, ""
	e.run = apply.Start(e.window, e.keys.Release(e.fabric, e.ends), e.config.Limits.Window)
}

// releasing goes on with that; it reports whether there is something to do.
func (e *Engine) releasing(now time.Duration) bool {
	if !e.run.Advance() {
		e.enterStage()
		return true
	}
	h := &e.handing
	e.emit(event.Released{To: h.offer.GUID, Ports: e.run.Writes(), Failures: len(e.run.Failures())})
	for _, f := range e.run.Failures() {
		e.emit(event.Failed{Failure: f})
	}
	e.run, e.baseline = nil, nil
	h.open, h.released = false, true
	e.rest(now, stateWatching)
	if e.isMaster() && e.managers.Offers() {
		e.sendSMInfo(h.offer)
	}
	e.keepKeys()
	return true
}

// keepKeys has ports given keys again that gave them up for a manager that did not
// take the subnet.
func (e *Engine) keepKeys() {
	h := &e.handing
	if !e.isMaster() {
		*h = handing{}
	} else if h.released && !e.managers.Offers() {
		*h = handing{}
		e.wantSweep("M_Keys are given again: the subnet was not taken")
	}
}
