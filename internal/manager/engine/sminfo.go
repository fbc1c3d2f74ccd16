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

// responder holds SMInfo requests until they can be answered. From the event Announced
// on every request is kept, and answered as soon as its sender is known: the key in the
// answer depends on the port that the request comes from. A manager that does not answer
// for the time of a sweep is asked again, one that answers without a key is not.
type responder struct {
	on   bool  // the subnet has been read, and this manager has a part in it
	err  error // why it cannot have one
	held election.Questions
}

// placed sets this manager's port: from now on it is discovering.
func (e *Engine) placed(guid ib.PortGUID) {
	if e.managers != nil {
		return
	}
	e.managers, e.responder.err = election.New(election.Config{
		GUID: guid, Priority: e.config.Priority,
		SMKey: e.config.SMKey, ShowKey: e.config.ShowSMKey, Trusted: e.config.Trusted,
		Named: e.named(), Key: e.config.SMKeys,
	})
	if e.responder.err == nil {
		e.emit(event.Announced{Port: guid})
	}
}

// answerHeld answers the requests that were kept, now that their senders are known.
func (e *Engine) answerHeld(now time.Duration) {
	held := e.responder.held
	e.responder.on, e.responder.held = true, nil
	for i := range held {
		e.receiveSMInfo(now, &held[i].SMP, held[i].SLID)
	}
}

// staysSilent reports whether a manager that is new to the subnet does not answer this
// requester yet: it may find a master to which it leaves the subnet, and a manager that
// had handed over to it by then would have left the subnet without a master.
func (e *Engine) staysSilent(from election.Address) bool {
	return e.named() && e.newcomer && from.Port == 0 && !e.isMaster() && e.managers.State() != smp.SMStandby
}

// noteEarlyHandover handles a HANDOVER that arrives while this manager is discovering. It is
// refused, but OpenSM, for one, goes to standby nevertheless: this manager then becomes
// master of a subnet that had another master until now.
func (e *Engine) noteEarlyHandover(p *mad.SMP, from election.Address) {
	var sender smp.SMInfo
	if p.Method != mad.MethodSet || p.AttributeModifier != uint32(smp.SMControlHandover) || e.managers.State() != smp.SMDiscovering ||
		sender.UnmarshalBinary(p.Data[:]) != nil || !e.managers.Counts(election.Remote{Info: sender, Address: from}) {
		return
	}
	e.stoodBy = fmt.Sprintf("%s handed over", sender.GUID)
}

// recheckManager reads SMInfo of a manager that took part in the last round, and whose
// port reports a change: a standby of higher rank reports itself that way.
func (e *Engine) recheckManager(p *observed.Port) {
	switch {
	case !e.isMaster():
	case e.named() && e.counted(p):
		e.askPeers()
	case !e.named() && e.asked(p):
		e.wantElection("the subnet manager at " + p.String() + " reports a change")
	}
}
