package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/watch"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// hosts is what hosts were asked to register again with subnet administration.
type hosts struct {
	asked watch.Asked
	// renewed reports whether Config.Reregister is done with.
	renewed bool
	// succeeds reports whether this manager has taken over from another, unasked that hosts were not
	// asked to register again since: where no port is written another MasterSMLID, they have to be
	// told in so many words.
	succeeds, unasked bool
}

// reregisters reports whether all hosts are to be asked to register again, and were not.
func (e *Engine) reregisters() bool {
	return e.config.Reregister && !e.hosts.renewed || e.hosts.unasked && e.wanted().MasterLID() != ib.LIDReserved
}

// reregistered enters who was asked to register again by the pass that has ended.
func (e *Engine) reregistered(failures []apply.Failure) {
	if !e.reregisters() {
		return
	}
	failed := make(map[*observed.Port]bool)
	for _, f := range failures {
		failed[f.Port] = failed[f.Port] || f.Attribute == smp.AttrPortInfo
	}
	e.hosts.asked.Enter(e.now, e.ends, e.desired.Tables, failed)
	if _, waits := e.hosts.asked.Next(); !waits {
		e.hosts.renewed, e.hosts.unasked = true, false
	}
}

// askHosts asks those again that did not answer when they were asked to register again.
func (e *Engine) askHosts(now time.Duration) bool {
	at, some := e.hostsDue()
	if some = some && now >= at; some {
		e.hosts.asked.Again(now, e.ends, e.desired.Tables)
	}
	return some && e.compare()
}

// hostsDue is when the next of them is to be asked.
func (e *Engine) hostsDue() (at time.Duration, some bool) {
	if !e.reregisters() {
		return 0, false
	}
	return e.hosts.asked.Next()
}

// Reregister has every host that is up register again with subnet administration, with the
// next pass.
func (e *Engine) Reregister() {
	e.config.Reregister, e.hosts.renewed, e.standby.registered, e.hosts.asked = true, false, false, watch.Asked{}
	e.membersChanged()
}
