package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/watch"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// allows reports whether another trap of s is processed, and reports senders of too many.
func (e *Engine) allows(now time.Duration, s *watch.Sender, who string) bool {
	if s.Allows(now) {
		return true
	}
	e.tellOnce(s, event.Flooded{Sender: who})
	return false
}

func (e *Engine) tellOnce(s *watch.Sender, ev event.Event) {
	if s.Tell() {
		e.emit(ev)
	}
}

// holder is the end port to which the manager has assigned a LID, and which reports to
// have it; nil for none. A LID that another port has taken has no holder.
func (e *Engine) holder(lid ib.LID) *observed.Port {
	return e.beside.owners.Of(lid, e.fabric, e.proof.epoch, e.ends, e.given())
}

func (e *Engine) directory() *watch.Directory {
	return &watch.Directory{Holder: e.holder, Ends: e.ends, Prefix: e.config.GIDPrefix}
}

// receiveRequest handles requests and traps of other nodes.
func (e *Engine) receiveRequest(now time.Duration, p *mad.SMP, slid ib.LID) {
	switch {
	case p.Method == mad.MethodTrap && p.AttributeID == smp.AttrNotice:
		e.receiveTrap(now, p, slid)
	case p.AttributeID == smp.AttrSMInfo && (p.Method == mad.MethodGet || p.Method == mad.MethodSet):
		e.master.Receive(now, p, slid)
	}
}

// receiveTrap handles a trap. One of a sender that the snapshot does not know, or that
// sends too many, is dropped first; one in the name of another port is not believed. Any
// other is answered with TrapRepress, so that its sender stops, and costs at most a look
// at its sender.
func (e *Engine) receiveTrap(now time.Duration, p *mad.SMP, slid ib.LID) {
	if p.Class != mad.ClassSubnLID || e.fabric == nil {
		return // traps go by LID
	}
	from := e.holder(slid)
	if from == nil {
		e.allows(now, &e.beside.senders.Unknown, "a sender whose LID belongs to no port")
		return
	}
	s := e.beside.senders.Of(now, from.Place())
	var n smp.Notice
	if !e.allows(now, s, from.String()) || n.UnmarshalBinary(p.Data[:]) != nil {
		return
	}
	if e.holder(n.IssuerLID) != from {
		e.tellOnce(s, event.Disbelieved{Sender: from.String(), Number: n.TrapNumber, Issuer: n.IssuerLID})
		return
	}
	if !e.repress(now, p, slid, &n) || !n.IsGeneric {
		return
	}
	e.heard(from, slid, n)
}

// heard tells of an event, and follows it.
func (e *Engine) heard(from *observed.Port, slid ib.LID, n smp.Notice) {
	trapped := event.Trapped{Number: n.TrapNumber, Issuer: n.IssuerLID, Notice: n, Sender: slid, Report: watch.Explain(from, &n, e.directory())}
	e.emit(trapped)
	e.followTrap(from, trapped)
}

// followTrap looks at the sender of a trap, if the trap is about the sender.
func (e *Engine) followTrap(from *observed.Port, t event.Trapped) {
	details, ok := t.Notice.TypedDetails()
	if !ok {
		return
	}
	switch d := details.(type) {
	case *smp.LinkStateDetails:
		if from.Node.Switch != nil && e.holder(d.LID) == from {
			e.wantLook(from, t)
		}
	case *smp.LocalChangeDetails:
		if e.holder(d.LID) == from {
			e.wantLook(from, t)
		}
	case *smp.BadMKeyDetails:
		e.suspect(from, d)
	}
}

// wantLook has a node looked at. If no policy is monitored, the subnet is swept instead,
// since the next pass will rely on that.
func (e *Engine) wantLook(p *observed.Port, t event.Trapped) {
	if t.Number == smp.TrapLocalChange {
		e.master.Recheck(p)
		e.master.LookFor(p)
	}
	if e.desired == nil && e.atRest() {
		e.agenda.wantSweep(t.String())
		return
	}
	e.agenda.wantLook(p.Agent().Place(), false)
}

// outboxMax bounds the answers that wait to be sent: a requester that asks faster than
// they leave has to ask again.
const outboxMax = 256

func (e *Engine) answer(p mad.SMP, dlid ib.LID, share int) {
	if len(e.outbox) < outboxMax/share {
		e.outbox = append(e.outbox, outgoing{p, dlid})
	}
}

// repress answers a trap, so that its sender stops. A port that is guarded takes
// no answer without its key, and a program of a host can ask for such answers:
// so only switches get theirs, by a directed route to the agent itself. Other
// guarded ports repeat theirs; false says that this one was heard before. A manager
// that may count has sent its trap itself and needs no key for the answer: OpenSM
// does nothing until it has come.
func (e *Engine) repress(now time.Duration, p *mad.SMP, slid ib.LID, n *smp.Notice) (fresh bool) {
	reply := *p
	reply.Method, reply.MKey = mad.MethodTrapRepress, 0
	if e.config.MKey == 0 && e.keys.Config == nil {
		e.answer(reply, slid, 1)
		return true
	}
	s := e.ownerOf(slid)
	if s != nil && e.master.Named() && watch.IsOfManager(n) {
		if may, _ := e.master.MayCount(s); may {
			e.answer(reply, slid, 1)
			return true
		}
	}
	if s == nil || s.Node.Switch == nil {
		return !e.beside.traps.Again(now, watch.Trap{From: slid, Transaction: p.TransactionID, Notice: *n})
	}
	e.answer(watch.Redirected(reply, s), ib.LIDPermissive, 1)
	return true
}
