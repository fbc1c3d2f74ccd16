package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/event"
)

// releasing is the phase in which M_Keys are cleared for a handover.
type releasing struct{ writing }

// release clears the M_Key of every port.
func (e *Engine) release() {
	e.cancelLooks()
	e.step(onHandover, &releasing{e.newWriting(e.keys.Release(e.fabric, e.ends))})
}

func (*releasing) state() state { return stateReleasing }

func (r *releasing) advance(e *Engine, now time.Duration) bool {
	if r.ended(e) {
		r.released(e, now)
	}
	return true
}

// released hands over, if the other manager still wants that.
func (r *releasing) released(e *Engine, now time.Duration) {
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
}
