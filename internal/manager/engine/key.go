package engine

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
)

// keying is the phase in which M_Keys are written.
type keying struct{ writing }

// secure starts to give every end port the key that it ought to have.
func (e *Engine) secure(now time.Duration) {
	p, err := e.keys.Want(now, e.fabric, e.ends, e.guardOf(e.wanted()))
	if err != nil {
		e.emit(event.Warned{Text: err.Error()})
	}
	e.step(onKeysDue, &keying{e.newWriting(p)})
}

func (*keying) state() state { return stateKeying }

// awaitsKeeping reports whether keys wait to be written until their generations are
// stored.
func (k *keying) awaitsKeeping(keys *mkey.Keying) bool {
	return k.run.Pending() && keys.Config.Keep && keys.Kept != keys.Config.Book.Version()
}

func (k *keying) advance(e *Engine, now time.Duration) bool {
	if k.awaitsKeeping(&e.keys) {
		return false
	}
	if k.ended(e) {
		k.secured(e, now)
	}
	return true
}

func (k *keying) deadline(e *Engine, sooner func(time.Duration)) {
	if e.window.Idle() && !k.awaitsKeeping(&e.keys) {
		sooner(0)
	}
}

// secured handles the result of writing the keys.
func (k *keying) secured(e *Engine, now time.Duration) {
	failures, writes := k.run.Failures(), k.run.Writes()
	for _, f := range failures {
		e.emit(event.Failed{Failure: f})
	}
	unset := e.keys.Unset
	locked := e.keys.Took(now+e.config.DriftPeriod, e.fabric, e.ends, failures)
	if writes > 0 {
		e.emit(mkey.GivenKeys{Ports: writes, Failures: len(failures)})
	}
	switch {
	case !e.isMaster():
		e.rest(now, onDeposed)
	case len(locked) > 0 && !e.settled:
		e.lockOut(now, &mkey.LockedError{Ports: locked})
	case e.sweep.discovery == nil:
		e.step(onDone, watching{})
		e.agenda.restate = e.agenda.restate || e.keys.Unset < unset // the last result counts them as failures
		e.begin(event.PhaseWatch)
	default:
		e.readRest()
	}
}

// KeysNotKept says that the book could not be stored: the ports that wait for it get no
// new key until KeysKept, or the next full sweep.
func (e *Engine) KeysNotKept(err error) {
	if k, is := e.phase.(*keying); is && k.awaitsKeeping(&e.keys) {
		e.emit(event.Warned{Text: fmt.Sprintf("M_Keys stay as they are: what is needed to find them again could not be kept: %v", err)})
		k.run.Stop()
		e.keys.Abandon()
	}
}
