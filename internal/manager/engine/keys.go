package engine

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
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
