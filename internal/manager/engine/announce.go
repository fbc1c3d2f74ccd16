package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// announcing is the phase in which hosts are told of a new master, before the wait of a takeover is
// over. moving reports whether the LID of the master is on its way to this manager's port.
type announcing struct {
	writing
	moving bool
}

// announces reports whether hosts are to be told of the new master before the end of the
// wait: where the subnet was as the policy wants it when it was last read.
func (e *Engine) announces() bool {
	s := &e.standby
	self := e.fabric.Self
	return s.ready != nil && !s.announced && !e.master.Other && self != nil && self.InfoRead && self.Info.LID == s.lid
}

// announce has hosts find the new master. Where the policy sets a LID aside for it, that
// comes to its port, which hosts are not told.
func (e *Engine) announce() {
	e.standby.announced, e.standby.serves = true, true
	e.proof.epoch++
	e.begin(event.PhaseAnnounce)
	a := new(announcing)
	e.step(onNewMaster, a)
	if a.moving = e.moveLID(); !a.moving {
		a.tellLID(e)
	}
}

func (*announcing) state() state { return stateAnnouncing }

func (a *announcing) work(e *Engine) (apply.Work, bool) {
	w, _ := a.writing.work(e)
	w.Phase = event.PhaseAnnounce
	return w, true
}

// advance goes on with the wait in the end; what failed is found after it.
func (a *announcing) advance(e *Engine, now time.Duration) bool {
	switch {
	case !e.isMaster():
		e.rest(now, onDeposed)
	case a.moving:
		a.tellLID(e)
	case a.ended(e):
		e.lead(now)
	}
	return true
}

// tellLID writes MasterSMLID, and nothing else, to the ports that have another.
// PortInfo is written as it was just read: of an end port it has no check in it that keeps
// others apart, and all of it is read again after the wait.
func (a *announcing) tellLID(e *Engine) {
	if a.moving { // subnet administration answers from what has moved
		a.moving = false
		e.proof.epoch++
		e.begin(event.PhaseAnnounce)
	}
	want := observed.NewDesired(e.fabric)
	if lid, m := e.fabric.Self.Info.LID, e.wanted().MasterLID(); m == ib.LIDReserved || lid == m {
		plan.NameMaster(want, e.ends, lid, e.standby.registered)
	}
	a.writing = e.newWriting(plan.Diff(e.fabric, want))
}
