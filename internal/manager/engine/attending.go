package engine

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/election"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// attending is how SMInfo is answered. From the moment on at which a manager is
// announced (event Attending) every question is kept, and answered as soon as it is
// known who asks: who is shown which key rests on the port that a question comes
// from, and a manager that says nothing of itself for the time of a sweep is asked
// again, one that shows no key is not.
type attending struct {
	on   bool  // the subnet has been read, and this manager has a part in it
	err  error // why it cannot have one
	held election.Questions
}

// placed takes notice of where this manager is: from now on it is discovering.
func (e *Engine) placed(guid ib.PortGUID) {
	if e.managers != nil {
		return
	}
	e.managers, e.attending.err = election.New(election.Config{
		GUID: guid, Priority: e.config.Priority,
		SMKey: e.config.SMKey, ShowKey: e.config.ShowSMKey, Trusted: e.config.Trusted,
		Named: e.named(), Key: e.config.SMKeys,
	})
	if e.attending.err == nil {
		e.emit(event.Announced{Port: guid})
	}
}

// attendNow answers the questions that were kept, now that it can be told who asked
// them.
func (e *Engine) attendNow(now time.Duration) {
	held := e.attending.held
	e.attending.on, e.attending.held = true, nil
	for i := range held {
		e.receiveSMInfo(now, &held[i].SMP, held[i].SLID)
	}
}

// keepsToItself reports whether a manager that is new to the subnet does not answer this
// requester yet: it may find a master to which it leaves the subnet, and a manager that
// had handed over to it by then would have left the subnet without a master.
func (e *Engine) keepsToItself(from election.Address) bool {
	return e.named() && e.newcomer && from.Port == 0 && !e.isMaster() && e.managers.State() != smp.SMStandby
}

// handedEarly handles a HANDOVER that arrives while this manager is discovering. It is
// refused, but OpenSM, for one, goes to standby nevertheless: this manager then becomes
// master of a subnet that had another master until now.
func (e *Engine) handedEarly(p *mad.SMP, from election.Address) {
	var sender smp.SMInfo
	if p.Method != mad.MethodSet || p.AttributeModifier != uint32(smp.SMControlHandover) || e.managers.State() != smp.SMDiscovering ||
		sender.UnmarshalBinary(p.Data[:]) != nil || !e.managers.Counts(election.Remote{Info: sender, Address: from}) {
		return
	}
	e.stoodBy = fmt.Sprintf("%s handed over", sender.GUID)
}

// askAgain asks a manager that has taken part in the last round, and whose port
// reports that something has changed: one that stands by and ranks higher tells so
// by that.
func (e *Engine) askAgain(p *observed.Port) {
	switch {
	case !e.isMaster():
	case e.named() && e.counted(p):
		e.askPeers()
	case !e.named() && e.asked(p):
		e.wantElection("the subnet manager at " + p.String() + " reports a change")
	}
}
