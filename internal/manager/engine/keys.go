package engine

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

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

// KeysNotKept says that the book could not be stored: the ports that wait for it get no
// new key until KeysKept, or the next full sweep.
func (e *Engine) KeysNotKept(err error) {
	if e.state() == stateKeying && e.awaitsKeeping() {
		e.emit(event.Warned{Text: fmt.Sprintf("M_Keys stay as they are: what is needed to find them again could not be kept: %v", err)})
		e.writing.run.Stop()
		e.keys.Abandon()
	}
}

// awaitsKeeping reports whether keys wait to be written until their generations are
// stored.
func (e *Engine) awaitsKeeping() bool {
	return e.writing.run.Pending() && e.keys.Config.Keep && e.keys.Kept != e.Keys().Version()
}

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

// secure starts to give every end port the key that it ought to have.
func (e *Engine) secure(now time.Duration) {
	p, err := e.keys.Want(now, e.fabric, e.ends, e.guardOf(e.wanted()))
	if err != nil {
		e.emit(event.Warned{Text: err.Error()})
	}
	e.step(onKeysDue, other{is: stateKeying})
	e.writing = writing{run: apply.Start(e.window, p, e.config.Limits.Window)}
}

// keepOn continues to write keys; false while their generations are not stored yet.
func (e *Engine) keepOn(now time.Duration) bool {
	if e.awaitsKeeping() {
		return false
	}
	if e.writing.run.Advance() {
		e.secured(now)
	} else {
		e.enterStage()
	}
	return true
}

// secured handles the result of writing the keys.
func (e *Engine) secured(now time.Duration) {
	failures, writes := e.writing.run.Failures(), e.writing.run.Writes()
	for _, f := range failures {
		e.emit(event.Failed{Failure: f})
	}
	unset := e.keys.Unset
	locked := e.keys.Took(now+e.config.DriftPeriod, e.fabric, e.ends, failures)
	if writes > 0 {
		e.emit(mkey.GivenKeys{Ports: writes, Failures: len(failures)})
	}
	e.writing = writing{}
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

// readRest reads the tables, with the present keys, and reads again what was read of the
// guards before there were any.
func (e *Engine) readRest() {
	e.step(onTablesUnread, other{is: stateReading})
	e.begin(event.PhaseTables)
	for _, p := range mkey.GuardPorts(e.fabric) {
		e.reread(p, smp.AttrPortInfo, p.PortInfoBlock(), nil)
	}
}

// rested takes over the tables.
func (e *Engine) rested(now time.Duration) {
	d := e.sweep.discovery
	e.sweep.discovery = nil
	more := d.Faults()[e.sweep.told:]
	e.tell(more)
	e.faults = append(e.faults, more...)
	if !e.isMaster() {
		e.stoodBy(now)
		return
	}
	if e.master.Wait.Trial {
		e.tried(now)
		return
	}
	e.cutMoved() // while the ports were read again
	e.lead(now)
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
