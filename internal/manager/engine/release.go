package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mastership"
)

// handover is a handover to a named manager that does not share the
// secret: it cannot write to a port that has an M_Key of this fabric, so the M_Keys
// are cleared before the handover.
type handover struct {
	// offer is the HANDOVER that waits for that, if open.
	offer mastership.Message
	open  bool
	// released says that the keys were cleared and the handover is not complete.
	released bool
}

// delaysHandover reports whether a HANDOVER has to wait until the M_Keys are cleared,
// and keeps it until then.
func (e *Engine) delaysHandover(m mastership.Message) bool {
	if m.Method != mad.MethodSet || m.Control != smp.SMControlHandover || !e.givesKeys() || e.handover.released {
		return false
	}
	if e.master.Sharing(m.GUID) {
		return false
	}
	e.handover.offer, e.handover.open = m, true
	return true
}

// releasing is the phase in which M_Keys are cleared for a handover.
type releasing struct{ writing }

// release clears the M_Key of every port.
func (e *Engine) release() {
	e.cancelLooks()
	e.step(onHandover, &releasing{e.newWriting(e.keys.Release(e.fabric, e.ends))})
}

func (*releasing) state() state { return stateReleasing }

// advance hands over in the end, if the other manager still wants that.
func (r *releasing) advance(e *Engine, now time.Duration) bool {
	if !r.ended(e) {
		return true
	}
	h := &e.handover
	e.emit(event.Released{To: h.offer.GUID, Ports: r.run.Writes(), Failures: len(r.run.Failures())})
	for _, f := range r.run.Failures() {
		e.emit(event.Failed{Failure: f})
	}
	e.proof.baseline = nil
	h.open, h.released = false, true
	e.rest(now, onDone)
	if e.isMaster() && e.master.Offers() {
		e.master.Send(h.offer)
	}
	e.restoreKeys()
	return true
}

// mustReleaseKeys reports whether the M_Keys have to be cleared now.
func (e *Engine) mustReleaseKeys() bool {
	return e.handover.open && e.isMaster() && e.master.Offers()
}

// restoreKeys starts a sweep that writes the M_Keys again, if they were cleared for a
// manager that did not take over the subnet.
func (e *Engine) restoreKeys() {
	h := &e.handover
	if !e.isMaster() {
		*h = handover{}
	} else if h.released && !e.master.Offers() {
		*h = handover{}
		e.agenda.wantSweep("M_Keys are given again: the subnet was not taken")
	}
}
