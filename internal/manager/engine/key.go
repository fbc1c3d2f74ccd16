package engine

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
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

func (k *keying) deadline(e *Engine, sooner func(time.Duration, bool)) {
	sooner(0, e.window.Idle() && !k.awaitsKeeping(&e.keys))
}

// secured handles the result of writing the keys.
func (k *keying) secured(e *Engine, now time.Duration) {
	failures, writes := k.run.Failures(), k.run.Writes()
	for _, f := range failures {
		e.emit(event.Failed{Failure: f})
	}
	unset := e.keys.Unset
	locked := e.keys.Took(now+e.config.Periods.Drift, e.fabric, e.ends, failures)
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

func (e *Engine) openKeys() {
	e.keys = mkey.NewKeying(e.config.Keys)
	if e.config.Keys != nil {
		e.config.Keys.Declared = mkey.Declared(func() *cables.List { return e.cabling.list })
	}
}

// givesKeys reports whether the engine writes M_Keys by itself.
func (e *Engine) givesKeys() bool { return e.keys.Config != nil && !e.config.Hold }

// Keys is the key book; nil when ports get no keys of their own. It changes while the
// engine runs, and its owner stores it when its Version has changed.
func (e *Engine) Keys() *mkey.Book {
	if e.keys.Config == nil {
		return nil
	}
	return e.keys.Config.Book
}

// KeysKept says that the book was stored at this version.
func (e *Engine) KeysKept(version uint64) { e.keys.Keep(version) }

// RenewKeys requests new keys for the end ports of these GUIDs, or for all when there are
// none, and returns their number. They get them when the engine is at rest.
func (e *Engine) RenewKeys(guids ...ib.PortGUID) (n int) {
	return e.keys.Renew(e.ends, guids)
}

// rekeys reports whether keys are to be changed and nothing else is under way.
func (e *Engine) rekeys() bool {
	return e.keys.Due && e.watches()
}

// lockedOut returns an error if the devices of a subnet, before the first policy, do not
// accept the manager's keys.
func (e *Engine) lockedOut(f *observed.Fabric) error {
	if !e.givesKeys() || e.settled {
		return nil
	}
	return mkey.LockedOut(f)
}

// KeysRead tells, after event.LockedOut, that the book has the keys that other managers
// stored, or why they cannot be read.
func (e *Engine) KeysRead(err error) {
	again, why := e.keys.Read(err)
	if again {
		e.agenda.wantSweep("other managers have stored M_Keys meanwhile")
	} else if why != nil {
		e.refuse(e.now, nil, why)
	}
}

// askBehind asks the device at the other end of a cable for its NodeInfo, with every key
// that may be sent there, and returns the number of requests; once sends each only once.
func (e *Engine) askBehind(p *observed.Port, path mad.Path, once bool, then func(transact.Reply)) int {
	keys := e.keys.Behind(p, e.config.MKey)
	for _, key := range keys {
		e.beside.window.Do(transact.Request{
			Path: path, Respond: observed.RespTimeAssumed.Duration(), MKey: key,
			Method: mad.MethodGet, Attribute: smp.AttrNodeInfo, Probe: once,
		}, then)
	}
	return len(keys)
}
