package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/election"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// startElection reads SMInfo of every other port with IsSM set.
func (e *Engine) startElection(now time.Duration) {
	e.state, e.others, e.reelect = stateElecting, nil, ""
	if err := e.enterElection(); err != nil {
		e.responder.on, e.responder.held = false, nil
		e.refuse(now, nil, err)
		return
	}
	e.answerHeld(now)
	if e.named() {
		if e.rounds == 0 {
			e.acceptListed()
		}
		e.askPeers()
		return
	}
	e.rivals = make(map[*observed.Port]smp.SMInfo)
	for _, p := range e.ends {
		if !e.isRival(p) {
			continue
		}
		if len(e.rivals) == 0 {
			e.begin(event.PhaseElect)
		}
		e.rivals[p] = smp.SMInfo{}
		e.askManager(p, func(info smp.SMInfo, err error) {
			if err != nil {
				e.emit(event.Warned{Text: p.String() + " says it has a subnet manager, but: " + err.Error()})
				return
			}
			e.rivals[p] = info
			e.others = append(e.others, election.Remote{Info: info, Address: election.Address{Path: p.Path}})
		})
	}
}

// keepRivals transfers the SMInfo of the last election to the ports of another snapshot.
func (e *Engine) keepRivals(old map[*observed.Port]smp.SMInfo) {
	e.rivals = make(map[*observed.Port]smp.SMInfo, len(old))
	for p, info := range old {
		if q := e.fabric.At(p.Place()); q != nil && q.GUID == p.GUID {
			e.rivals[q] = info
		}
	}
}

// asked reports whether the manager behind p took part in the last election.
func (e *Engine) asked(p *observed.Port) bool {
	_, ok := e.rivals[p]
	return ok
}

// recheckRivals asks the other managers whether their state has changed since the last
// election: one that was still discovering may now wait for this one to hand over.
func (e *Engine) recheckRivals() {
	if e.named() {
		e.askPeers()
		return
	}
	for _, p := range e.ends {
		if !e.asked(p) {
			continue
		}
		before := e.rivals[p]
		e.askManager(p, func(info smp.SMInfo, _ error) {
			if info.GUID != before.GUID || info.SMState != before.SMState || info.Priority != before.Priority {
				e.wantSweep(fmt.Sprintf("the subnet manager at %s is %s now", p, info.SMState))
			}
		})
	}
}

// isRival reports whether the end port p has IsSM set, and is not the manager's own.
func (e *Engine) isRival(p *observed.Port) bool {
	return p != e.fabric.Self && p.IsEnd() && p.InfoRead && p.Info.CapabilityMask.Has(smp.CapIsSM)
}

// enterElection checks that this manager can take part in the election; otherwise it may
// not write.
func (e *Engine) enterElection() error {
	if err := e.lockedOut(e.fabric); err != nil {
		return err
	}
	if e.fabric.Self == nil {
		return errors.New("the manager's own port did not answer")
	}
	return e.responder.err
}

// askManager reads SMInfo of the manager behind p. The SMInfo is zero if there is an
// error.
func (e *Engine) askManager(p *observed.Port, then func(smp.SMInfo, error)) {
	e.window.Do(transact.Request{
		Path: p.Path, Method: mad.MethodGet, Attribute: smp.AttrSMInfo,
	}, func(r transact.Reply) {
		var info smp.SMInfo
		err := r.Err
		if err == nil {
			err = info.UnmarshalBinary(r.SMP.Data[:])
		}
		then(info, err)
	})
}

// elected goes on as master, or goes to standby.
func (e *Engine) elected(now time.Duration) {
	if e.named() {
		e.electedNamed(now)
		return
	}
	verdict, effects := e.managers.Decide(now, e.others)
	e.follow(effects)
	if verdict == election.Master {
		if e.config.Hold {
			e.rest(now, stateHeld)
		} else {
			e.proceed(now)
		}
		return
	}
	var master ib.PortGUID
	for _, r := range e.others {
		if r.Info.SMState == smp.SMMaster {
			master = r.Info.GUID
		}
	}
	e.emit(event.Deferred{Master: master, Reason: verdict.String() + ", " + effects.Why})
	e.rest(now, stateStandby)
}

