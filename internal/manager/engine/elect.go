package engine

import (
	"errors"
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
)

// electing is the phase in which the other managers are asked who is master.
type electing struct{ base }

// startElection reads SMInfo of every other port with IsSM set.
func (e *Engine) startElection(now time.Duration) {
	e.step(onMasterUnknown, electing{})
	e.agenda.election = ""
	e.master.Close()
	if err := e.lockedOut(e.fabric); err != nil {
		e.master.Mute()
		e.lockOut(now, err)
		return
	}
	if err := e.enterElection(); err != nil {
		e.master.Mute()
		e.refuse(now, nil, err)
		return
	}
	e.master.Begin(now)
	e.least += uint64(len(e.master.Rivals()))
}

// enterElection checks that this manager can take part in the election; otherwise it may
// not write.
func (e *Engine) enterElection() error {
	if e.fabric.Self == nil {
		return errors.New("the manager's own port did not answer")
	}
	return e.master.Err()
}

func (electing) state() state { return stateElecting }

func (electing) giveWay(e *Engine, _ time.Duration) bool {
	e.agenda.wantElection("a new policy came meanwhile")
	return true
}

func (electing) work(*Engine) (apply.Work, bool) { return apply.Work{Phase: event.PhaseElect}, true }

// advance goes on as master, or goes to standby.
func (electing) advance(e *Engine, now time.Duration) bool {
	if e.master.Awaits() {
		return false
	}
	if e.master.Named() {
		e.electedNamed(now)
	} else if why, master := e.master.DecideBelieved(now); !master {
		e.standBy(now, event.Deferred{Master: e.master.Master(), Reason: why})
	} else {
		e.lead(now)
	}
	return true
}

// electedNamed goes on as master, stands by, or leaves a subnet to its present master.
func (e *Engine) electedNamed(now time.Duration) {
	if !e.isMaster() {
		if p := e.master.Incumbent(); p != nil {
			e.emit(event.Unexpected{Port: p.GUID, At: facts.Where(p)})
			e.rest(now, onUnexpectedMaster)
			e.agenda.retryAt = now + e.config.Periods.Drift
			return
		}
		e.master.Settle(now)
		if why, master := e.master.Decide(now); !master {
			e.standBy(now, event.Deferred{Master: e.master.Master(), Reason: why})
			return
		}
	}
	e.lead(now)
}
