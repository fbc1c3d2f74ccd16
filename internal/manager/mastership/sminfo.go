package mastership

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
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
	held Questions
}

// Placed sets this manager's port: from now on it is discovering.
func (x *Peers) Placed(guid ib.PortGUID) {
	if x.election != nil {
		return
	}
	c := x.config.Election
	c.GUID, c.Named = guid, x.Named()
	x.election, x.responder.err = NewElection(c)
	if x.responder.err == nil {
		x.host.Emit(event.Announced{Port: guid})
	}
}

// AnswerHeld answers the requests that were kept, now that their senders are known.
func (x *Peers) AnswerHeld(now time.Duration) {
	held := x.responder.held
	x.responder.on, x.responder.held = true, nil
	for i := range held {
		x.Receive(now, &held[i].SMP, held[i].SLID)
	}
}

// answerPartner answers a master that shows the key of the pair while this manager still reads
// the subnet: a strict master does not wait for that (ProofGrace). It does not matter where the
// question comes from, since who knows the key of the pair is told nothing that he could show to
// anybody else, and that this manager is discovering.
func (x *Peers) answerPartner(now time.Duration, p *mad.SMP, slid ib.LID) bool {
	var asker smp.SMInfo
	if !x.Named() || p.Method != mad.MethodGet || asker.UnmarshalBinary(p.Data[:]) != nil || asker.SMState != smp.SMMaster {
		return false
	}
	from := Address{Port: asker.GUID}
	if !x.election.Proves(Remote{Info: asker, Address: from}) {
		return false
	}
	reply, state := *p, x.election.State()
	if _, ok := x.election.Serve(now, from, &reply); !ok {
		return false
	}
	x.notePromise(now, p, from, state)
	dlid := slid
	if p.Class == mad.ClassSubnDirected {
		dlid = ib.LIDPermissive
	}
	x.host.Answer(reply, dlid, 1)
	return true
}

// staysSilent reports whether a manager that is new to the subnet does not answer this
// requester yet: it may find a master to which it leaves the subnet, and a manager that
// had handed over to it by then would have left the subnet without a master.
func (x *Peers) staysSilent(from Address) bool {
	return x.Named() && x.newcomer && from.Port == 0 && !x.IsMaster() && x.election.State() != smp.SMStandby
}

// noteEarlyHandover handles a HANDOVER that arrives while this manager is discovering. It is
// refused, but OpenSM, for one, goes to standby nevertheless: this manager then becomes
// master of a subnet that had another master until now.
func (x *Peers) noteEarlyHandover(p *mad.SMP, from Address) {
	var sender smp.SMInfo
	if p.Method != mad.MethodSet || p.AttributeModifier != uint32(smp.SMControlHandover) || x.election.State() != smp.SMDiscovering ||
		sender.UnmarshalBinary(p.Data[:]) != nil || !x.election.Counts(Remote{Info: sender, Address: from}) {
		return
	}
	x.StoodBy = fmt.Sprintf("%s handed over", sender.GUID)
}

// Recheck reads SMInfo of a manager that took part in the last round, and whose
// port reports a change: a standby of higher rank reports itself that way.
func (x *Peers) Recheck(p *observed.Port) {
	switch {
	case !x.IsMaster():
	case x.Named() && x.counted(p):
		x.election.Reconsider(p.GUID)
		x.Ask()
	case !x.Named() && x.Asked(p):
		x.host.Want(WantElection, "the subnet manager at "+p.String()+" reports a change")
	}
}
