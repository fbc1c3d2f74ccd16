package engine

import (
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/election"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// Why a manager does not count. Nothing in these texts is from a device, so that
// there are only so many of them.
const (
	rogueThere     = "nobody named it"
	rogueTwin      = "it is listed, but another port claims the same GUID"
	rogueMisplaced = "it is listed, but is not where the list of cables has it"
	rogueUnproven  = "it does not prove that it is the manager that it says it is"
	rogueSilent    = "it does not say who it is"
)

// fencedRogue begins the reason of a fence before such a manager.
const fencedRogue = "a subnet manager that nobody named: "

// capLook is the state of reading CapabilityMask of a port, to see whether IsSM is set.
type capLook struct {
	under, again bool
	next         time.Duration // no other before this
}

const (
	// silentGrace is how long one that may be ours may say nothing before a
	// strict manager fences it: it sweeps the subnet before it can.
	silentGrace = time.Minute
	// capLookGap is the least time between two looks at one port, whatever
	// comes from it.
	capLookGap = 200 * time.Millisecond
)

// alarm reports a manager that does not count, once for each reason. shown says that its
// location was verified, not only claimed: then a strict manager fences it.
func (e *Engine) alarm(p *observed.Port, reason string, shown bool) {
	since, tell := e.rogues.Saw(e.clock, p.Place(), p.GUID, reason)
	shown = shown && (reason != rogueSilent || e.clock >= since+silentGrace)
	if tell {
		e.emit(event.RogueManager{Port: p.GUID, At: facts.Where(p), Reason: reason})
	}
	// Of two ports with one GUID either may be the genuine one; and who is not
	// where he belongs is the business of the list of cables.
	if shown && reason != rogueTwin && reason != rogueMisplaced && e.config.Profile >= protect.Strict && p.Peer != nil {
		if _, fenced := e.known.Fences[p.Peer.Place()]; !fenced {
			e.Fence(p.Peer.Place(), fencedRogue+reason)
		}
	}
}

// acceptListed removes, when a manager starts, the fences before managers that are listed
// by now, and before ports that no longer report a manager.
func (e *Engine) acceptListed() {
	for _, f := range e.fences() {
		if !strings.HasPrefix(f.Reason, fencedRogue) {
			continue
		}
		q := e.fabric.At(f.At)
		if q == nil || q.Peer == nil || !q.Peer.InfoRead {
			continue
		}
		if may, _ := e.mayCount(q.Peer); may || !e.isRival(q.Peer) {
			e.Unfence(f.At, "accepted when the manager started")
		}
	}
}

// noteManager records whether PortInfo of p has IsSM set. Call it with every PortInfo
// that was read of an end port.
func (e *Engine) noteManager(p *observed.Port, isSM bool) {
	if !e.named() || e.managers == nil || p == e.fabric.Self || !p.IsEnd() {
		return
	}
	at := p.Place()
	p.Info.CapabilityMask &^= smp.CapIsSM
	if isSM {
		p.Info.CapabilityMask |= smp.CapIsSM
	}
	switch may, why := e.mayCount(p); {
	case !isSM:
		e.rogues.Went(at)
		if e.counted(p) {
			e.askPeers()
		}
	case !may:
		e.alarm(p, why, true)
	case e.counted(p) || e.silent[at] || e.rogues.Has(at, p.GUID):
	case e.isMaster():
		e.askPeers()
	default:
		e.wantSweep(p.String() + " says that a subnet manager is behind it")
	}
}

// counted reports whether the manager behind p took part in the last round.
func (e *Engine) counted(p *observed.Port) bool {
	for i := range e.here {
		if e.here[i].Address.Port == p.GUID {
			return true
		}
	}
	return false
}

// lookForManager reads PortInfo of a port that may have a manager behind it, at most
// once in capLookGap.
func (e *Engine) lookForManager(p *observed.Port) {
	if !e.named() || p == nil || !p.IsEnd() || !p.Reached || p == e.fabric.Self {
		return
	}
	at := p.Place()
	if e.looks[at] == nil {
		e.looks[at] = &capLook{}
	}
	e.looks[at].again = true
	e.startCapLooks()
}

// startCapLooks starts the reads that are due, and removes those that are done.
func (e *Engine) startCapLooks() {
	for at, l := range e.looks {
		switch {
		case l.under || e.clock < l.next:
		case !l.again:
			delete(e.looks, at)
		default:
			if p := e.fabric.At(at); p != nil && p.Reached {
				l.under, l.again, l.next = true, false, e.clock+capLookGap
				e.readCaps(p, l)
			} else {
				delete(e.looks, at)
			}
		}
	}
}

func (e *Engine) readCaps(p *observed.Port, l *capLook) {
	at, guid := p.Place(), p.GUID
	e.talk.Do(transact.Request{
		Path: p.Path, MKey: p.MKey(), Method: mad.MethodGet, Attribute: smp.AttrPortInfo,
	}, func(r transact.Reply) {
		l.under = false
		var info smp.PortInfo
		p := e.fabric.At(at)
		if r.Err != nil || info.UnmarshalBinary(r.SMP.Data[:]) != nil || p == nil || p.GUID != guid {
			return
		}
		e.noteManager(p, info.CapabilityMask.Has(smp.CapIsSM))
	})
}

// peersDue is when the next action concerning other managers is due.
func (e *Engine) peersDue() (at time.Duration, some bool) {
	for _, w := range []*transact.Window{e.talk, e.polls} {
		if due, waits := w.Deadline(); waits && (!some || due < at) {
			at, some = due, true
		}
	}
	if end := e.askedAt + electionWait; e.state == stateElecting && e.awaitsPeers() && (!some || end < at) {
		at, some = end, true
	}
	for _, l := range e.looks {
		if !l.under && (!some || l.next < at) {
			at, some = l.next, true
		}
	}
	return at, some
}

// ownerOf is the end port that has a LID; nil when none has, or two, or when the manager
// assigned it another.
func (e *Engine) ownerOf(lid ib.LID) *observed.Port {
	if e.fabric == nil {
		return nil
	}
	return e.holder(lid)
}

// requesterOf returns the source of an SMInfo request, and reports managers that are not
// named. A LID alone proves nothing: root on a host may give its port the LID of another.
func (e *Engine) requesterOf(p *mad.SMP, slid ib.LID) election.Address {
	var from election.Address
	if p.Class == mad.ClassSubnLID {
		from.LID = slid
	}
	sender, shown := facts.CameFrom(e.fabric, e.ends, p, slid)
	if sender == nil || sender == e.fabric.Self {
		return from
	}
	var asker smp.SMInfo
	err := asker.UnmarshalBinary(p.Data[:])
	proves := err == nil && e.managers.Proves(election.Remote{Info: asker, Address: election.Address{Port: sender.GUID}})
	if may, _ := e.mayCount(sender); may && (shown || proves) {
		from.Port = sender.GUID
	}
	counts := err == nil && e.managers.Counts(election.Remote{Info: asker, Address: from})
	switch {
	case p.Method == mad.MethodSet && !counts:
		e.alarm(sender, election.SentControl(p.AttributeModifier), shown)
	case !e.counted(sender):
		e.lookForManager(sender)
	}
	return from
}