// follow carries out the effects of the election.
func (e *Engine) follow(f election.Effects) {
	for _, m := range f.Send {
		e.sendSMInfo(m)
	}
	switch {
	case f.Sweep && e.named() && f.From == smp.SMMaster && f.To == smp.SMMaster:
		e.askPeers() // nothing else has changed
	case f.Sweep:
		e.wantSweep("subnet managers: " + f.Why)
	}
	if f.From == smp.SMStandby && f.To != smp.SMStandby {
		e.stoodBy = f.Why
	}
	if f.From == smp.SMMaster && f.To != smp.SMMaster {
		e.emit(event.Deferred{Reason: f.Why})
		e.resign()
	}
	e.restoreKeys()
}

// isMaster reports whether this manager may write.
func (e *Engine) isMaster() bool { return e.managers != nil && e.managers.State() == smp.SMMaster }

// resign ends all writing, since only a master writes.
func (e *Engine) resign() {
	switch e.state {
	case stateWatching, stateHeld:
		e.state = stateStandby
	case stateSweeping:
		e.discovery.WriteNothing()
	case stateApplying, stateKeying, stateReleasing:
		e.run.Stop()
	}
}

func (e *Engine) sendSMInfo(m election.Message) {
	if e.delaysHandover(m) {
		return
	}
	r := transact.Request{
		Path: m.To.Path, LID: m.To.LID,
		Method: m.Method, Attribute: smp.AttrSMInfo, Modifier: uint32(m.Control),
	}
	window := e.window
	if e.named() {
		window = e.polls
	}
	if m.Method == mad.MethodSet || e.named() {
		if err := m.Info.Encode(&r.Data); err != nil {
			e.emit(event.Warned{Text: err.Error()})
			return
		}
	}
	window.Do(r, func(reply transact.Reply) {
		var info smp.SMInfo
		if reply.SMP == nil || info.UnmarshalBinary(reply.SMP.Data[:]) != nil {
			return // silence counts as a poll that failed
		}
		e.follow(e.managers.Answered(m, reply.SMP.Status, info))
	})
}

// strangersShare limits the answers to unknown requesters of SMInfo to this fraction of
// the queue, one in so many. A standby without answers would take its master for dead.
const strangersShare = 4

// receiveSMInfo handles an SMInfo request of another manager.
func (e *Engine) receiveSMInfo(now time.Duration, p *mad.SMP, slid ib.LID) {
	if e.managers == nil {
		return // not known yet who we are
	}
	if !e.responder.on {
		e.responder.held.Keep(p, slid)
		return
	}
	from := election.Address{}
	if e.named() {
		from = e.requesterOf(p, slid)
	} else if p.Class == mad.ClassSubnLID {
		from.LID = slid
	}
	if e.staysSilent(from) {
		e.responder.held.Keep(p, slid)
		return
	}
	reply := *p
	effects, ok := e.managers.Serve(now, from, &reply)
	if !ok {
		return
	}
	dlid := slid
	if p.Class == mad.ClassSubnDirected {
		dlid = ib.LIDPermissive
	}
	if from.Port != 0 || !e.named() || len(e.outbox) < outboxMax/strangersShare {
		e.answer(reply, dlid)
	}
	e.noteEarlyHandover(p, from)
	e.follow(effects)
}

// tickManagers advances the time of the election.
func (e *Engine) tickManagers(now time.Duration) {
	if e.managers == nil || e.state == stateReleasing { // an offer stands until it can be sent
		return
	}
	if due, ok := e.managers.Due(); ok && now >= due {
		e.follow(e.managers.Tick(now))
	}
	e.tickPriorityTrap(now)
}
