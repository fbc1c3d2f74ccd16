package mastership

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// Begin begins an election: it answers who asked meanwhile, and reads SMInfo of every
// other port with IsSM set.
func (x *Peers) Begin(now time.Duration) {
	x.AnswerHeld(now)
	if x.Named() {
		if x.round.count == 0 {
			x.acceptListed()
		}
		x.Ask()
		return
	}
	x.rivals = make(map[*observed.Port]smp.SMInfo)
	for _, p := range x.host.Facts().Ends {
		if !x.IsRival(p) {
			continue
		}
		if len(x.rivals) == 0 {
			x.host.Emit(event.PhaseBegun{Phase: event.PhaseElect})
		}
		x.rivals[p] = smp.SMInfo{}
		x.askManager(p, func(info smp.SMInfo, err error) {
			if err != nil {
				x.host.Emit(event.Warned{Text: p.String() + " says it has a subnet manager, but: " + err.Error()})
				return
			}
			x.rivals[p] = info
			x.others = append(x.others, Remote{Info: info, Address: Address{Path: p.Path}})
		})
	}
}

// Err is why this manager cannot take part in an election; nil when it can.
func (x *Peers) Err() error { return x.responder.err }

// Close has requests kept until the next election, and forgets who answered in the last.
func (x *Peers) Close() { x.others = nil }

// Mute keeps this manager from answering: it takes no part in the election.
func (x *Peers) Mute() { x.responder.on, x.responder.held = false, nil }

// Rivals are the other managers in the last election, with zero SMInfo where none
// answered.
func (x *Peers) Rivals() map[*observed.Port]smp.SMInfo { return x.rivals }

// Rogues is how many managers that do not count were seen.
func (x *Peers) Rogues() int { return len(x.rogues) }

// Keep transfers the SMInfo of an election to the ports of another snapshot.
func (x *Peers) Keep(old map[*observed.Port]smp.SMInfo) {
	x.rivals = make(map[*observed.Port]smp.SMInfo, len(old))
	for p, info := range old {
		if q := x.host.Facts().Fabric.At(p.Place()); q != nil && q.GUID == p.GUID {
			x.rivals[q] = info
		}
	}
}

// Asked reports whether the manager behind p took part in the last election.
func (x *Peers) Asked(p *observed.Port) bool {
	_, ok := x.rivals[p]
	return ok
}

// RecheckAll asks the other managers whether their state has changed since the last
// election: one that was still discovering may now wait for this one to hand over.
func (x *Peers) RecheckAll() {
	if x.Named() {
		x.Ask()
		return
	}
	for _, p := range x.host.Facts().Ends {
		if !x.Asked(p) {
			continue
		}
		before := x.rivals[p]
		x.askManager(p, func(info smp.SMInfo, _ error) {
			if info.GUID != before.GUID || info.SMState != before.SMState || info.Priority != before.Priority {
				x.host.Want(WantSweep, fmt.Sprintf("the subnet manager at %s is %s now", p, info.SMState))
			}
		})
	}
}

// IsRival reports whether the end port p has IsSM set, and is not the manager's own.
func (x *Peers) IsRival(p *observed.Port) bool {
	return p != x.host.Facts().Fabric.Self && p.IsEnd() && p.InfoRead && p.Info.CapabilityMask.Has(smp.CapIsSM)
}

// askManager reads SMInfo of the manager behind p. The SMInfo is zero if there is an
// error.
func (x *Peers) askManager(p *observed.Port, then func(smp.SMInfo, error)) {
	x.host.Ask(transact.Request{
		Path: p.Path, Method: mad.MethodGet, Attribute: smp.AttrSMInfo,
	}, func(r transact.Reply) {
		var info smp.SMInfo
		err := r.Err
		if err == nil {
			err = info.UnmarshalBinary(r.SMP.Data[:])
		}
		x.hearAt(p.GUID, info, err)
		then(info, err)
	})
}

// DecideBelieved evaluates the answers of an election in which every manager counts.
func (x *Peers) DecideBelieved(now time.Duration) (why string, master bool) {
	verdict, effects := x.election.Decide(now, x.others)
	x.follow(effects)
	if x.IsMaster() {
		x.host.Emit(event.Asked{Alone: verdict == Master})
	}
	return verdict.String() + ", " + effects.Why, verdict == Master
}

// follow carries out the effects of the election.
func (x *Peers) follow(f Effects) {
	for _, m := range f.Send {
		x.Send(m)
	}
	switch {
	case f.Sweep && x.Named() && f.From == smp.SMMaster && f.To == smp.SMMaster:
		x.Ask() // nothing else has changed
	case f.Sweep:
		x.host.Want(WantSweep, "subnet managers: "+f.Why)
	}
	if f.From == smp.SMStandby && f.To != smp.SMStandby {
		x.StoodBy, x.Other = f.Why, !x.Stored && x.PolicyOf(f.Former) == observed.PolicyOther
	}
	if f.Lost {
		x.gaveUp = f.Former
	}
	x.host.Follow(f)
}

// IsMaster reports whether this manager may write.
func (x *Peers) IsMaster() bool { return x.election != nil && x.election.State() == smp.SMMaster }

// State is this manager's state in the election.
func (x *Peers) State() smp.SMState {
	if x.election == nil {
		return smp.SMDiscovering
	}
	return x.election.State()
}

// Info is this manager's own SMInfo, once its port is known.
func (x *Peers) Info() smp.SMInfo { return x.election.Info() }

// Act counts a packet that shows that this manager is alive.
func (x *Peers) Act() {
	if x.election != nil {
		x.election.Act(1)
	}
}

// Offers reports whether mastership is offered to another manager.
func (x *Peers) Offers() bool { return x.election.Offers() }

// Sharing reports whether a manager of the last round has this GUID and shares the secret.
func (x *Peers) Sharing(guid ib.PortGUID) bool {
	for _, r := range x.round.here {
		if r.Info.GUID == guid && x.election.Proves(r) {
			return true
		}
	}
	return false
}

// Send sends a message of the election, unless the host withholds it.
func (x *Peers) Send(m Message) {
	if x.host.Withholds(m) {
		return
	}
	r := transact.Request{
		Path: m.To.Path, LID: m.To.LID,
		Method: m.Method, Attribute: smp.AttrSMInfo, Modifier: uint32(m.Control),
	}
	do := x.host.Ask
	if x.Named() {
		do = x.polls.Do
	}
	if m.Method == mad.MethodSet || x.Named() {
		if err := m.Info.Encode(&r.Data); err != nil {
			x.host.Emit(event.Warned{Text: err.Error()})
			return
		}
	}
	do(r, func(reply transact.Reply) {
		var info smp.SMInfo
		if reply.SMP == nil || info.UnmarshalBinary(reply.SMP.Data[:]) != nil {
			x.hearAt(m.To.Port, info, ErrAsking)
			return // silence counts as a poll that failed
		}
		x.hearAt(m.To.Port, info, nil)
		x.follow(x.election.Answered(m, reply.SMP.Status, info))
	})
}

// strangersShare limits the answers to unknown requesters of SMInfo to this fraction of
// the queue, one in so many. A standby without answers would take its master for dead.
const strangersShare = 4

// Receive handles an SMInfo request of another manager.
func (x *Peers) Receive(now time.Duration, p *mad.SMP, slid ib.LID) {
	if x.election == nil {
		return // not known yet who we are
	}
	if !x.responder.on {
		if !x.answerPartner(now, p, slid) {
			x.responder.held.Keep(p, slid)
		}
		return
	}
	from := Address{}
	if x.Named() {
		from = x.requesterOf(p, slid)
	} else if p.Class == mad.ClassSubnLID {
		from.LID = slid
	}
	if x.staysSilent(from) {
		x.responder.held.Keep(p, slid)
		return
	}
	reply, state := *p, x.election.State()
	effects, ok := x.election.Serve(now, from, &reply)
	if !ok {
		return
	}
	x.notePromise(now, p, from, state)
	dlid := slid
	if p.Class == mad.ClassSubnDirected {
		dlid = ib.LIDPermissive
	}
	x.answerPolicy(p, from, &reply)
	share := 1
	if from.Port == 0 && x.Named() {
		share = strangersShare
	}
	x.host.Answer(reply, dlid, share)
	x.noteEarlyHandover(p, from)
	x.follow(effects)
}

// Tick advances the time of the election.
func (x *Peers) Tick(now time.Duration) {
	if x.election == nil {
		return
	}
	if due, ok := x.election.Due(); ok && now >= due {
		x.follow(x.election.Tick(now))
	}
	x.tickPriorityTrap(now)
	x.askPolicies()
}

// Due is when to call Expire, Tick and Advance. electing says that an election waits for
// answers, paused that Tick is not to be called.
func (x *Peers) Due(electing, paused bool) (at time.Duration, some bool) {
	at, some = x.due(electing)
	sooner := func(due time.Duration, ok bool) {
		if ok && (!some || due < at) {
			at, some = due, true
		}
	}
	sooner(x.priorityTrapDue())
	if x.election != nil && !paused {
		sooner(x.election.Due())
		sooner(x.policiesDue())
	}
	return at, some
}
